//! A load's outcome for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::figures::{bytes, measured, measured_or_none, whole};
use crate::outcome::{Outcome, Phases, in_ms};
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::steps::StepSummary;
use crate::tally::Failure;

/// The summary that `talea load` prints; as JSON with `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The URL that the scenario's paths stand behind.
    pub url: String,
    /// The name of the scenario.
    pub scenario: String,
    /// The model in words.
    pub model: String,
    /// The version of HTTP in words.
    pub protocol: String,
    /// The seed of random values and arrivals.
    pub seed: u64,
    /// Clients at most.
    pub clients: u64,
    /// Runs of the scenario by all clients, where that is known beforehand.
    pub iterations: Option<u64>,
    /// Requests that the plan makes, where that is known beforehand.
    pub requests_planned: Option<u64>,
    /// Requests that were made before, to warm up, and are not counted here.
    pub requests_of_warm_up: u64,
    /// Requests that went out.
    pub requests_sent: u64,
    /// Requests that could not be sent.
    pub requests_not_sent: u64,
    /// Answers that were read to their end.
    pub answers: u64,
    /// Those answers, by status.
    pub answers_by_status: BTreeMap<u16, u64>,
    /// Failed requests, those not sent among them.
    pub failed: u64,
    /// Those failures, by what happened.
    pub failures: Vec<KindOfFailure>,
    /// Requests under way when a signal stopped the load.
    pub unanswered: u64,
    /// Whether a signal stopped the load.
    pub interrupted: bool,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections opened to replace another.
    pub reconnects: u64,
    /// From the start of the first client to the end of the last.
    pub client_seconds: f64,
    /// Requests sent a second.
    pub mean_rate: Option<f64>,
    /// Mean response time by the clock of the clients, in milliseconds.
    pub client_mean_ms: Option<f64>,
    /// Median.
    pub client_p50_ms: Option<f64>,
    /// 90th percentile.
    pub client_p90_ms: Option<f64>,
    /// 99th percentile.
    pub client_p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub client_p999_ms: Option<f64>,
    /// 99.99th percentile.
    pub client_p9999_ms: Option<f64>,
    /// Times to connect and to the head of an answer.
    #[serde(flatten)]
    pub phases: Phases,
    /// The steps of the scenario.
    pub steps: Vec<StepSummary>,
    /// 99th percentile of how late a client took what arrived; in an open model.
    pub late_p99_ms: Option<f64>,
    /// Arrivals that found all clients busy; in an open model.
    pub starved: u64,
    /// The generator's processor time a second; 1 is one core.
    pub generator_cores: f64,
    /// Why the generator, and not the server, may have been the limit.
    pub limits: Vec<String>,
}

/// How many requests failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindOfFailure {
    /// The step, and what happened.
    pub kind: String,
    /// So many.
    pub count: u64,
}

impl Summary {
    /// The summary of a load that was run.
    pub fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let tally = &outcome.tally;
        Self {
            url: plan.target.to_string(),
            scenario: plan.scenario.name.clone(),
            model: plan.model.to_string(),
            protocol: plan.protocol.to_string(),
            seed: plan.seed,
            clients: plan.model.clients(),
            iterations: plan.model.iterations(),
            requests_planned: plan.requests(),
            requests_of_warm_up: 0,
            requests_sent: tally.sent,
            requests_not_sent: tally.not_sent,
            answers: tally.answered(),
            answers_by_status: tally.answers.clone(),
            failed: tally.failed(),
            failures: kinds_of_failure(&plan.scenario, outcome),
            unanswered: tally.unanswered,
            interrupted: outcome.interrupted,
            connections: tally.connections,
            reconnects: tally.reconnects,
            client_seconds: outcome.elapsed.as_secs_f64(),
            mean_rate: outcome.mean_rate(),
            client_mean_ms: outcome.response_times.mean().map(|seconds| seconds * 1e3),
            client_p50_ms: outcome.quantile_ms(0.5),
            client_p90_ms: outcome.quantile_ms(0.9),
            client_p99_ms: outcome.quantile_ms(0.99),
            client_p999_ms: outcome.quantile_ms(0.999),
            client_p9999_ms: outcome.quantile_ms(0.9999),
            phases: outcome.phases(),
            steps: StepSummary::all_of(&plan.scenario, outcome),
            late_p99_ms: in_ms(&outcome.health.late, 0.99),
            starved: outcome.health.starved,
            generator_cores: outcome.health.cores(),
            limits: outcome.limits(),
        }
    }
}

/// Every kind of failure of an outcome with its count.
pub fn kinds_of_failure(scenario: &Scenario, outcome: &Outcome) -> Vec<KindOfFailure> {
    let kind = |(failure, count): (&Failure, &u64)| KindOfFailure {
        kind: failure.describe(scenario),
        count: *count,
    };
    outcome.tally.failures.iter().map(kind).collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}, {}, {}\n", self.url, self.scenario, self.model, self.protocol)?;
        let of = self.requests_planned.map(|planned| format!(" of {}", whole(planned)));
        let warm_up = match self.requests_of_warm_up {
            0 => String::new(),
            warm_up => format!(", and {} before to warm up", whole(warm_up)),
        };
        let sent = whole(self.requests_sent);
        writeln!(f, "  requests sent  {sent}{}{warm_up}", of.unwrap_or_default())?;
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
            "  response time  mean {} ms, p50 {}, p90 {}, p99 {}, p99.9 {}, p99.99 {}",
            measured_or_none(self.client_mean_ms),
            measured_or_none(self.client_p50_ms),
            measured_or_none(self.client_p90_ms),
            measured_or_none(self.client_p99_ms),
            measured_or_none(self.client_p999_ms),
            measured_or_none(self.client_p9999_ms),
        )?;
        let Phases { connect_p50_ms, connect_p99_ms, head_p50_ms, head_p99_ms, bytes_received } =
            self.phases;
        writeln!(
            f,
            "  to the head    p50 {} ms, p99 {}; {} of bodies",
            measured_or_none(head_p50_ms),
            measured_or_none(head_p99_ms),
            bytes(bytes_received),
        )?;
        self.write_steps(f)?;
        writeln!(
            f,
            "  connections    {}, of which {} to replace one that was closed; p50 {} ms, p99 {}",
            whole(self.connections),
            whole(self.reconnects),
            measured_or_none(connect_p50_ms),
            measured_or_none(connect_p99_ms),
        )?;
        write!(f, "  generator      {} cores", measured_or_none(Some(self.generator_cores)))?;
        if let Some(late) = self.late_p99_ms {
            write!(f, ", 99 % of the arrivals taken within {} ms", measured(late))?;
        }
        for limit in &self.limits {
            write!(f, "\n  beware         {limit}")?;
        }
        Ok(())
    }
}

impl Summary {
    /// A line for each step, if there are several.
    fn write_steps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.len() < 2 {
            return Ok(());
        }
        let longest = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        for step in &self.steps {
            writeln!(
                f,
                "    {:longest$}  {:>10} answered, {} failed, p50 {} ms, p90 {}, p99 {}",
                step.name,
                whole(step.answers),
                whole(step.failed),
                measured_or_none(step.p50_ms),
                measured_or_none(step.p90_ms),
                measured_or_none(step.p99_ms),
            )?;
        }
        Ok(())
    }

    fn by_status(&self) -> String {
        if self.answers_by_status.is_empty() {
            return String::new();
        }
        let statuses = self.answers_by_status.iter();
        let parts = statuses.map(|(status, count)| format!("{status}: {}", whole(*count)));
        format!(" ({})", parts.collect::<Vec<_>>().join(", "))
    }
}
