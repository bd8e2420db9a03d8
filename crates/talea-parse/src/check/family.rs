//! What is known of a family while its lines go by.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::points::Group;
use crate::MetricType;

/// Where something stands in the text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) line: usize,
    /// The line's first byte.
    pub(super) start: usize,
    pub(super) at: usize,
}

/// A family and what was told about it.
#[derive(Debug, Default)]
pub(super) struct Family<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) kind: MetricType,
    /// Where it is first named.
    pub(super) place: Place,
    /// The lines that tell about it.
    pub(super) typed: Option<usize>,
    pub(super) helped: Option<usize>,
    pub(super) united: Option<usize>,
    /// Whether what helps is any text.
    pub(super) has_help: bool,
    /// Its unit, if it has one that is not empty.
    pub(super) unit: Option<(&'a str, Place)>,
    /// The line of its first sample.
    pub(super) sampled: Option<usize>,
    /// Whether its samples' names were looked for among those of others.
    pub(super) claimed: bool,
    /// Its series by their own labels, without those that tell its parts apart.
    pub(super) groups: HashMap<Box<str>, Group>,
    /// The one that the last sample belongs to.
    pub(super) group: Box<str>,
    /// What is told once a family, and was.
    pub(super) told: HashSet<(&'static str, String)>,
}

impl<'a> Family<'a> {
    pub(super) fn new(name: Cow<'a, str>, place: Place) -> Self {
        Self { name, place, ..Self::default() }
    }

    /// Whether it is the first time that this is told.
    pub(super) fn tells(&mut self, rule: &'static str, of: &str) -> bool {
        self.told.insert((rule, of.to_owned()))
    }
}
