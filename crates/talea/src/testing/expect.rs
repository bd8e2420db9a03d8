//! Assertions on snapshots, for tests.

use super::failure;
use crate::histogram::snapshot::HistogramSnapshot;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Asserts that the counter or gauge series with exactly these labels, in any
    /// order, has this value; NaN equals NaN. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is no such series, or it has another value; the message shows the
    /// nearest series.
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe" }).inc();
    /// registry.snapshot().assert_value("sales_total", &[("country", "pe")], 1.0);
    /// # Ok::<(), talea::Error>(())
    /// ```
    #[track_caller]
    pub fn assert_value(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        if !self
            .value(name, labels)
            .is_some_and(|found: f64| found == expected || (found.is_nan() && expected.is_nan()))
        {
            panic!("{}", failure::wrong_value(self, name, labels, expected));
        }
    }

    /// The value of the counter or gauge series with exactly these labels, in any
    /// order, as [`Snapshot::value`] has it. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is no such series; the message shows the nearest ones.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// let orders: Counter = registry.register(Opts::new("orders", "Orders."))?;
    /// orders.add(5);
    /// assert!(registry.snapshot().expect_value("orders_total", &[]) > 4.0);
    /// # Ok::<(), talea::Error>(())
    /// ```
    #[track_caller]
    pub fn expect_value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let Some(value) = self.value(name, labels) else {
            panic!("{}", failure::no_value(self, name, labels));
        };
        value
    }

    /// The histogram over all series of a family that carry these labels, as
    /// [`Snapshot::histogram`] has it. Cost: linear in the family's series.
    ///
    /// # Panics
    ///
    /// There is no such series; the message shows the nearest ones.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use talea::{Histogram, Opts, Registry, Seconds};
    /// # let registry = Registry::for_test()?;
    /// let times: Histogram<Seconds> = registry.register(Opts::new("pricing", "Pricing."))?;
    /// times.observe(Duration::from_millis(250));
    /// let pricing = registry.snapshot().expect_histogram("pricing_seconds", &[]);
    /// assert_eq!((pricing.count(), pricing.sum()), (1, 0.25));
    /// # Ok::<(), talea::Error>(())
    /// ```
    #[track_caller]
    pub fn expect_histogram(&self, name: &str, labels: &[(&str, &str)]) -> HistogramSnapshot {
        let Some(histogram) = self.histogram(name, labels) else {
            panic!("{}", failure::no_histogram(self, name, labels));
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
    ///
    /// ```
    /// # use talea::{Counter, Family, Labels, Opts, Registry};
    /// # #[derive(Labels)]
    /// # struct Sale { country: &'static str }
    /// # let registry = Registry::for_test()?;
    /// # let sales: Family<Sale, Counter> = registry.register(Opts::new("sales", "Sales."))?;
    /// sales.with(Sale { country: "pe" }).inc();
    /// registry.snapshot().assert_no_series("sales_total", &[("country", "ch")]);
    /// # Ok::<(), talea::Error>(())
    /// ```
    #[track_caller]
    pub fn assert_no_series(&self, name: &str, labels: &[(&str, &str)]) {
        let found: Vec<_> = self.select(name, labels).collect();
        if !found.is_empty() {
            panic!("{}", failure::unwanted(&found, name, labels));
        }
    }
}
