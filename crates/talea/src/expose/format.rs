//! The formats that a scraper can ask for, and which one it gets.

use std::borrow::Cow;

use super::escaping::Escaping;

/// An exposition format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The Prometheus text format, version 0.0.4. The default.
    #[default]
    Text,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
    /// OpenMetrics text, declared as version 0.0.1, for a scraper that asks for no version.
    OpenMetricsDraft,
    /// Prometheus' protobuf messages, each behind its length.
    Protobuf,
    /// OpenMetrics text, version 2.0.0, which is experimental: for a scraper that asks for that version, as Prometheus does
    /// from 3.15 on with `--enable-feature=openmetrics2`. It has native histograms, and start timestamps.
    OpenMetrics2,
}

impl Format {
    /// In the order in which they are preferred where an entry with a wildcard takes several.
    const ALL: [Self; 5] =
        [Self::Text, Self::OpenMetrics, Self::Protobuf, Self::OpenMetricsDraft, Self::OpenMetrics2];

    /// The format that an Accept header asks for, and how it wants names shown.
    ///
    /// A format's weight is the `q` of the most specific entry that covers it, and the format of
    /// the greatest weight is chosen, as RFC 9110, 12.5.1 has it: of as many, the one whose
    /// entry has no wildcard, and then the one that comes first. `*/*` takes text before the
    /// others. A format with `q=0` is not chosen for a wildcard. If nothing fits, it is text
    /// all the same, and no error.
    ///
    /// Beyond that it is as in Prometheus' own Go library: an entry must name the version that
    /// it is for, while text without one is 0.0.4 and OpenMetrics without one is 0.0.1, and an
    /// `escaping` that is known counts from its entry on. Types, parameters and their values
    /// are compared without case, and values may stand in quotes. A `q` that is no number
    /// counts as 0.
    ///
    /// ```
    /// use talea::{Escaping, Format};
    ///
    /// let accept = "application/openmetrics-text;version=\"1.0.0\";escaping=dots;q=0.5,text/html";
    /// assert_eq!(Format::negotiate(accept), (Format::OpenMetrics, Escaping::Dots));
    /// assert_eq!(Format::negotiate("text/plain;q=0, */*").0, Format::OpenMetrics);
    /// assert_eq!(Format::negotiate(""), (Format::Text, Escaping::Underscores));
    /// ```
    ///
    /// Cost: n log n in the header's length. It never panics.
    pub fn negotiate(accept: &str) -> (Self, Escaping) {
        let mut clauses: Vec<Clause<'_>> =
            split(accept, b',').filter_map(|(entry, _)| Clause::of(entry)).collect();
        // A stable sort: of as many, the first of the header stays the first.
        clauses.sort_by(|one, other| {
            other.q.total_cmp(&one.q).then(one.wildcards().cmp(&other.wildcards()))
        });
        let governing = Self::ALL.map(|format| format.governing(&clauses));
        let mut escaping = Escaping::default();
        for (n, clause) in clauses.iter().enumerate().filter(|(_, clause)| clause.q > 0.0) {
            let asked = clause.parameter("escaping").and_then(Escaping::from_name);
            escaping = asked.unwrap_or(escaping);
            let chosen = Self::ALL.into_iter().zip(governing).find(|(_, by)| *by == Some(n));
            if let Some((format, _)) = chosen {
                return (format, escaping);
            }
        }
        (Self::Text, escaping)
    }

    /// The entry that sets the weight of this format: the most specific that covers it, and the
    /// first of these.
    fn governing(self, clauses: &[Clause<'_>]) -> Option<usize> {
        let mut best: Option<(u8, usize)> = None;
        for (n, clause) in clauses.iter().enumerate() {
            if let Some(specificity) = clause.covers(self) {
                if best.is_none_or(|(most, _)| specificity > most) {
                    best = Some((specificity, n));
                }
            }
        }
        best.map(|(_, n)| n)
    }

    /// The Content-Type of a response in this format.
    pub fn content_type(self, escaping: Escaping) -> String {
        let (kind, sub) = self.media();
        let mut out = format!("{kind}/{sub}");
        for (name, value) in self.parameters() {
            out.extend(["; ", name, "=", value]);
        }
        if self != Self::Protobuf {
            out.push_str("; charset=utf-8");
        }
        out + "; escaping=" + escaping.as_str()
    }

    fn media(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("text", "plain"),
            Self::OpenMetrics | Self::OpenMetricsDraft | Self::OpenMetrics2 => {
                ("application", "openmetrics-text")
            }
            Self::Protobuf => ("application", "vnd.google.protobuf"),
        }
    }

