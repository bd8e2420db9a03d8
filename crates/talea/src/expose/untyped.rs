//! Families that a text format cannot show with their types: samples of several types have one
//! name, and a text names the type of each name once. Each name of a sample becomes a family of
//! unknown type there, with the samples of all families that have it.

use super::openmetrics::bare_name;
use super::pages::{Family, Pages};
use super::shown_names::ShownNames;
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
    fn parts(self, kind: Kind) -> &'static [Part] {
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

/// A family of unknown type: the samples of one name.
#[derive(Clone, Debug)]
pub(super) struct Untyped {
    pub(super) name: String,
    pub(super) help: String,
    /// The families that have such samples: the place of the first entry, and the part.
    pub(super) members: Vec<(usize, Part)>,
    /// Whether all of them are gauges in Prometheus' text.
    pub(super) are_gauges: bool,
}

/// The families of unknown type of a page, by name.
pub(super) fn untyped(
    pages: &dyn Pages,
    names: &ShownNames,
    format: TextFormat,
    shows_created: bool,
) -> Vec<Untyped> {
    let (mut all, mut place): (Vec<Untyped>, _) = (Vec::new(), 0);
    while let Some(whole) = Family::at(pages, place) {
        let from = place;
        place += whole.places();
        if !whole.is_untyped(format) {
            continue;
        }
        let family = whole.first();
        let (kind, shown) = (family.kind(), names.family(family.name()));
        let parts = format.parts(kind).iter();
        for part in parts.filter(|part| shows_created || **part != Part::Created) {
            all.push(Untyped {
                name: part.name(kind, &shown).concat(),
                help: family.help().to_owned(),
                members: vec![(from, *part)],
                are_gauges: matches!(kind, Kind::Gauge | Kind::Info | Kind::StateSet),
            });
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|other, first| {
        let is_same = other.name == first.name;
        if is_same {
            first.members.append(&mut other.members);
            first.are_gauges &= other.are_gauges;
        }
        is_same
    });
    all
}
