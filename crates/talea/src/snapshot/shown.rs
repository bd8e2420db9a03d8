//! One number of a series, as a format shows it.

use talea_region::Number;

use crate::definition::kind::Kind;

/// The number that a series is shown as, if it is not a histogram or a summary.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Histogram,
    Summary,
}

/// How the series of a family are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Unsigned,
    Signed,
    Float,
    Histogram,
    Summary,
}

impl Form {
    #[inline]
    pub(super) fn of(kind: Kind, number: Number) -> Self {
        match (kind, number) {
            (Kind::Histogram, _) => Self::Histogram,
            (Kind::Summary, _) => Self::Summary,
            (_, Number::Float | Number::FloatLast) => Self::Float,
            (Kind::Gauge, Number::Integer) => Self::Signed,
            (Kind::Counter | Kind::Info | Kind::StateSet, Number::Integer) => Self::Unsigned,
        }
    }

    /// The number of a series whose first value is `word`.
    #[inline]
    pub(crate) fn shown(self, word: u64) -> Shown {
        match self {
            Self::Unsigned => Shown::Unsigned(word),
            Self::Signed => Shown::Signed(word as i64),
            Self::Float => Shown::Float(f64::from_bits(word)),
            Self::Histogram => Shown::Histogram,
            Self::Summary => Shown::Summary,
        }
    }
}
