//! Families and their series.

use std::time::SystemTime;

use super::{Exemplar, Value};

/// The series of one name and one kind.
///
/// The values of its series fit its kind: histograms of [`Kind::Histogram`] and
/// [`Kind::GaugeHistogram`], summaries of [`Kind::Summary`], numbers of all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    /// The name, as samples have it: a counter's with `_total`, an info's with `_info`; a
    /// histogram's and a summary's without the endings of their samples.
    pub name: String,
    /// The help text; empty if the page has no help for it.
    pub help: String,
    /// The unit; empty if the page names no unit.
    pub unit: String,
    /// The type of the metric.
    pub kind: Kind,
    /// The series, in the order of the page.
    pub series: Vec<Series>,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only goes up.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations by size.
    Histogram,
    /// A histogram whose counts can fall.
    GaugeHistogram,
    /// Shows quantiles of recent observations.
    Summary,
    /// Has facts as labels; its value is 1.
    Info,
    /// One series for each state of a set, which is 0 or 1.
    StateSet,
    /// Not declared, or declared as unknown (`untyped`). The default.
    #[default]
    Unknown,
}

/// One combination of label values in a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The labels that distinguish it, in the order of the page: not `le` of a histogram's buckets
    /// and not `quantile` of a summary.
    pub labels: Vec<Label>,
    /// The value.
    pub value: Value,
    /// The time from which it counts, of counters, histograms and summaries.
    pub created: Option<SystemTime>,
}

/// A label of a series or of an exemplar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The value, unescaped.
    pub value: String,
}

impl Kind {
    /// Whether all values of its series only grow, unless the series starts anew.
    pub fn only_grows(self) -> bool {
        matches!(self, Self::Counter | Self::Histogram)
    }

    /// Its name in OpenMetrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::GaugeHistogram => "gaugehistogram",
            Self::Summary => "summary",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Unknown => "unknown",
        }
    }
}

impl Series {
    /// The value of a label; `None` if the series does not have the label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let label = self.labels.iter().find(|label| label.name == name)?;
        Some(&label.value)
    }

    /// All exemplars: of a counter, of a histogram's classic buckets, then of its native ones.
    pub fn exemplars(&self) -> impl Iterator<Item = &Exemplar> {
        let number = match &self.value {
            Value::Number(number) => number.exemplar.as_ref(),
            _ => None,
        };
        let histogram = self.value.histogram();
        let classic = histogram.into_iter().flat_map(|it| &it.classic);
        let native = histogram.into_iter().flat_map(|it| &it.exemplars);
        number.into_iter().chain(classic.filter_map(|it| it.exemplar.as_ref())).chain(native)
    }
}

impl Label {
    /// A label of this name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
