//! How a recorder is built.

use std::time::Duration;

use talea::Registry;

use crate::buckets::{Buckets, Matcher};
use crate::error::Error;
use crate::losses::Losses;
use crate::recorder::Recorder;
use crate::settings::Settings;

/// Builds a [`Recorder`]:
///
/// ```
/// use talea::Registry;
/// use talea_metrics::{Matcher, Recorder};
///
/// let registry = Registry::for_test()?;
/// let recorder = Recorder::builder()
///     .buckets(&[0.01, 0.1, 1.0])
///     .buckets_for(Matcher::Suffix("_bytes".into()), &[1e3, 1e6])
///     .label("service", "shop")
///     .build(&registry)?;
/// metrics::with_local_recorder(&recorder, || metrics::histogram!("sent_bytes").record(42.0));
/// let line = r#"sent_bytes_bucket{service="shop",le="1000.0"} 1"#;
/// assert!(registry.snapshot().to_text().contains(line));
/// # Ok::<(), talea_metrics::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder builds nothing by itself"]
pub struct Builder {
    buckets: Buckets,
    limit: Option<u64>,
    expires_after: Option<Duration>,
    labels: Vec<(String, String)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            buckets: Buckets::default(),
            limit: None,
            expires_after: Some(Duration::from_secs(3600)),
            labels: Vec::new(),
        }
    }
}

impl Recorder {
    /// A recorder with the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// The registry has no room for the recorder's own two metrics.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        Self::builder().build(registry)
    }

    /// For one with buckets, limits or labels of its own.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// The buckets of all histograms, in what is recorded, finite, positive and ascending;
    /// `+Inf` is added. Default: by the unit, such as Talea's 14 from 5 ms to 10 s for
    /// seconds, and 22 from 0.001 to 10,000 if it is not known. Those that are finer
    /// than the histogram's scale give way to the default, and a line on standard error
    /// says so.
    pub fn buckets(mut self, buckets: &[f64]) -> Self {
        self.buckets.set(None, buckets);
        self
    }

    /// The buckets of some histograms, which take precedence over the buckets of all.
    pub fn buckets_for(mut self, matcher: Matcher, buckets: &[f64]) -> Self {
        self.buckets.set(Some(matcher), buckets);
        self
    }

    /// The most series of each metric; any further one is counted in its overflow series. Default:
    /// 2,000.
    pub fn limit(mut self, series: u64) -> Self {
        self.limit = Some(series);
        self
    }

    /// The time without use after which a series of a counter or a histogram expires, as
    /// [`Opts::expires_after`](talea::Opts::expires_after); `None` for never. Default: an hour.
    /// Gauges do not expire.
    pub fn expires_after(mut self, idle: Option<Duration>) -> Self {
        self.expires_after = idle;
        self
    }

    /// A label that all metrics have, unless they have it themselves. Default: no label.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// The recorder, for [`metrics::with_local_recorder`] or as a part of others. One of a
    /// registry is enough: clones share what was described.
    ///
    /// # Errors
    ///
    /// The buckets are not usable; the registry has no room for the recorder's own two
    /// metrics.
    pub fn build(self, registry: &Registry) -> Result<Recorder, Error> {
        self.buckets.check()?;
        Ok(Recorder::of(Settings {
            registry: registry.clone(),
            losses: Losses::register(registry)?,
            buckets: self.buckets,
            limit: self.limit,
            expires_after: self.expires_after,
            labels: self.labels,
        }))
    }

    /// Builds it and makes it the program's.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build); and there is a global recorder already.
    pub fn install(self, registry: &Registry) -> Result<(), Error> {
        metrics::set_global_recorder(self.build(registry)?).map_err(|_| Error::Installed)
    }
}