    /// Parameters that an entry must have too.
    fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Text => &[("version", "0.0.4")],
            Self::OpenMetrics => &[("version", "1.0.0")],
            Self::OpenMetricsDraft => &[("version", "0.0.1")],
            Self::OpenMetrics2 => &[("version", "2.0.0")],
            Self::Protobuf => {
                &[("proto", "io.prometheus.client.MetricFamily"), ("encoding", "delimited")]
            }
        }
    }
}

/// An entry of an Accept header.
struct Clause<'a> {
    media: (&'a str, &'a str),
    /// Its weight, from 0 to 1.
    q: f64,
    parameters: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Clause<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mut parts = split(text, b';');
        let media = parts.next()?.0.trim();
        let media = match media.split_once('/') {
            Some((kind, sub)) if !sub.contains('/') => (kind.trim(), sub.trim()),
            None if media == "*" => ("*", "*"),
            _ => return None,
        };
        let mut clause = Self { media, q: 1.0, parameters: Vec::new() };
        for (part, equals) in parts {
            let Some((name, value)) = equals.map(|at| (part[..at].trim(), value(&part[at + 1..])))
            else {
                continue;
            };
            match value {
                Some(value) if name.eq_ignore_ascii_case("q") => clause.q = weight(&value),
                Some(value) => clause.parameters.push((name, value)),
                None => {}
            }
        }
        Some(clause)
    }

    fn wildcards(&self) -> usize {
        [self.media.0, self.media.1].into_iter().filter(|part| *part == "*").count()
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter().rev();
        let found = parameters.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_ref())
    }

    /// How specifically it names this format: more for a more specific entry; `None` if it does not
    /// cover it.
    fn covers(&self, format: Format) -> Option<u8> {
        let is = |found: &str, wanted: &str| found == "*" || found.eq_ignore_ascii_case(wanted);
        let (kind, sub) = format.media();
        let mut named = 0;
        let may_miss = self.wildcards() > 0 || self.q == 0.0;
        let agrees = format.parameters().iter().all(|(name, value)| {
            let said = self.parameter(name).filter(|said| !said.is_empty());
            named += u8::from(said.is_some());
            match (said, format) {
                (Some(said), _) => said.eq_ignore_ascii_case(value),
                // These are what an entry without a version means.
                (None, Format::Text | Format::OpenMetricsDraft) => true,
                (None, _) => may_miss,
            }
        });
        let covers = is(self.media.0, kind) && is(self.media.1, sub) && agrees;
        covers.then(|| (2 - self.wildcards() as u8) * 4 + named)
    }
}

/// A parameter's value, without quotes; `None` if there is no such parameter.
fn value(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let Some(quoted) = text.strip_prefix('"') else {
        return Some(text).filter(|text| !text.is_empty() && !text.contains('=')).map(Cow::from);
    };
    if !quoted.contains('\\') {
        return Some(quoted.strip_suffix('"')?.into());
    }
    let (mut out, mut chars) = (String::with_capacity(quoted.len()), quoted.chars());
    loop {
        match chars.next()? {
            '"' => return Some(out.into()),
            '\\' => out.push(chars.next()?),
            other => out.push(other),
        }
    }
}

/// A weight; 0 if the text is not a number.
fn weight(text: &str) -> f64 {
    text.parse().ok().filter(|q: &f64| q.is_finite()).map_or(0.0, |q| q.clamp(0.0, 1.0))
}

