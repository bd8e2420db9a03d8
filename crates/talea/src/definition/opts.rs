//! What a metric is registered with.

use std::time::Duration;

use talea_region::Combine;

use crate::definition::names::Rules;

/// Which buckets a histogram has. All are counted in the same cells, at the same cost of
/// an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bucketing {
    /// Those of its thresholds alone: what every format shows. The least memory.
    Classic,
    /// Exponential ones alone, which give quantiles with a known error. Text formats show
    /// their count and sum.
    Native,
    /// Both.
    #[default]
    Dual,
}

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
    pub(crate) bucketing: Bucketing,
    pub(crate) schema: i8,
    pub(crate) max_buckets: u32,
    pub(crate) widest_zero: f64,
    pub(crate) quantiles: Option<&'a [f64]>,
    pub(crate) window: Duration,
    pub(crate) striped: Option<bool>,
    pub(crate) limit: Option<u64>,
    pub(crate) expires_after: Option<Duration>,
    pub(crate) combine: Option<Combine>,
    pub(crate) whole: bool,
    pub(crate) utf8_names: bool,
    pub(crate) lenient_names: bool,
    /// Whether samples of a summary are kept beside it.
    pub(crate) sampled: bool,
}

impl<'a> Opts<'a> {
    /// A metric's name and its help text.
    ///
    /// The name is completed by what the type says, where it does not say so
    /// itself: a counter ends in `_total`, an info in `_info`, a histogram in its unit
    /// (`_seconds`, `_bytes`). What is left to say has the default that its method names.
    pub const fn new(name: &'a str, help: &'a str) -> Self {
        Self {
            name,
            help,
            buckets: None,
            bucketing: Bucketing::Dual,
            schema: 3,
            max_buckets: 160,
            widest_zero: 0.0,
            quantiles: None,
            window: Duration::from_secs(600),
            striped: None,
            limit: None,
            expires_after: Some(Duration::from_secs(3600)),
            combine: None,
            whole: false,
            utf8_names: false,
            lenient_names: false,
            sampled: false,
        }
    }

    /// A histogram's thresholds, in the exposed unit (seconds, bytes), finite,
    /// positive and ascending; `+Inf` is added. Default: 14 from 5 ms to 10 s
    /// for seconds (OpenTelemetry's), 8 from 256 B to 4 MiB for bytes, powers of
    /// ten up to a million otherwise. Other types ignore them. At most 1,024; others
    /// than these are an error of registering.
    pub const fn buckets(mut self, buckets: &'a [f64]) -> Self {
        self.buckets = Some(buckets);
        self
    }

    /// Which buckets a histogram has. Default: [`Bucketing::Dual`], both classic and
    /// native ones.
    pub const fn bucketing(mut self, bucketing: Bucketing) -> Self {
        self.bucketing = bucketing;
        self
    }

    /// How fine native buckets are at most, −4 to 8: the upper bound of a bucket is
    /// 2^(2^−schema) times the one below, so that quantiles are within 8.6 % at schema 2,
    /// 4.3 % at 3, 2.2 % at 4, 1.1 % at 5, 0.14 % at 8. Default: 3. Where values spread so
    /// wide that there would be more than [`max_buckets`](Self::max_buckets), a series gets
    /// coarser by itself. Others are an error of registering.
    pub const fn schema(mut self, schema: i8) -> Self {
        self.schema = schema;
        self
    }

    /// How many native buckets of a series are shown at most. Where more are in use, those
    /// nearest to 0 count as zero, as far as [`widest_zero`](Self::widest_zero) lets them;
    /// then two of each are joined. A series has four cells for each of them; where its
    /// values spread over so many octaves that these are used up, what comes in further ones
    /// is counted half as finely, and shown so; those nearer to 0 than the widest zero use
    /// none up. Schema −4 is the coarsest, and shows more where it has more: 5 of whole
    /// numbers and durations at most. Default: 160.
    pub const fn max_buckets(mut self, buckets: u32) -> Self {
        self.max_buckets = buckets;
        self
    }

    /// How far from 0, in the shown unit, an observation may be that counts as zero where
    /// a series has too many native buckets. Default: 0, only zero itself does.
    pub const fn widest_zero(mut self, threshold: f64) -> Self {
        self.widest_zero = threshold;
        self
    }

