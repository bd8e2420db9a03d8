//! The regions of an agent's page, and those whose series are missing from it or appear in it late.

use std::collections::BTreeMap;

use super::marks::{ANSWERED, UP, by_region};
use crate::families::protobuf::{LabelPair, MetricFamily};

/// When a region that an agent can read was made.
pub(crate) const CREATED: &str = "talea_region_created_timestamp_seconds";

/// The regions that were read so far, and when each was made, in seconds since 1970. One that cannot be read at
/// present is among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownRegions {
    created: BTreeMap<String, f64>,
    /// When the page was read, in milliseconds since 1970.
    unix_millis: i64,
}

impl KnownRegions {
    /// Those of a page, and those of the page before that this one cannot show.
    pub(crate) fn of(families: &[MetricFamily], unix_millis: i64, before: Option<&Self>) -> Self {
        let mut created = by_region(families, CREATED);
        let unreadable = Regions::unreadable(families);
        for (name, seconds) in before.into_iter().flat_map(|before| &before.created) {
            if unreadable.names.contains(name) {
                created.entry(name.clone()).or_insert(*seconds);
            }
        }
        Self { created, unix_millis }
    }

    /// The regions that were not known before and had been made by then: nobody knows when they counted what they show.
    pub(crate) fn appeared_since(&self, before: &Self) -> Regions {
        let is_old = |seconds: f64| seconds * 1e3 < before.unix_millis as f64;
        let appeared = self
            .created
            .iter()
            .filter(|(name, seconds)| !before.created.contains_key(*name) && is_old(**seconds));
        let names: Vec<String> = appeared.map(|(name, _)| name.clone()).collect();
        Regions { are_all: names.len() == self.created.len(), names }
    }
}

/// Some of the regions of a page.
#[derive(Debug)]
pub(crate) struct Regions {
    names: Vec<String>,
    are_all: bool,
}

impl Regions {
    /// The regions that an agent knows and cannot read, or a service that did not answer, which has no name. Their
    /// series are missing from a page, and count on meanwhile.
    pub(crate) fn unreadable(families: &[MetricFamily]) -> Self {
        let mut known = by_region(families, UP);
        known.append(&mut by_region(families, ANSWERED));
        let are_all = known.values().all(|is_up| *is_up == 0.0);
        known.retain(|_, is_up| *is_up == 0.0);
        Self { names: known.into_keys().collect(), are_all }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether an endpoint may be of one of them: where there are several regions, its name has that of its region.
    pub(super) fn may_have(&self, endpoint: &str) -> bool {
        let is_named = |region: &String| endpoint.contains(region.as_str());
        !self.is_empty() && (self.are_all || self.names.iter().any(is_named))
    }

    /// Whether a series may be of one of them.
    pub(crate) fn may_have_series(&self, labels: &[LabelPair]) -> bool {
        !self.is_empty()
            && (self.are_all || labels.iter().any(|pair| self.names.contains(&pair.value)))
    }
}
