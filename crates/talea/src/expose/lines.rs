//! What the two text formats have in common: names, labels and the lines of samples.

use std::borrow::Cow;

use super::escaping::is_plain;
use super::{Escaping, Shown};
use crate::labels::{LabelText, pairs};
use crate::metric::Kind;
use crate::names::is_plain_label;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot};

/// What the lines of a family begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// Its name as it is shown.
    name: String,
    /// Whether that stands in quotes among the labels.
    quoted: bool,
    /// How the names of labels are shown, where they are shown otherwise than the
    /// region has them.
    renames: Option<Escaping>,
    /// Label text that each series begins with. Its names need no look.
    part: String,
    /// Lines on their way to what is written.
    lines: Vec<u8>,
}

/// Whether a label text needs a look: it is not whole, or of a series that takes what
/// overflows, which may not be shown.
#[inline]
fn is_odd(text: &[u8]) -> bool {
    text.first().is_some_and(|first| first & 0xC0 == 0x80) || LabelText::is_overflow(text)
}

impl Lines {
    /// Prepares the lines of another family.
    pub(crate) fn begin(&mut self, family: &FamilySnapshot<'_>, escaping: Escaping) {
        self.name.clear();
        self.name.push_str(&escaping.name(family.name()));
        self.quoted = !is_plain(&self.name);
        // A state set has its own name among its labels.
        let own = (family.kind() == Kind::StateSet).then(|| family.name());
        let mut labels = family.label_names().iter().map(String::as_str).chain(own);
        let all_plain = labels.all(is_plain_label);
        self.renames = Some(escaping).filter(|&e| e != Escaping::AllowUtf8 && !all_plain);
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

    /// The same for a sample whose name has another beginning than the family's.
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
        if self.quoted || self.renames.is_some() {
            return self.open_slowly(out, series, name, last);
        }
        push(out, &name);
        let has_part = !self.part.is_empty();
        if has_part || !labels.is_empty() || last.is_some() {
            out.push(b'{');
            if has_part {
                push(out, &[&self.part, if labels.is_empty() { "" } else { "," }]);
            }
            out.extend_from_slice(labels);
            write_last(out, has_part || !labels.is_empty(), last);
            out.push(b'}');
        }
        out.push(b' ');
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
        let Self { name, quoted, renames, part, lines } = self;
        let Some((texts, numbers)) = family.numbers(from) else { return from };
        let comma = if part.is_empty() { "" } else { "," };
        let labels_at = name.len() + 1 + part.len() + comma.len();
        if *quoted || renames.is_some() || labels_at > LONG {
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
        let (mut n, mut end) = (from, 0);
        for (text, number) in numbers {
            let (len, text) = (text.end - text.start, texts.get(text.start..).unwrap_or_default());
            let whole = text.get(..len).unwrap_or_default();
            if whole.is_empty() || is_odd(whole) || out.len() + end >= enough {
                break;
            }
            if end > LINES - LINE {
                out.extend_from_slice(&lines[..end]);
                end = 0;
            }
            let Some(line) = lines[end..].first_chunk_mut::<LINE>() else { break };
            let Some(len) = put_line(line, &begin, labels_at, text, len, number) else { break };
            end += len;
            n += 1;
        }
        out.extend_from_slice(&lines[..end]);
        n
    }

    /// The same where names need a look.
    #[cold]
    fn open_slowly(
        &self,
        out: &mut Vec<u8>,
        series: &SeriesSnapshot<'_>,
        name: [&str; 2],
        last: Option<(&str, &[u8])>,
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
            write_label_name(out, &self.renames.map_or(Cow::Borrowed(name), |e| e.name(name)));
            push(out, &["=\""]);
            escaped(out, &value, true);
            out.push(b'"');
        }
        write_last(out, any, last);
        push(out, &["} "]);
    }
}

/// The lengths of the pieces that lines are put together from.
const SHORT: usize = 32;
const LONG: usize = 128;
/// Room for a line: its name, its labels and its number.
const LINE: usize = 3 * LONG;
/// Room for many.
const LINES: usize = 4096;

/// Puts a line together; its length. `None` where it is too long for that.
#[inline(always)]
fn put_line(
    line: &mut [u8; LINE],
    begin: &[u8; LONG],
    labels_at: usize,
    text: &[u8],
    len: usize,
    number: Shown,
) -> Option<usize> {
    put_piece(line, 0, begin, labels_at)?;
    put_piece(line, labels_at, text, len)?;
    let end = labels_at + len;
    *line.get_mut(end..)?.first_chunk_mut()? = *b"} ";
    let end = number.put(line, end + 2)?;
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
        // What is longer goes the usual way.
        *to.first_chunk_mut::<LONG>().filter(|_| len <= LONG)? = *from.first_chunk()?;
    }
    Some(())
}

#[inline]
fn write_last(out: &mut Vec<u8>, any: bool, last: Option<(&str, &[u8])>) {
    if let Some((name, value)) = last {
        push(out, &[if any { "," } else { "" }, name, "=\""]);
        out.extend_from_slice(value);
        out.push(b'"');
    }
}

/// A label's name, in quotes where it must be.
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
    for byte in text.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'"' if quotes => out.extend_from_slice(br#"\""#),
            _ => out.push(byte),
        }
    }
}

#[inline]
pub(crate) fn push(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

/// The upper bounds of a family's histograms as text, rendered once for all of its
/// series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Bounds {
    pub(crate) fn begin(
        &mut self,
        bounds: impl Iterator<Item = f64>,
        write: fn(&mut Vec<u8>, f64),
    ) {
        self.text.clear();
        self.ends.clear();
        for bound in bounds {
            write(&mut self.text, bound);
            self.ends.push(self.text.len());
        }
    }

    /// The text of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| &self.text[std::mem::replace(&mut from, end)..end])
    }
}
