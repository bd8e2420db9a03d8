//! The encoder, which writes a snapshot or a page in a format, in pieces.

use std::fmt;

use super::openmetrics::OpenMetrics;
use super::pages::{Family, Pages};
use super::protobuf::Protobuf;
use super::shown_names::ShownNames;
use super::text::Text;
use super::text_format::TextFormat;
use super::untyped::{Untyped, untyped};
use super::writer::Writer;
use super::{Escaping, Format};
use crate::snapshot::Snapshot;

/// Writes snapshots in a format, in pieces of the size that the caller asks for. It reuses its
/// buffers.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    format: Format,
    names: ShownNames,
    text: Text,
    openmetrics: OpenMetrics,
    protobuf: Protobuf,
    /// The families of unknown type of the page.
    untyped: Vec<Untyped>,
    at: Place,
}

/// How far a snapshot is written.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    family: usize,
    /// The family of unknown type, and which of its members.
    untyped: usize,
    member: usize,
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
            openmetrics: OpenMetrics::new(format == Format::OpenMetrics2),
            protobuf: Protobuf::default(),
            untyped: Vec::new(),
            at: Place::default(),
        }
    }

    pub(crate) fn hide_created(&mut self) {
        self.openmetrics.hides_created = true;
        self.text.shows_created = false;
    }

    /// Shows when series began, also in Prometheus' text.
    pub(crate) fn show_created(&mut self) {
        self.openmetrics.hides_created = false;
        self.text.shows_created = true;
    }

    /// Writes whole numbers as `1.0`.
    pub(crate) fn write_decimals(&mut self) {
        self.openmetrics.lines.decimals = true;
        self.text.lines.decimals = true;
    }

    pub(crate) fn write(&mut self, pages: &dyn Pages, out: &mut Vec<u8>) {
        self.begin();
        self.write_some(pages, out, usize::MAX);
    }

    pub(crate) fn escaping(&self) -> Escaping {
        self.names.escaping()
    }

    /// Has the next piece be a first one.
    pub(crate) fn begin(&mut self) {
        self.at = Place::default();
    }

    /// Writes on, until `out` is as long as `enough` or longer; false when all is
    /// written. The snapshot must be the same from call to call.
    pub(crate) fn write_some(
        &mut self,
        pages: &dyn Pages,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        if !std::mem::replace(&mut self.at.named, true) {
            self.names.learn(pages);
            self.learn_types(pages);
        }
        let text_format = self.text_format();
        let Self { format, names, text, openmetrics, protobuf, untyped, at } = self;
        let page = (pages, &*names);
        let types = (text_format, &untyped[..]);
        match format {
            Format::Text => at.go_on(page, types, text, out, enough),
            Format::OpenMetrics | Format::OpenMetricsDraft | Format::OpenMetrics2 => {
                at.go_on(page, types, openmetrics, out, enough)
            }
            Format::Protobuf => at.go_on(page, types, protobuf, out, enough),
        }
    }

    /// By which names families clash; `None` if each family has its type.
    fn text_format(&self) -> Option<TextFormat> {
        match self.format {
            Format::Text if !self.text.shows_created => Some(TextFormat::Plain),
            Format::Text
            | Format::OpenMetrics
            | Format::OpenMetricsDraft
            | Format::OpenMetrics2 => Some(TextFormat::OpenMetrics),
            Format::Protobuf => None,
        }
    }

    /// Finds the families that are shown without their types.
    fn learn_types(&mut self, pages: &dyn Pages) {
        self.untyped.clear();
        if let Some(format) = self.text_format().filter(|_| pages.has_untyped()) {
            let shows_created = match self.format {
                Format::Text => self.text.shows_created,
                _ => self.openmetrics.has_created_samples(),
            };
            self.untyped = untyped(pages, &self.names, format, shows_created);
        }
    }
}

