//! The families and series of a snapshot, and their values.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea_region::{FamilyCopy, Number, SeriesView};

use super::family_meta::FamilyMeta;
use super::shown::{Form, Shown};
use crate::definition::kind::Kind;
use crate::definition::{Recent, are_free};
use crate::exemplar::Exemplar;
use crate::histogram::native_buckets::NativeBuckets;
use crate::histogram::snapshot::HistogramSnapshot;
use crate::labels::{LabelText, pairs, raw_labels};

/// A family in a snapshot.
#[derive(Clone, Copy)]
pub struct FamilySnapshot<'a> {
    /// The snapshot that it is of, and whether the label text there is UTF-8.
    pub(super) snapshot: &'a talea_region::Snapshot,
    pub(super) is_text: bool,
    pub(super) raw: &'a FamilyCopy,
    pub(super) name: &'a str,
    pub(super) help: &'a str,
    pub(super) meta: &'a FamilyMeta,
}

/// A series in a snapshot.
#[derive(Clone, Copy)]
pub struct SeriesSnapshot<'a> {
    family: FamilySnapshot<'a>,
    /// Its number among the series of the family.
    n: usize,
    raw: SeriesView<'a>,
}

/// The value of a series.
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
    /// Quantiles, a count and a sum.
    Summary(SummarySnapshot),
}

/// The value of a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct SummarySnapshot {
    /// Each quantile that it shows, with its value: NaN if nothing was observed in its window, or
    /// the snapshot is not one of a registry.
    pub quantiles: Vec<(f64, f64)>,
    /// All observations since it was made.
    pub count: u64,
    /// Their sum, in the shown unit.
    pub sum: f64,
}

/// The place of a series' label text in the text of all, and its number.
type Placed = (Range<usize>, u64);

impl<'a> FamilySnapshot<'a> {
    /// The name, as samples have it (a counter's with `_total`).
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Whether its name and the names of its labels are valid in every format.
    pub(crate) fn is_plain(&self) -> bool {
        self.meta.is_plain
    }

    /// The type of the metric.
    pub fn kind(&self) -> Kind {
        self.meta.kind
    }

