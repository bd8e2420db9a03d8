//! The groups.

mod by_user;
mod counter_18000;
mod counter_enum18;
mod counter_fixed18;
mod counter_kept;
mod counters;
mod encode;
mod encode_histograms;
mod failures;
mod failures_by_user;
mod float_kept;
mod insert;
mod insert_plan;
mod labels;
mod observe_fixed18;
mod observe_kept;
mod observe_sampled;
mod parse;
mod texts;

use crate::work::Group;

pub(crate) use insert::INSERTS;

/// All groups, in the order in which they are run.
pub(crate) const ALL: &[&Group] = &[
    &counter_kept::GROUP,
    &float_kept::GROUP,
    &observe_kept::GROUP,
    &counter_fixed18::GROUP,
    &counter_enum18::GROUP,
    &observe_fixed18::GROUP,
    &observe_sampled::GROUP,
    &counter_18000::GROUP,
    &encode::OF_10K,
    &encode::OF_100K,
    &encode_histograms::GROUP,
    &parse::GROUP,
    &insert::NEW,
    &insert::DRAWN,
    &insert::REFILLED,
];
