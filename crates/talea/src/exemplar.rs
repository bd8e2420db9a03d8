//! Exemplars: one of the things that were counted, with labels that identify it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea_region::{Cell, Overflow};

use crate::definition::names::is_plain_label;
use crate::labels::{LabelText, pairs};

/// Characters that names and values of an exemplar's labels may have together.
/// Source: the OpenMetrics specification, 1.0.0, "Exemplars".
const LONGEST: usize = 128;

/// A reference from a count to one of the things that were counted, for example to its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Exemplar {
    /// Labels that identify it: usually the id of its trace.
    pub labels: Vec<(String, String)>,
    /// How much it was, in the shown unit.
    pub value: f64,
    /// When it was counted.
    pub time: SystemTime,
}

impl Exemplar {
    pub(crate) fn of(raw: &talea_region::Exemplar) -> Self {
        let labels = pairs(std::str::from_utf8(&raw.text).unwrap_or_default());
        Self {
            labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            value: raw.value,
            time: UNIX_EPOCH + Duration::from_nanos(raw.unix_nanos),
        }
    }
}

/// The reason why an exemplar was not kept. The value itself is recorded all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExemplarError {
    /// Its labels exceed 128 characters in total; they have this number.
    TooLong(usize),
    /// This label name is not valid, or is given twice.
    Name(String),
    /// The region has no room for it.
    Overflow(Overflow),
}

impl fmt::Display for ExemplarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(found) => write!(
                f,
                "the exemplar's labels have {found} characters; the maximum is {LONGEST}; leave out \
                 what the trace contains already"
            ),
            Self::Name(name) => write!(
                f,
                "an exemplar cannot have the label {name:?}: a name consists of letters, digits \
                 and '_', does not begin with a digit or '__', and is given once"
            ),
            Self::Overflow(overflow) => overflow.fmt(f),
        }
    }
}

impl std::error::Error for ExemplarError {}

/// Stores exemplar `n` of a cell's series.
pub(crate) fn keep(
    cell: Cell,
    n: usize,
    value: f64,
    labels: &[(&str, &str)],
) -> Result<(), ExemplarError> {
    let characters =
        labels.iter().map(|(name, value)| name.chars().count() + value.chars().count());
    let found = characters.sum();
    if found > LONGEST {
        return Err(ExemplarError::TooLong(found));
    }
    let mut text = LabelText::new();
    for (n, (name, value)) in labels.iter().enumerate() {
        let is_twice = labels[..n].iter().any(|(other, _)| other == name);
        if !is_plain_label(name) || name.starts_with("__") || is_twice {
            return Err(ExemplarError::Name((*name).to_owned()));
        }
        text.label(name, *value);
    }
    cell.set_exemplar(n, value, text.as_bytes()).map_err(ExemplarError::Overflow)
}
