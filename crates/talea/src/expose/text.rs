//! The Prometheus text format, version 0.0.4. Source: "Exposition formats" in
//! the Prometheus documentation.

use super::lines::{Bounds, Lines};
use super::number::{write_bound, write_float, write_integer};
use super::pages::Family;
use super::shown_names::ShownNames;
use super::writer::Writer;
use crate::definition::kind::Kind;
use crate::snapshot::Shown;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot};

/// The Content-Type of [`Snapshot::to_text`](crate::Snapshot::to_text).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes the format.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    lines: Lines,
    thresholds: Bounds,
    quantiles: Bounds,
    /// The counts of the classic buckets of a series.
    buckets: Vec<u64>,
}

impl Writer for Text {
    fn family(&mut self, out: &mut Vec<u8>, whole: &Family<'_>, names: &ShownNames) {
        let Some((_, family)) = whole.part(0) else { return };
        let Self { lines, thresholds, quantiles, .. } = self;
        lines.begin(whole, names);
        match (family.kind(), family.recent()) {
            (_, Some(recent)) => quantiles.begin(recent.quantiles.iter().copied(), write_bound),
            (Kind::Histogram, None) => thresholds.begin(family.bounds(), write_bound),
            _ => {}
        }
        lines.about(out, "HELP", lines.name(), family.help(), false);
        // A type that this format does not have is shown as a gauge.
        let kind = match family.kind() {
            Kind::Info | Kind::StateSet => Kind::Gauge,
            known => known,
        };
        lines.about(out, "TYPE", lines.name(), kind.as_str(), false);
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
                    Shown::Unsigned(count)
                });
                lines.each(out, series, "_bucket", ("le", thresholds), counts);
                lines.open(out, series, "_sum", None);
                write_float(out, series.sum());
                out.push(b'\n');
                lines.open(out, series, "_count", None);
                write_integer(out, count);
            }
            Shown::Summary => {
                let values = series.quantiles().map(|(_, value)| Shown::Float(value));
                lines.each(out, series, "", ("quantile", quantiles), values);
                lines.open(out, series, "_sum", None);
                write_float(out, series.sum());
                out.push(b'\n');
                lines.open(out, series, "_count", None);
                write_integer(out, series.count());
            }
            number => {
                lines.open(out, series, "", None);
                number.write(out);
            }
        }
        out.push(b'\n');
    }

    fn easy_series(
        &mut self,
        out: &mut Vec<u8>,
        family: &FamilySnapshot<'_>,
        from: usize,
        enough: usize,
    ) -> usize {
        self.lines.easy(out, family, from, enough)
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}
