//! Labels, as they stand between their braces.

use std::borrow::Cow;

use super::scan;

/// The labels of a sample, in the order of the line.
///
/// They are kept as text that was found to be valid, and taken apart when they are asked
/// for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelsRef<'a> {
    /// The text between the braces; it may include the metric's name in quotes.
    raw: &'a str,
}

impl<'a> LabelsRef<'a> {
    pub(super) fn new(raw: &'a str) -> Self {
        Self { raw }
    }

    /// The text between the braces, unchanged.
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// Names and values, unescaped. Text without escapes is not copied.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        self.parts().map(|label| (label.name.text(), label.value.text()))
    }

    /// The value of a label.
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Each with the place of its name.
    pub(super) fn placed(self) -> impl Iterator<Item = Placed<'a>> {
        let offset = move |part: &str| part.as_ptr() as usize - self.raw.as_ptr() as usize;
        self.parts().map(move |label| Placed {
            at: offset(label.name.text) - usize::from(label.name.quoted),
            value_at: offset(label.value.text),
            name: label.name.text(),
        })
    }

    #[inline]
    fn parts(self) -> impl Iterator<Item = Label<'a>> + use<'a> {
        let mut rest = self.raw;
        std::iter::from_fn(move || next(rest).inspect(|label| rest = label.rest))
    }
}

/// A label and its place, in bytes from the opening brace.
pub(super) struct Placed<'a> {
    pub(super) at: usize,
    pub(super) value_at: usize,
    pub(super) name: Cow<'a, str>,
}

/// A name or a value, as it stands there without its quotes.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    quoted: bool,
    escaped: bool,
}

impl<'a> Part<'a> {
    #[inline]
    fn text(self) -> Cow<'a, str> {
        if self.escaped { unescaped(self.text, true) } else { Cow::Borrowed(self.text) }
    }
}

struct Label<'a> {
    name: Part<'a>,
    value: Part<'a>,
    rest: &'a str,
}

/// The first label of the text. The lexer has seen it, so nothing of it is missing.
#[inline]
fn next(text: &str) -> Option<Label<'_>> {
    let mut at = 0;
    loop {
        let bytes = text.as_bytes();
        at += bytes.get(at..)?.iter().position(|b| !matches!(b, b' ' | b'\t' | b','))?;
        let name = if bytes[at] == b'"' {
            // A name has no NULs.
            let name = quoted(text, at + 1)?;
            at += name.text.len() + 2;
            name
        } else {
            let len = scan::before_equals(&bytes[at..]);
            let name = Part { text: text.get(at..at + len)?, quoted: false, escaped: false };
            at += len;
            name
        };
        at += scan::blanks(bytes.get(at..)?);
        if bytes.get(at) != Some(&b'=') {
            // The metric's name, if that is in quotes.
            if name.quoted {
                continue;
            }
            return None;
        }
        at += 1;
        at += bytes.get(at..)?.iter().position(|&b| b == b'"')?;
        let mut value = quoted(text, at + 1)?;
        let mut end = at + value.text.len() + 2;
        // Prometheus reads NULs behind the quote as a part of the value, but for the last of them.
        let nuls = scan::nuls(bytes.get(end..)?);
        if nuls > 0 {
            end += nuls;
            value.text = text.get(at + 1..end - 1)?;
        }
        let rest = text.get(end..)?;
        return Some(Label { name, value, rest });
    }
}

/// The quoted text whose first byte is at `from`.
#[inline]
fn quoted(text: &str, from: usize) -> Option<Part<'_>> {
    let bytes = text.as_bytes();
    let mut at = from;
    let mut escaped = false;
    loop {
        at += scan::before_quote(bytes.get(at..)?);
        match bytes.get(at)? {
            b'"' => return Some(Part { text: text.get(from..at)?, quoted: true, escaped }),
            b'\n' => at += 1,
            _ => {
                escaped = true;
                at += 1;
                at += 1 + scan::nuls(bytes.get(at..)?);
            }
        }
    }
}

/// Text without its escapes. A backslash before anything else stays.
pub(super) fn unescaped(text: &str, quotes: bool) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (c, len) = match after.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b'\\') => ('\\', 1),
            Some(b'"') if quotes => ('"', 1),
            _ => ('\\', 0),
        };
        out.push(c);
        rest = &after[len..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_taken_apart_as_they_stand() {
        let labels = LabelsRef::new(r#" "my.name" , a = "1","b.c"="x \" \\ \n \q",e="", "#);
        let found: Vec<_> = labels.iter().collect();
        let wanted = [("a", "1"), ("b.c", "x \" \\ \n \\q"), ("e", "")];
        assert!(found.iter().map(|(n, v)| (n.as_ref(), v.as_ref())).eq(wanted), "{found:?}");
        assert_eq!(labels.get("a").as_deref(), Some("1"));
        assert_eq!(labels.get("my.name"), None);
        assert_eq!(LabelsRef::default().iter().count(), 0);
    }

    #[test]
    fn text_without_escapes_is_not_copied() {
        let (name, value) = LabelsRef::new(r#"a="b""#).iter().next().unwrap();
        assert!(matches!((name, value), (Cow::Borrowed("a"), Cow::Borrowed("b"))));
    }

    #[test]
    fn each_label_has_a_place() {
        let placed = LabelsRef::new(r#"a="1","b"="2""#).placed();
        let places: Vec<_> = placed.map(|label| (label.at, label.value_at)).collect();
        assert_eq!(places, [(0, 3), (6, 11)]);
    }
}
