//! Options of metering.

use std::time::Duration;

use talea::{Bucketing, LabelValue};

use crate::convention::Convention;
use crate::convention::metric_set::MetricSet;
use crate::labels::extension::ExtensionLabel;
use crate::labels::status::StatusLabel;

/// Options of metering, a builder that ends with [`register`](Self::register). Each has a
/// default; `Opts::new()` has the defaults of [`Router::metered`](crate::axum::Router::metered).
///
/// ```
/// use talea::{LabelValue, Registry};
/// use talea_http::{Convention, Opts};
///
/// #[derive(Clone, Copy, LabelValue)]
/// enum Plan { Free, Paid }
///
/// let registry = Registry::for_test()?;
/// let endpoints = Opts::new()
///     .convention(Convention::OpenTelemetry)
///     .durations(&[0.01, 0.1, 1.0])
///     .constant_label("zone", "eu")
///     // A layer outside of the meter puts it into the request's extensions.
///     .request_label::<Plan>("plan")
///     .register(&registry)?;
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until they are registered"]
pub struct Opts {
    pub(crate) convention: Convention,
    pub(crate) prefix: String,
    pub(crate) server: Option<String>,
    pub(crate) status: StatusLabel,
    pub(crate) durations_by_status: bool,
    pub(crate) durations: Option<Vec<f64>>,
    pub(crate) sizes: Option<Vec<f64>>,
    pub(crate) bucketing: Bucketing,
    exchange_durations: bool,
    body_sizes: bool,
    costs: bool,
    pub(crate) allocations: Option<fn() -> Allocations>,
    pub(crate) quantiles: Vec<f64>,
    pub(crate) constants: Vec<(String, String)>,
    pub(crate) request_labels: Vec<ExtensionLabel>,
    pub(crate) response_labels: Vec<ExtensionLabel>,
    pub(crate) hosts: Vec<String>,
    pub(crate) methods: Vec<String>,
    pub(crate) https: bool,
    pub(crate) timed_out_after: Option<Duration>,
}

/// What a thread has allocated since its start, see [`Opts::allocations`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(all(feature = "costs", unix)), allow(dead_code, unreachable_pub))]
pub struct Allocations {
    /// How often it has allocated.
    pub count: u64,
    /// The bytes that it has allocated, given back or not.
    pub bytes: u64,
}

impl Opts {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The names and labels of the metrics. Default: [`Convention::Prometheus`].
    pub fn convention(mut self, convention: Convention) -> Self {
        self.convention = convention;
        self
    }

