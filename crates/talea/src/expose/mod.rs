//! Encoders: from a snapshot to what a scraper reads.

mod escaping;
mod format;
mod lines;
mod number;
mod openmetrics;
mod protobuf;
mod text;

pub use escaping::Escaping;
pub(crate) use escaping::is_plain;
pub use format::Format;
pub(crate) use number::write_float;
#[cfg(target_os = "linux")]
pub(crate) use openmetrics::unit;
pub use text::CONTENT_TYPE as TEXT_CONTENT_TYPE;

use number::{put_digits, write_integer};
use openmetrics::OpenMetrics;
use protobuf::Protobuf;
use text::Text;

use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot};

/// What a format does with families and series as they come.
trait Writer {
    /// Begins a family, which has at least one series.
    fn family(&mut self, out: &mut Vec<u8>, family: &FamilySnapshot<'_>);

    /// Writes one of its series.
    fn series(&mut self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>);

    /// Writes series of a family from one on, which is not its first, as far as they are
    /// easy to write; where it stopped.
    fn easy_series(
        &mut self,
        _: &mut Vec<u8>,
        _: &FamilySnapshot<'_>,
        from: usize,
        _enough: usize,
    ) -> usize {
        from
    }

    /// Ends the whole.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// What a series is shown as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Histogram,
    Summary,
}

impl Shown {
    /// A number as a float; 0 of what is none.
    fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(n) => n as f64,
            Self::Signed(n) => n as f64,
            Self::Float(x) => x,
            Self::Histogram | Self::Summary => 0.0,
        }
    }

    /// Puts a whole number into a line, if it is one; where it ends.
    #[inline(always)]
    fn put(self, line: &mut [u8], at: usize) -> Option<usize> {
        match self {
            Self::Unsigned(n) => put_digits(line, at, n),
            Self::Signed(n) if n < 0 => {
                *line.get_mut(at)? = b'-';
                put_digits(line, at + 1, n.unsigned_abs())
            }
            Self::Signed(n) => put_digits(line, at, n.unsigned_abs()),
            _ => None,
        }
    }

    /// Writes a number.
    #[inline(always)]
    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Unsigned(n) => write_integer(out, n),
            Self::Signed(n) => write_integer(out, n),
            Self::Float(x) => write_float(out, x),
            Self::Histogram | Self::Summary => {}
        }
    }
}

/// Writes a snapshot in a format, as much of it at a time as is asked for. Its memory is
/// used again from one snapshot to the next.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    format: Format,
    text: Text,
    openmetrics: OpenMetrics,
    protobuf: Protobuf,
    at: Place,
}

/// How far a snapshot is written.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    family: usize,
    series: usize,
    /// Whether the family's beginning is written.
    begun: bool,
    ended: bool,
}

impl Encoder {
    pub(crate) fn new(format: Format, escaping: Escaping) -> Self {
        Self {
            format,
            text: Text::new(escaping),
            openmetrics: OpenMetrics::new(escaping),
            protobuf: Protobuf::new(escaping),
            at: Place::default(),
        }
    }

    /// Writes all of a snapshot.
    pub(crate) fn write(&mut self, snapshot: &Snapshot, out: &mut Vec<u8>) {
        self.begin();
        self.write_some(snapshot, out, usize::MAX);
    }

    /// Has the next piece be the first of a snapshot.
    pub(crate) fn begin(&mut self) {
        self.at = Place::default();
    }

    /// Writes on, until `out` is as long as `enough` or longer; false when all is
    /// written. The snapshot must be the same from call to call.
    pub(crate) fn write_some(
        &mut self,
        snapshot: &Snapshot,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        let Self { format, text, openmetrics, protobuf, at } = self;
        match format {
            Format::Text => at.go_on(snapshot, text, out, enough),
            Format::OpenMetrics | Format::OpenMetricsDraft => {
                at.go_on(snapshot, openmetrics, out, enough)
            }
            Format::Protobuf => at.go_on(snapshot, protobuf, out, enough),
        }
    }
}

impl Place {
    fn go_on(
        &mut self,
        snapshot: &Snapshot,
        writer: &mut impl Writer,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        while let Some(family) = snapshot.family_at(self.family) {
            // By number rather than with an iterator, whose items would be copied on their
            // way through its parts: there may be a million.
            while let Some(series) = family.series_at(self.series) {
                if out.len() >= enough {
                    return true;
                }
                self.series += 1;
                if !series.is_shown() {
                    continue;
                }
                if !std::mem::replace(&mut self.begun, true) {
                    writer.family(out, &family);
                }
                writer.series(out, &series);
                self.series = writer.easy_series(out, &family, self.series, enough);
            }
            *self = Self { family: self.family + 1, ..Self::default() };
        }
        if !std::mem::replace(&mut self.ended, true) {
            writer.end(out);
        }
        false
    }
}
