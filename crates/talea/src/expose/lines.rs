//! The common parts of the two text formats: names, labels and the lines of samples.

use super::number::{write_canonical, write_seconds};
use super::pages::Family;
use super::shown_names::{LabelNames, ShownNames};
use super::text_format::Part;
use crate::definition::names::{is_plain, is_plain_label};
use crate::labels::{LabelText, pairs};
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Shown};

/// The beginning of the lines of a family.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// Its name as it is shown.
    name: String,
    /// Whether that stands in quotes among the labels.
    quoted: bool,
    labels: LabelNames,
    /// Whether whole numbers are written as `1.0`.
    pub(super) decimals: bool,
    /// Label text that each series begins with. Its names need no look.
    part: String,
    /// Lines that are not written to the output yet.
    lines: Vec<u8>,
    /// The common beginning of several lines of a series.
    beginning: Vec<u8>,
}

/// Whether a label text needs a look: it is empty or not whole, or of a series that takes what
/// overflows, which may not be shown.
#[inline]
fn is_odd(text: &[u8]) -> bool {
    text.first().is_none_or(|first| first & 0xC0 == 0x80) || LabelText::is_overflow(text)
}

impl Lines {
    pub(crate) fn begin(&mut self, whole: &Family<'_>, names: &ShownNames) {
        self.name.clear();
        let family = whole.first();
        self.labels = names.labels(whole);
        self.name.push_str(&names.family(family.name()));
        self.quoted = !is_plain(&self.name);
    }

    /// Has each series begin with such label text.
    pub(crate) fn part(&mut self, label: &str) {
        self.part.clear();
        self.part.push_str(label);
    }

    /// The family's name as it is shown.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A line of metadata: `# TYPE name text`, the text escaped, its quotes if they must
    /// be.
    pub(crate) fn about(
        &self,
        out: &mut Vec<u8>,
        word: &str,
        name: &str,
        text: &str,
        quotes: bool,
    ) {
        out.reserve(name.len() + text.len() + 32);
        push(out, &["# ", word, " "]);
        if self.quoted {
            out.push(b'"');
            escaped(out, name, true);
            out.push(b'"');
        } else {
            push(out, &[name]);
        }
        out.push(b' ');
        escaped(out, text, quotes);
        out.push(b'\n');
    }

    /// Writes the line of a sample without a label of its own.
    #[inline]
    pub(super) fn sample(
        &self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        ending: &str,
        number: Shown,
    ) {
        self.open(out, series, ending, None);
        self.value(out, number);
        out.push(b'\n');
    }

    /// Writes the samples of a series that have one name. The bounds are its thresholds and its
    /// quantiles; the vector is memory for the counts of buckets.
    pub(super) fn samples(
        &mut self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        part: Part,
        (thresholds, quantiles): (&Bounds, &Bounds),
        buckets: &mut Vec<u64>,
    ) {
        match (part, series.shown()) {
            (Part::Each, Shown::Histogram) => {
                series.cumulative(buckets);
                let counts = buckets.iter().copied().map(Shown::Unsigned);
                self.each(out, series, "_bucket", ("le", thresholds), counts);
            }
            (Part::Each, _) => {
                let values = series.quantiles().map(|(_, value)| Shown::Float(value));
                self.each(out, series, "", ("quantile", quantiles), values);
            }
            (Part::Count, _) => {
                self.sample(out, series, "_count", Shown::Unsigned(series.count()));
            }
            (Part::Sum, _) => self.sample(out, series, "_sum", Shown::Float(series.sum())),
            (Part::Created, _) => self.created(out, series),
            (Part::Value, number) => self.sample(out, series, "", number),
        }
    }

    /// Writes when a series began to count, if that is known.
    pub(super) fn created(&self, out: &mut Vec<u8>, series: &SeriesSnapshot<'_>) {
        let Some(created) = series.created_nanos() else { return };
        let name = Part::Created.name(series.family().kind(), &self.name);
        self.open_as(out, series, name, None);
        write_seconds(out, created);
        out.push(b'\n');
    }

    #[inline(always)]
    pub(crate) fn value(&self, out: &mut Vec<u8>, number: Shown) {
        if self.decimals {
            write_canonical(out, number.as_f64());
        } else {
            number.write(out);
        }
    }

    /// Opens the line of a sample, up to the blank before its value. `ending` belongs to
    /// the sample's name; `last` is a label of its own, with its value.
    #[inline(always)]
    pub(crate) fn open(
        &self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        ending: &str,
        last: Option<(&str, &[u8])>,
    ) {
        self.open_as(out, series, [&self.name, ending], last);
    }

