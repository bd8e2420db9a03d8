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

/// All values of a registry at one instant, copied out of the region: what happens
/// later does not change it, and it can be sent to any thread. A clone copies all of it.
#[derive(Clone, Default)]
pub struct Snapshot {
    raw: talea_region::Snapshot,
    /// The families that can be shown, by name.
    families: Vec<Shown>,
    /// Those of the last time, while this one is filled.
    before: Vec<Shown>,
    /// Whether the label text of all series together is UTF-8. In a region that is not
    /// damaged it is.
    is_text: bool,
}

/// A family that can be shown.
#[derive(Clone)]
struct Shown {
    /// Which of the raw families it is.
    n: usize,
    kind: Kind,
    definition: Definition,
    /// That definition as the region has it.
    encoded: Vec<u8>,
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
    /// Takes another, whose memory is used again: `copy` is to fill in the raw one.
    pub(crate) fn refill(&mut self, copy: impl FnOnce(&mut talea_region::Snapshot)) {
        let Self { raw, families, before, is_text } = self;
        copy(raw);
        told::by_process(raw);
        // Definitions are decoded when they are new. They mostly come in the order of the
        // last time.
        families.sort_unstable_by_key(|family| family.n);
        std::mem::swap(families, before);
        let mut before = before.drain(..).peekable();
        for (n, family) in raw.families().iter().enumerate() {
            while before.next_if(|earlier| earlier.n < n).is_some() {}
            let same = before.next_if(|earlier| {
                earlier.n == n
                    && earlier.encoded == family.definition
                    && earlier.kind as u8 == family.kind
            });
            // What cannot be read was written by something that is not Talea, and is left
            // out.
            families.extend(same.or_else(|| Shown::of(n, family)));
        }
        // Of one name, as while a new version is rolled out, the newest is shown.
        let raw_of = |shown: &Shown| &raw.families()[shown.n];
        families.sort_unstable_by(|one, other| {
            let (one, other) = (raw_of(one), raw_of(other));
            one.name.cmp(&other.name).then(other.created_unix_nanos.cmp(&one.created_unix_nanos))
        });
        families.dedup_by(|older, newer| raw_of(older).name == raw_of(newer).name);
        for Shown { n, kind, definition, .. } in families.iter() {
            if *kind == Kind::StateSet {
                told::by_state(raw, *n, &definition.states);
            }
        }
        *is_text = std::str::from_utf8(raw.text()).is_ok();
    }

    /// The families, sorted by name.
    pub fn families(&self) -> impl ExactSizeIterator<Item = FamilySnapshot<'_>> {
        self.families.iter().map(|Shown { n, kind, definition, .. }| FamilySnapshot {
            snapshot: self,
            raw: &self.raw.families()[*n],
            kind: *kind,
            definition,
        })
    }

    /// The text exposition format, version 0.0.4: to be served as
    /// [`TEXT_CONTENT_TYPE`](crate::TEXT_CONTENT_TYPE). Families without series are left
    /// out; infos and state sets are gauges there. Cost: linear in the text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        expose::text(self, &mut out);
        // Nothing but text is written.
        String::from_utf8(out).unwrap_or_default()
    }
}

impl Shown {
    fn of(n: usize, family: &FamilyCopy) -> Option<Self> {
        let definition = Definition::decode(&family.definition)?;
        std::str::from_utf8(&family.name).ok()?;
        let kind = Kind::from_u8(family.kind)?;
        Some(Self { n, kind, definition, encoded: family.definition.clone() })
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

    pub(crate) fn number(&self) -> Number {
        self.raw.number
    }

    /// The help text.
    pub fn help(&self) -> &'a str {
        &self.definition.help
    }

    /// How often a label combination was refused for want of room: a look-up each.
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

    /// The same as bytes, which are UTF-8, without looking at each.
    #[inline]
    pub(crate) fn label_bytes(&self) -> &'a [u8] {
        // A damaged region could cut a character between two series.
        let is_whole = self.raw.text.first().is_none_or(|first| first & 0xC0 != 0x80);
        match self.family.snapshot.is_text && is_whole {
            true => self.raw.text,
            false => self.label_text().as_bytes(),
        }
    }

    /// Its first value, as the region has it.
    #[inline]
    pub(crate) fn word(&self) -> u64 {
        self.raw.values.first().copied().unwrap_or_default()
    }

    /// Since when it counts: when it was made, or wiped. `None` of what a reader adds.
    pub fn created(&self) -> Option<SystemTime> {
        let nanos = Some(self.raw.created_unix_nanos).filter(|&nanos| nanos > 0)?;
        UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
    }

    /// Label names and plain values, in the order of the labels. Cost: a few
    /// allocations.
    pub fn labels(&self) -> Vec<(&'a str, String)> {
        pairs(self.label_text())
    }

    /// The value; a histogram's is copied.
    pub fn value(&self) -> Value {
        let first = self.word();
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
