//! A line of a text, as the reader returns it.

use std::borrow::Cow;

use super::{MetricType, SampleRef};

/// A line with content.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Line<'a> {
    /// `# TYPE name type`.
    Type {
        /// The metric's name.
        name: Cow<'a, str>,
        /// Its type.
        kind: MetricType,
    },
    /// `# HELP name text`.
    Help {
        /// The metric's name.
        name: Cow<'a, str>,
        /// The help text, unescaped.
        help: Cow<'a, str>,
    },
    /// `# UNIT name unit`. OpenMetrics only.
    Unit {
        /// The metric's name.
        name: Cow<'a, str>,
        /// Its unit.
        unit: &'a str,
    },
    /// A sample.
    Sample(SampleRef<'a>),
    /// `# EOF`. OpenMetrics only; nothing follows.
    End,
}
