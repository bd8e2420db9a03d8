//! Lists of thresholds that follow a rule.

/// `N` thresholds that are as far apart as each other, the first at `start`: for
/// [`Opts::buckets`](crate::Opts::buckets).
///
/// ```
/// use talea::{Opts, linear_buckets};
///
/// const PERCENT: [f64; 10] = linear_buckets(10.0, 10.0);
/// assert_eq!(PERCENT[..3], [10.0, 20.0, 30.0]);
/// const OPTS: Opts<'_> = Opts::new("fill", "How full it was, in percent.").buckets(&PERCENT);
/// ```
pub const fn linear_buckets<const N: usize>(start: f64, width: f64) -> [f64; N] {
    let mut thresholds = [0.0; N];
    let mut n = 0;
    while n < N {
        // Not by adding: that would round again and again.
        thresholds[n] = start + width * n as f64;
        n += 1;
    }
    thresholds
}

/// `N` thresholds of which each is `factor` times the one before, the first at `start`:
/// for [`Opts::buckets`](crate::Opts::buckets).
///
/// ```
/// use talea::exponential_buckets;
///
/// const SIZES: [f64; 8] = exponential_buckets(256.0, 4.0);
/// assert_eq!((SIZES[1], SIZES[7]), (1024.0, 4_194_304.0));
/// ```
pub const fn exponential_buckets<const N: usize>(start: f64, factor: f64) -> [f64; N] {
    let mut thresholds = [start; N];
    let mut n = 1;
    while n < N {
        thresholds[n] = thresholds[n - 1] * factor;
        n += 1;
    }
    thresholds
}