    /// A prefix of each metric's name, joined by `_`. Default: no prefix.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}_") };
        self
    }

    /// Records all that [`Convention::Prometheus`] has: [`exchange_durations`](Self::exchange_durations)
    /// and [`body_sizes`](Self::body_sizes). That makes a page 2.6 times as long. Other conventions
    /// always record all of theirs.
    pub fn detailed(self) -> Self {
        self.exchange_durations(true).body_sizes(true)
    }

    /// Whether [`Convention::Prometheus`] records the time to the end of the response's body, in
    /// `http_exchange_duration_seconds`: downloads and streams. Default: no.
    pub fn exchange_durations(mut self, recorded: bool) -> Self {
        self.exchange_durations = recorded;
        self
    }

    /// Whether [`Convention::Prometheus`] records the bytes of bodies, in
    /// `http_request_body_size_bytes` and `http_response_body_size_bytes`. A size is observed once, when the
    /// body has ended or broken off: a body that takes an hour is in no sum before. Default: no.
    pub fn body_sizes(mut self, recorded: bool) -> Self {
        self.body_sizes = recorded;
        self
    }

    /// Records what requests cost, by route: which endpoint burns the cores, and which one waits. A handler is
    /// measured around each of its polls, from its first one to the head of the response:
    ///
    /// | metric | type | thresholds |
    /// |---|---|---|
    /// | `http_request_cpu_seconds` | histogram: the CPU time of a request's polls, by the clock of the thread | 10 µs to 1 s, each ten times the one before |
    /// | `http_request_polls_total` | counter of polls | |
    /// | `http_request_waiting_seconds` | histogram: the time in which it was not polled, since it waited for something or for a thread | those of [`durations`](Self::durations) |
    ///
    /// `rate(http_request_cpu_seconds_sum[1m])` is the number of cores that a route keeps busy. The labels are `method`
    /// and `route`; [`Convention::OpenTelemetry`] has its own, and the names `http_server_request_cpu_seconds` and so on. A
    /// gRPC server has `grpc_server_cpu_seconds` and so on. Series exist from the start, as those of requests in flight.
    ///
    /// Not in it: work in other tasks and threads (`spawn`, `spawn_blocking`) and in the body of a response, outgoing
    /// requests, and requests of a [`ManualExchange`](crate::ManualExchange). Default: no.
    ///
    /// Cost: two readings of the thread's CPU clock a poll, each a system call of about 0.4 µs; nothing is allocated.
    /// Needs the feature `costs`, on Unix.
    #[cfg(all(feature = "costs", unix))]
    pub fn costs(mut self) -> Self {
        self.costs = true;
        self
    }

    /// Records also what requests allocate, in `http_request_allocations_total` and
    /// `http_request_allocated_bytes_total`, with [`costs`](Self::costs). Your allocator counts; this function reads
    /// what the calling thread has allocated since its start, and is called before and after each poll:
    ///
    /// ```
    /// use densa_alloc::{CountingAllocator, thread_stats};
    /// use talea_http::{Allocations, Opts};
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: CountingAllocator = CountingAllocator::system();
    ///
    /// let opts = Opts::new().allocations(|| {
    ///     let of_this_thread = thread_stats();
    ///     Allocations { count: of_this_thread.allocs, bytes: of_this_thread.bytes_allocated }
    /// });
    /// # let _ = opts;
    /// ```
    ///
    /// jemalloc counts bytes by thread anyway: `tikv_jemalloc_ctl::thread::allocatedp`. Default: no.
    #[cfg(all(feature = "costs", unix))]
    pub fn allocations(mut self, of_this_thread: fn() -> Allocations) -> Self {
        self.allocations = Some(of_this_thread);
        self.costs()
    }

    /// The metrics of these that are recorded.
    pub(crate) fn recorded(&self, mut set: MetricSet) -> MetricSet {
        set.costs = set.costs.filter(|_| self.costs);
        if self.convention == Convention::Prometheus {
            // A gRPC call has the time to its end only.
            set.to_end = set.to_end.filter(|_| self.exchange_durations || set.to_head.is_none());
            set.request_size = set.request_size.filter(|_| self.body_sizes);
            set.response_size = set.response_size.filter(|_| self.body_sizes);
        }
        set
    }

    /// The label `server` of [`Convention::Caddy`]. Default: `srv0`, Caddy's name for its first
    /// server. Other conventions have no such label.
    pub fn server(mut self, name: &str) -> Self {
        self.server = Some(name.to_owned());
        self
    }

    /// The values of the label `status` in [`Convention::Prometheus`]. Default:
    /// [`StatusLabel::Class`]. Other conventions define their own.
    pub fn status_label(mut self, status: StatusLabel) -> Self {
        self.status = status;
        self
    }

    /// Whether durations have a label for the status, so that an objective can cover successes
    /// only: a histogram for each endpoint and status. Default: no, in
    /// [`Convention::Prometheus`] and [`Convention::Servant`]; other conventions always do.
    pub fn durations_by_status(mut self, by_status: bool) -> Self {
        self.durations_by_status = by_status;
        self
    }

    /// Thresholds of the histograms of durations, in seconds, as for
    /// [`talea::Opts::buckets`]. Default: the thresholds of the convention.
    pub fn durations(mut self, seconds: &[f64]) -> Self {
        self.durations = Some(seconds.to_vec());
        self
    }

    /// Thresholds of the histograms of sizes, in bytes. Default: 256 B to 4 MiB, each four
    /// times the one before.
    pub fn sizes(mut self, bytes: &[f64]) -> Self {
        self.sizes = Some(bytes.to_vec());
        self
    }

    /// The kinds of buckets that the histograms have. Default: [`Bucketing::Dual`], both classic
    /// and native ones.
    pub fn bucketing(mut self, bucketing: Bucketing) -> Self {
        self.bucketing = bucketing;
        self
    }

    /// Quantiles to show of the last ten minutes' durations, from 0 to 1, ascending:
    /// the quantiles of `http_request_duration_seconds` in `http_request_duration_recent_seconds`,
    /// and so on. They cost a request nothing; the reader of a snapshot computes them, see
    /// [`Summary`](talea::Summary). Default: no quantiles.
    pub fn quantiles(mut self, quantiles: &[f64]) -> Self {
        self.quantiles = quantiles.to_vec();
        self
    }

    /// A label with a constant value on every metric.
    pub fn constant_label(mut self, name: &str, value: &str) -> Self {
        self.constants.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A label whose value is in the request's extensions, as a `T`, when it arrives at
    /// the meter: a layer outside of the meter puts it there. It is empty if there is no such value.
    ///
    /// The values of `T` are fixed, so the number of series stays bounded: an enum with
    /// `#[derive(LabelValue)]`, a `bool`, or a [`label_set!`](talea::label_set), whose
    /// values are read from a configuration. [`register`](Self::register) refuses other types.
    pub fn request_label<T>(mut self, name: &str) -> Self
    where
        T: LabelValue + Send + Sync + 'static,
    {
        self.request_labels.push(ExtensionLabel::new::<T>(name));
        self
    }

    /// A label whose value the handler puts into the response's extensions, as in
    /// [`request_label`](Self::request_label): a cache's hit or miss, for example. The gauge of
    /// requests in flight has no such label. It is empty if there was no response.
    pub fn response_label<T>(mut self, name: &str) -> Self
    where
        T: LabelValue + Send + Sync + 'static,
    {
        self.response_labels.push(ExtensionLabel::new::<T>(name));
        self
    }

    /// Adds a label for the host that requests name (without a port, in any case). Its values
    /// are these hosts; any other is `_other`. An IPv6 address has its brackets: `[::1]`. The label
    /// is `host`, in [`Convention::OpenTelemetry`] `server_address`. Default: no such label. A host
    /// that no request can name, such as one with a port, is an error when the options are registered.
    pub fn hosts(mut self, hosts: &[&str]) -> Self {
        self.hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        self
    }

    /// Methods of extensions of HTTP that have their own name in the label of the method, such as
    /// `PROPFIND` of WebDAV, if that is the method that was sent: in each convention for an
    /// endpoint of [any](crate::axum::any) method, and in [`Convention::OpenTelemetry`] and the conventions of
    /// other libraries for all. Any other method is `_OTHER`, or what the convention has for it. Those
    /// of RFC 9110, `PATCH` and (if the convention knows it) `QUERY` need not be named. Case matters,
    /// as in a request. Default: no further methods. A text that is not a method is an error when the options are registered.
    pub fn methods(mut self, methods: &[&str]) -> Self {
        self.methods = methods.iter().map(|&method| method.to_owned()).collect();
        self
    }

    /// Whether requests that do not name their scheme came by `https`, because a proxy ends TLS.
    /// Only [`Convention::OpenTelemetry`] has the label. Default: no.
    pub fn https(mut self, https: bool) -> Self {
        self.https = https;
        self
    }

    /// The time after which something outside of the meter, such as a proxy, gives requests up:
    /// a request that is dropped after that time counts as timed out, one that is dropped earlier
    /// as aborted. Choose clearly less than the limit itself, a tenth less, since the meter's
    /// clock starts later. Default: never. A time-out inside of the meter, such as a
    /// [layer](crate::axum::Router::layer), does not need it: it responds, and responses of
    /// status 408 and 504 count as timed out.
    pub fn timed_out_after(mut self, limit: Duration) -> Self {
        self.timed_out_after = Some(limit);
        self
    }
}
