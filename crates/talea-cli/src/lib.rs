//! The parts of the `talea` binary, module by module.
//!
//! - [`load`]: concurrent clients that run the same requests over and over, counted exactly.
//! - [`study`]: the load cases against a service in a child process, with the service's own
//!   metrics sampled while each case runs.
//! - [`compare`]: two or more variants of a service beside each other, as ratios with intervals.
//! - [`report`]: what a study found, as a table, as JSON and as one HTML page.
//! - [`check`]: a text of metrics, held against its format.
//! - [`web`]: the agent's web configuration: TLS, passwords, headers.
//! - `inspect`: the region that a service counts in, read from outside.
//! - `upkeep`: what an operator does to such a region: `wipe` and `expire`.
//! - `serve`: the agent, which serves any number of regions as one page.
//!
//! The way of a study: cases → target (the child process) → for each case reset, baseline, load
//! and samples → findings → report. Client numbers come from [`load`] alone, server numbers from
//! the target's metrics alone; only [`report`] sets them side by side.

pub mod arguments;
pub mod check;
pub mod compare;
pub mod connect;
pub mod descriptors;
pub mod figures;
#[cfg(target_os = "linux")]
pub mod inspect;
pub mod load;
pub mod machine;
#[cfg(target_os = "linux")]
mod printable;
pub mod progress;
pub mod report;
pub mod scenario;
pub mod screen;
#[cfg(target_os = "linux")]
pub mod serve;
pub mod statistics;
pub mod stop;
pub mod study;
pub mod study_command;
#[cfg(target_os = "linux")]
pub mod upkeep;
pub mod web;
