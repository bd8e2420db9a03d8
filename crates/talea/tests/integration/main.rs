//! The tests of talea in one binary. `allocations` is a binary of its own, since its allocator counts
//! for the whole process, and `uninstalled`, since discarded updates are counted for the process.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod buckets;
mod constant_labels;
mod corpus;
mod debug_form;
mod definitions;
mod exposition;
mod families;
mod faulty_observables;
mod from_env;
mod full;
mod gauges;
mod guide;
mod histograms;
mod infos;
mod killed_observers;
mod labels;
mod memory;
mod metric_names;
mod metrics;
mod migrating;
mod model;
mod native_exposition;
mod negotiation;
mod nesting;
mod observables;
mod outside;
mod page;
mod page_conflicts;
mod processes;
mod quantiles;
mod queries;
mod registering;
mod round_trip;
mod samples;
mod series;
mod shown_names;
mod state_sets;
mod summary;
mod timers;
mod versions;
mod wiping;