/// The parts of a text between separators that do not stand in quotes, each with the place of its
/// first `=` that does not.
fn split(text: &str, separator: u8) -> impl Iterator<Item = (&str, Option<usize>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped, mut equals) = (false, false, None);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'=' if !quoted => equals = equals.or(Some(at)),
                _ if byte == separator && !quoted => {
                    rest = Some(&text[at + 1..]);
                    return Some((&text[..at], equals));
                }
                _ => {}
            }
        }
        rest = None;
        Some((text, equals))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_what_prometheus_own_library_would_give_it() {
        let v3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                  application/openmetrics-text;version=0.0.1;q=0.4,\
                  text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
                  text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        let v2 = "application/vnd.google.protobuf;\
                  proto=io.prometheus.client.MetricFamily;encoding=delimited,\
                  application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";
        let om = "application/openmetrics-text";
        use {Escaping::*, Format::*};
        for (accept, format, escaping) in [
            ("", Text, Underscores),
            ("*/*", Text, Underscores),
            ("*", Text, Underscores),
            (v2, Protobuf, Underscores),
            ("application/vnd.google.protobuf;encoding=delimited", Text, Underscores),
            (v3, OpenMetrics, AllowUtf8),
            ("text/html", Text, Underscores),
            ("text/plain", Text, Underscores),
            ("text/plain; version=0.0.4 ; escaping=dots", Text, Dots),
            (om, OpenMetricsDraft, Underscores),
            (&format!("{om};version=0.0.1"), OpenMetricsDraft, Underscores),
            (&format!("{om};version=2.0.0"), OpenMetrics2, Underscores),
            (&format!("{om};version=3.0.0"), Text, Underscores),
            (
                &format!("{om};version=1.0.0;q=0.6,{om};version=2.0.0;q=0.7"),
                OpenMetrics2,
                Underscores,
            ),
            (&format!("{om}; version=1.0.0; charset=utf-8"), OpenMetrics, Underscores),
            ("application/*;version=1.0.0", OpenMetrics, Underscores),
            ("text/*;version=0.0.4;escaping=values", Text, Values),
            (&format!("text/plain;q=0.5,{om};version=1.0.0;q=0.7"), OpenMetrics, Underscores),
            (&format!("text/plain;q=0.7,{om};version=1.0.0;q=0.5"), Text, Underscores),
            (&format!("text/plain,{om};version=1.0.0"), Text, Underscores),
            (&format!("{om};version=1.0.0;q=x,text/plain;q=0.1"), Text, Underscores),
            // An escaping counts from its entry on, also if that is not taken.
            ("text/html;escaping=dots,text/plain;q=0.5", Text, Dots),
            ("text/plain;escaping=other", Text, Underscores),
            // A refused type is not matched by a wildcard either.
            ("text/plain;q=0,*/*", OpenMetrics, Underscores),
            ("*/*,text/plain;q=0", OpenMetrics, Underscores),
            (&format!("{om};q=0,*/*"), Text, Underscores),
            (&format!("{om};version=1.0.0;q=0,*/*"), Text, Underscores),
            (&format!("text/*;q=0,{om};q=0,*/*;q=0.1"), Protobuf, Underscores),
            (&format!("{om};version=1.0.0;q=0,application/*"), Protobuf, Underscores),
            ("application/*", OpenMetrics, Underscores),
            ("text/plain;q=0,application/*", OpenMetrics, Underscores),
            ("application/*;q=0,*/*", Text, Underscores),
            ("text/plain;version=0.0.4;q=0.2,*/*;q=0.1", Text, Underscores),
            ("text/plain;version=0.0.4;q=0.1,*/*;q=0.2", OpenMetrics, Underscores),
            ("text/plain;version=1.0.0;q=0,*/*", Text, Underscores),
            // All is refused, and a scrape is better than no scrape.
            ("text/plain;q=0", Text, Underscores),
            ("*/*;q=0", Text, Underscores),
            (&format!("{om};version=1.0.0;q=0"), Text, Underscores),
            // Weights that are not valid.
            (&format!("{om};version=1.0.0;q=NaN,text/plain;q=0.1"), Text, Underscores),
            (&format!("{om};version=1.0.0;q=-1,text/plain;q=0.1"), Text, Underscores),
            (&format!("text/plain,{om};version=1.0.0;q=7"), Text, Underscores),
            // Neither types nor parameters have a case, and values may be quoted.
            (&format!("{};VERSION=1.0.0", om.to_uppercase()), OpenMetrics, Underscores),
            ("Text/Plain;Escaping=DOTS", Text, Dots),
            (&format!("{om};version=\"1.0.0\""), OpenMetrics, Underscores),
            (
                &format!("{om};version=\"1.\\0.0\";q=\"0.5\",text/plain;q=0.4"),
                OpenMetrics,
                Underscores,
            ),
            (&format!("{om};note=\"a,b;q=0=\\\"\";version=1.0.0"), OpenMetrics, Underscores),
            (
                "application/vnd.google.protobuf;\
                  proto=\"io.prometheus.client.MetricFamily\";Encoding=\"delimited\"",
                Protobuf,
                Underscores,
            ),
            (&format!("{om};version=\"1.0.0,text/plain"), OpenMetricsDraft, Underscores),
            (&format!("{om}/x;version=1.0.0,;,text/plain;escaping="), Text, Underscores),
        ] {
            assert_eq!(Format::negotiate(accept), (format, escaping), "{accept}");
        }
    }

    #[test]
    fn the_content_type_has_version_charset_and_escaping() {
        assert_eq!(
            Format::OpenMetrics.content_type(Escaping::AllowUtf8),
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
        );
        assert_eq!(
            Format::Text.content_type(Escaping::Underscores),
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
        );
        assert_eq!(
            Format::Protobuf.content_type(Escaping::Dots),
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
             encoding=delimited; escaping=dots"
        );
    }
}
