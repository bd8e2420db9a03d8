//! The types that a text can declare.

use super::Syntax;

/// The type of a metric, as a text declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// Declared as unknown (`untyped` in text 0.0.4), or not declared. The default.
    #[default]
    Unknown,
    /// A counter.
    Counter,
    /// A gauge.
    Gauge,
    /// A histogram with buckets.
    Histogram,
    /// A histogram whose counts can fall. OpenMetrics only.
    GaugeHistogram,
    /// A summary with quantiles.
    Summary,
    /// Text in labels. OpenMetrics only.
    Info,
    /// States that are on or off. OpenMetrics only.
    StateSet,
}

impl MetricType {
    const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Counter,
        Self::Gauge,
        Self::Histogram,
        Self::GaugeHistogram,
        Self::Summary,
        Self::Info,
        Self::StateSet,
    ];

    /// Its name in a format; `None` if the format does not have it.
    pub fn as_str(self, syntax: Syntax) -> Option<&'static str> {
        Some(match (self, syntax) {
            (Self::Unknown, Syntax::Text) => "untyped",
            (Self::Unknown, Syntax::OpenMetrics) => "unknown",
            (Self::Counter, _) => "counter",
            (Self::Gauge, _) => "gauge",
            (Self::Histogram, _) => "histogram",
            (Self::Summary, _) => "summary",
            (_, Syntax::Text) => return None,
            (Self::GaugeHistogram, Syntax::OpenMetrics) => "gaugehistogram",
            (Self::Info, Syntax::OpenMetrics) => "info",
            (Self::StateSet, Syntax::OpenMetrics) => "stateset",
        })
    }

    pub(super) fn of_name(name: &str, syntax: Syntax) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str(syntax) == Some(name))
    }

    /// The endings of its samples' names, after the family's name.
    pub(super) fn endings(self, syntax: Syntax) -> &'static [&'static str] {
        match (self, syntax) {
            (Self::Histogram, Syntax::Text) => &["_bucket", "_sum", "_count"],
            (Self::Summary, Syntax::Text) => &["", "_sum", "_count"],
            (_, Syntax::Text) => &[""],
            (Self::Counter, Syntax::OpenMetrics) => &["_total", "_created"],
            (Self::Histogram, Syntax::OpenMetrics) => &["_bucket", "_count", "_sum", "_created"],
            (Self::GaugeHistogram, Syntax::OpenMetrics) => &["_bucket", "_gcount", "_gsum"],
            (Self::Summary, Syntax::OpenMetrics) => &["", "_count", "_sum", "_created"],
            (Self::Info, Syntax::OpenMetrics) => &["_info"],
            (Self::Gauge | Self::StateSet | Self::Unknown, Syntax::OpenMetrics) => &[""],
        }
    }
}

/// Every ending that a sample's name can have beyond its family's.
pub(super) const ENDINGS: [&str; 9] =
    ["", "_total", "_created", "_bucket", "_count", "_sum", "_gcount", "_gsum", "_info"];
