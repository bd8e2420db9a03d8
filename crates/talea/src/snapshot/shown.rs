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

/// The number of a series whose first value is `word`.
#[inline]
pub(super) fn shown(kind: Kind, number: Number, word: u64) -> Shown {
    match (kind, number) {
        (Kind::Histogram, _) => Shown::Histogram,
        (Kind::Summary, _) => Shown::Summary,
        (_, Number::Float | Number::FloatLast) => Shown::Float(f64::from_bits(word)),
        (Kind::Gauge, Number::Integer) => Shown::Signed(word as i64),
        (Kind::Counter | Kind::Info | Kind::StateSet, Number::Integer) => Shown::Unsigned(word),
    }
}
