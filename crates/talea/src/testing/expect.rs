//! Assertions on snapshots, for tests.

use super::failure::{self, Wanted};
use crate::histogram::snapshot::HistogramSnapshot;
use crate::snapshot::Snapshot;

/// Assertions for tests: what they ask for, they find or panic with the nearest series.
///
/// ```
/// # use talea::{Counter, Histogram, Opts, Registry, Seconds};
/// # let registry = Registry::for_test()?;
/// let sales = registry.family::<Counter>(Opts::new("sales", "Sales."), &["country"])?;
/// let pricing: Histogram<Seconds> = registry.register(Opts::new("pricing", "Pricing."))?;
/// sales.with_values(&["pe"]).inc();
/// pricing.observe(std::time::Duration::from_millis(250));
/// let snapshot = registry.snapshot();
/// snapshot.assert_value("sales_total", &[("country", "pe")], 1.0);
/// snapshot.assert_no_series("sales_total", &[("country", "ch")]);
/// assert!(snapshot.expect_value("sales_total", &[("country", "pe")]) > 0.0);
/// assert_eq!(snapshot.expect_histogram("pricing_seconds", &[]).sum(), 0.25);
/// # Ok::<(), talea::Error>(())
/// ```
impl Snapshot {
    /// Asserts that the counter or gauge series with exactly these labels, in any
    /// order, has this value; NaN equals NaN. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is no such series, or it has another value; the message shows the
    /// nearest series.
    #[track_caller]
    pub fn assert_value(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        let same = |found: f64| found == expected || (found.is_nan() && expected.is_nan());
        if !self.value(name, labels).is_some_and(same) {
            panic!("{}", failure::wrong_value(self, name, labels, expected));
        }
    }

    /// The value of the counter or gauge series with exactly these labels, in any
    /// order, as [`Snapshot::value`] has it. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is no such series; the message shows the nearest ones.
    #[track_caller]
    pub fn expect_value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let Some(value) = self.value(name, labels) else {
            panic!("{}", failure::none(self, name, labels, Wanted::Value));
        };
        value
    }

    /// The histogram over all series of a family that carry these labels, as
    /// [`Snapshot::histogram`] has it. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is no such series; the message shows the nearest ones.
    #[track_caller]
    pub fn expect_histogram(&self, name: &str, labels: &[(&str, &str)]) -> HistogramSnapshot {
        let Some(histogram) = self.histogram(name, labels) else {
            panic!("{}", failure::none(self, name, labels, Wanted::Histogram));
        };
        histogram
    }

    /// Asserts that no series of this name carries these labels, among others or
    /// not. A family that is not there has none, so take the name from an
    /// assertion that finds it. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is such a series; the message shows it.
    #[track_caller]
    pub fn assert_no_series(&self, name: &str, labels: &[(&str, &str)]) {
        let found: Vec<_> = self.select(name, labels).collect();
        if !found.is_empty() {
            panic!("{}", failure::unwanted(&found, name, labels));
        }
    }
}
