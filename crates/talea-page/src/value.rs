//! The values of series.

use std::time::SystemTime;

use super::{Histogram, Label};

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a counter, a gauge, an info, a state or a metric of unknown type.
    Number(Number),
    /// Of a histogram.
    Histogram(Histogram),
    /// Of a summary.
    Summary(Summary),
}

/// A number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Number {
    /// The number itself. Whole numbers beyond 2^53 are rounded, as in all formats.
    pub value: f64,
    /// The latest exemplar of a counter.
    pub exemplar: Option<Exemplar>,
}

/// A count, a sum and quantiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// All observations since the series was made.
    pub count: u64,
    /// Their sum; NaN if the page does not have it.
    pub sum: f64,
    /// Quantiles of recent observations, in the order of the page.
    pub quantiles: Vec<Quantile>,
}

/// A quantile of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantile {
    /// The share of the observations that are at most `value`, from 0 to 1.
    pub quantile: f64,
    /// The value; NaN if nothing was observed lately.
    pub value: f64,
}

/// A reference from a count to one of the things that were counted, for example to its trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exemplar {
    /// Labels that identify it: usually the id of its trace.
    pub labels: Vec<Label>,
    /// How much it was.
    pub value: f64,
    /// When it was counted, if the page has that.
    pub time: Option<SystemTime>,
}

impl Default for Value {
    /// The number 0.
    fn default() -> Self {
        Self::Number(Number::default())
    }
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number.value),
            _ => None,
        }
    }

    /// The histogram, if it is one.
    pub fn histogram(&self) -> Option<&Histogram> {
        match self {
            Self::Histogram(histogram) => Some(histogram),
            _ => None,
        }
    }

    /// The summary, if it is one.
    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Summary(summary) => Some(summary),
            _ => None,
        }
    }
}
