//! Set-up that the tests share: metrics that are hard to read, what must be read from
//! them, and the programs that do. Set-up that fails panics.

// Names say what is meant; comments say the rest.
#![allow(missing_docs)]

mod browser;
mod client;
mod dashboard;
mod files;
mod hard;
mod load;
mod prometheus;
mod promql;
mod promtool;
mod python;
mod samples;
mod service;
mod way;

use std::time::Duration;

/// When a wait for something that has to happen, and takes seconds at most, is given up.
pub const LONGEST: Duration = Duration::from_secs(60);

pub use browser::{Browser, Screen, Theme, file_url};
pub use client::get;
pub use dashboard::{Dashboard, Panel, Variable};
pub use files::{built, contrib, python_program, repository};
pub use hard::{hard_metrics, hard_texts};
pub use load::Load;
pub use prometheus::{Job, Prometheus, free_address};
pub use promql::{grouped_by, guide_queries, reads};
pub use promtool::{assert_promtool, check_metrics};
pub use python::{Parser, read, refuses};
pub use samples::{Key, Samples, assert_same, escaped_by_underscores, samples};
pub use service::{Service, without_accept};
pub use way::Way;
