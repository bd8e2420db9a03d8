//! What a metric is registered with.

use std::time::Duration;

/// Name, help and choices of a metric, built up by `const fn`s:
///
/// ```
/// use talea::{Counter, Histogram, Opts, Registry, Seconds};
///
/// let registry = Registry::new()?;
/// let accepted: Counter = registry.register(Opts::new("shop_orders", "Orders accepted."))?;
/// let pricing: Histogram<Seconds> = registry.register(
///     Opts::new("shop_pricing", "Time to price a basket.").buckets(&[0.001, 0.01, 0.1]),
/// )?;
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Opts<'a> {
    pub(crate) name: &'a str,
    pub(crate) help: &'a str,
    pub(crate) buckets: Option<&'a [f64]>,
    pub(crate) striped: Option<bool>,
    pub(crate) limit: Option<u64>,
    pub(crate) expires_after: Option<Duration>,
}

impl<'a> Opts<'a> {
    /// A metric's name and its help text.
    ///
    /// The name is completed by what the type says, where it does not say so
    /// itself: a counter ends in `_total`, a histogram in its unit (`_seconds`,
    /// `_bytes`).
    pub const fn new(name: &'a str, help: &'a str) -> Self {
        Self {
            name,
            help,
            buckets: None,
            striped: None,
            limit: None,
            expires_after: Some(Duration::from_secs(3600)),
        }
    }

    /// A histogram's thresholds, in the exposed unit (seconds, bytes), finite,
    /// positive and ascending; `+Inf` is added. Default: 14 from 5 ms to 10 s
    /// for seconds (OpenTelemetry's), 8 from 256 B to 4 MiB for bytes, powers of
    /// ten up to a million otherwise. Other types ignore them.
    pub const fn buckets(mut self, buckets: &'a [f64]) -> Self {
        self.buckets = Some(buckets);
        self
    }

    /// Whether each CPU has a copy of its own (see the design's decision on
    /// planes). Default: yes where the label combinations are few and fixed, no
    /// where a label is dynamic. Gauges never are.
    pub const fn striped(mut self, striped: bool) -> Self {
        self.striped = Some(striped);
        self
    }

    /// The most series of the family; further label combinations go to its
    /// overflow series. Default: 2,000, or the number of combinations where that
    /// is fixed.
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// After how long a series with a dynamic label goes that nobody looked up, in
    /// whole minutes, rounded up; `None` for never. It takes up to two minutes
    /// longer, and somebody must take a snapshot in a process that has the registry,
    /// or meet new labels. One that is kept stays, and one that counts what is in
    /// flight, unless that is 0. Default: an hour. Series whose labels are all fixed
    /// never go.
    pub const fn expires_after(mut self, idle: Option<Duration>) -> Self {
        self.expires_after = idle;
        self
    }
}
