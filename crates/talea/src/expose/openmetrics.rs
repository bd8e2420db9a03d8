//! OpenMetrics text, version 1.0. Source: the OpenMetrics specification, 1.0.0.
//!
//! # Values below zero
//!
//! The specification has counts and sums of histograms and summaries as counters, and quantiles
//! as not negative; parsers refuse a page with others. So:
//!
//! - A histogram with a threshold below zero has buckets alone, as the specification says.
//! - Any other histogram or summary has `_count` and `_sum`, whatever was observed. If one of its
//!   series has a quantile or a sum that its type cannot hold (below zero, or a sum that is NaN),
//!   or has counted something below zero, all of the family is written as families of unknown type,
//!   one for each sample name: `x`, `x_count`, `x_sum`, `x_created`. So a scraper finds the same
//!   samples all the time, and those of the other formats. They lose their type, and a
//!   histogram's exemplars, which OpenMetrics has with histograms and counters alone.

use talea_region::Exemplar;

use super::lines::{Bounds, Lines, push};
use super::number::{write_canonical, write_float, write_seconds};
use super::pages::Family;
use super::shown_names::ShownNames;
use super::writer::Writer;
use crate::definition::kind::Kind;
use crate::histogram::native_buckets::NativeBuckets;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Shown};

/// Units that a family's name may end in. OpenMetrics names them in a line of their own.
const UNITS: [&str; 10] = [
    "seconds", "bytes", "ratio", "celsius", "meters", "volts", "amperes", "joules", "grams",
    "hertz",
];

#[derive(Clone, Debug, Default)]
pub(crate) struct OpenMetrics {
    pub(super) lines: Lines,
    thresholds: Bounds,
    quantiles: Bounds,
    /// The counts of the classic buckets of a series.
    buckets: Vec<u64>,
    /// Whether the family's histograms have a threshold below zero.
    goes_below_zero: bool,
    pub(super) hides_created: bool,
    /// The length of the name before `_created`, if that is shown.
    created_after: Option<usize>,
    /// The family of unknown type that is being written, if the type cannot hold the values.
    part: Option<Part>,
    help: String,
    native: NativeBuckets,
}

/// The samples of a histogram or a summary that one family of unknown type has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// Buckets or quantiles.
    Each,
    Count,
    Sum,
    Created,
}

impl Part {
    fn next(self) -> Option<Self> {
        match self {
            Self::Each => Some(Self::Count),
            Self::Count => Some(Self::Sum),
            Self::Sum => Some(Self::Created),
            Self::Created => None,
        }
    }
}

impl Writer for OpenMetrics {
    fn family(&mut self, out: &mut Vec<u8>, whole: &Family<'_>, names: &ShownNames) {
        let family = whole.first();
        let Self { lines, thresholds, quantiles, native, .. } = self;
        lines.begin(whole, names);
        let write = write_canonical;
        match (family.kind(), family.recent()) {
            (_, Some(recent)) => quantiles.begin(recent.quantiles.iter().copied(), write),
            (Kind::Histogram, None) => thresholds.begin(family.bounds(), write),
            _ => {}
        }
        let kind = family.kind();
        self.goes_below_zero = family.bounds().next().is_some_and(|bound| bound < 0.0);
        let is_histogram_below_zero = kind == Kind::Histogram && self.goes_below_zero;
        let must_part =
            !is_histogram_below_zero && whole.parts().any(|(_, part)| !is_holdable(&part, native));
        self.part = must_part.then_some(Part::Each);
        if must_part {
            self.help.clear();
            self.help.push_str(family.help());
            return self.part_head(out, kind);
        }
        let name = bare_name(kind, lines.name());
        lines.about(out, "TYPE", name, kind.as_str(), true);
        if let Some(unit) = unit(kind, lines.name()) {
            lines.about(out, "UNIT", name, unit, true);
        }
        lines.about(out, "HELP", name, family.help(), true);
        let counts = matches!(kind, Kind::Counter | Kind::Histogram | Kind::Summary);
        self.created_after = (counts && !self.hides_created).then_some(name.len());
    }

    fn part(&mut self, label: &str) {
        self.lines.part(label);
    }

    fn starts_over(&mut self, out: &mut Vec<u8>) -> bool {
        self.part = self.part.and_then(Part::next);
        if self.part.is_some() {
            // The name alone says which it is.
            self.part_head(out, Kind::Summary);
        }
        self.part.is_some()
    }

