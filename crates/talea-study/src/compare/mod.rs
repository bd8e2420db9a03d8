//! Comparison: studies of two or more variants, side by side or from files, as ratios with
//! intervals and in words.

mod comparison;
mod condition;
mod words;

#[cfg(test)]
pub(crate) use self::comparison::tests;
pub use self::comparison::{Comparison, MeasureComparison, VariantComparison, Verdict};
pub use self::condition::{Condition, Finding, Goal, Judgement, report_conditions};
pub use self::words::{bounded, in_words, interval, ratio, text, titled, value, verdict};
