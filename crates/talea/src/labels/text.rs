//! The text of labels: written, escaped, read back.

use std::borrow::Cow;
use std::fmt;

use super::{LabelValue, Labels};
use crate::definition::names::{OVERFLOW, is_plain_label};

/// The text of a series' labels as a scrape shows it, `method="GET",route="/"`,
/// escaped once. It is the key of the series in the region.
///
/// Up to 256 bytes are kept in place; longer text is allocated.
#[derive(Debug)]
pub struct LabelText {
    short: [u8; Self::SHORT],
    len: usize,
    long: Vec<u8>,
}

impl Default for LabelText {
    fn default() -> Self {
        Self::new()
    }
}

impl LabelText {
    const SHORT: usize = 256;

    /// No text yet.
    #[inline]
    pub fn new() -> Self {
        Self { short: [0; Self::SHORT], len: 0, long: Vec::new() }
    }

    /// The text of `labels`.
    pub fn of(labels: &impl Labels) -> Self {
        let mut text = Self::new();
        labels.write(&mut text);
        text
    }

    /// The text of a single label.
    pub(crate) fn one(name: &str, value: &str) -> String {
        let mut text = Self::new();
        text.label(name, value);
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }

    /// Writes one label. The name must be a label name; a derive checks that.
    #[inline]
    pub fn label(&mut self, name: &str, value: &(impl LabelValue + ?Sized)) {
        if self.len > 0 {
            self.push(b",");
        }
        if is_plain_label(name) {
            self.push(name.as_bytes());
            self.push(b"=\"");
        } else {
            self.push(b"\"");
            self.push(name.as_bytes());
            self.push(b"\"=\"");
        }
        value.write(self);
        self.push(b"\"");
    }

    /// Writes text that is escaped already, or needs no escape.
    #[doc(hidden)]
    #[inline]
    pub fn push_raw(&mut self, text: &str) {
        self.push(text.as_bytes());
    }

    /// Writes a part of a value, escaped.
    #[inline]
    pub fn push_escaped(&mut self, value: &str) {
        if needs_escape(value.as_bytes()) {
            self.push_each_escaped(value);
        } else {
            self.push(value.as_bytes());
        }
    }

    /// Writes a part of a value as it displays itself, escaped, without a text in
    /// between.
    #[inline]
    pub fn push_displayed<T: fmt::Display + ?Sized>(&mut self, value: &T) {
        // Only the value itself can fail; the text written until then is its value.
        let _ = fmt::write(&mut Escaped(self), format_args!("{value}"));
    }

    #[cold]
    fn push_each_escaped(&mut self, value: &str) {
        for byte in value.bytes() {
            match byte {
                b'\\' => self.push(br"\\"),
                b'"' => self.push(br#"\""#),
                b'\n' => self.push(br"\n"),
                _ => self.push(&[byte]),
            }
        }
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.short.get_mut(self.len..end) {
            Some(room) if self.long.is_empty() => copy(room, bytes),
            _ => self.push_long(bytes),
        }
        self.len = end;
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.len]);
        }
        self.long.extend_from_slice(bytes);
    }

    /// The text so far.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.len] } else { &self.long }
    }
}

/// Writes a displayed value.
struct Escaped<'a>(&'a mut LabelText);

impl fmt::Write for Escaped<'_> {
    #[inline]
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.push_escaped(part);
        Ok(())
    }
}

/// Whether a value has a quote, a backslash or a new line, eight bytes at a time.
#[inline]
fn needs_escape(value: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // A byte of the result has its high bit set if the same byte of `word` is 0. (A
    // borrow can set one above such a byte too, which does not matter here.)
    let has = |word: u64, byte: u8| {
        let word = word ^ (ONES * u64::from(byte));
        word.wrapping_sub(ONES) & !word & HIGHS
    };
    let special = |word| (has(word, b'"') | has(word, b'\\') | has(word, b'\n')) != 0;
    if let Some(places) = four_words(value.len()) {
        // Each is looked at, so that nothing hangs on which.
        return places
            .into_iter()
            .fold(0, |all, at| all | u8::from(word_at(value, at).is_some_and(special)))
            != 0;
    }
    let words = value.chunks_exact(8);
    let rest = words.remainder();
    words.filter_map(|word| word.try_into().ok()).map(u64::from_le_bytes).any(special)
        || rest.iter().any(|b| matches!(b, b'"' | b'\\' | b'\n'))
}

/// The places of four words of eight bytes that cover a text of 8 to 32; they overlap if it is
/// shorter. Most labels are that long, and of different lengths: the same steps for all of them
/// cost less than mispredicted branches.
#[inline]
fn four_words(len: usize) -> Option<[usize; 4]> {
    let last = len.checked_sub(8).filter(|&last| last <= 24)?;
    Some([0, last.min(8), last.min(16), last])
}

#[inline]
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?))
}