    /// Writes a line of a sample whose name begins otherwise than the family's.
    #[inline(always)]
    pub(crate) fn open_as(
        &self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        name: [&str; 2],
        last: Option<(&str, &[u8])>,
    ) {
        let labels = series.label_bytes();
        // All of the line, and the longest number.
        out.reserve(self.name.len() + self.part.len() + labels.len() + 64);
        if self.needs_look() {
            self.open_slowly(out, series, name, last.map(|(name, _)| name));
            write_value(out, last);
            return push(out, &["} "]);
        }
        push(out, &name);
        if !self.part.is_empty() || !labels.is_empty() || last.is_some() {
            self.open_labels(out, labels, last.map(|(name, _)| name));
            write_value(out, last);
            out.push(b'}');
        }
        out.push(b' ');
    }

    /// Whether names must be shown in quotes, or otherwise than the region has them.
    #[inline]
    fn needs_look(&self) -> bool {
        self.quoted || self.labels.renames()
    }

    /// Writes labels, up to the value of one of its own.
    #[inline(always)]
    fn open_labels(&self, out: &mut Vec<u8>, labels: &[u8], last: Option<&str>) {
        out.push(b'{');
        if !self.part.is_empty() {
            push(out, &[&self.part, if labels.is_empty() { "" } else { "," }]);
        }
        out.extend_from_slice(labels);
        open_last(out, !self.part.is_empty() || !labels.is_empty(), last);
    }

    /// Writes a line for each of some numbers, which differ in the value of a label of their
    /// own. They are put together as the lines of [`easy`](Self::easy), and what is before that
    /// value is put together once.
    pub(crate) fn each(
        &mut self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        ending: &str,
        (label, values): (&str, &Bounds),
        numbers: impl Iterator<Item = Shown>,
    ) {
        let mut begin = std::mem::take(&mut self.beginning);
        begin.clear();
        if self.needs_look() {
            self.open_slowly(&mut begin, series, [&self.name, ending], Some(label));
        } else {
            push(&mut begin, &[&self.name, ending]);
            self.open_labels(&mut begin, series.label_bytes(), Some(label));
        }
        push(&mut begin, &["=\""]);
        let len = begin.len();
        begin.resize(len.max(LONG), 0);
        self.lines.resize(LINES, 0);
        let mut end = 0;
        for ((value, value_len), number) in values.quoted().zip(numbers) {
            if end > LINES - LINE {
                out.extend_from_slice(&self.lines[..end]);
                end = 0;
            }
            let line = self.lines[end..].first_chunk_mut::<LINE>();
            let pieces = line.zip(begin.first_chunk()).filter(|_| !self.decimals);
            let put = pieces
                .and_then(|(line, begin)| put_line(line, begin, len, value, value_len, || number));
            if let Some(put) = put {
                end += put;
                continue;
            }
            out.extend_from_slice(&self.lines[..end]);
            end = 0;
            out.extend_from_slice(&begin[..len]);
            out.extend_from_slice(&value[..value_len]);
            push(out, &["} "]);
            self.value(out, number);
            out.push(b'\n');
        }
        out.extend_from_slice(&self.lines[..end]);
        self.beginning = begin;
    }

