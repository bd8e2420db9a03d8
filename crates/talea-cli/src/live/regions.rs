//! The regions of an agent's page, and those whose series are missing from it or came to it.

use std::collections::BTreeMap;

use super::marks::{ANSWERED, UP, by_region};
use crate::families::protobuf::{LabelPair, MetricFamily};

/// When a region that an agent can read was made.
pub(crate) const CREATED: &str = "talea_region_created_timestamp_seconds";
/// The most regions that are known.
const MOST: usize = 10_000;

/// The regions that were read so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRegions {
    /// When each was made, in seconds since 1970.
    created: BTreeMap<String, f64>,
    /// When the page was read, in milliseconds since 1970.
    unix_millis: i64,
    /// Those that are on this page for the first time: made since the page before, or earlier.
    pub(crate) new: Regions,
    pub(crate) old: Regions,
}

impl KnownRegions {
    /// Those of a page, and those of the pages before it.
    pub(crate) fn of(families: &[MetricFamily], unix_millis: i64, before: Option<&Self>) -> Self {
        let page = by_region(families, CREATED);
        let mut created = before.map(|before| before.created.clone()).unwrap_or_default();
        let all = page.len();
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for (name, seconds) in page {
            // One that was made at another time is another one.
            if created.get(&name) == Some(&seconds) {
                continue;
            }
            let is_new = before.is_none_or(|before| seconds * 1e3 >= before.unix_millis as f64);
            let names = if is_new { &mut new } else { &mut old };
            names.push(name.clone());
            if created.len() < MOST || created.contains_key(&name) {
                created.insert(name, seconds);
            }
        }
        let regions = |names: Vec<String>| Regions { are_all: names.len() == all, names };
        Self { created, unix_millis, new: regions(new), old: regions(old) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.created.is_empty()
    }
}

/// Some of the regions of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    names: Vec<String>,
    are_all: bool,
}

impl Regions {
    /// The regions that an agent knows and cannot read, or a service that did not answer, which has no name. Their
    /// series are missing from a page, and count on meanwhile.
    pub(super) fn unreadable(families: &[MetricFamily]) -> Self {
        let mut known = by_region(families, UP);
        known.append(&mut by_region(families, ANSWERED));
        let are_all = known.values().all(|is_up| *is_up == 0.0);
        known.retain(|_, is_up| *is_up == 0.0);
        Self { names: known.into_keys().collect(), are_all }
    }

    /// Whether an endpoint may be of one of them: where there are several regions, its name has that of its region.
    pub(super) fn may_have(&self, endpoint: &str) -> bool {
        let is_named = |region: &String| endpoint.contains(region.as_str());
        !self.names.is_empty() && (self.are_all || self.names.iter().any(is_named))
    }

    /// Whether a series may be of one of them.
    pub(crate) fn may_have_series(&self, labels: &[LabelPair]) -> bool {
        let is_named = |pair: &LabelPair| self.names.contains(&pair.value);
        !self.names.is_empty() && (self.are_all || labels.iter().any(is_named))
    }
}
