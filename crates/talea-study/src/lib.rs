//! Studies of an HTTP service under load.
//!
//! - [`study`]: the load cases against a service in a child process, with the service's own metrics
//!   sampled while each case runs.
//! - [`compare`]: two or more variants of a service beside each other, as ratios with intervals.
//! - [`report`]: the results of a study, as a table, as JSON and as one HTML page.
//!
//! The load itself is the crate `talea-load`.
//!
//! The way of a study: cases → target (the child process) → for each case reset, baseline, load
//! and samples → case results → report. Client numbers come from `talea-load` alone, server numbers from
//! the target's metrics alone; only `report` sets them side by side.
// What is public is for the programs of this repository; the modules' first lines say what they do.
#![allow(missing_docs)]

pub mod compare;
mod machine;
pub mod progress;
pub mod report;
pub mod study;
