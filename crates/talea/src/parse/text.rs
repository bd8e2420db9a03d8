//! A reader of the Prometheus text format, version 0.0.4. It takes any valid
//! input; the first line that is not a sample, a comment or empty is an error.

use std::fmt;

/// One line of an exposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The sample's name, such as `x_seconds_bucket`.
    pub name: String,
    /// Label names and values, unescaped, in the order of the line.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

/// A line that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Its number, from 1.
    pub line: usize,
    /// What was expected there.
    pub expected: &'static str,
    /// What was found from there on, shortened.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}, found {:?}", self.line, self.expected, self.found)
    }
}

impl std::error::Error for ParseError {}

/// The samples of an exposition in their order. Comments and timestamps are
/// read over.
///
/// # Errors
///
/// The first line that is not of the format.
pub fn text(input: &str) -> Result<Vec<Sample>, ParseError> {
    let lines = input.lines().enumerate();
    lines
        .map(|(n, line)| (n + 1, line.trim_matches([' ', '\t'])))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(n, line)| {
            sample(line).map_err(|(expected, at)| ParseError {
                line: n,
                expected,
                found: at.chars().take(40).collect(),
            })
        })
        .collect()
}

/// What was expected, and the rest of the line where it was not found.
type Fault<'a> = (&'static str, &'a str);

fn sample(line: &str) -> Result<Sample, Fault<'_>> {
    let (name, rest) = identifier(line, ":").ok_or(("a metric's name", line))?;
    let rest = blank(rest);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None if rest.len() == line.len() - name.len() => {
            return Err(("a blank or '{' after the name", rest));
        }
        None => (Vec::new(), rest),
    };
    let mut words = rest.split([' ', '\t']).filter(|word| !word.is_empty());
    let number = words.next().ok_or(("a value", rest))?;
    let value = number.parse().map_err(|_| ("a number", rest))?;
    if words.next().is_some_and(|time| time.parse::<i64>().is_err()) {
        return Err(("a timestamp in milliseconds", rest));
    }
    if words.next().is_some() {
        return Err(("nothing after the timestamp", rest));
    }
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// The labels up to the closing brace, and what follows it.
#[allow(clippy::type_complexity)]
fn labels(mut rest: &str) -> Result<(Vec<(String, String)>, &str), Fault<'_>> {
    let mut labels = Vec::new();
    loop {
        rest = blank(rest);
        if let Some(rest) = rest.strip_prefix('}') {
            return Ok((labels, rest));
        }
        let (name, after) = identifier(rest, "").ok_or(("a label's name or '}'", rest))?;
        let after = blank(after);
        let after = blank(after.strip_prefix('=').ok_or(("'=' after a label's name", after))?);
        let quoted = after.strip_prefix('"').ok_or(("a quoted value", after))?;
        let (value, after) = quoted_value(quoted)?;
        labels.push((name.to_owned(), value));
        rest = blank(after);
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return Err(("',' or '}' after a label", rest)),
        }
    }
}

fn quoted_value(text: &str) -> Result<(String, &str), Fault<'_>> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('\\' | '"'))) => c,
                _ => return Err((r#"\\, \" or \n after a backslash"#, &text[at..])),
            }),
            c => value.push(c),
        }
    }
    Err(("a closing quote", ""))
}

fn identifier<'a>(text: &'a str, also: &str) -> Option<(&'a str, &'a str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || also.contains(c)))
        .unwrap_or(text.len());
    (end > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then(|| text.split_at(end))
}

fn blank(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Sample {
        let mut samples = text(line).unwrap();
        assert_eq!(samples.len(), 1, "{line}");
        samples.remove(0)
    }

    #[test]
    fn samples_are_read_with_labels_values_and_timestamps() {
        for (line, name, labels, value) in [
            ("x 1", "x", vec![], 1.0),
            ("x{} 1", "x", vec![], 1.0),
            ("  x\t{ } \t+Inf ", "x", vec![], f64::INFINITY),
            ("a:b 1e3 1700000000000", "a:b", vec![], 1000.0),
            ("a 1 -5", "a", vec![], 1.0),
            (r#"x{a="1",b="2"} -4"#, "x", vec![("a", "1"), ("b", "2")], -4.0),
            (r#"x{ a = "1" , } 0"#, "x", vec![("a", "1")], 0.0),
            (r#"x{route="/api/{id}"} 7"#, "x", vec![("route", "/api/{id}")], 7.0),
            (r#"x{v="\\ \" \n ü }"} 7"#, "x", vec![("v", "\\ \" \n ü }")], 7.0),
        ] {
            let sample = one(line);
            assert_eq!((sample.name.as_str(), sample.value), (name, value), "{line}");
            let found: Vec<_> =
                sample.labels.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(found, labels, "{line}");
        }
        assert!(one("x NaN").value.is_nan());
        assert_eq!(text("# HELP x y\n\n# TYPE x counter\nx 1\n").unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_sample_is_told_with_its_line() {
        for (line, expected) in [
            ("9x 1", "a metric's name"),
            ("x", "a blank"),
            ("x ", "a blank"),
            ("x y", "a number"),
            ("x{a=\"1\"", "',' or '}'"),
            ("x{a=\"1\" 1", "',' or '}'"),
            ("x{a=1} 1", "a quoted value"),
            ("x{a} 1", "'='"),
            ("x{a=\"1} 1", "a closing quote"),
            ("x{a=\"\\q\"} 1", "after a backslash"),
            ("x{9=\"1\"} 1", "a label's name"),
            ("x 1 y", "a timestamp"),
            ("x 1 2 3", "nothing after"),
        ] {
            let told = text(&format!("ok 1\n{line}\n")).unwrap_err();
            assert_eq!(told.line, 2);
            assert!(told.to_string().contains(expected), "{line}: {told}");
        }
    }
}