    /// The help text.
    pub fn help(&self) -> &'a str {
        self.help
    }

    /// The number of look-ups that were refused a new label combination for lack of room.
    pub fn dropped(&self) -> u64 {
        self.raw.dropped
    }

    /// Nanoseconds from 1970 to its registration.
    pub(crate) fn created_nanos(&self) -> u64 {
        self.raw.created_unix_nanos
    }

    /// Whether its series have a label of this name.
    pub(crate) fn has_label(&self, name: &str) -> bool {
        // A state set has its own name among its labels.
        self.label_names().iter().any(|label| label == name)
            || self.kind() == Kind::StateSet && self.name() == name
            || (self.kind() == Kind::Info || are_free(self.label_names())) && self.shows_label(name)
    }

    /// Whether a series has it, listed or not: the facts of an info are named as they are set, and free labels by
    /// each call. Cost: a look at each label of each series.
    fn shows_label(&self, name: &str) -> bool {
        let mut series = self.all_series();
        series.any(|it| raw_labels(it.label_bytes()).any(|label| label.name == name.as_bytes()))
    }

    /// Whether it is shown without the constant labels, as it has a label of such a name.
    pub(crate) fn hides_constants(&self) -> bool {
        self.meta.hides_constants
    }

    pub(crate) fn label_names(&self) -> &'a [String] {
        &self.meta.definition.labels
    }

    /// Whether it has histograms or summaries of floats, which can be negative or NaN.
    pub(crate) fn has_floats(&self) -> bool {
        matches!(self.meta.kind, Kind::Histogram | Kind::Summary)
            && self.raw.number == Number::FloatLast
    }

    /// Whether its histograms have native buckets.
    pub(crate) fn has_native(&self) -> bool {
        self.meta.definition.layout.native.is_some()
    }

    /// The upper bounds of its histograms' buckets in the shown unit; the last is +Inf.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = f64> + Clone + use<'a> {
        self.meta.grid.bounds().chain([f64::INFINITY])
    }

    /// If it is a family of numbers whose label text is UTF-8: the label text of all series, how the
    /// numbers are shown, and in pieces, for each series from `from` on, the place of its own text in
    /// that, and its number. Overflow series are among them, shown or not.
    pub(crate) fn numbers(
        &self,
        from: usize,
    ) -> Option<(&'a [u8], Form, impl Iterator<Item = impl Iterator<Item = Placed>>)> {
        let Self { snapshot, is_text, raw, meta, .. } = *self;
        let form = Form::of(meta.kind, raw.number);
        let is_number = !matches!(form, Form::Histogram | Form::Summary);
        if !is_number || !is_text || from >= snapshot.series(raw).len() {
            return None;
        }
        Some((snapshot.text(), form, snapshot.single_values(raw, from)?))
    }

    /// A series by its number from 0, shown or not.
    #[inline]
    pub(crate) fn series_at(&self, n: usize) -> Option<SeriesSnapshot<'a>> {
        let raw = self.snapshot.series_at(self.raw, n)?;
        Some(SeriesSnapshot { family: *self, n, raw })
    }

    /// Whether series may have exemplars.
    pub(crate) fn has_exemplars(&self) -> bool {
        self.raw.has_exemplars
    }

    /// All of them, shown or not.
    pub(crate) fn all_series(&self) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a> {
        let family = *self;
        let all = self.snapshot.series(self.raw).enumerate();
        all.map(move |(n, raw)| SeriesSnapshot { family, n, raw })
    }

    /// The quantiles and the window of a summary.
    pub(crate) fn recent(&self) -> Option<&'a Recent> {
        self.meta.recent.as_deref().filter(|_| self.meta.kind == Kind::Summary)
    }

    /// The series in the order of their birth. An overflow series that nothing
    /// went to is left out.
    pub fn series(&self) -> impl Iterator<Item = SeriesSnapshot<'a>> + use<'a> {
        self.all_series().filter(SeriesSnapshot::is_shown)
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

    /// The label text as bytes, which are UTF-8, without a check of each.
    #[inline]
    pub(crate) fn label_bytes(&self) -> &'a [u8] {
        // A damaged region could cut a character between two series.
        let is_whole = self.raw.text.first().is_none_or(|first| first & 0xC0 != 0x80);
        match self.family.is_text && is_whole {
            true => self.raw.text,
            false => self.label_text().as_bytes(),
        }
    }

    /// Whether it is shown: of an overflow series, whether anything went to it.
    #[inline]
    pub(crate) fn is_shown(&self) -> bool {
        let is_any = |values: &[u64]| values.iter().any(|&value| value != 0);
        !LabelText::is_overflow(self.raw.text)
            || is_any(self.raw.values)
            || self.raw.segments().any(|segment| is_any(segment.values))
    }

    /// The number that a format shows.
    #[inline]
    pub(crate) fn shown(&self) -> Shown {
        let word = self.raw.values.first().copied().unwrap_or_default();
        Form::of(self.family.meta.kind, self.family.raw.number).shown(word)
    }

    /// The observations up to each of a histogram's thresholds, and last the count, which it returns.
    pub(crate) fn cumulative(&self, out: &mut Vec<u64>) -> u64 {
        self.family.meta.grid.classic(&self.raw, out);
        let mut count = 0_u64;
        for here in out {
            count = count.wrapping_add(*here);
            *here = count;
        }
        count
    }

    pub(crate) fn count(&self) -> u64 {
        self.family.meta.grid.count(&self.raw)
    }

    pub(crate) fn native(&self) -> Option<NativeBuckets> {
        self.family.meta.grid.native(&self.raw)
    }

    /// A histogram's native buckets, in memory that is reused; false if it has no native buckets.
    pub(crate) fn native_into(&self, out: &mut NativeBuckets) -> bool {
        self.family.meta.grid.native_into(&self.raw, out)
    }

    /// The sum of a histogram's observations in the shown unit.
    pub(crate) fn sum(&self) -> f64 {
        self.family.meta.grid.beyond(&self.raw).sum(self.finite_sum())
    }

    fn finite_sum(&self) -> f64 {
        let sum = self.raw.values.last().copied().unwrap_or(0);
        match self.family.raw.number {
            Number::FloatLast => f64::from_bits(sum),
            _ => sum as f64 / self.family.meta.grid.per_unit(),
        }
    }

    /// Nanoseconds from 1970 to when it was made, or wiped.
    pub(crate) fn created_nanos(&self) -> Option<u64> {
        Some(self.raw.created_unix_nanos).filter(|&nanos| nanos > 0)
    }

    /// The latest exemplar of the counter, or of each bucket of the histogram, if there is one.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar> + use<'a> {
        self.raw.exemplars.iter().map(Exemplar::of)
    }

    pub(crate) fn raw_exemplars(&self) -> &'a [talea_region::Exemplar] {
        self.raw.exemplars
    }

    /// The exemplar of the counter, or of one of a histogram's classic buckets. Others have none, whatever a
    /// damaged region says: a page with one is refused as a whole.
    #[inline]
    pub(crate) fn exemplar(&self, bucket: usize) -> Option<&'a talea_region::Exemplar> {
        let Self { family, raw, .. } = self;
        // Several base cells may be one bucket.
        raw.exemplars
            .iter()
            .filter(|exemplar: &&talea_region::Exemplar| match family.meta.kind {
                Kind::Histogram => family.meta.grid.classic_of_base(exemplar.n) == bucket,
                Kind::Counter => exemplar.n == bucket,
                _ => false,
            })
            .max_by_key(|exemplar| exemplar.unix_nanos)
    }

    /// The time from which it counts: when it was made, or wiped. `None` for series that a reader
    /// adds.
    pub fn created(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_nanos(self.created_nanos()?))
    }

    /// Label names and plain values, in the order of the labels. Cost: a few
    /// allocations.
    pub fn labels(&self) -> Vec<(&'a str, String)> {
        pairs(self.label_text())
    }

    /// The value; a histogram's is copied.
    pub fn value(&self) -> Value {
        match self.shown() {
            Shown::Histogram => Value::Histogram(self.histogram()),
            Shown::Summary => Value::Summary(SummarySnapshot {
                quantiles: self.quantiles().collect(),
                count: self.histogram().count(),
                sum: self.sum(),
            }),
            Shown::Unsigned(n) => Value::Unsigned(n),
            Shown::Signed(n) => Value::Signed(n),
            Shown::Float(x) => Value::Float(x),
        }
    }

    /// How many observations there were in the window of a
    /// [`SampledSummary`](crate::SampledSummary), and their sum; `None` of others.
    pub fn window_totals(&self) -> Option<(u64, f64)> {
        self.family.meta.window_totals.get(self.n).copied()
    }

    /// Each quantile that a summary shows, with its value.
    pub(crate) fn quantiles(&self) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let all = self.family.recent().map_or(&[][..], |recent| &recent.quantiles);
        let from = self.n * all.len();
        let found = self.family.meta.quantiles.get(from..from + all.len()).unwrap_or_default();
        let found = found.iter().copied().chain(std::iter::repeat(f64::NAN));
        all.iter().copied().zip(found)
    }

    pub(crate) fn histogram(&self) -> HistogramSnapshot {
        let grid = &self.family.meta.grid;
        let (thresholds, mut buckets) = (grid.bounds().collect(), Vec::new());
        grid.classic(&self.raw, &mut buckets);
        let beyond = grid.beyond(&self.raw);
        let (finite_sum, native) = (self.finite_sum(), self.native());
        HistogramSnapshot { thresholds, buckets, finite_sum, beyond, native }
    }
}
