//! The state of a family while its lines are checked.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::fingerprint::Fingerprint;
use crate::MetricType;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) line: usize,
    /// The line's first byte.
    pub(super) start: usize,
    pub(super) at: usize,
}

#[derive(Debug, Default)]
pub(super) struct Family<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) kind: MetricType,
    /// The place that first names it.
    pub(super) place: Place,
    /// The lines of its metadata.
    pub(super) typed: Option<usize>,
    pub(super) helped: Option<usize>,
    pub(super) united: Option<usize>,
    /// Whether what helps is any text.
    pub(super) has_help: bool,
    /// Its unit, if it has one that is not empty.
    pub(super) unit: Option<(&'a str, Place)>,
    /// The line of its first sample.
    pub(super) sampled: Option<usize>,
    /// Whether its samples' names were looked for among the names of others.
    pub(super) claimed: bool,
    /// Its series by their own labels, without those that distinguish its parts.
    pub(super) groups: HashMap<Fingerprint, Group>,
    /// The one that the last sample belongs to.
    pub(super) group: Option<Fingerprint>,
    /// The findings reported so far of those that are reported once a family.
    pub(super) reported: HashSet<(&'static str, String)>,
}

/// A series with its parts: the parts of one time, if it has several.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) timestamp: Option<f64>,
    /// The last quantile.
    pub(super) quantile: Option<f64>,
    /// Boxed, so that series of other types take less memory.
    pub(super) histogram: Option<Box<HistogramParts>>,
}

/// The parts of a histogram's series.
#[derive(Debug, Default)]
pub(super) struct HistogramParts {
    pub(super) first: Place,
    /// Thresholds and counts, in the order of the text.
    pub(super) buckets: Vec<(f64, f64, Place)>,
    pub(super) sum: Option<(f64, Place)>,
    pub(super) count: Option<(f64, Place)>,
}

impl<'a> Family<'a> {
    pub(super) fn new(name: Cow<'a, str>, place: Place) -> Self {
        Self { name, place, ..Self::default() }
    }

    /// Whether this finding is the first of its kind; notes it.
    pub(super) fn is_first(&mut self, rule: &'static str, of: &str) -> bool {
        self.reported.insert((rule, of.to_owned()))
    }
}
