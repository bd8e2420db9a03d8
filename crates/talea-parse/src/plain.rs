//! The fast path for the line that most samples have: `name{label="value"} 1`, without escapes,
//! extra blanks, timestamps or exemplars.
//!
//! Any other line is left to the lexer. It returns only the three parts: to move whole samples from
//! one function to the next would cost as much as the parsing.

use super::{number, scan};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plain<'a> {
    pub(super) name: &'a str,
    pub(super) labels: &'a str,
    pub(super) value: f64,
}

/// The sample at the beginning of a text and the length of its line; `None` if the line is not as plain
/// as that. `last` is the name of the sample before, which the next one often has too.
#[inline(always)]
pub(super) fn plain<'a>(text: &'a str, from: usize, last: &str) -> Option<(Plain<'a>, usize)> {
    let bytes = text.as_bytes();
    let rest = bytes.get(from..)?;
    let name = match rest.strip_prefix(last.as_bytes()).and_then(<[u8]>::first) {
        Some(b'{' | b' ') if !last.is_empty() => last.len(),
        _ => scan::metric_name(rest),
    };
    let mut at = name;
    let mut labels = at..at;
    if *rest.get(at)? == b'{' {
        let end = labels_end(rest, at + 1)?;
        labels = at + 1..end;
        at = end + 1;
    }
    if name == 0 || *rest.get(at)? != b' ' {
        return None;
    }
    let word = rest.get(at + 1..)?;
    let len = scan::word(word);
    if word.get(len) != Some(&b'\n') {
        return None;
    }
    let value = number::float(text.get(from + at + 1..from + at + 1 + len)?)?;
    let name = text.get(from..from + name)?;
    let labels = text.get(from + labels.start..from + labels.end)?;
    Some((Plain { name, labels, value }, at + 1 + len + 1))
}

/// The place of the brace that closes some labels without escapes and blanks.
#[inline(always)]
fn labels_end(rest: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let name = scan::label_name(rest.get(at..)?);
        at += name;
        if name == 0 || rest.get(at..at + 2)? != b"=\"" {
            return None;
        }
        at += 2;
        at += scan::before_quote(rest.get(at..)?);
        match rest.get(at..at + 2)? {
            b"\"}" => return Some(at + 1),
            b"\"," => at += 2,
            _ => return None,
        }
    }
}
