//! The names of the metrics that a study reads, in each service.

use std::collections::BTreeMap;
use std::fmt;

use talea_parse::{Line, Reader, Sample, Syntax};

/// A quantity that a study reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Requests counted since the service started.
    Requests,
    /// The histogram of their durations; its name is that without `_sum`, `_count` and `_bucket`.
    Duration,
    /// Requests that are being served.
    InFlight,
    /// Tasks, processes or threads that serve.
    Tasks,
    /// The most of them at once since the last reset.
    TasksPeak,
    /// All of them that were ever made.
    TasksSpawned,
    /// Those of them that are ready to run and do not.
    Ready,
    /// The most of them at once since the last reset.
    ReadyPeak,
    /// Processor time of the service.
    CpuSeconds,
    /// Resident memory of the service, in bytes.
    MemoryBytes,
    /// When the service started, in seconds since 1970.
    StartTime,
    /// Connections to the database that are in use.
    PoolUsed,
    /// Connections to the database that there may be.
    PoolMax,
    /// Requests that wait for a connection to the database.
    PoolPending,
    /// The most of them at once since the last reset.
    PoolPendingPeak,
}

impl Quantity {
    /// Each with its key in a `[metrics]` table.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::Requests, "requests"),
        (Self::Duration, "duration"),
        (Self::InFlight, "in_flight"),
        (Self::Tasks, "tasks"),
        (Self::TasksPeak, "tasks_peak"),
        (Self::TasksSpawned, "tasks_spawned"),
        (Self::Ready, "ready"),
        (Self::ReadyPeak, "ready_peak"),
        (Self::CpuSeconds, "cpu_seconds"),
        (Self::MemoryBytes, "memory_bytes"),
        (Self::StartTime, "start_time"),
        (Self::PoolUsed, "pool_used"),
        (Self::PoolMax, "pool_max"),
        (Self::PoolPending, "pool_pending"),
        (Self::PoolPendingPeak, "pool_pending_peak"),
    ];

    /// Combines two series of it: their sum, or the larger of two high-water marks, since those
    /// need not be of the same instant.
    pub fn together(self, one: f64, other: f64) -> f64 {
        match self {
            Self::TasksPeak | Self::ReadyPeak | Self::PoolPendingPeak => one.max(other),
            _ => one + other,
        }
    }

    /// Whether it holds at one instant only: a sample says nothing of the time before it.
    pub fn is_momentary(self) -> bool {
        matches!(
            self,
            Self::InFlight | Self::Tasks | Self::Ready | Self::PoolUsed | Self::PoolPending
        )
    }

    fn of_key(key: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == key).map(|(quantity, _)| *quantity)
    }
}

/// A metric by its name, or those of its series that have some labels: `name{label="value"}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The name of the metric.
    pub name: String,
    /// Labels that a series must have.
    pub labels: Vec<(String, String)>,
}

impl Selector {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "found the metric {text:?}, expected a name, or one with labels such as \
                 'pool_connections{{state=\"used\"}}'"
            )
        };
        // It is a sample without its value, so a timestamp would be the value added here.
        let line = format!("{} 0\n", text.trim());
        let lines: Vec<_> = Reader::new(&line, Syntax::Text).collect();
        match <[_; 1]>::try_from(lines) {
            Ok([Ok(Line::Sample(sample))])
                if sample.timestamp.is_none() && !sample.name.is_empty() =>
            {
                let Sample { name, labels, .. } = sample.into();
                Ok(Self { name, labels })
            }
            _ => Err(expected()),
        }
    }

    /// Whether it means the series with this name and these labels.
    pub fn selects(&self, name: &str, labels: &[(String, String)]) -> bool {
        self.name == name && self.labels.iter().all(|label| labels.contains(label))
    }

    /// The metric that another ending makes of it, such as `_sum`.
    #[must_use]
    pub fn ending(&self, ending: &str) -> Self {
        Self { name: format!("{}{ending}", self.name), labels: self.labels.clone() }
    }
}

/// As PromQL has it.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.labels.is_empty() {
            return Ok(());
        }
        let labels: Vec<String> =
            self.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        write!(f, "{{{}}}", labels.join(","))
    }
}

/// The names of a service's metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The built-in names that they begin with.
    pub base: String,
    selectors: BTreeMap<Quantity, Selector>,
    /// Whether the service counts scrapes of its metrics as requests, if that is known.
    pub counts_scrapes: Option<bool>,
}

/// The key of [`Names::counts_scrapes`].
const COUNTS_SCRAPES: &str = "counts_scrapes";

const BUILT_IN: [(&str, &str); 3] = [
    ("talea", include_str!("names/talea.toml")),
    ("phoenix", include_str!("names/phoenix.toml")),
    ("opentelemetry", include_str!("names/opentelemetry.toml")),
];