impl Place {
    /// Writes the families with their types, then the families of unknown type.
    fn go_on(
        &mut self,
        (pages, names): (&dyn Pages, &ShownNames),
        (format, untyped): (Option<TextFormat>, &[Untyped]),
        writer: &mut impl Writer,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        while let Some(mut whole) = Family::at(pages, self.family) {
            if format.is_none() {
                whole = whole.of_one_sort();
            }
            let is_typed = !format.is_some_and(|format| whole.is_untyped(format));
            while let Some((label, family)) = whole.part(self.part).filter(|_| is_typed) {
                writer.part(label, &family);
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
                        writer.part(label, &family);
                    }
                    writer.series(out, &series);
                    self.series = writer.easy_series(out, &family, self.series, enough);
                }
                (self.part, self.series) = (self.part + 1, 0);
            }
            self.part = 0;
            if self.begun && writer.starts_over(out) {
                continue;
            }
            *self = Self { family: self.family + whole.places(), named: true, ..Self::default() };
        }
        while let Some(family) = untyped.get(self.untyped) {
            if self.go_on_with((pages, names), family, writer, out, enough) {
                return true;
            }
            let Self { family, untyped, .. } = *self;
            *self = Self { family, untyped: untyped + 1, named: true, ..Self::default() };
        }
        if !std::mem::replace(&mut self.ended, true) {
            writer.end(out);
        }
        false
    }

    /// Writes a family of unknown type; true if it is not at its end.
    fn go_on_with(
        &mut self,
        (pages, names): (&dyn Pages, &ShownNames),
        untyped: &Untyped,
        writer: &mut impl Writer,
        out: &mut Vec<u8>,
        enough: usize,
    ) -> bool {
        while let Some((from, samples)) = untyped.members.get(self.member) {
            let Some(whole) = Family::at(pages, *from) else { break };
            writer.member(&whole, names);
            while let Some((label, family)) = whole.part(self.part) {
                writer.part(label, &family);
                while let Some(series) = family.series_at(self.series) {
                    if out.len() >= enough {
                        return true;
                    }
                    self.series += 1;
                    if !series.is_shown() {
                        continue;
                    }
                    if !std::mem::replace(&mut self.begun, true) {
                        writer.untyped(out, untyped);
                    }
                    writer.samples(out, &series, *samples);
                }
                (self.part, self.series) = (self.part + 1, 0);
            }
            (self.member, self.part) = (self.member + 1, 0);
        }
        false
    }
}

impl Snapshot {
    /// The text exposition format, version 0.0.4: to be served as
    /// [`TEXT_CONTENT_TYPE`](crate::TEXT_CONTENT_TYPE). Families without series are left
    /// out; infos and state sets are gauges there. Cost: linear in the text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        Encoder::new(Format::Text, Escaping::default()).write(self, &mut out);
        // Nothing but text is written.
        String::from_utf8(out).unwrap_or_default()
    }

    /// The snapshot in a format, in pieces of about `bytes` bytes: a piece ends with the
    /// series that reaches this length. So a large scrape takes the memory of one piece
    /// beside the snapshot itself.
    ///
    /// ```
    /// # use talea::{Counter, Escaping, Format, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// # let _: Counter = registry.register(Opts::new("orders", "Orders accepted."))?;
    /// let snapshot = registry.snapshot();
    /// let chunks = snapshot.chunks(Format::OpenMetrics, Escaping::default(), 1 << 16);
    /// let all: Vec<u8> = chunks.flatten().collect();
    /// assert!(all.ends_with(b"# EOF\n"));
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn chunks(
        &self,
        format: Format,
        escaping: Escaping,
        len: usize,
    ) -> impl Iterator<Item = Vec<u8>> + use<'_> {
        let mut encoder = Encoder::new(format, escaping);
        let mut more = true;
        std::iter::from_fn(move || {
            let mut out = Vec::new();
            more = more && encoder.write_some(self, &mut out, len);
            (!out.is_empty()).then_some(out)
        })
    }
}

/// As the text format shows it.
impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
