//! Summaries: quantiles of recent observations.

use std::marker::PhantomData;

use talea_region::Cells;

use super::histogram::{self, HistogramCells, histogram_cells};
use super::slot::Slot;
use super::{Metric, Sealed, Shape};
use crate::definition::kind::Kind;
use crate::definition::opts::{Bucketing, Opts};
use crate::definition::unit::Unit;
use crate::histogram::buckets::Grid;

/// Shows quantiles of the observations of the last ten minutes, with the count and the
/// sum of all there ever were. The unit is in the type, as a
/// [`Histogram`](crate::Histogram)'s.
///
/// An observation is recorded as in a histogram with native buckets, at the same cost. The process
/// that takes snapshots stores the counts every ten seconds for the length of the window, and shows
/// the difference. A quantile is within 4.33 % of the exact one at the default [`Opts::schema`], as
/// long as the values of the series use no more buckets than [`Opts::max_buckets`]: the buckets of 20
/// octaves. Beyond that the series gets coarser, and the bound doubles with each step. If nothing
/// was observed in that time it is NaN, as Prometheus expects. Quantiles of several series or
/// services cannot be aggregated: if you need that, use a histogram.
///
/// The memory of a process that takes snapshots, for each series: at most 61 times 100
/// bytes and 16 for each bucket that was counted in within ten seconds.
///
/// ```
/// use std::time::Duration;
/// use talea::{Opts, Registry, Seconds, Summary};
///
/// let registry = Registry::for_test()?;
/// let opts = Opts::new("shop_pricing", "Time to price a basket.").quantiles(&[0.5, 0.99]);
/// let pricing: Summary<Seconds> = registry.register(opts)?;
/// for ms in 1..=100 {
///     pricing.observe(Duration::from_millis(ms));
/// }
/// let snapshot = registry.snapshot();
/// let p99 = snapshot.value("shop_pricing_seconds", &[("quantile", "0.99")]).unwrap();
/// assert!((p99 / 0.099 - 1.0).abs() < 0.0434, "{p99}");
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Debug)]
pub struct Summary<U: Unit> {
    bound: Slot<HistogramCells>,
    unit: PhantomData<U>,
}

impl<U: Unit> Summary<U> {
    /// Counts one observation.
    #[inline]
    pub fn observe(&self, value: U::Value) {
        self.bound.observe::<U>(value);
    }
}

histogram_cells!(Summary, |opts: &Opts<'_>| {
    let recent = histogram::recent(opts, opts.quantiles.unwrap_or(&[0.5, 0.9, 0.99]))?;
    let kept = match opts.sampled {
        true => Opts { bucketing: Bucketing::Classic, quantiles: None, ..*opts },
        false => opts.bucketing(Bucketing::Native),
    };
    let shape = histogram::shape::<U>(&kept)?;
    Ok(Shape { kind: Kind::Summary, recent: Some(recent), ..shape })
});