    #[inline]
    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        if let Some(part) = self.part {
            return self.part_series(out, series, part);
        }
        let Self { lines, thresholds, quantiles, buckets, .. } = self;
        match series.shown() {
            Shown::Histogram => {
                let count = series.cumulative(buckets);
                let counts = buckets.iter().copied().map(Shown::Unsigned);
                if series.raw_exemplars().is_empty() {
                    lines.each(out, series, "_bucket", ("le", thresholds), counts);
                } else {
                    for (n, (bound, count)) in thresholds.iter().zip(counts).enumerate() {
                        lines.open(out, series, "_bucket", Some(("le", bound)));
                        lines.value(out, count);
                        write_exemplar(out, series.exemplar(n));
                        out.push(b'\n');
                    }
                }
                self.count_and_sum(out, series, count);
                return self.created(out, series);
            }
            Shown::Summary => {
                let values = series.quantiles().map(|(_, value)| Shown::Float(value));
                lines.each(out, series, "", ("quantile", quantiles), values);
                let count = series.count();
                self.count_and_sum(out, series, count);
                return self.created(out, series);
            }
            number => {
                lines.open(out, series, "", None);
                lines.value(out, number);
                write_exemplar(out, series.exemplar(0));
            }
        }
        out.push(b'\n');
        self.created(out, series);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        push(out, &["# EOF\n"]);
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

/// The unit that a family's name ends in, with or without what its type adds to it.
pub(crate) fn unit(kind: Kind, name: &str) -> Option<&'static str> {
    let name = bare_name(kind, name);
    let has = |unit: &&str| name.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_'));
    let units = (!matches!(kind, Kind::Info | Kind::StateSet)).then_some(UNITS);
    units.into_iter().flatten().find(has)
}

impl OpenMetrics {
    /// With a threshold below zero there is no sum, and no count without it.
    fn count_and_sum(&self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, count: u64) {
        let sum = series.sum();
        if series.family().kind() == Kind::Histogram && self.goes_below_zero {
            return;
        }
        self.lines.sample(out, series, "_count", Shown::Unsigned(count));
        self.lines.sample(out, series, "_sum", Shown::Float(sum));
    }

    /// The lines about a family of unknown type.
    fn part_head(&self, out: &mut Vec<u8>, kind: Kind) {
        let ending = match (self.part, kind) {
            (Some(Part::Each), Kind::Histogram) => "_bucket",
            (Some(Part::Count), _) => "_count",
            (Some(Part::Sum), _) => "_sum",
            (Some(Part::Created), _) => "_created",
            _ => "",
        };
        let name = [self.lines.name(), ending].concat();
        self.lines.about(out, "TYPE", &name, "unknown", true);
        if let Some(unit) = unit(kind, &name) {
            self.lines.about(out, "UNIT", &name, unit, true);
        }
        self.lines.about(out, "HELP", &name, &self.help, true);
    }

    /// Writes the samples of a series that belong to one of these families.
    fn part_series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, part: Part) {
        let Self { lines, thresholds, quantiles, buckets, .. } = self;
        let number = match (part, series.shown()) {
            (Part::Each, Shown::Histogram) => {
                series.cumulative(buckets);
                let counts = buckets.iter().copied().map(Shown::Unsigned);
                return lines.each(out, series, "_bucket", ("le", thresholds), counts);
            }
            (Part::Each, _) => {
                let values = series.quantiles().map(|(_, value)| Shown::Float(value));
                return lines.each(out, series, "", ("quantile", quantiles), values);
            }
            (Part::Count, _) => ("_count", Shown::Unsigned(series.count())),
            (Part::Sum, _) => ("_sum", Shown::Float(series.sum())),
            (Part::Created, _) => {
                let Some(created) = series.created_nanos() else { return };
                lines.open(out, series, "_created", None);
                write_seconds(out, created);
                return out.push(b'\n');
            }
        };
        lines.sample(out, series, number.0, number.1);
    }

    /// When the series began to count.
    #[inline]
    fn created(&self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        let lines = &self.lines;
        if let (Some(len), Some(created)) = (self.created_after, series.created_nanos()) {
            lines.open_as(out, series, [&lines.name()[..len], "_created"], None);
            write_seconds(out, created);
            out.push(b'\n');
        }
    }
}

/// Whether OpenMetrics' type can hold the values of all series of a histogram or a summary.
fn is_holdable(family: &FamilySnapshot<'_>, native: &mut NativeBuckets) -> bool {
    let holds = |series: SeriesSnapshot<'_>| {
        // Once anything was below zero that stays so, and a type should not come and go.
        let is_below = series.native_into(native) && !native.negative().is_empty();
        let is_count = |x: f64| x >= 0.0;
        !is_below
            && is_count(series.sum())
            && series.quantiles().all(|(_, value)| value.is_nan() || is_count(value))
    };
    !family.has_floats() || family.series().all(holds)
}

/// Writes the exemplar, which follows the value of a counter or a bucket.
#[inline]
fn write_exemplar(out: &mut Vec<u8>, exemplar: Option<&Exemplar>) {
    let Some(Exemplar { value, text, unix_nanos, .. }) = exemplar else { return };
    // Prometheus takes a NUL in an exemplar for the end of the page, and drops the scrape.
    if text.contains(&0) {
        return;
    }
    push(out, &[" # {"]);
    out.extend_from_slice(text);
    push(out, &["} "]);
    write_float(out, *value);
    out.push(b' ');
    write_seconds(out, *unix_nanos);
}
