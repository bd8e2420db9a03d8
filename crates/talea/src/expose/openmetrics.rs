//! OpenMetrics text, versions 1.0 and 2.0. Sources: the OpenMetrics specification, 1.0.0 and 2.0.0-rc0.
//!
//! In 2.0 each series is one sample by the name of its family, whatever its type: histograms and summaries have
//! [composite values](super::composite), with native buckets, and the start timestamp stands behind the value. Histograms hold
//! values below zero there.
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
//!   samples all the time, the samples of the other formats. They lose their type, and a
//!   histogram's exemplars, which OpenMetrics has with histograms and counters alone.

use talea_region::Exemplar;

use super::composite::{Composite, write_start, write_summary};
use super::lines::{Bounds, Lines, push};
use super::number::{write_float, write_seconds};
use super::pages::Family;
use super::shown_names::ShownNames;
use super::text_format::{Part, bare_name};
use super::untyped::Untyped;
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
    /// Whether `_created` is shown.
    shows_created: bool,
    /// The family of unknown type that is being written, if the type cannot hold the values.
    part: Option<Part>,
    help: String,
    native: NativeBuckets,
    /// Whether it is version 2.0.
    is_version_2: bool,
    composite: Composite,
}

impl Writer for OpenMetrics {
    fn family(&mut self, out: &mut Vec<u8>, whole: &Family<'_>, names: &ShownNames) {
        let family = whole.first();
        let Self { lines, native, .. } = self;
        lines.begin(whole, names);
        let kind = family.kind();
        let counts = matches!(kind, Kind::Counter | Kind::Histogram | Kind::Summary);
        self.shows_created = counts && !self.hides_created;
        // A histogram of version 2.0 holds anything.
        let must_part = (!self.is_version_2 || kind == Kind::Summary)
            && whole.parts().any(|(_, part)| !is_holdable(&part, native));
        self.part = must_part.then_some(Part::Each);
        if must_part {
            self.help.clear();
            self.help.push_str(family.help());
            return self.part_head(out, kind);
        }
        let name = lines.name();
        let name = if self.is_version_2 { name } else { bare_name(kind, name) };
        lines.about(out, "TYPE", name, kind.as_str(), true);
        if let Some(unit) = unit(kind, lines.name()) {
            lines.about(out, "UNIT", name, unit, true);
        }
        lines.about(out, "HELP", name, family.help(), true);
    }

    fn part(&mut self, label: &str, family: &FamilySnapshot<'_>) {
        let Self { lines, thresholds, quantiles, .. } = self;
        lines.part(label);
        match (family.kind(), family.recent()) {
            (_, Some(recent)) => quantiles.begin(recent.quantiles.iter().copied()),
            (Kind::Histogram, None) => thresholds.begin(family.bounds()),
            _ => {}
        }
        self.goes_below_zero = goes_below_zero(family);
    }

    fn starts_over(&mut self, out: &mut Vec<u8>) -> bool {
        let next = self.part.and_then(Part::next);
        self.part = next.filter(|part| *part != Part::Created || self.has_created_samples());
        if self.part.is_some() {
            // The name alone says which it is.
            self.part_head(out, Kind::Summary);
        }
        self.part.is_some()
    }

    #[inline]
    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        if let Some(part) = self.part {
            return self.samples(out, series, part);
        }
        if self.is_version_2 {
            return self.sample_of_version_2(out, series);
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

    fn untyped(&mut self, out: &mut Vec<u8>, family: &Untyped) {
        self.untyped_head(out, &family.name, &family.help);
    }

    fn member(&mut self, whole: &Family<'_>, names: &ShownNames) {
        self.lines.begin(whole, names);
    }

    fn samples(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, part: Part) {
        if matches!(part, Part::Count | Part::Sum) && self.shows_buckets_alone(series) {
            return;
        }
        let Self { lines, thresholds, quantiles, buckets, .. } = self;
        lines.samples(out, series, part, (thresholds, quantiles), buckets);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        push(out, &["# EOF\n"]);
    }
}

/// The unit that a family's name ends in, with or without what its type adds to it.
pub(crate) fn unit(kind: Kind, name: &str) -> Option<&'static str> {
    let name = bare_name(kind, name);
    let units = (!matches!(kind, Kind::Info | Kind::StateSet)).then_some(UNITS);
    units
        .into_iter()
        .flatten()
        .find(|unit: &&str| name.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_')))
}

impl OpenMetrics {
    pub(super) fn new(is_version_2: bool) -> Self {
        Self { is_version_2, ..Self::default() }
    }

