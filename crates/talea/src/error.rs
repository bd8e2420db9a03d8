//! Errors of opening a registry, of registering a metric, and of fixing a label set.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use talea_region::{OpenError, Overflow};

/// An error of opening, registering or fixing. Metrics themselves never fail. Its text names the
/// file or the metric, the value found, the value expected and what to do. So does its `Debug` form,
/// which is what a program shows whose `main` returns it.
#[non_exhaustive]
pub enum Error {
    /// The region could not be opened.
    Open(OpenError),
    /// The region that an environment variable names could not be opened.
    Environment {
        /// The variable.
        variable: &'static str,
        /// The path in the variable.
        path: PathBuf,
        /// Why it could not be opened.
        source: OpenError,
    },
    /// The group that an environment variable names could not be given the region's file.
    Group {
        /// The variable.
        variable: &'static str,
        /// The group in the variable.
        group: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// The metric could not be registered.
    Register {
        /// Its name.
        name: String,
        /// The fault, the expected value and the remedy.
        reason: String,
    },
    /// Two sets of one type in one call of `install`: they would be the same metrics.
    SetTwice {
        /// Their type.
        set: &'static str,
        /// The number of the first of them in the list, from 0.
        first: usize,
        /// The number of the other.
        second: usize,
    },
    /// The region has no room for another metric. Metrics that are registered go on.
    Full {
        /// The metric's name.
        name: String,
    },
    /// The labels cannot be on every series.
    ConstantLabels {
        /// The fault and its remedy.
        reason: String,
    },
    /// The values of a [`label_set!`](crate::label_set) could not be fixed.
    LabelSet {
        /// The set's name.
        name: &'static str,
        /// The found and the expected value.
        reason: String,
    },
}

impl Error {
    pub(crate) fn group(variable: &'static str, group: &OsStr, reason: String) -> Self {
        let group = group.to_string_lossy().into_owned();
        Self::Group { variable, group, reason }
    }

    pub(crate) fn register(name: &str, reason: impl Into<String>) -> Self {
        Self::Register { name: name.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Environment { variable, path, source } => write!(
                f,
                "the environment variable {variable} names {}, which cannot be used: {source}; or \
                 leave the variable out, for memory of this process",
                path.display()
            ),
            Self::Group { variable, group, reason } => write!(
                f,
                "the environment variable {variable} names the group {group:?}, which cannot be \
                 used: {reason}; or leave it out, and only the user of the service can read the \
                 region"
            ),
            Self::Register { name, reason } => {
                write!(f, "cannot register the metric {name:?}: {reason}")
            }
            Self::SetTwice { set, first, second } => write!(
                f,
                "cannot install two sets of one type: number {first} and number {second} are both \
                 a `{set}` and would be the same metrics; make them fields of one set, each with a \
                 prefix by #[metrics(prefix = \"…\")]"
            ),
            Self::Full { name } => write!(
                f,
                "cannot register the metric {name:?}: the region is full; create it with more bytes"
            ),
            Self::ConstantLabels { reason } => {
                write!(f, "cannot set the constant labels: {reason}")
            }
            Self::LabelSet { name, reason } => {
                write!(f, "cannot fix the label set `{name}`: {reason}")
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Without a source, since the text has the cause.
impl std::error::Error for Error {}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

/// Why a label combination got no series of its own; see [`Family::try_with`].
///
/// [`Family::try_with`]: crate::Family::try_with
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeriesError {
    /// It is new, and its family or the region has no room for it.
    Overflow(Overflow),
    /// The number of values differs from the number of labels.
    Values {
        /// How many there were.
        found: usize,
        /// How many labels the family has.
        expected: usize,
    },
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow(overflow) => overflow.fmt(f),
            Self::Values { found, expected } => {
                let were = if *found == 1 { "was" } else { "were" };
                let (found, expected) =
                    (counted(*found, "label value"), counted(*expected, "label"));
                write!(f, "{found} {were} given, and the family has {expected}")
            }
        }
    }
}

impl std::error::Error for SeriesError {}

impl From<Overflow> for SeriesError {
    fn from(overflow: Overflow) -> Self {
        Self::Overflow(overflow)
    }
}

/// A number and a noun: `1 label`, `2 labels`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
