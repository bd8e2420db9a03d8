//! A load's outcome for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Outcome, Plan};
use crate::figures::{counted, measured_or_none, whole};

/// What `talea load` prints; as JSON with `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The collection.
    pub url: String,
    /// Concurrent clients.
    pub clients: u64,
    /// Runs of the sequence by each client.
    pub iterations: u64,
    /// Requests that the plan makes.
    pub requests_planned: u64,
    /// Requests that were sent.
    pub requests_sent: u64,
    /// Requests that could not be sent.
    pub requests_not_sent: u64,
    /// Answers that were read to their end.
    pub answers: u64,
    /// The same by status.
    pub answers_by_status: BTreeMap<u16, u64>,
    /// Failed requests, those not sent among them.
    pub failed: u64,
    /// The same by kind.
    pub failures: Vec<KindOfFailure>,
    /// Requests under way when a signal stopped the load.
    pub unanswered: u64,
    /// Whether a signal stopped the load.
    pub interrupted: bool,
    /// Connections opened.
    pub connections: u64,
    /// Connections opened to replace another.
    pub reconnects: u64,
    /// From the start of the first client to the end of the last.
    pub client_seconds: f64,
    /// Requests sent a second.
    pub mean_rate: Option<f64>,
    /// Mean response time.
    pub client_mean_ms: Option<f64>,
    /// Median response time.
    pub client_p50_ms: Option<f64>,
    /// 99th percentile of the response time.
    pub client_p99_ms: Option<f64>,
}

/// How many requests failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindOfFailure {
    /// The step, and what happened.
    pub kind: String,
    /// How often.
    pub count: u64,
}

impl Summary {
    /// Puts a plan and its outcome together.
    pub fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let tally = &outcome.tally;
        Self {
            url: plan.target.to_string(),
            clients: plan.clients,
            iterations: plan.iterations,
            requests_planned: plan.requests(),
            requests_sent: tally.sent,
            requests_not_sent: tally.not_sent,
            answers: tally.answered(),
            answers_by_status: tally.answers.clone(),
            failed: tally.failed(),
            failures: kinds_of_failure(outcome),
            unanswered: tally.unanswered,
            interrupted: outcome.interrupted,
            connections: tally.connections,
            reconnects: tally.reconnects,
            client_seconds: outcome.elapsed.as_secs_f64(),
            mean_rate: outcome.mean_rate(),
            client_mean_ms: outcome.response_times.mean().map(|seconds| seconds * 1e3),
            client_p50_ms: outcome.quantile_ms(0.5),
            client_p99_ms: outcome.quantile_ms(0.99),
        }
    }
}

/// Every kind of failure of an outcome with its count.
pub fn kinds_of_failure(outcome: &Outcome) -> Vec<KindOfFailure> {
    let kind = |(failure, count): (&super::Failure, &u64)| KindOfFailure {
        kind: failure.to_string(),
        count: *count,
    };
    outcome.tally.failures.iter().map(kind).collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} × {} of create, list, get, update, delete\n",
            self.url,
            counted(self.clients, "client"),
            counted(self.iterations, "iteration"),
        )?;
        writeln!(
            f,
            "  requests sent  {} of {}",
            whole(self.requests_sent),
            whole(self.requests_planned)
        )?;
        writeln!(f, "  answered       {}{}", whole(self.answers), self.by_status())?;
        writeln!(f, "  failed         {}", whole(self.failed))?;
        for failure in &self.failures {
            writeln!(f, "    {:>10}  {}", whole(failure.count), failure.kind)?;
        }
        if self.interrupted {
            writeln!(f, "  unanswered     {} when stopped", whole(self.unanswered))?;
        }
        writeln!(
            f,
            "  client time    {} s, {} requests a second",
            measured_or_none(Some(self.client_seconds)),
            measured_or_none(self.mean_rate),
        )?;
        writeln!(
            f,
            "  response time  mean {} ms, p50 {} ms, p99 {} ms",
            measured_or_none(self.client_mean_ms),
            measured_or_none(self.client_p50_ms),
            measured_or_none(self.client_p99_ms),
        )?;
        write!(
            f,
            "  connections    {}, of which {} to replace one that was closed",
            whole(self.connections),
            whole(self.reconnects)
        )
    }
}

impl Summary {
    fn by_status(&self) -> String {
        if self.answers_by_status.is_empty() {
            return String::new();
        }
        let statuses = self.answers_by_status.iter();
        let parts = statuses.map(|(status, count)| format!("{status}: {}", whole(*count)));
        format!(" ({})", parts.collect::<Vec<_>>().join(", "))
    }
}
