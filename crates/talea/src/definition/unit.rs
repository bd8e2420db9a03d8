//! Units: the type parameter of a histogram says what it measures.

use std::time::Duration;

/// The unit of a histogram. Observations are stored as integers, so that sums are exact, and
/// divided once, when they are shown.
/// Define your own, for example:
///
/// ```
/// use talea::{Histogram, Opts, Registry, Unit};
///
/// /// Prices, kept in cents and shown in euros.
/// #[derive(Clone, Copy)]
/// enum Euros {}
///
/// impl Unit for Euros {
///     type Value = u64;
///     const SUFFIX: &'static str = "_euros";
///     const PER_UNIT: f64 = 100.0;
///     const BUCKETS: &'static [f64] = &[1.0, 10.0, 100.0];
///     fn kept(cents: u64) -> u64 {
///         cents
///     }
/// }
///
/// let registry = Registry::for_test()?;
/// let prices: Histogram<Euros> = registry.register(Opts::new("price", "Prices."))?;
/// prices.observe(1250);
/// assert_eq!(registry.snapshot().expect_histogram("price_euros", &[]).sum(), 12.5);
/// # Ok::<(), talea::Error>(())
/// ```
pub trait Unit: Copy + Send + Sync + 'static {
    /// The type of an observation.
    type Value: Copy;
    /// The end of the metric's name, with its underscore; empty for none.
    const SUFFIX: &'static str;
    /// How many of the kept integers make one of the shown unit.
    const PER_UNIT: f64;
    /// The default thresholds, in the shown unit: finite, positive, ascending.
    const BUCKETS: &'static [f64];
    /// Whether floats are stored. Then [`kept`](Self::kept) returns the bits of one,
    /// [`PER_UNIT`](Self::PER_UNIT) is 1, thresholds may be negative or 0, and the sum is a float.
    const IS_FLOAT: bool = false;
    /// The stored integer, which is larger for larger values. It is called on every observation.
    fn kept(value: Self::Value) -> u64;
}

/// Durations, kept in nanoseconds and shown in seconds. Default buckets: 14 from 5 ms to
/// 10 s.
#[derive(Clone, Copy, Debug)]
pub enum Seconds {}

/// Seconds from which on nanoseconds may be too many to keep.
const FOREVER: u64 = u64::MAX / 1_000_000_000;

impl Unit for Seconds {
    type Value = Duration;
    const SUFFIX: &'static str = "_seconds";
    const PER_UNIT: f64 = 1e9;
    const BUCKETS: &'static [f64] =
        &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

    /// Durations of more than 584 years count as 584 years.
    #[inline]
    fn kept(value: Duration) -> u64 {
        match value.as_secs() {
            // One comparison; checks of both steps would be three.
            secs @ 0..FOREVER => secs * 1_000_000_000 + u64::from(value.subsec_nanos()),
            _ => u64::MAX,
        }
    }
}

/// Sizes in bytes. Default buckets: 8 from 256 B to 4 MiB, each four times the one
/// before.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {}

impl Unit for Bytes {
    type Value = u64;
    const SUFFIX: &'static str = "_bytes";
    const PER_UNIT: f64 = 1.0;
    const BUCKETS: &'static [f64] =
        &[256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];

    #[inline]
    fn kept(value: u64) -> u64 {
        value
    }
}

/// Plain numbers of things. Default buckets: powers of ten from 1 to a million.
#[derive(Clone, Copy, Debug)]
pub enum Count {}

impl Unit for Count {
    type Value = u64;
    const SUFFIX: &'static str = "";
    const PER_UNIT: f64 = 1.0;
    const BUCKETS: &'static [f64] = &[1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];

    #[inline]
    fn kept(value: u64) -> u64 {
        value
    }
}

/// Floats of any kind, negative ones, infinities and NaN too. (NaN is counted, and makes
/// the sum NaN.) Default buckets: powers of ten from 10⁻³ to 1,000.
///
/// All formats show the same samples, with one exception: OpenMetrics has no `_count` and no
/// `_sum` of a histogram with a threshold below zero. OpenMetrics' types `histogram` and `summary`
/// cannot hold a sum or a quantile below zero or a sum that is NaN. A family with such values is
/// there as families of type `unknown`, one for each sample name, and has no exemplars.
///
/// ```
/// use talea::{Floats, Histogram, Opts, Registry};
///
/// let registry = Registry::for_test()?;
/// let opts = Opts::new("drift_celsius", "How far from the set point.").buckets(&[-1.0, 0.0, 1.0]);
/// let drift: Histogram<Floats> = registry.register(opts)?;
/// drift.observe(-0.25);
/// let drift = registry.snapshot().expect_histogram("drift_celsius", &[]);
/// assert_eq!((drift.sum(), drift.count_below(0.0)), (-0.25, 1.0));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Floats {}

impl Unit for Floats {
    type Value = f64;
    const SUFFIX: &'static str = "";
    const PER_UNIT: f64 = 1.0;
    const BUCKETS: &'static [f64] = &[1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3];
    const IS_FLOAT: bool = true;

    #[inline]
    fn kept(value: f64) -> u64 {
        value.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_kept_in_nanoseconds_up_to_the_largest() {
        assert_eq!(Seconds::kept(Duration::from_nanos(1)), 1);
        assert_eq!(Seconds::kept(Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(Seconds::kept(Duration::MAX), u64::MAX);
    }
}
