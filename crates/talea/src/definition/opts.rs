//! The options of a metric.

use std::time::Duration;

use talea_region::Combine;

use crate::definition::names::Rules;

/// The buckets of a histogram. All choices use the same cells and cost the same for each
/// observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bucketing {
    /// Buckets by its thresholds only, which every format can show. This takes the least memory.
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
    pub(crate) allows_others: bool,
    /// Whether samples of a summary are kept beside it.
    pub(crate) sampled: bool,
    pub(crate) states: &'a [&'a str],
}

impl<'a> Opts<'a> {
    /// A metric's name and its help text.
    ///
    /// The type adds its ending to the name, unless the name has it already: `_total` for a
    /// counter, `_info` for an info, the unit (`_seconds`, `_bytes`) for a histogram. Each method
    /// below names the default of its option.
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
            allows_others: false,
            sampled: false,
            states: &[],
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

    /// The buckets of a histogram. Default: [`Bucketing::Dual`], both classic and native ones.
    pub const fn bucketing(mut self, bucketing: Bucketing) -> Self {
        self.bucketing = bucketing;
        self
    }

    /// The finest schema of the native buckets, −4 to 8: the upper bound of a bucket is
    /// 2^(2^−schema) times the one below, so that quantiles are within 8.6 % at schema 2, 4.3 % at
    /// 3, 2.2 % at 4, 1.1 % at 5, 0.14 % at 8. Default: 3. If the values spread so widely that more
    /// than [`max_buckets`](Self::max_buckets) would be needed, the series becomes coarser by
    /// itself. Registering fails if the schema is out of range.
    pub const fn schema(mut self, schema: i8) -> Self {
        self.schema = schema;
        self
    }

    /// The most native buckets that a series shows. If more are in use, those nearest to 0 count as
    /// zero, up to [`widest_zero`](Self::widest_zero); then neighbours are joined in pairs. A
    /// series has four cells for each shown bucket. If its values spread over more octaves than
    /// it has cells for, observations in further octaves are counted and shown half as finely;
    /// values nearer to 0 than the widest zero use no cells. Schema −4 is the coarsest; it may show
    /// more than this limit: at most 5 for whole numbers and durations. Default: 160.
    pub const fn max_buckets(mut self, buckets: u32) -> Self {
        self.max_buckets = buckets;
        self
    }

    /// The largest distance from 0, in the shown unit, at which observations count as zero if a series
    /// has too many native buckets. Default: 0; only zero itself counts as zero.
    pub const fn widest_zero(mut self, threshold: f64) -> Self {
        self.widest_zero = threshold;
        self
    }

    /// The quantiles that a [`Summary`](crate::Summary) shows, from 0 to 1, ascending, at most 100.
    /// Default: 0.5, 0.9 and 0.99.
    ///
    /// A [`Histogram`](crate::Histogram) with native buckets and this option shows them in a
    /// summary beside itself, `shop_pricing_recent_seconds` for `shop_pricing_seconds`, at no cost
    /// for its observations; `Summary` has the cost for each snapshot. Default for histograms:
    /// no quantiles. Other types ignore it.
    pub const fn quantiles(mut self, quantiles: &'a [f64]) -> Self {
        self.quantiles = Some(quantiles);
        self
    }

    /// The window of a [`Summary`](crate::Summary)'s quantiles, in whole seconds. It may be longer
    /// by a sixtieth of it, or by ten seconds if that is less. Default: ten minutes.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Whether each CPU has a copy of each value, so that adds from several do not contend, at 8
    /// bytes a CPU for each counter and each bucket. Default: yes if there are no labels or all
    /// are fixed, no if a label is dynamic. Only for counters and histograms; other types ignore
    /// it.
    pub const fn striped(mut self, striped: bool) -> Self {
        self.striped = Some(striped);
        self
    }

    /// The states of a [`DynamicStateSet`](crate::DynamicStateSet), 1 to 64; other types ignore them.
    pub const fn states(mut self, states: &'a [&'a str]) -> Self {
        self.states = states;
        self
    }

    /// The most series of the family; further label combinations go to its overflow series.
    /// Default: 2,000, or the number of combinations if that is fixed. All processes that share the
    /// registry count together.
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// A series with a dynamic label expires after this time without a look-up, in whole minutes,
    /// rounded up; `None` for never. Expiry takes up to two minutes longer, and happens only when a
    /// process that has the registry takes a snapshot or looks up new labels. A series that a
    /// handle keeps does not expire, nor does one with a count in flight other than 0. Default: an
    /// hour. Series whose labels are all fixed never expire.
    pub const fn expires_after(mut self, idle: Option<Duration>) -> Self {
        self.expires_after = idle;
        self
    }

    /// Chooses how a gauge combines the values of the processes that share the region. Default:
    /// [`Combine::Latest`], the latest write of any process, also of one that has ended. Otherwise
    /// each process sets its own value. A scrape shows the [`Sum`](Combine::Sum), the
    /// [`Max`](Combine::Max) or the [`Min`](Combine::Min) over the living processes, or a series
    /// for [`Each`](Combine::Each) of them, with the label `pid`. A process that set no value is
    /// left out.
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

    /// Whether a family whose labels are all fixed has all its series from the start, so that a
    /// scrape shows 0 for events that have not happened yet. Default: no, each is made when it is
    /// first met. With it, a family of other labels is an error.
    pub const fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// Allows names of the metric and its labels with characters other than letters, digits and
    /// `_`, such as `http.server.duration`: any text without quotes, backslashes and control
    /// characters, that does not begin with `_`. For a scraper that does not accept such names they
    /// are escaped, see [`Escaping`](crate::Escaping). Default: no, so that a typing error is
    /// reported.
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

    /// Accepts names as other libraries do. The metric's name may end like samples of another type
    /// (a gauge `users_total`, `php_info`). Names may begin with one `_`, which OpenMetrics
    /// reserves. Unless it is a histogram or a summary, labels may be called `le` and `quantile`.
    /// Use it for metrics that you did not name: scrapers read them, people may misread them.
    /// Default: no, so that a typing error is reported.
    pub const fn lenient_names(mut self, allowed: bool) -> Self {
        self.lenient_names = allowed;
        self
    }

    /// Whether this process may register other definitions of the name too: use it where one process
    /// runs several versions of a program, as a worker of PHP does after a deploy. Each definition
    /// counts by itself. A page shows them as it shows the definitions of several processes. Default: no, so
    /// that a second definition is an error.
    pub const fn allow_others(mut self, allowed: bool) -> Self {
        self.allows_others = allowed;
        self
    }

    pub(crate) fn name_rules(&self) -> Rules {
        Rules { utf8: self.utf8_names, lenient: self.lenient_names }
    }
}
