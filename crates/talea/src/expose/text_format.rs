//! The names that families and their samples have in the text formats.

use crate::definition::kind::Kind;
use crate::definition::names::taken;

/// A text format, by the names that families have in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// Prometheus' text, without `_created`.
    Plain,
    OpenMetrics,
}

impl TextFormat {
    pub(crate) const COUNT: usize = 2;
    pub(crate) const ALL: [Self; Self::COUNT] = [Self::Plain, Self::OpenMetrics];

    /// The names that a family takes, for itself and for its samples.
    pub(crate) fn names(self, kind: Kind, name: &str) -> impl Iterator<Item = String> {
        let (begin, endings) = match (self, kind) {
            (Self::OpenMetrics, _) => taken(kind, name),
            (Self::Plain, Kind::Histogram) => (name, &["", "_bucket", "_count", "_sum"][..]),
            (Self::Plain, Kind::Summary) => (name, &["", "_count", "_sum"][..]),
            (Self::Plain, _) => (name, &[""][..]),
        };
        endings.iter().map(move |ending| [begin, ending].concat())
    }

    /// The names of its samples.
    pub(crate) fn samples(self, kind: Kind, name: &str) -> impl Iterator<Item = String> {
        self.parts(kind).iter().map(move |part| part.name(kind, name).concat())
    }

    /// The parts of a family that have a name each.
    pub(super) fn parts(self, kind: Kind) -> &'static [Part] {
        use Part::{Count, Created, Each, Sum, Value};
        match (self, kind) {
            (_, Kind::Gauge | Kind::Info | Kind::StateSet) | (Self::Plain, Kind::Counter) => {
                &[Value]
            }
            (Self::OpenMetrics, Kind::Counter) => &[Value, Created],
            (Self::Plain, Kind::Histogram | Kind::Summary) => &[Each, Count, Sum],
            (Self::OpenMetrics, Kind::Histogram | Kind::Summary) => &[Each, Count, Sum, Created],
        }
    }
}

/// The samples of a family that have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Of a counter, a gauge, an info or a state set.
    Value,
    /// Buckets or quantiles.
    Each,
    Count,
    Sum,
    Created,
}

impl Part {
    /// The name of its samples in a family of this name, in two pieces.
    pub(super) fn name(self, kind: Kind, family: &str) -> [&str; 2] {
        match (self, kind) {
            (Self::Each, Kind::Histogram) => [family, "_bucket"],
            (Self::Value | Self::Each, _) => [family, ""],
            (Self::Count, _) => [family, "_count"],
            (Self::Sum, _) => [family, "_sum"],
            (Self::Created, _) => [bare_name(kind, family), "_created"],
        }
    }

    /// The part that is written after it, of a histogram or a summary.
    pub(super) fn next(self) -> Option<Self> {
        match self {
            Self::Each => Some(Self::Count),
            Self::Count => Some(Self::Sum),
            Self::Sum => Some(Self::Created),
            Self::Value | Self::Created => None,
        }
    }
}

/// A family's name without what its type adds to it.
pub(super) fn bare_name(kind: Kind, name: &str) -> &str {
    match kind {
        Kind::Counter => name.strip_suffix("_total"),
        Kind::Info => name.strip_suffix("_info"),
        Kind::Gauge | Kind::Histogram | Kind::StateSet | Kind::Summary => None,
    }
    .unwrap_or(name)
}