    /// Which quantiles a [`Summary`](crate::Summary) shows, from 0 to 1, ascending, at most
    /// 100. Default: 0.5, 0.9 and 0.99.
    ///
    /// A [`Histogram`](crate::Histogram) with native buckets that is given some shows them
    /// in a summary beside itself, `shop_pricing_recent_seconds` for
    /// `shop_pricing_seconds`, at no cost of its observations: see `Summary` for what it
    /// costs who takes snapshots. Default for these: none. Others ignore it.
    pub const fn quantiles(mut self, quantiles: &'a [f64]) -> Self {
        self.quantiles = Some(quantiles);
        self
    }

    /// Of how long ago at most what is that a [`Summary`](crate::Summary)'s quantiles are
    /// of, in whole seconds. A sixtieth of it, or ten seconds where that is less, is how
    /// much longer it may be. Default: ten minutes.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Whether each CPU has a copy of each value, so that adds from several do not
    /// contend, at 8 bytes a CPU for each counter and each bucket. Default: yes where
    /// there are no labels or all are fixed, no where a label is dynamic. Only for
    /// counters and histograms; other types ignore it.
    pub const fn striped(mut self, striped: bool) -> Self {
        self.striped = Some(striped);
        self
    }

    /// The most series of the family; further label combinations go to its
    /// overflow series. Default: 2,000, or the number of combinations where that
    /// is fixed. All processes that share the registry count together.
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

    /// How the processes that share the region make up the value of a gauge that is
    /// set. Default: [`Combine::Latest`], the latest write counts, whoever did it, also
    /// when that process is dead. Otherwise each process sets its own: shown are the
    /// [`Sum`](Combine::Sum), the [`Max`](Combine::Max) or the [`Min`](Combine::Min)
    /// over those that live, or a series for [`Each`](Combine::Each), with the label
    /// `pid`. A process that set nothing has no say.
    ///
    /// ```
    /// use talea::{Combine, Gauge, Opts, Registry};
    ///
    /// let registry = Registry::for_test()?;
    /// let opts = Opts::new("queue_longest", "Longest queue of any worker.");
    /// let longest: Gauge = registry.register(opts.combine(Combine::Max))?;
    /// longest.set(12);
    /// assert_eq!(registry.snapshot().value("queue_longest", &[]), Some(12.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub const fn combine(mut self, combine: Combine) -> Self {
        self.combine = Some(combine);
        self
    }

    /// Whether a family whose labels are all fixed has all its series from the start,
    /// so that a scrape shows what has not happened yet as 0. Default: no, each is made
    /// when it is first met. With it, a family of other labels is an error.
    pub const fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// Whether the metric and its labels may have names beyond letters, digits and `_`,
    /// such as `http.server.duration`: any text without quotes, backslashes and control
    /// characters, that does not begin with `_`.
    /// A scraper that does not take them is shown others in their place, see
    /// [`Escaping`](crate::Escaping). Default: no, so that a slip is told.
    ///
    /// ```
    /// use talea::{Counter, Opts, Registry};
    ///
    /// let registry = Registry::for_test()?;
    /// let opts = Opts::new("http.server.requests", "Requests.").utf8_names(true);
    /// registry.family::<Counter>(opts, &["http.route"])?.with_values(&["/"]).inc();
    /// let text = registry.snapshot().to_text();
    /// assert!(text.ends_with("http_server_requests_total{http_route=\"/\"} 1\n"), "{text}");
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub const fn utf8_names(mut self, allowed: bool) -> Self {
        self.utf8_names = allowed;
        self
    }

    /// Whether names are taken as other libraries take them: the metric's may end as samples of
    /// another type do (a gauge `users_total`, `php_info`), names may begin with one `_`, which
    /// OpenMetrics reserves, and where it is no histogram and no
    /// summary, labels may be called `le` and `quantile`. For metrics that were named by others:
    /// scrapers read them, people may misread them. Default: no, so that a slip is told.
    pub const fn lenient_names(mut self, allowed: bool) -> Self {
        self.lenient_names = allowed;
        self
    }

    pub(crate) fn name_rules(&self) -> Rules {
        Rules { utf8: self.utf8_names, lenient: self.lenient_names }
    }
}
