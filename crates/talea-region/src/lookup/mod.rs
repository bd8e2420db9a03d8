//! Look-ups: families and series are found by their texts, or made.

pub(crate) mod cache;
pub(crate) mod register;
pub(crate) mod series;
