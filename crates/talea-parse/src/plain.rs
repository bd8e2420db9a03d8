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

/// The sample at the beginning of a text and how long its line is; none if the line is not as plain
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

#[cfg(test)]
mod tests {
    use super::super::lexer::Lexer;
    use super::super::{Line, SampleRef, Syntax};

    #[test]
    fn the_short_way_sees_what_the_long_one_sees() {
        let lines = [
            "x 1\n",
            "x{} 1\n",
            "x{a=\"1\"} 1.5\n",
            "x{a=\"1\",b=\"ü {}\"} +Inf\n",
            "xy{a=\"\"} -1e5\n",
            "x{a=\"1\",} 1\n",
            "x{a=\"\\n\"} 1\n",
            "x{ a=\"1\"} 1\n",
            "{\"x\"} 1\n",
            "x  1\n",
            "x 1 2\n",
            "x 1 \n",
            "x{a:b=\"1\"} 1\n",
            "x{a=\"1\"}\n",
            "x\n",
            "x y\n",
            "x 1",
            "9 1\n",
            " x 1\n",
            "#x 1\n",
            "x{a=\"1\"b=\"2\"} 1\n",
            "x{a=\"\n\"} 1\n",
            "xé 1\n",
            "x{a=\"1\"} 1\r\n",
        ];
        let mut plain = 0;
        // The name before matters too: the same, its beginning, another one.
        for before in ["x 0\n", "xyz 0\n", "", "#\n"] {
            for line in lines {
                let text = format!("{before}{line}");
                let mut short = Lexer::new(&text, Syntax::Text);
                let mut long = Lexer::new(&text, Syntax::Text);
                if before.ends_with("0\n") {
                    assert!(short.plain().is_some() && long.line().is_some());
                }
                let Some(found) = short.plain() else { continue };
                plain += 1;
                let found = Line::Sample(SampleRef::from(found));
                assert_eq!(long.line(), Some(Ok(found)), "{text}");
                assert_eq!(short.places.line, long.places.line);
                assert!(short.line() == long.line(), "{text}");
            }
        }
        assert_eq!(plain, 12);
    }
}
