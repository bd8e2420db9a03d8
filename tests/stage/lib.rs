//! What the tests are played on: metrics that are hard to read, what must be read from
//! them, and the programs that do.

mod client;
mod hard;
mod prometheus;
mod python;
mod samples;

pub use client::get;
pub use hard::{hard_metrics, hard_texts};
pub use prometheus::{Job, Prometheus};
pub use python::{Parser, read};
pub use samples::{Key, Samples, assert_same, escaped_by_underscores, samples};
