//! A line of the results.

use serde::{Deserialize, Serialize};

use crate::measure::Cost;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) bench: String,
    pub(crate) threads: usize,
    pub(crate) subject: String,
    pub(crate) ns: Option<f64>,
    pub(crate) allocs_per_op: Option<f64>,
    pub(crate) bytes_per_op: Option<f64>,
    /// This subject's time to Talea's: above 1, Talea is faster.
    pub(crate) ratio_to_talea: Option<f64>,
    /// The time of the last tenth of the operations to that of the first, where it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_to_first: Option<f64>,
    /// Of the groups that count instructions and measure no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latencies: Option<LatencyFigures>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) more: Option<Overhead>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) takes: Option<AgentCost>,
}

/// A histogram's memory and its errors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LatencyFigures {
    pub(crate) bytes: f64,
    pub(crate) has_sum: bool,
    /// For each of the quantiles, as a share of the exact one; empty if the library exposes none.
    pub(crate) errors: Vec<f64>,
}

/// The cost of a request beyond one without metering.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Overhead {
    pub(crate) ns: f64,
    /// Of the rounds.
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    /// That time as a multiple of two readings of the clock.
    pub(crate) clock_reads: f64,
    pub(crate) allocs: f64,
}

/// The resources of an agent besides time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct AgentCost {
    pub(crate) cpu_ns: f64,
    /// Bytes of memory before the first scrape.
    pub(crate) idle_bytes: f64,
    pub(crate) peak_bytes: f64,
    pub(crate) answer_bytes: f64,
}

impl Row {
    /// A row of one thread, without figures.
    pub(crate) fn new(bench: impl Into<String>, subject: &str) -> Self {
        Self { bench: bench.into(), threads: 1, subject: subject.to_owned(), ..Self::default() }
    }

    pub(crate) fn of_cost(bench: impl Into<String>, subject: &str, cost: Cost) -> Self {
        let (ns, allocs, bytes) = (Some(cost.ns), Some(cost.allocs), Some(cost.bytes));
        let row = Self::new(bench, subject);
        let last_to_first = cost.last_to_first;
        Self { ns, allocs_per_op: allocs, bytes_per_op: bytes, last_to_first, ..row }
    }
}
