//! Labels: how values become the text that finds a series.

/// A combination of labels, usually by `#[derive(Labels)]` on a struct: each
/// field is a label, its name the label's name.
pub trait Labels {
    /// The same labels with `'static` values: what a family is named by.
    type Static: 'static;
    /// The label names, in order.
    const NAMES: &'static [&'static str];
    /// How many combinations there are, where every label's values are fixed.
    const CARDINALITY: Option<usize>;
    /// Which of those combinations this is, from 0; meaningless where they are
    /// not fixed.
    fn index(&self) -> usize;
    /// Writes each label, in order.
    fn write(&self, out: &mut LabelText);
}

/// No labels.
impl Labels for () {
    type Static = ();
    const NAMES: &'static [&'static str] = &[];
    const CARDINALITY: Option<usize> = Some(1);
    fn index(&self) -> usize {
        0
    }
    fn write(&self, _: &mut LabelText) {}
}

/// A label's value: text, an integer, a bool, an `Option` of one (`None` is
/// empty, which Prometheus takes for absent), or an enum by
/// `#[derive(LabelValue)]`.
pub trait LabelValue {
    /// How many values there are, where they are fixed.
    const CARDINALITY: Option<usize> = None;
    /// Which of those values this is, from 0; meaningless where they are not
    /// fixed.
    fn index(&self) -> usize {
        0
    }
    /// Writes the value; it is escaped on the way.
    fn write(&self, out: &mut LabelText);
}

impl LabelValue for str {
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push_escaped(self);
    }
}

impl LabelValue for String {
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push_escaped(self);
    }
}

impl LabelValue for std::borrow::Cow<'_, str> {
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push_escaped(self);
    }
}

impl LabelValue for bool {
    const CARDINALITY: Option<usize> = Some(2);
    #[inline]
    fn index(&self) -> usize {
        usize::from(*self)
    }
    #[inline]
    fn write(&self, out: &mut LabelText) {
        out.push(if *self { b"true" } else { b"false" });
    }
}

impl<T: LabelValue + ?Sized> LabelValue for &T {
    const CARDINALITY: Option<usize> = T::CARDINALITY;
    #[inline]
    fn index(&self) -> usize {
        (**self).index()
    }
    #[inline]
    fn write(&self, out: &mut LabelText) {
        (**self).write(out);
    }
}

impl<T: LabelValue> LabelValue for Option<T> {
    const CARDINALITY: Option<usize> = match T::CARDINALITY {
        Some(n) => Some(n + 1),
        None => None,
    };
    #[inline]
    fn index(&self) -> usize {
        self.as_ref().map_or(0, |value| 1 + value.index())
    }
    #[inline]
    fn write(&self, out: &mut LabelText) {
        if let Some(value) = self {
            value.write(out);
        }
    }
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl LabelValue for $t {
            #[inline]
            fn write(&self, out: &mut LabelText) {
                out.push(itoa::Buffer::new().format(*self).as_bytes());
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

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

impl LabelText {
    const SHORT: usize = 256;

    /// The text of `labels`.
    #[inline]
    pub fn of(labels: &impl Labels) -> Self {
        let mut text = Self { short: [0; Self::SHORT], len: 0, long: Vec::new() };
        labels.write(&mut text);
        text
    }

    /// The text of a single label.
    pub(crate) fn one(name: &str, value: &str) -> String {
        let mut text = Self { short: [0; Self::SHORT], len: 0, long: Vec::new() };
        text.label(name, value);
        String::from_utf8_lossy(text.as_bytes()).into_owned()
    }

    /// Writes one label. The name must be a label name; a derive checks that.
    #[inline]
    pub fn label(&mut self, name: &str, value: &(impl LabelValue + ?Sized)) {
        if self.len > 0 {
            self.push(b",");
        }
        self.push(name.as_bytes());
        self.push(b"=\"");
        value.write(self);
        self.push(b"\"");
    }

    /// Writes a part of a value, escaped.
    #[inline]
    pub fn push_escaped(&mut self, value: &str) {
        if value.bytes().any(|b| matches!(b, b'\\' | b'"' | b'\n')) {
            self.push_each_escaped(value);
        } else {
            self.push(value.as_bytes());
        }
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
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.short.get_mut(self.len..end) {
            Some(room) if self.long.is_empty() => room.copy_from_slice(bytes),
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

/// The labels in a text: the inverse of what [`LabelText`] writes. Text that is
/// not of that form yields what can be read of it.
pub(crate) fn pairs(mut text: &str) -> Vec<(&str, String)> {
    let mut pairs = Vec::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next() {
                Some((at, '"')) => break at + 1,
                Some((_, '\\')) => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other)) => value.push(other),
                    None => break rest.len(),
                },
                Some((_, other)) => value.push(other),
                None => break rest.len(),
            }
        };
        pairs.push((name, value));
        text = rest[end..].strip_prefix(',').unwrap_or("");
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two<'a>(&'a str, Option<i64>);

    impl Labels for Two<'_> {
        type Static = Two<'static>;
        const NAMES: &'static [&'static str] = &["text", "number"];
        const CARDINALITY: Option<usize> = None;
        fn index(&self) -> usize {
            0
        }
        fn write(&self, out: &mut LabelText) {
            out.label("text", self.0);
            out.label("number", &self.1);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
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
    fn long_text_keeps_its_beginning() {
        for len in 230..280 {
            let value = "y".repeat(len);
            let written = LabelText::of(&Two(&value, Some(7)));
            let expected = format!("text=\"{value}\",number=\"7\"");
            assert_eq!(written.as_bytes(), expected.as_bytes());
        }
    }
}
