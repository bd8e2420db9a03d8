//! Encoders: from a snapshot to what a scraper reads.

mod escaping;
mod format;
mod lines;
mod number;
mod openmetrics;
mod protobuf;
mod shown_names;
mod text;

pub use escaping::Escaping;
pub(crate) use escaping::is_plain;
pub use format::Format;
pub(crate) use number::write_float;
#[cfg(target_os = "linux")]
pub(crate) use openmetrics::unit;
pub use text::CONTENT_TYPE as TEXT_CONTENT_TYPE;

use number::{put_digits, put_float, write_integer};
use openmetrics::OpenMetrics;
use protobuf::Protobuf;
use shown_names::ShownNames;
use text::Text;

use crate::page::Page;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot};

/// What a format does with families and series as they come.
trait Writer {
    /// Begins a family, which has at least one series.
    fn family(&mut self, out: &mut Vec<u8>, family: &Family<'_>, names: &ShownNames);

    /// Begins to go over the family's series once more, if that is needed.
    fn again(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    /// Has the series that come now begin with such label text, if any.
    fn part(&mut self, label: &str);

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

/// What can be written: families by their place.
pub(crate) trait Pages {
    /// The family at a place; `None` behind the last. They are in the order of their names.
    fn at(&self, place: usize) -> Option<Family<'_>>;

    /// Whether any name of a family or of a label is one that not every format has.
    fn has_odd_names(&self) -> bool;
}

impl Pages for Snapshot {
    fn at(&self, place: usize) -> Option<Family<'_>> {
        self.family_at(place).map(Family::Alone)
    }

    fn has_odd_names(&self) -> bool {
        !self.is_plain()
    }
}

impl Pages for Page {
    fn at(&self, place: usize) -> Option<Family<'_>> {
        self.family_at(place)
    }

    fn has_odd_names(&self) -> bool {
        self.parts().any(|part| !part.is_plain())
    }
}

/// A family as it is written: of one snapshot, or what the parts of a page have of it,
/// which agree.
#[derive(Clone, Copy)]
pub(crate) enum Family<'a> {
    Alone(FamilySnapshot<'a>),
    OfPage { page: &'a Page, from: usize, count: usize },
}

impl<'a> Family<'a> {
    /// How many places it takes.
    fn places(&self) -> usize {
        match self {
            Self::Alone(_) => 1,
            Self::OfPage { count, .. } => *count,
        }
    }

    /// What one of its parts has, and the label text that goes with it.
    #[inline]
    fn part(&self, n: usize) -> Option<(&'a str, FamilySnapshot<'a>)> {
        match *self {
            Self::Alone(family) => (n == 0).then_some(("", family)),
            Self::OfPage { page, from, count } => page.entry(from + n).filter(|_| n < count),
        }
    }

    /// The label's name by which its parts are told apart; empty where there is none.
    fn part_label(&self) -> &'a str {
        match *self {
            Self::Alone(_) => "",
            Self::OfPage { page, from, .. } => page.part_label(from),
        }
    }

    fn parts(self) -> impl Iterator<Item = (&'a str, FamilySnapshot<'a>)> {
        (0..self.places()).filter_map(move |n| self.part(n))
    }
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

    /// Puts a number into a line, if it is one; where it ends.
    #[inline(always)]
    fn put(self, line: &mut [u8], at: usize) -> Option<usize> {
        match self {
            Self::Unsigned(n) => put_digits(line, at, n),
            Self::Signed(n) if n < 0 => {
                *line.get_mut(at)? = b'-';
                put_digits(line, at + 1, n.unsigned_abs())
            }
            Self::Signed(n) => put_digits(line, at, n.unsigned_abs()),
            Self::Float(x) => put_float(line, at, x),
            Self::Histogram | Self::Summary => None,
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

/// Writes snapshots in a format, as much of one at a time as is asked for. Its memory is
/// used again from one to the next.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    format: Format,
    names: ShownNames,
    text: Text,
    openmetrics: OpenMetrics,
    protobuf: Protobuf,
    at: Place,
}

/// How far a snapshot is written.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    family: usize,
    /// Which of its parts.
    part: usize,
    series: usize,
    /// Whether the family's beginning is written.
    begun: bool,
    /// Whether it is known how names are shown.
    named: bool,
    ended: bool,
}

impl Encoder {
    pub(crate) fn new(format: Format, escaping: Escaping) -> Self {
        Self {
            format,
            names: ShownNames::new(escaping),
            text: Text::default(),
            openmetrics: OpenMetrics::default(),
            protobuf: Protobuf::default(),
            at: Place::default(),
        }
    }

    /// Writes all of it.
    pub(crate) fn write(&mut self, pages: &impl Pages, out: &mut Vec<u8>) {
        self.begin();
        self.write_some(pages, out, usize::MAX);
    }

    /// How it shows names that the format does not have.
    pub(crate) fn escaping(&self) -> Escaping {
        self.names.escaping()
    }

    /// Has the next piece be a first one.
    pub(crate) fn begin(&mut self) {
        self.at = Place::default();
    }

    /// Writes on, until `out` is as long as `enough` or longer; false when all is
    /// written. What is written must be the same from call to call.
    pub(crate) fn write_some(
        &mut self,
        pages: &impl Pages,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        let Self { format, names, text, openmetrics, protobuf, at } = self;
        if !std::mem::replace(&mut at.named, true) {
            names.learn(pages);
        }
        match format {
            Format::Text => at.go_on(pages, text, names, out, enough),
            Format::OpenMetrics | Format::OpenMetricsDraft => {
                at.go_on(pages, openmetrics, names, out, enough)
            }
            Format::Protobuf => at.go_on(pages, protobuf, names, out, enough),
        }
    }
}

impl Place {
    fn go_on(
        &mut self,
        pages: &impl Pages,
        writer: &mut impl Writer,
        names: &ShownNames,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        while let Some(whole) = pages.at(self.family) {
            while let Some((label, family)) = whole.part(self.part) {
                writer.part(label);
                // By number rather than with an iterator, whose items would be copied on
                // their way through its parts: there may be a million.
                while let Some(series) = family.series_at(self.series) {
                    if out.len() >= enough {
                        return true;
                    }
                    self.series += 1;
                    if !series.is_shown() {
                        continue;
                    }
                    if !std::mem::replace(&mut self.begun, true) {
                        writer.family(out, &whole, names);
                        writer.part(label);
                    }
                    writer.series(out, &series);
                    self.series = writer.easy_series(out, &family, self.series, enough);
                }
                (self.part, self.series) = (self.part + 1, 0);
            }
            self.part = 0;
            if self.begun && writer.again(out) {
                continue;
            }
            *self = Self { family: self.family + whole.places(), named: true, ..Self::default() };
        }
        if !std::mem::replace(&mut self.ended, true) {
            writer.end(out);
        }
        false
    }
}
