//! The variables of a scenario.

use std::ops::RangeInclusive;

#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name, which stands in braces where its value is to stand.
    pub name: String,
    /// Where its value comes from.
    pub source: Source,
}

#[derive(Clone, Debug)]
pub enum Source {
    Fixed(String),
    /// A whole number from the one to the other, anew for each iteration.
    Random(RangeInclusive<i64>),
    Choice(Vec<String>),
    /// An answer of this iteration, once it is there.
    Captured,
}
