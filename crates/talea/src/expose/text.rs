//! The Prometheus text format, version 0.0.4. Source: "Exposition formats" in
//! the Prometheus documentation.

use super::lines::{Bounds, Lines};
use super::pages::Family;
use super::shown_names::ShownNames;
use super::text_format::{Part, bare_name};
use super::untyped::Untyped;
use super::writer::Writer;
use crate::definition::kind::Kind;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Shown};

/// The Content-Type of [`Snapshot::to_text`](crate::Snapshot::to_text).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    pub(super) lines: Lines,
    /// Whether `_created` is shown, as gauges beside the family.
    pub(super) shows_created: bool,
    /// Whether the series of those gauges are being written.
    is_at_created: bool,
    help: String,
    thresholds: Bounds,
    quantiles: Bounds,
    buckets: Vec<u64>,
    /// The length of the name before `_created`, if that is shown.
    created_after: Option<usize>,
}

impl Writer for Text {
    fn family(&mut self, out: &mut Vec<u8>, whole: &Family<'_>, names: &ShownNames) {
        let family = whole.first();
        let Self { lines, .. } = self;
        lines.begin(whole, names);
        lines.about(out, "HELP", lines.name(), family.help(), false);
        // A type that this format does not have is shown as a gauge.
        let kind = match family.kind() {
            Kind::Info | Kind::StateSet => Kind::Gauge,
            known => known,
        };
        lines.about(out, "TYPE", lines.name(), kind.as_str(), false);
        let kind = family.kind();
        let counts = matches!(kind, Kind::Counter | Kind::Histogram | Kind::Summary);
        self.created_after =
            (self.shows_created && counts).then(|| bare_name(kind, lines.name()).len());
        self.is_at_created = false;
        if self.created_after.is_some() {
            self.help.clear();
            self.help.push_str(family.help());
        }
    }

    fn starts_over(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(len) = self.created_after.filter(|_| !self.is_at_created) else { return false };
        let name = [&self.lines.name()[..len], "_created"].concat();
        self.lines.about(out, "HELP", &name, &self.help, false);
        self.lines.about(out, "TYPE", &name, Kind::Gauge.as_str(), false);
        self.is_at_created = true;
        true
    }

    fn part(&mut self, label: &str, family: &FamilySnapshot<'_>) {
        let Self { lines, thresholds, quantiles, .. } = self;
        lines.part(label);
        match (family.kind(), family.recent()) {
            (_, Some(recent)) => quantiles.begin(recent.quantiles.iter().copied()),
            (Kind::Histogram, None) => thresholds.begin(family.bounds()),
            _ => {}
        }
    }

    #[inline]
    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        let Self { lines, thresholds, quantiles, buckets, .. } = self;
        if self.created_after.is_some() && self.is_at_created {
            return lines.created(out, series);
        }
        match series.shown() {
            Shown::Histogram => {
                let count = series.cumulative(buckets);
                let counts = buckets.iter().copied().map(Shown::Unsigned);
                lines.each(out, series, "_bucket", ("le", thresholds), counts);
                lines.sample(out, series, "_sum", Shown::Float(series.sum()));
                lines.sample(out, series, "_count", Shown::Unsigned(count));
            }
            Shown::Summary => {
                let values = series.quantiles().map(|(_, value)| Shown::Float(value));
                lines.each(out, series, "", ("quantile", quantiles), values);
                lines.sample(out, series, "_sum", Shown::Float(series.sum()));
                lines.sample(out, series, "_count", Shown::Unsigned(series.count()));
            }
            number => lines.sample(out, series, "", number),
        }
    }

    fn easy_series(
        &mut self,
        out: &mut Vec<u8>,
        family: &FamilySnapshot<'_>,
        from: usize,
        enough: usize,
    ) -> usize {
        if self.is_at_created {
            return from;
        }
        self.lines.easy(out, family, from, enough)
    }

    fn untyped(&mut self, out: &mut Vec<u8>, family: &Untyped) {
        let kind = if family.are_gauges { Kind::Gauge.as_str() } else { "untyped" };
        self.lines.about(out, "HELP", &family.name, &family.help, false);
        self.lines.about(out, "TYPE", &family.name, kind, false);
    }

    fn member(&mut self, whole: &Family<'_>, names: &ShownNames) {
        self.lines.begin(whole, names);
    }

    fn samples(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>, part: Part) {
        let Self { lines, thresholds, quantiles, buckets, .. } = self;
        lines.samples(out, series, part, (thresholds, quantiles), buckets);
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}