/// Copies between slices of the same length: short ones, as labels are, by two
/// moves that may overlap rather than by a call.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) -> bool {
        let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
            return false;
        };
        if let Some(start) = to.first_chunk_mut::<N>() {
            *start = *first;
        }
        if let Some(end) = to.last_chunk_mut::<N>() {
            *end = *last;
        }
        true
    }
    if let Some(places) = four_words(from.len()) {
        for at in places {
            let to = to.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>);
            if let (Some(to), Some(word)) = (to, word_at(from, at)) {
                *to = word.to_le_bytes();
            }
        }
        return;
    }
    let done = match from.len() {
        0 => true,
        1..=3 => ends::<1>(to, from) && (from.len() < 3 || ends::<2>(to, from)),
        4..=7 => ends::<4>(to, from),
        _ => false,
    };
    if !done {
        to.copy_from_slice(from);
    }
}

/// The labels in a text: the inverse of what [`LabelText`] writes. Text that is
/// not of that form yields what can be read of it.
pub(crate) fn pairs(text: &str) -> Vec<(&str, String)> {
    // Slices between quotes and equals signs are valid UTF-8.
    let labels = raw_labels(text.as_bytes());
    labels
        .map(|label| {
            let value = String::from_utf8(label.value.into_owned()).unwrap_or_default();
            (std::str::from_utf8(label.name).unwrap_or_default(), value)
        })
        .collect()
}

/// A label in a text.
pub(crate) struct RawLabel<'a> {
    pub(crate) name: &'a [u8],
    /// Its value, without what it was escaped by.
    pub(crate) value: Cow<'a, [u8]>,
}

/// The labels one by one; allocates only for values that were escaped.
pub(crate) fn raw_labels(mut text: &[u8]) -> impl Iterator<Item = RawLabel<'_>> {
    std::iter::from_fn(move || {
        // A name that is not plain stands in quotes, and has none itself.
        let (name, rest) = match text.strip_prefix(b"\"") {
            Some(quoted) => {
                let len = quoted.iter().position(|&byte| byte == b'"')?;
                (&quoted[..len], &quoted[len + 1..])
            }
            None => text.split_at(text.iter().position(|&byte| byte == b'=')?),
        };
        let rest = rest.strip_prefix(b"=\"")?;
        let mut end = 0;
        let mut escapes = 0;
        while end < rest.len() && rest[end] != b'"' {
            let escaped = rest[end] == b'\\';
            escapes += usize::from(escaped);
            end += 1 + usize::from(escaped);
        }
        let end = end.min(rest.len());
        let value = &rest[..end];
        let value = if escapes == 0 { Cow::Borrowed(value) } else { Cow::Owned(unescaped(value)) };
        let after = rest.get(end + 1..).unwrap_or_default();
        text = after.strip_prefix(b",").unwrap_or(after);
        Some(RawLabel { name, value })
    })
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match (byte, byte == b'\\') {
            (_, false) => out.push(byte),
            (_, true) => match bytes.next() {
                Some(b'n') => out.push(b'\n'),
                Some(&other) => out.push(other),
                None => {}
            },
        }
    }
    out
}

impl LabelText {
    /// Whether a label text belongs to an overflow series.
    pub(crate) fn is_overflow(text: &[u8]) -> bool {
        text == OVERFLOW.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two<'a>(&'a str, Option<i64>);

    impl Labels for Two<'_> {
        type Static = Two<'static>;
        const NAMES: &'static [&'static str] = &["text", "number"];
        fn write(&self, out: &mut LabelText) {
            out.label("text", self.0);
            out.label("number", &self.1);
        }
    }

    #[test]
    fn written_samples_are_read_back() {
        let long = "x".repeat(300);
        for text in ["", "plain", "a\"b\\c\nd", "\\", "\\n", "}{,=\"", "ü💡\u{0}", &long] {
            for number in [None, Some(i64::MIN), Some(0)] {
                let written = LabelText::of(&Two(text, number));
                let shown = std::str::from_utf8(written.as_bytes()).unwrap();
                assert!(!shown.contains('\n'));
                let number = number.map_or(String::new(), |n| n.to_string());
                assert_eq!(pairs(shown), [("text", text.to_owned()), ("number", number)]);
            }
        }
    }

    #[test]
    fn a_special_byte_is_seen_at_every_place_among_any_others() {
        for len in 0..20 {
            for other in [b'a', 0, b'!', b'#', b'[', b']', 9, 11, 0xA2, 0xDC, 0x8A, 0xFF] {
                let plain = vec![other; len];
                assert!(!needs_escape(&plain), "{other} × {len}");
                for (at, special) in (0..len).flat_map(|at| [(at, b'"'), (at, b'\\'), (at, b'\n')])
                {
                    let mut text = plain.clone();
                    text[at] = special;
                    assert!(needs_escape(&text), "{special} at {at} among {other} × {len}");
                }
            }
        }
    }

    #[test]
    fn short_copies_copy_all_and_no_more() {
        for len in 0..70 {
            let from: Vec<u8> = (1..=len).collect();
            let mut to = vec![0xEE; from.len()];
            copy(&mut to, &from);
            assert_eq!(to, from);
        }
    }

    #[test]
    fn long_text_keeps_its_beginning() {
        for len in 230..280 {
            let value = "y".repeat(len);
            let written = LabelText::of(&Two(&value, Some(7)));
            let expected = format!("text=\"{value}\",number=\"7\"");
            assert_eq!(written.as_bytes(), expected.as_bytes());
        }
    }
}