impl Names {
    /// Those that are built in under a name: `talea`, `phoenix` or `opentelemetry`.
    /// Fails when there are none of that name; the error has those that are there.
    pub fn built_in(base: &str) -> Result<Self, String> {
        let found = BUILT_IN.iter().find(|(name, _)| *name == base);
        let Some((_, text)) = found else {
            let known = BUILT_IN.map(|(name, _)| name).join(", ");
            return Err(format!("found the names {base:?}, expected one of {known}"));
        };
        let table: BTreeMap<String, String> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let mut names =
            Self { base: base.to_owned(), selectors: BTreeMap::new(), counts_scrapes: None };
        for (key, value) in &table {
            names.set(key, value)?;
        }
        Ok(names)
    }

    /// Sets the name of one quantity. An empty text means that the service does not have it.
    /// Or sets `counts_scrapes`.
    /// Fails when the key is unknown, or the text is no metric.
    pub fn set(&mut self, key: &str, metric: &str) -> Result<(), String> {
        if key == COUNTS_SCRAPES {
            let counts = metric.parse();
            self.counts_scrapes = Some(
                counts.map_err(|_| format!("found {key} = {metric:?}, expected true or false"))?,
            );
            return Ok(());
        }
        let Some(quantity) = Quantity::of_key(key) else {
            let known = Quantity::ALL.map(|(_, key)| key).join(", ");
            return Err(format!("found {key}, expected names, {COUNTS_SCRAPES} or one of {known}"));
        };
        if metric.is_empty() {
            self.selectors.remove(&quantity);
            return Ok(());
        }
        self.selectors.insert(quantity, Selector::parse(metric)?);
        Ok(())
    }

    /// The service's name of a quantity, if it has one.
    pub fn get(&self, quantity: Quantity) -> Option<&Selector> {
        self.selectors.get(&quantity)
    }

    /// All quantities that the service has, with their names.
    pub fn all(&self) -> impl Iterator<Item = (Quantity, &Selector)> {
        self.selectors.iter().map(|(quantity, selector)| (*quantity, selector))
    }

    /// The factor that converts a duration to seconds. Its metric's name says it: one that
    /// ends with `_milliseconds` or `_ms` is in milliseconds.
    pub fn seconds(&self) -> f64 {
        let name = self.get(Quantity::Duration).map_or("", |selector| &selector.name);
        if name.ends_with("_milliseconds") || name.ends_with("_ms") { 1e-3 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_names_are_names() {
        for (base, _) in BUILT_IN {
            let names = Names::built_in(base).unwrap();
            assert!(names.get(Quantity::Requests).is_some(), "{base}");
            assert!(names.get(Quantity::Duration).is_some(), "{base}");
        }
        assert_eq!(Names::built_in("phoenix").unwrap().seconds(), 1e-3);
        assert_eq!(Names::built_in("talea").unwrap().seconds(), 1.0);
        assert!(Names::built_in("cowboy").unwrap_err().contains("talea, phoenix, opentelemetry"));
    }

    #[test]
    fn a_sample_is_no_selector() {
        assert_eq!(Selector::parse(" x ").unwrap().name, "x");
        for text in ["x 5", "x+1", "x .5", "{\"\"}", "x\ny", "# TYPE x gauge", "\0", ""] {
            assert!(Selector::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_selector_means_series_that_have_its_labels() {
        let selector = Selector::parse(r#"pool{state="used",pool="a"}"#).unwrap();
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let labels = [label("pool", "a"), label("host", "x"), label("state", "used")];
        assert!(selector.selects("pool", &labels));
        assert!(!selector.selects("pool", &labels[..2]));
        assert!(!selector.selects("pools", &labels));
        assert_eq!(selector.to_string(), r#"pool{state="used",pool="a"}"#);
        assert_eq!(selector.ending("_sum").name, "pool_sum");
        for text in ["", "a b", "a{", "a 1\nb", "# a", "{x=\"y\"}"] {
            assert!(Selector::parse(text).unwrap_err().contains("expected a name"), "{text}");
        }
    }

    #[test]
    fn one_thing_can_be_called_otherwise_or_not_be_there() {
        let mut names = Names::built_in("talea").unwrap();
        names.set("requests", "hits_total").unwrap();
        names.set("tasks", "").unwrap();
        assert_eq!(names.get(Quantity::Requests).unwrap().name, "hits_total");
        assert_eq!(names.get(Quantity::Tasks), None);
        let error = names.set("requets", "x").unwrap_err();
        assert!(error.contains("expected names, counts_scrapes or one of requests"), "{error}");
    }
}
