//! Histograms: the cells that an observation is counted in, and the buckets and quantiles that
//! readers derive from them.

pub(crate) mod buckets;
pub(crate) mod kept_windows;
pub(crate) mod native_buckets;
pub(crate) mod snapshot;
pub(crate) mod thresholds;
pub(crate) mod windows;
