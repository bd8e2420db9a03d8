//! A snapshot of a registry: what a scrape shows and a test asks.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea_region::{FamilyCopy, Number, SeriesView};

use crate::definition::Definition;
use crate::expose;
use crate::histogram_snapshot::HistogramSnapshot;
use crate::labels::{LabelText, pairs};
use crate::metric::Kind;
use crate::told;

/// All values of a registry at one instant, copied out of the region.
#[derive(Clone)]
pub struct Snapshot {
    raw: talea_region::Snapshot,
    /// The families that can be shown, by name; the number is that of the raw
    /// family.
    families: Vec<(usize, Kind, Definition)>,
}

/// A family in a snapshot.
#[derive(Clone, Copy)]
pub struct FamilySnapshot<'a> {
    snapshot: &'a Snapshot,
    raw: &'a FamilyCopy,
    kind: Kind,
    definition: &'a Definition,
}

/// A series in a snapshot.
#[derive(Clone, Copy)]
pub struct SeriesSnapshot<'a> {
    family: FamilySnapshot<'a>,
    raw: SeriesView<'a>,
}

/// What a series holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole count.
    Unsigned(u64),
    /// A whole number that may be negative.
    Signed(i64),
    /// A float.
    Float(f64),
    /// Buckets and a sum.
    Histogram(HistogramSnapshot),
}

impl Snapshot {
    pub(crate) fn of(mut raw: talea_region::Snapshot) -> Self {
        told::by_process(&mut raw);
        // What cannot be read was written by something that is not Talea, and
        // is left out.
        let mut families: Vec<_> = raw
            .families()
            .iter()
            .enumerate()
            .filter_map(|(n, family)| {
                let definition = Definition::decode(&family.definition)?;
                std::str::from_utf8(&family.name).ok()?;
                Some((n, Kind::from_u8(family.kind)?, definition))
            })
            .collect();
        // Of one name, as while a new version is rolled out, the newest is shown.
        let age = |n: usize| std::cmp::Reverse(raw.families()[n].created_unix_nanos);
        families.sort_by_key(|(n, ..)| (&raw.families()[*n].name, age(*n)));
        families
            .dedup_by(|older, newer| raw.families()[older.0].name == raw.families()[newer.0].name);
        for (n, kind, definition) in &families {
            if *kind == Kind::StateSet {
                told::by_state(&mut raw, *n, &definition.states);
            }
        }
        Self { raw, families }
    }

    /// The families, sorted by name.
    pub fn families(&self) -> impl ExactSizeIterator<Item = FamilySnapshot<'_>> {
        self.families.iter().map(|(n, kind, definition)| FamilySnapshot {
            snapshot: self,
            raw: &self.raw.families()[*n],
            kind: *kind,
            definition,
        })
    }

    /// The text exposition format, version 0.0.4: to be served as
    /// [`TEXT_CONTENT_TYPE`](crate::TEXT_CONTENT_TYPE).
    pub fn to_text(&self) -> String {
        expose::text(self)
    }
}

/// As the text format shows it.
impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl<'a> FamilySnapshot<'a> {
    /// The name, as samples have it (a counter's with `_total`).
    pub fn name(&self) -> &'a str {
        std::str::from_utf8(&self.raw.name).unwrap_or_default()
    }

    /// What kind of metric it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The help text.
    pub fn help(&self) -> &'a str {
        &self.definition.help
    }

    /// How often a label combination was refused for want of room.
    pub fn dropped(&self) -> u64 {
        self.raw.dropped
    }

    /// The series in the order of their birth. An overflow series that nothing
    /// went to is left out.
    pub fn series(&self) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a> {
        let family = *self;
        let all = self.snapshot.raw.series(self.raw).map(move |raw| SeriesSnapshot { family, raw });
        all.filter(|series| {
            !LabelText::is_overflow(series.raw.text) || series.raw.values.iter().any(|&v| v != 0)
        })
    }
}

impl<'a> SeriesSnapshot<'a> {
    pub(crate) fn family(&self) -> FamilySnapshot<'a> {
        self.family
    }

    /// The labels as a scrape shows them: `method="GET",route="/"`, escaped.
    pub fn label_text(&self) -> &'a str {
        std::str::from_utf8(self.raw.text).unwrap_or_default()
    }

    /// Since when it counts: when it was made, or wiped. `None` of what a reader adds.
    pub fn created(&self) -> Option<SystemTime> {
        let nanos = Some(self.raw.created_unix_nanos).filter(|&nanos| nanos > 0)?;
        UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
    }

    /// Label names and values.
    pub fn labels(&self) -> Vec<(&'a str, String)> {
        pairs(self.label_text())
    }

    /// The value.
    pub fn value(&self) -> Value {
        let values = self.raw.values;
        let first = values.first().copied().unwrap_or_default();
        match (self.family.kind, self.family.raw.number) {
            (Kind::Histogram, _) => Value::Histogram(self.histogram()),
            (_, Number::Float) => Value::Float(f64::from_bits(first)),
            (Kind::Counter | Kind::Info | Kind::StateSet, Number::Integer) => {
                Value::Unsigned(first)
            }
            (Kind::Gauge, Number::Integer) => Value::Signed(first as i64),
        }
    }

    fn histogram(&self) -> HistogramSnapshot {
        let Definition { per_unit, thresholds, .. } = self.family.definition;
        let mut buckets = self.raw.values.to_vec();
        let sum = buckets.pop().unwrap_or_default();
        // Dividing rounds once, so 5,000,000 ns show as 0.005.
        let thresholds: Vec<f64> = thresholds.iter().map(|&t| t as f64 / per_unit).collect();
        buckets.resize(thresholds.len() + 1, 0);
        HistogramSnapshot { thresholds, buckets, sum: sum as f64 / per_unit }
    }
}
