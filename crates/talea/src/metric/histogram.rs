//! Histograms: how many observations were how large.

use std::marker::PhantomData;
use std::time::Instant;

use talea_region::{Cells, Combine, Number};

use super::{Kind, Metric, Sealed, Shape};
use crate::exemplar::{self, ExemplarRefused};
use crate::opts::Opts;
use crate::slot::{self, Slot};
use crate::unit::{Seconds, Unit};

/// Counts observations by size, with their sum. The unit is in the type:
/// `Histogram<Seconds>` observes a `Duration`, `Histogram<Bytes>` a `u64`.
///
/// A bucket holds what is at most its threshold and more than the one below. The
/// count is the sum of the buckets, so the two agree at any instant.
///
/// The sum is a 64-bit integer of what is kept: of durations nanoseconds, which wrap
/// after 584 years of them.
///
/// Cost: a binary search over the thresholds and two adds, each as a
/// [`Counter`](crate::Counter)'s.
#[derive(Debug)]
pub struct Histogram<U: Unit> {
    bound: Slot<Bound>,
    unit: PhantomData<U>,
}

/// The cells of a histogram: a bucket for each threshold, one for what is above
/// them all, and the sum.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    cells: Cells,
    thresholds: &'static [u64],
}

impl slot::Bound for Bound {
    fn keep(self) -> bool {
        self.cells.at(0).keep().is_ok()
    }
}

impl<U: Unit> Clone for Histogram<U> {
    fn clone(&self) -> Self {
        Self { bound: self.bound.clone(), unit: PhantomData }
    }
}

impl<U: Unit> Default for Histogram<U> {
    fn default() -> Self {
        Self::new()
    }
}

impl<U: Unit> Histogram<U> {
    /// A histogram that is not installed yet: what it is told goes nowhere.
    pub const fn new() -> Self {
        Self { bound: Slot::late(), unit: PhantomData }
    }

    /// Counts one observation. What is above all thresholds is in the bucket `+Inf`.
    #[inline]
    pub fn observe(&self, value: U::Value) {
        if let Some(Bound { cells, thresholds }) = self.bound.get() {
            let kept = U::kept(value);
            cells.at(thresholds.partition_point(|&t| t < kept)).add(1);
            cells.at(thresholds.len() + 1).add(kept);
        }
    }
}

impl<U: Unit> Histogram<U> {
    /// Counts one observation and keeps it as the exemplar of its bucket: by its labels,
    /// usually the id of its trace, it can be found. Formats that know exemplars show the
    /// latest of each bucket.
    ///
    /// Cost: an observation, a look at the clock and a copy of the labels; the first of a
    /// bucket takes memory of the region. Observations that carry none cost what they did.
    ///
    /// # Errors
    ///
    /// The exemplar is refused, and the observation counts all the same: the labels have
    /// more than 128 characters together, a name is none, or there is no room.
    pub fn observe_with_exemplar(
        &self,
        value: U::Value,
        labels: &[(&str, &str)],
    ) -> Result<(), ExemplarRefused> {
        self.observe(value);
        let Some(Bound { cells, thresholds }) = self.bound.get() else { return Ok(()) };
        let kept = U::kept(value);
        let bucket = cells.at(thresholds.partition_point(|&t| t < kept));
        exemplar::keep(bucket, kept as f64 / U::PER_UNIT, labels)
    }
}

impl Histogram<Seconds> {
    /// Starts a timer that observes when it is dropped, on every way out. Cost: two
    /// readings of the monotonic clock, and the observation.
    #[inline]
    pub fn time(&self) -> Timer<'_> {
        Timer { histogram: self, start: Instant::now() }
    }

    /// Runs a future and observes how long that took, from its first poll on; also where
    /// it is dropped before it is done, as when a client has gone. Cost: as
    /// [`time`](Self::time).
    ///
    /// ```
    /// # use talea::{Histogram, Opts, Registry, Seconds};
    /// # async fn price() -> u64 { 1250 }
    /// # async fn pricing(pricing: Histogram<Seconds>) {
    /// let cents = pricing.time_future(price()).await;
    /// # let _ = cents;
    /// # }
    /// ```
    pub async fn time_future<F: Future>(&self, future: F) -> F::Output {
        let _timer = self.time();
        future.await
    }
}

/// Observes the time from its making to its end; see [`Histogram::time`]. To observe
/// nothing after all, give it to [`std::mem::forget`].
#[must_use = "a timer that is dropped at once measures nothing"]
#[derive(Debug)]
pub struct Timer<'a> {
    histogram: &'a Histogram<Seconds>,
    start: Instant,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.histogram.observe(self.start.elapsed());
    }
}

impl<U: Unit> Metric for Histogram<U> {}

impl<U: Unit> Sealed for Histogram<U> {
    type Bound = Bound;

    // Only ever copied.
    #[allow(clippy::declare_interior_mutable_const)]
    const UNBOUND: Self = Self::new();

    fn shape(opts: &Opts<'_>) -> Result<Shape, String> {
        Shape::without_choice(opts)?;
        let thresholds = thresholds::<U>(opts.buckets.unwrap_or(U::BUCKETS))?;
        Ok(Shape {
            kind: Kind::Histogram,
            number: Number::Integer,
            storage: None,
            combine: Combine::Sum,
            ending: U::SUFFIX,
            per_unit: U::PER_UNIT,
            cells: thresholds.len() + 2,
            thresholds,
            states: Vec::new(),
        })
    }

    #[inline]
    fn bind(cells: Cells, thresholds: &'static [u64]) -> Bound {
        Bound { cells, thresholds }
    }

    #[inline]
    fn holding(bound: Slot<Bound>) -> Self {
        Self { bound, unit: PhantomData }
    }

    #[inline]
    fn slot(&self) -> &Slot<Bound> {
        &self.bound
    }
}

/// Thresholds as they are kept, or what is wrong with them.
fn thresholds<U: Unit>(shown: &[f64]) -> Result<Vec<u64>, String> {
    let expected = "buckets are finite, positive, ascending and at most 1,024";
    if shown.is_empty() || shown.len() > 1024 {
        return Err(format!("{expected}; found {} of them", shown.len()));
    }
    let mut kept: Vec<u64> = Vec::with_capacity(shown.len());
    for &threshold in shown {
        let scaled = (threshold * U::PER_UNIT).round();
        // A threshold below the smallest kept unit would be 0.
        if !(1.0..u64::MAX as f64).contains(&scaled) {
            return Err(format!("{expected}; found {threshold}"));
        }
        let scaled = scaled as u64;
        if kept.last().is_some_and(|&last| last >= scaled) {
            return Err(format!("{expected}; found {threshold} after one that is as large"));
        }
        kept.push(scaled);
    }
    Ok(kept)
}
