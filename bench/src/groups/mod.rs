//! The groups, a file each.

mod counter_18000;
mod counter_18000_encode;
mod counter_enum18;
mod counter_fixed18;
mod counter_kept;
mod counter_kept_own;
mod encode;
mod encode_histograms;
mod failures;
mod failures_by_user;
mod float_kept;
mod insert;
mod observe_fixed18;
mod observe_kept;
mod observe_sampled;
mod parse;
pub(crate) mod recorder;
mod snapshot;
mod texts;

use crate::work::Group;

pub(crate) use insert::INSERTS;

/// All groups, in the order in which they are run.
pub(crate) const ALL: &[&Group] = &[
    &counter_kept::GROUP,
    &counter_kept_own::GROUP,
    &float_kept::GROUP,
    &observe_kept::GROUP,
    &counter_fixed18::GROUP,
    &counter_enum18::GROUP,
    &observe_fixed18::GROUP,
    &observe_sampled::GROUP,
    &counter_18000::GROUP,
    &snapshot::GROUP,
    &snapshot::OUTSIDE,
    &encode::OF_100,
    &encode::OF_1K,
    &encode::OF_10K,
    &encode::OF_100K,
    &encode_histograms::GROUP,
    &counter_18000_encode::GROUP,
    &parse::GROUP,
    &parse::HISTOGRAMS,
    &insert::GROUP,
];

pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|group| group.name).collect()
}

/// The groups of these names; all where there are none.
pub(crate) fn chosen(names: &[String]) -> Vec<&'static Group> {
    let chosen = |group: &&&Group| names.is_empty() || names.iter().any(|name| name == group.name);
    ALL.iter().filter(chosen).copied().collect()
}

const TIME: &str =
    "ns: time of a thread for one operation; CPU time where threads outnumber cores.";
