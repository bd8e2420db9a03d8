//! The format that a Content-Type names, and whether Prometheus takes it.
//!
//! A header is read as Go's `mime.ParseMediaType` reads it, and a parser is chosen as Prometheus 3
//! does (`extractMediaType` in `model/textparse` of v0.315): a header with one fault is refused, and
//! the scrape is dropped.

use std::collections::BTreeMap;
use std::fmt;

use super::Syntax;

/// A Content-Type with which Prometheus drops a scrape, unless it has a `fallback_scrape_protocol`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentTypeError {
    /// The Content-Type.
    pub header: String,
    /// The text that was expected instead.
    pub expected: &'static str,
}

impl fmt::Display for ContentTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the Content-Type is {:?}: expected {}", self.header, self.expected)
    }
}

impl std::error::Error for ContentTypeError {}

impl Syntax {
    /// The format that a Content-Type names.
    ///
    /// ```
    /// use talea_parse::Syntax;
    ///
    /// let of = |header| Syntax::of_content_type(header).ok();
    /// assert_eq!(of("text/plain; version=0.0.4; charset=utf-8"), Some(Syntax::Text));
    /// assert_eq!(of("application/openmetrics-text; version=1.0.0"), Some(Syntax::OpenMetrics));
    /// assert_eq!(of("text/html"), None);
    /// assert_eq!(of("text/plain; version=0.0.4, charset=utf-8"), None);
    /// ```
    ///
    /// # Errors
    ///
    /// Prometheus refuses it, or it names no text format.
    pub fn of_content_type(header: &str) -> Result<Self, ContentTypeError> {
        let syntax = media_type(header).and_then(|(media, version)| match media.as_str() {
            "text/plain" => Ok(Self::Text),
            "application/openmetrics-text" if version.as_deref() == Some("2.0.0") => {
                Err("OpenMetrics 1.0.0: Prometheus takes 2.0.0 only behind a feature flag")
            }
            "application/openmetrics-text" => Ok(Self::OpenMetrics),
            "application/vnd.google.protobuf" => Err("a text format, this is protobuf"),
            _ => Err("text/plain or application/openmetrics-text"),
        });
        syntax.map_err(|expected| ContentTypeError { header: header.to_owned(), expected })
    }
}

/// The media type in lower case, and the value of its parameter `version`.
fn media_type(header: &str) -> Result<(String, Option<String>), &'static str> {
    let base = header.split(';').next().unwrap_or(header);
    let media = base.trim().to_lowercase();
    let is_media = match media.split_once('/') {
        None => is_token(&media),
        Some((kind, subtype)) => is_token(kind) && is_token(subtype),
    };
    if !is_media {
        return Err("a media type, such as text/plain");
    }
    let mut parameters = BTreeMap::new();
    let mut rest = &header[base.len()..];
    while !rest.trim_start().is_empty() {
        // A semicolon may end the header.
        if rest.trim() == ";" {
            break;
        }
        let (name, value, after) = parameter(rest.trim_start())?;
        if parameters.get(&name).is_some_and(|before| *before != value) {
            return Err("each parameter once, or with the same value");
        }
        parameters.insert(name, value);
        rest = after;
    }
    Ok((media, parameters.remove("version")))
}

/// The parameter at the beginning: its name in lower case, its value, and the text behind it.
fn parameter(text: &str) -> Result<(String, String, &str), &'static str> {
    let rest = text.strip_prefix(';').ok_or("';' between the parameters")?.trim_start();
    let (name, rest) = token(rest);
    if name.is_empty() {
        return Err("a parameter's name after ';'");
    }
    let rest = rest.trim_start().strip_prefix('=').ok_or("'=' after a parameter's name")?;
    let rest = rest.trim_start();
    let (value, after) = match rest.strip_prefix('"') {
        Some(open) => quoted(open)?,
        None => {
            let (value, after) = token(rest);
            (value.to_owned(), after)
        }
    };
    if value.is_empty() && after.len() == rest.len() {
        return Err("a parameter's value after '='");
    }
    Ok((name.to_ascii_lowercase(), value, after))
}

/// The text up to the closing quote, and the text behind that. A backslash stands for itself, unless
/// it is before a special character.
fn quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let escaped = chars.peek().map(|&(_, next)| next).filter(|&next| is_special(next));
        match (c, escaped) {
            ('"', _) => return Ok((value, &text[at + 1..])),
            ('\\', Some(next)) => {
                value.push(next);
                chars.next();
            }
            ('\r' | '\n', _) => break,
            _ => value.push(c),
        }
    }
    Err("a closing quote")
}

fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_of_token(c)).unwrap_or(text.len()))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_token)
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_graphic() && !is_special(c)
}

/// The special characters of RFC 1521, as Go has them.
fn is_special(c: char) -> bool {
    "()<>@,;:\\\"/[]?=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers, and the format that Prometheus v0.315 reads with them; `None` if it drops the scrape.
    const HEADERS: &[(&str, Option<Syntax>)] = &[
        ("text/plain", Some(Syntax::Text)),
        (" TEXT/Plain ", Some(Syntax::Text)),
        ("text/plain;", Some(Syntax::Text)),
        ("text/plain; ", Some(Syntax::Text)),
        ("text/plain ; ; ", None),
        ("text/plain;;", None),
        ("text/plain; version=0.0.4;; charset=utf-8", None),
        ("text/plain; version=0.0.4; charset=utf-8", Some(Syntax::Text)),
        ("text/plain; version=0.0.4, charset=utf-8", None),
        ("text/plain, application/openmetrics-text", None),
        ("text/plain; version=0.0.4 charset=utf-8", None),
        ("text/plain;version=1.0.0", Some(Syntax::Text)),
        ("text/plain; version", None),
        ("text/plain; version=", None),
        ("text/plain; version=;", None),
        ("text/plain; version=\"\"", Some(Syntax::Text)),
        ("text/plain; version = 0.0.4", Some(Syntax::Text)),
        ("text/plain; =0.0.4", None),
        ("text/plain; version=\"0.0.4", None),
        ("text/plain; version=\"0.0.4\"", Some(Syntax::Text)),
        ("text/plain; version=\"0.0.4\" x", None),
        ("text/plain; version=\"a;b\\\"\\c\"; q=1", Some(Syntax::Text)),
        ("text/plain; version=0.0.4; version=0.0.4", Some(Syntax::Text)),
        ("text/plain; version=0.0.4; VERSION=0.0.5", None),
        ("text/plain; charset=ü", None),
        ("text/plain; charset=\"ü\"", Some(Syntax::Text)),
        ("text/plain; charset=utf-8:", None),
        ("text/plain; escaping=allow-utf-8", Some(Syntax::Text)),
        ("text/plain\t;\tversion=0.0.4", Some(Syntax::Text)),
        ("text/plain version=0.0.4", None),
        ("text/plain/x", None),
        ("text/", None),
        ("text", None),
        ("/plain", None),
        ("", None),
        (";", None),
        ("*/*", None),
        ("text/html", None),
        ("application/json", None),
        ("application/openmetrics-text", Some(Syntax::OpenMetrics)),
        ("application/OpenMetrics-text; version=1.0.0", Some(Syntax::OpenMetrics)),
        ("application/openmetrics-text; version=0.0.1", Some(Syntax::OpenMetrics)),
        ("application/openmetrics-text; version=2.0.0", None),
        ("application/openmetrics-text; Version=\"2.0.0\"", None),
        ("application/openmetrics-text; version=2.0", Some(Syntax::OpenMetrics)),
        ("application/openmetrics-text; version=1.0.0,text/plain", None),
    ];

    #[test]
    fn a_content_type_is_taken_if_prometheus_takes_it() {
        for &(header, syntax) in HEADERS {
            assert_eq!(Syntax::of_content_type(header).ok(), syntax, "{header:?}");
        }
    }

    #[test]
    fn a_refused_content_type_says_what_was_expected() {
        for (header, said) in [
            ("text/plain; version=0.0.4, charset=utf-8", "expected ';' between the parameters"),
            ("text/plain;;", "expected a parameter's name after ';'"),
            ("text/plain; version", "expected '=' after a parameter's name"),
            ("text/plain; version=", "expected a parameter's value after '='"),
            ("text/plain; version=\"0", "expected a closing quote"),
            ("text/plain; a=1; a=2", "expected each parameter once"),
            ("application/openmetrics-text; version=2.0.0", "expected OpenMetrics 1.0.0"),
            ("application/vnd.google.protobuf", "this is protobuf"),
            ("text/html", "expected text/plain or application/openmetrics-text"),
            ("", "expected a media type"),
        ] {
            let error = Syntax::of_content_type(header).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
