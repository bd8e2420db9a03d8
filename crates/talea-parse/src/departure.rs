//! Departures: texts that Prometheus' parser takes apart, and that a format forbids or advises
//! against.

use super::Syntax;

/// A place where a text can be taken apart and departs from the format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) what: Oddity,
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Another number of blanks than the one that OpenMetrics has here.
    Blanks,
    /// Blanks at a place at which OpenMetrics has no blanks.
    StrayBlanks,
    /// Blanks or tabs before a sample. The documentation of text 0.0.4 allows them. Prometheus 2
    /// takes them for a part of the name and drops the scrape, Prometheus 3 keeps such a name.
    Indented,
    /// Blanks or tabs before a line's end. The documentation of text 0.0.4 allows them,
    /// and Prometheus' own Go library stumbles over them.
    TrailingBlanks,
    /// A comma after the last label.
    LastComma,
    /// No comma between two labels.
    NoComma,
    /// A metric's name in quotes that stands behind labels.
    LateName,
    /// A backslash in quotes before a character that needs none.
    Escape,
    /// A backslash in a help text before a character that needs none.
    HelpEscape,
    /// A quote in a help text that has no backslash, which OpenMetrics requires.
    HelpQuote,
    /// A line feed in quotes.
    LineFeed,
    /// A carriage return at a help text's end.
    Return,
    /// A name in quotes, which older scrapers cannot read.
    QuotedName,
    /// A name without a character. Prometheus' parser takes it, and drops the scrape then.
    EmptyName,
    /// A value directly behind the metric's name.
    NoBlank,
    /// A metric's name in a line of metadata that ends at another character than a blank, which
    /// Prometheus leaves out.
    BrokenName,
    /// A line of metadata whose `#` has no blank, a comment to Prometheus.
    BareHash,
    /// The word TYPE alone, a comment to Prometheus.
    Nameless,
    /// A unit that is no ending of the metric's name. Prometheus drops the scrape.
    ForeignUnit,
    /// Characters in a unit that units do not have.
    OddUnit,
    /// A NUL. Prometheus reads nothing behind some, and leaves others out.
    Nul,
}

pub(super) const NO_RETURN: &str = "a line feed alone at the line's end, without a carriage return";

impl Oddity {
    /// Whether Prometheus' parser refuses the line, and the scrape with it.
    pub(super) fn is_refused(self, syntax: Syntax) -> bool {
        syntax == Syntax::OpenMetrics
            && matches!(
                self,
                Self::Blanks | Self::StrayBlanks | Self::TrailingBlanks | Self::ForeignUnit
            )
    }

    /// The short name of the finding.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::NoComma => "no-comma",
            Self::LineFeed => "raw-line-feed",
            Self::NoBlank => "no-blank",
            Self::HelpQuote => "help-quote",
            Self::EmptyName => "empty-name",
            _ => "syntax",
        }
    }

    /// The text that the format's grammar requires; `None` if it allows the departure.
    pub(super) fn expected(self, syntax: Syntax) -> Option<&'static str> {
        let strict = syntax == Syntax::OpenMetrics;
        Some(match self {
            Self::Blanks if strict => "exactly one blank",
            Self::StrayBlanks if strict => "no blank",
            Self::Indented if !strict => "the metric's name at the line's beginning",
            Self::TrailingBlanks if strict => "no blank at the line's end",
            Self::LastComma if strict => "no comma after the last label",
            Self::NoComma => "',' or '}' after a label",
            Self::LateName => "the metric's name before the labels",
            Self::Escape if !strict => r#"\\, \" or \n after a backslash"#,
            Self::HelpEscape if !strict => r"\\ or \n after a backslash",
            Self::HelpQuote => r#"\" for a quote"#,
            Self::LineFeed => r"\n for a line feed",
            Self::Return => NO_RETURN,
            Self::EmptyName => "a name that is not empty",
            Self::NoBlank => "a blank or '{' after the name",
            Self::BrokenName => "a blank after the metric's name",
            Self::BareHash => "a blank after '#': Prometheus reads this line as a comment",
            Self::Nameless => "a blank and a metric's name",
            Self::ForeignUnit if strict => "a unit that the metric's name ends in",
            Self::OddUnit => "a unit of letters, digits, '_' and ':'",
            Self::Nul => "no NUL: Prometheus takes it for the end, or leaves it out",
            _ => return None,
        })
    }

    /// The advice, if the grammar allows the departure.
    pub(super) fn better(self, syntax: Syntax) -> Option<&'static str> {
        match (self, syntax) {
            (Self::TrailingBlanks, Syntax::Text) => Some(
                "end the line after its last word: Prometheus' own Go library refuses blanks there",
            ),
            (Self::Escape | Self::HelpEscape, Syntax::OpenMetrics) => {
                Some(r"write \\ for a backslash")
            }
            (Self::QuotedName, _) => Some(
                "scrapers before Prometheus 3 refuse quoted names: use letters, digits and '_'",
            ),
            _ => None,
        }
    }
}