    /// Whether samples of their own say when series began, where these are of unknown type. Version 2.0 has none.
    pub(super) fn has_created_samples(&self) -> bool {
        !self.hides_created && !self.is_version_2
    }

    fn sample_of_version_2(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        let Self { lines, thresholds, quantiles, buckets, composite, .. } = self;
        lines.open(out, series, "", None);
        match series.shown() {
            Shown::Histogram => {
                let count = series.cumulative(buckets);
                composite.histogram(out, series, thresholds, buckets, count);
            }
            Shown::Summary => write_summary(out, series, quantiles),
            number => lines.value(out, number),
        }
        if self.shows_created {
            write_start(out, series);
        }
        match series.family().kind() {
            Kind::Histogram => {
                series.raw_exemplars().iter().for_each(|it| write_exemplar(out, Some(it)));
            }
            _ => write_exemplar(out, series.exemplar(0)),
        }
        out.push(b'\n');
    }

    fn shows_buckets_alone(&self, series: &SeriesSnapshot<'_>) -> bool {
        series.family().kind() == Kind::Histogram && self.goes_below_zero
    }

    /// With a threshold below zero there is no sum, and no count without it.
    fn count_and_sum(&self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, count: u64) {
        if self.shows_buckets_alone(series) {
            return;
        }
        let sum = series.sum();
        self.lines.sample(out, series, "_count", Shown::Unsigned(count));
        self.lines.sample(out, series, "_sum", Shown::Float(sum));
    }

    /// The lines about the family of unknown type that has a part of a family.
    fn part_head(&self, out: &mut Vec<u8>, kind: Kind) {
        let part = self.part.unwrap_or(Part::Each);
        let name = part.name(kind, self.lines.name()).concat();
        self.untyped_head(out, &name, &self.help);
    }

    fn untyped_head(&self, out: &mut Vec<u8>, name: &str, help: &str) {
        self.lines.about(out, "TYPE", name, "unknown", true);
        // For this type the whole name is the name of the family.
        if let Some(unit) = unit(Kind::Gauge, name) {
            self.lines.about(out, "UNIT", name, unit, true);
        }
        self.lines.about(out, "HELP", name, help, true);
    }

    /// When the series began to count.
    #[inline]
    fn created(&self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        if self.shows_created {
            self.lines.created(out, series);
        }
    }
}

/// Whether the buckets of a family's histograms have a threshold below zero.
fn goes_below_zero(family: &FamilySnapshot<'_>) -> bool {
    family.bounds().next().is_some_and(|bound| bound < 0.0)
}

/// Whether OpenMetrics' type can hold the values of all series of a histogram or a summary.
fn is_holdable(family: &FamilySnapshot<'_>, native: &mut NativeBuckets) -> bool {
    let shows_buckets_alone = family.kind() == Kind::Histogram && goes_below_zero(family);
    shows_buckets_alone
        || !family.has_floats()
        || family.series().all(|series: SeriesSnapshot<'_>| {
            // Once anything was below zero that stays so, and a type should not come and go.
            let is_below = series.native_into(native) && !native.negative().is_empty();
            let is_count = |x: f64| x >= 0.0;
            !is_below
                && is_count(series.sum())
                && series.quantiles().all(|(_, value)| value.is_nan() || is_count(value))
        })
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
