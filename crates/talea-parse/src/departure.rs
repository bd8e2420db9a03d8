//! Departures: texts that can be read, and that a format forbids or advises against.

use super::Syntax;

/// A place where a text can be read and departs from the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) what: Oddity,
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Not exactly one blank, where OpenMetrics has one.
    Blanks,
    /// Blanks where OpenMetrics has none.
    StrayBlanks,
    /// Blanks or tabs before a sample. The documentation of text 0.0.4 allows them, and
    /// Prometheus 2 takes them for a part of the name and drops the scrape.
    Indented,
    /// Blanks or tabs before a line's end. The documentation of text 0.0.4 allows them,
    /// and Prometheus' own Go library stumbles over them.
    TrailingBlanks,
    /// A comma after the last label.
    LastComma,
    /// A metric's name in quotes that stands behind labels.
    LateName,
    /// A backslash before what needs none.
    Escape,
    /// A name in quotes, which older scrapers cannot read.
    QuotedName,
}

impl Oddity {
    /// The text that the format's grammar requires; `None` if it allows the departure.
    pub(super) fn expected(self, syntax: Syntax) -> Option<&'static str> {
        let strict = syntax == Syntax::OpenMetrics;
        Some(match self {
            Self::Blanks if strict => "exactly one blank",
            Self::StrayBlanks if strict => "no blank",
            Self::Indented if !strict => "the metric's name at the line's beginning",
            Self::TrailingBlanks if strict => "no blank at the line's end",
            Self::LastComma if strict => "no comma after the last label",
            Self::LateName => "the metric's name before the labels",
            Self::Escape if !strict => r"\\ or \n after a backslash",
            _ => return None,
        })
    }

    /// The advice, if the grammar allows the departure.
    pub(super) fn better(self, syntax: Syntax) -> Option<&'static str> {
        match (self, syntax) {
            (Self::TrailingBlanks, Syntax::Text) => Some(
                "end the line after its last word: Prometheus' own Go library refuses blanks there",
            ),
            (Self::Escape, Syntax::OpenMetrics) => Some(r"write \\ for a backslash"),
            (Self::QuotedName, _) => Some(
                "scrapers before Prometheus 3 refuse quoted names: use letters, digits and '_'",
            ),
            _ => None,
        }
    }
}