    /// Writes the lines of numbers with labels, from one on, until one is long or `out` is;
    /// where it stopped. Most lines are such, and there may be a million: each is put
    /// together from pieces of a fixed length, which the processor copies at once, and
    /// what is too much of them is written over. Many lines go to `out` together, so that
    /// none is read again while it is still on its way to the cache.
    pub(crate) fn easy(
        &mut self,
        out: &mut Vec<u8>,
        family: &FamilySnapshot<'_>,
        from: usize,
        enough: usize,
    ) -> usize {
        let Self { name, quoted, labels, decimals, part, lines, .. } = self;
        let Some((texts, form, pieces)) = family.numbers(from) else { return from };
        let comma = if part.is_empty() { "" } else { "," };
        let labels_at = name.len() + 1 + part.len() + comma.len();
        if *quoted || *decimals || labels.renames() || labels_at > LONG {
            return from;
        }
        let mut begin = [0; LONG];
        let (mut beginning, texts_of_it) = (&mut begin[..], [name.as_str(), "{", part, comma]);
        for text in texts_of_it {
            let (into, rest) = beginning.split_at_mut(text.len());
            into.copy_from_slice(text.as_bytes());
            beginning = rest;
        }
        lines.resize(LINES, 0);
        let Some(lines) = lines.first_chunk_mut::<LINES>() else { return from };
        let (mut n, mut end, mut room) = (from, 0, enough.saturating_sub(out.len()));
        'all: for piece in pieces {
            for (text, word) in piece {
                let (len, Some(text)) = (text.len(), texts.get(text.start..)) else { break 'all };
                if text.get(..len).is_none_or(is_odd) || end >= room {
                    break 'all;
                }
                if end > LINES - LINE {
                    out.extend_from_slice(&lines[..end]);
                    (end, room) = (0, enough.saturating_sub(out.len()));
                }
                let Some(line) = lines[end..].first_chunk_mut::<LINE>() else { break 'all };
                let put = put_line(line, &begin, labels_at, text, len, || form.shown(word));
                let Some(len) = put else { break 'all };
                end += len;
                n += 1;
            }
        }
        out.extend_from_slice(&lines[..end]);
        n
    }

    /// The name and the labels of a line where names need a look.
    #[cold]
    fn open_slowly(
        &self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        name: [&str; 2],
        last: Option<&str>,
    ) {
        if self.quoted {
            push(out, &["{\""]);
            name.iter().for_each(|part| escaped(out, part, true));
            out.push(b'"');
        } else {
            push(out, &[name[0], name[1], "{"]);
        }
        let mut any = self.quoted;
        if !self.part.is_empty() {
            push(out, &[if any { "," } else { "" }, &self.part]);
            any = true;
        }
        for (name, value) in pairs(series.label_text()) {
            if std::mem::replace(&mut any, true) {
                out.push(b',');
            }
            write_label_name(out, &self.labels.of(name));
            push(out, &["=\""]);
            escaped(out, &value, true);
            out.push(b'"');
        }
        open_last(out, any, last);
    }
}

/// The lengths of the pieces that lines are put together from.
const SHORT: usize = 32;
const LONG: usize = 128;
/// Room for a line: its name, its labels and its number.
const LINE: usize = 3 * LONG;
/// Room for many.
const LINES: usize = 4096;

/// Puts a line together; its length. `None` if it is too long for that. The number is asked for where
/// it is put, so that the compiler finds out once what kind of number it is.
#[inline(always)]
fn put_line(
    line: &mut [u8; LINE],
    begin: &[u8; LONG],
    labels_at: usize,
    text: &[u8],
    len: usize,
    number: impl FnOnce() -> Shown,
) -> Option<usize> {
    put_piece(line, 0, begin, labels_at)?;
    put_piece(line, labels_at, text, len)?;
    let end = labels_at + len;
    *line.get_mut(end..)?.first_chunk_mut()? = *b"} ";
    let end = number().put(line, end + 2)?;
    *line.get_mut(end)? = b'\n';
    Some(end + 1)
}

/// Puts the first bytes of `from` into a line, and some that come after them.
#[inline(always)]
fn put_piece(line: &mut [u8; LINE], at: usize, from: &[u8], len: usize) -> Option<()> {
    let to = line.get_mut(at..)?;
    if len <= SHORT {
        *to.first_chunk_mut::<SHORT>()? = *from.first_chunk()?;
    } else {
        // A longer text takes the general path.
        *to.first_chunk_mut::<LONG>().filter(|_| len <= LONG)? = *from.first_chunk()?;
    }
    Some(())
}

#[inline]
fn open_last(out: &mut Vec<u8>, any: bool, name: Option<&str>) {
    if let Some(name) = name {
        push(out, &[if any { "," } else { "" }, name]);
    }
}

#[inline]
fn write_value(out: &mut Vec<u8>, label: Option<(&str, &[u8])>) {
    if let Some((_, value)) = label {
        push(out, &["=\""]);
        out.extend_from_slice(value);
        out.push(b'"');
    }
}

/// A label's name, in quotes if it needs them.
fn write_label_name(out: &mut Vec<u8>, name: &str) {
    if is_plain_label(name) {
        push(out, &[name]);
    } else {
        out.push(b'"');
        escaped(out, name, true);
        out.push(b'"');
    }
}

/// Text with its backslashes and line ends escaped, and its quotes if they must be.
pub(crate) fn escaped(out: &mut Vec<u8>, text: &str, quotes: bool) {
    let mut rest = text.as_bytes();
    let is_special = |byte: &u8| matches!(byte, b'\\' | b'\n') || *byte == b'"' && quotes;
    // Most have no such byte, which is seen sooner if all bytes are looked at.
    if !rest.iter().fold(false, |any, byte| any | is_special(byte)) {
        return out.extend_from_slice(rest);
    }
    while let Some(at) = rest.iter().position(is_special) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match rest[at] {
            b'\\' => br"\\",
            b'\n' => br"\n",
            _ => br#"\""#,
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[inline]
pub(crate) fn push(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

/// Upper bounds of histograms, or the quantiles of summaries, as text: rendered once for all
/// series of a family, and of those after it that have the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    bounds: Vec<f64>,
    /// Each with the quote behind it, and then as much as is copied beyond the last.
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Bounds {
    pub(crate) fn begin(&mut self, bounds: impl Iterator<Item = f64> + Clone) {
        let Self { bounds: known, text, ends } = self;
        if known.iter().map(|x| x.to_bits()).eq(bounds.clone().map(f64::to_bits)) {
            return;
        }
        known.clear();
        text.clear();
        ends.clear();
        for bound in bounds {
            known.push(bound);
            write_canonical(text, bound);
            text.push(b'"');
            ends.push(text.len());
        }
        text.resize(text.len() + LONG, 0);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.quoted().map(|(text, len)| &text[..len - 1])
    }

    /// The label names, each as a slice that begins with its text and the quote after it, and the
    /// length of both.
    fn quoted(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let begin = std::mem::replace(&mut from, end);
            (&self.text[begin..], end - begin)
        })
    }
}
