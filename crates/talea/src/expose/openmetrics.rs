//! OpenMetrics text, version 1.0. Source: the OpenMetrics specification, 1.0.0.

use super::lines::{Bounds, Lines, push};
use super::number::{write_canonical_bound, write_float, write_integer, write_seconds};
use super::{Escaping, Family, Shown, Writer};
use talea_region::Exemplar;

use crate::metric::Kind;
use crate::snapshot::SeriesSnapshot;

/// Units that a family's name may end in; then they are told apart from it.
const UNITS: [&str; 10] = [
    "seconds", "bytes", "ratio", "celsius", "meters", "volts", "amperes", "joules", "grams",
    "hertz",
];

/// Writes the format.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenMetrics {
    escaping: Escaping,
    lines: Lines,
    thresholds: Bounds,
    quantiles: Bounds,
    /// What is in each classic bucket of a series.
    buckets: Vec<u64>,
    /// Whether the family's histograms have buckets of negative values alone.
    goes_below_zero: bool,
    /// How much of the name stands before `_created`, where that is shown.
    created_after: Option<usize>,
}

impl OpenMetrics {
    pub(crate) fn new(escaping: Escaping) -> Self {
        Self { escaping, ..Self::default() }
    }
}

impl Writer for OpenMetrics {
    fn family(&mut self, out: &mut Vec<u8>, family: &Family<'_>) {
        let Some((_, family)) = family.part(0) else { return };
        let Self { escaping, lines, thresholds, quantiles, .. } = self;
        lines.begin(&family, *escaping);
        let write = write_canonical_bound;
        match (family.kind(), family.recent()) {
            (_, Some(recent)) => quantiles.begin(recent.quantiles.iter().copied(), write),
            (Kind::Histogram, None) => thresholds.begin(family.bounds(), write),
            _ => {}
        }
        self.goes_below_zero = family.bounds().next().is_some_and(|bound| bound < 0.0);
        let kind = family.kind();
        let name = bare_name(kind, lines.name());
        lines.about(out, "TYPE", name, kind.as_str(), true);
        if let Some(unit) = unit(kind, lines.name()) {
            lines.about(out, "UNIT", name, unit, true);
        }
        lines.about(out, "HELP", name, family.help(), true);
        let counts = matches!(kind, Kind::Counter | Kind::Histogram | Kind::Summary);
        self.created_after = counts.then_some(name.len());
    }

    fn part(&mut self, label: &str) {
        self.lines.part(label);
    }

    #[inline]
    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        let Self { lines, thresholds, quantiles, buckets, .. } = self;
        match series.shown() {
            Shown::Histogram => {
                series.classic(buckets);
                let mut count = 0_u64;
                let counts = buckets.iter().map(|here| {
                    count = count.wrapping_add(*here);
                    count
                });
                if series.raw_exemplars().is_empty() {
                    let counts = counts.map(Shown::Unsigned);
                    lines.each(out, series, "_bucket", ("le", thresholds), counts);
                } else {
                    for (n, (bound, count)) in thresholds.iter().zip(counts).enumerate() {
                        lines.open(out, series, "_bucket", Some(("le", bound)));
                        write_integer(out, count);
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
                number.write(out);
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
fn bare_name(kind: Kind, name: &str) -> &str {
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
    /// A sum is there only where it can but grow, and the count only with it.
    fn count_and_sum(&self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, count: u64) {
        let sum = series.sum();
        if self.goes_below_zero || sum.is_nan() || sum < 0.0 {
            return;
        }
        self.lines.open(out, series, "_count", None);
        write_integer(out, count);
        out.push(b'\n');
        self.lines.open(out, series, "_sum", None);
        write_float(out, sum);
        out.push(b'\n');
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

/// What follows the value of a counter or a bucket.
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
