//! The formats that a scraper can ask for, and which one it gets.

use super::Escaping;

/// An exposition format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The Prometheus text format, version 0.0.4. The default.
    #[default]
    Text,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
    /// The same, said to be version 0.0.1: what a scraper asks for that names none.
    OpenMetricsDraft,
    /// Prometheus' protobuf messages, each behind its length.
    Protobuf,
}

impl Format {
    /// In the order in which they are preferred where a scraper takes several alike.
    const ALL: [Self; 4] = [Self::OpenMetrics, Self::OpenMetricsDraft, Self::Protobuf, Self::Text];

    /// The format that an Accept header asks for, and how it wants names shown.
    ///
    /// The result is that of Prometheus' own Go library: the entries are tried in the
    /// order of their `q`; an entry must have the version that it is tried against, where
    /// text without one is 0.0.4 and OpenMetrics without one is 0.0.1; an `escaping` that
    /// is known counts from its entry on. Where nothing fits, `*/*` among it, it is text.
    ///
    /// ```
    /// use talea::{Escaping, Format};
    ///
    /// let accept = "application/openmetrics-text;version=1.0.0;escaping=dots;q=0.5,text/html";
    /// assert_eq!(Format::negotiate(accept), (Format::OpenMetrics, Escaping::Dots));
    /// assert_eq!(Format::negotiate(""), (Format::Text, Escaping::Underscores));
    /// ```
    pub fn negotiate(accept: &str) -> (Self, Escaping) {
        let mut escaping = Escaping::default();
        for clause in clauses(accept) {
            let asked = clause.parameter("escaping").and_then(Escaping::from_name);
            escaping = asked.unwrap_or(escaping);
            if let Some(format) = Self::ALL.into_iter().find(|&format| clause.matches(format)) {
                return (format, escaping);
            }
        }
        (Self::Text, escaping)
    }

    /// What a response in this format has as its Content-Type.
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
            Self::OpenMetrics | Self::OpenMetricsDraft => ("application", "openmetrics-text"),
            Self::Protobuf => ("application", "vnd.google.protobuf"),
        }
    }

    /// What an entry must say beside that.
    fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Text => &[("version", "0.0.4")],
            Self::OpenMetrics => &[("version", "1.0.0")],
            Self::OpenMetricsDraft => &[("version", "0.0.1")],
            Self::Protobuf => {
                &[("proto", "io.prometheus.client.MetricFamily"), ("encoding", "delimited")]
            }
        }
    }
}

/// An entry of an Accept header.
struct Clause<'a> {
    media: (&'a str, &'a str),
    q: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let media = parts.next()?.trim();
        let media = match media.split_once('/') {
            Some((kind, sub)) if !sub.contains('/') => (kind.trim(), sub.trim()),
            None if media == "*" => ("*", "*"),
            _ => return None,
        };
        let mut clause = Self { media, q: 1.0, parameters: Vec::new() };
        for part in parts {
            match part.split_once('=') {
                Some((_, value)) if value.is_empty() || value.contains('=') => {}
                // One that is no number is the last.
                Some((name, value)) if name.trim() == "q" => {
                    clause.q = value.parse().unwrap_or(0.0)
                }
                Some((name, value)) => clause.parameters.push((name.trim(), value.trim())),
                None => {}
            }
        }
        Some(clause)
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }

    fn matches(&self, format: Format) -> bool {
        let is = |found: &str, wanted: &str| found == "*" || found == wanted;
        let named = match self.media {
            ("text", "plain") => Some("0.0.4"),
            ("application", "openmetrics-text") => Some("0.0.1"),
            _ => None,
        };
        let said = |name| match name {
            "version" => self.parameter(name).filter(|version| !version.is_empty()).or(named),
            _ => self.parameter(name),
        };
        is(self.media.0, format.media().0)
            && is(self.media.1, format.media().1)
            && format.parameters().iter().all(|(name, value)| said(name) == Some(value))
    }

    /// Whether it is tried before another that stood before it.
    fn precedes(&self, other: &Self) -> bool {
        self.q > other.q
            || self.media.0 != "*" && other.media.0 == "*"
            || self.media.1 != "*" && other.media.1 == "*"
    }
}

/// The entries in the order in which they are tried.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut all: Vec<Clause<'_>> = Vec::new();
    for clause in accept.split(',').filter_map(Clause::of) {
        // `precedes` is no order where a wildcard has the greater `q`; so what comes out
        // hangs on how it is sorted, and this is how that library does.
        let mut at = all.len();
        while at > 0 && clause.precedes(&all[at - 1]) {
            at -= 1;
        }
        all.insert(at, clause);
    }
    all
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
            (&format!("{om};version=2.0.0"), Text, Underscores),
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
            (&format!("{om}/x;version=1.0.0,;,text/plain;escaping="), Text, Underscores),
        ] {
            assert_eq!(Format::negotiate(accept), (format, escaping), "{accept}");
        }
    }

    #[test]
    fn the_content_type_says_all_that_there_is_to_say() {
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
