//! The regions of an agent's page, and those whose series are missing from it or came to it.

use std::collections::{BTreeMap, BTreeSet};

use talea_page::{Family, Label, Series};

/// Whether the agent can read a region.
pub const UP: &str = "talea_agent_region_up";
/// Whether a service answered when it was asked for its metrics, as Prometheus names it.
pub const ANSWERED: &str = "up";
pub const REGION: &str = "region";
/// When a region that an agent can read was made.
pub const CREATED: &str = "talea_region_created_timestamp_seconds";

/// The regions that an agent serves or cannot read at present.
#[derive(Clone, Debug, Default)]
pub struct KnownRegions {
    /// When each was made, in seconds since 1970.
    created: BTreeMap<String, f64>,
    /// When the page was read, in milliseconds since 1970.
    unix_millis: i64,
    /// Those that are on this page for the first time: made since the page before, or earlier.
    pub(crate) new: Regions,
    pub(crate) old: Regions,
    /// Those that were known at the page before.
    gone: Vec<String>,
    /// Whether it is the page of an agent that does not say when regions were made.
    are_undated: bool,
}

impl KnownRegions {
    /// Those of a page, after the page before.
    pub(crate) fn of(families: &[Family], unix_millis: i64, before: Option<&Self>) -> Self {
        let mut created = by_region(families, CREATED);
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for (name, seconds) in &created {
            // One that was made at another time is another one.
            if before.is_some_and(|before| before.created.get(name) == Some(seconds)) {
                continue;
            }
            let is_old = before.is_some_and(|before| seconds * 1e3 < before.unix_millis as f64);
            if is_old { &mut old } else { &mut new }.push(name.clone());
        }
        let regions = |names: Vec<String>| Regions { are_all: names.len() == created.len(), names };
        let (new, old) = (regions(new), regions(old));
        let are_undated = created.is_empty() && !by_region(families, UP).is_empty();
        let unreadable = Regions::unreadable(families);
        let mut gone = Vec::new();
        for (name, seconds) in before.into_iter().flat_map(|before| &before.created) {
            if unreadable.names.contains(name) {
                created.entry(name.clone()).or_insert(*seconds);
            } else if !created.contains_key(name) {
                gone.push(name.clone());
            }
        }
        Self { created, unix_millis, new, old, gone, are_undated }
    }

    /// The region that a series is of, by the value of its first label; empty if that names none.
    pub(super) fn known<'a>(&self, region: &'a str) -> &'a str {
        if self.created.contains_key(region) { region } else { "" }
    }

    /// Whether series that are missing from the page may come back to it and count on: their region is neither gone
    /// nor another one than before, or they are of a service's own page.
    pub(super) fn may_miss(&self, region: &str) -> bool {
        let is_gone = self.gone.iter().any(|gone| gone == region);
        !self.are_undated && !is_gone && !self.old.have(region) && !self.new.have(region)
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
    pub(super) fn unreadable(families: &[Family]) -> Self {
        let mut known = by_region(families, UP);
        known.append(&mut by_region(families, ANSWERED));
        let are_all = known.values().all(|is_up| *is_up == 0.0);
        known.retain(|_, is_up| *is_up == 0.0);
        Self { names: known.into_keys().collect(), are_all }
    }

    /// Whether the series of a region, as [`region_of`] has it, are of one of them.
    pub(crate) fn have(&self, region: &str) -> bool {
        !self.names.is_empty() && (self.are_all || self.names.iter().any(|name| name == region))
    }
}

/// The region that a series is of where there are several: an agent puts the label of regions before others.
pub fn region_of(labels: &[Label]) -> &str {
    labels.first().map_or("", |first| &first.value)
}

/// The region that a series is of, among those of a page; empty if it names none of them.
pub(super) fn named_in<'a>(known: &BTreeSet<String>, labels: &'a [Label]) -> &'a str {
    let region = region_of(labels);
    if known.contains(region) { region } else { "" }
}

/// The regions that an agent's page is of.
pub(super) fn known_regions(families: &[Family]) -> BTreeSet<String> {
    let served = by_region(families, CREATED).into_keys();
    served.chain(by_region(families, UP).into_keys()).collect()
}

/// The greatest value of each region.
pub(super) fn by_region(families: &[Family], name: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let of_name = families.iter().filter(|family| family.name == name);
    for metric in of_name.flat_map(|family| &family.series) {
        let Some(value) = metric.value.number() else { continue };
        let greatest = found.entry(named_region(metric)).or_insert(value);
        *greatest = greatest.max(value);
    }
    found
}

fn named_region(metric: &Series) -> String {
    let label = metric.labels.iter().find(|pair| pair.name == REGION);
    label.map(|pair| pair.value.clone()).unwrap_or_default()
}
