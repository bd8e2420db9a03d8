//! A load's outcome for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::distributions::Distributions;
use crate::outcome::{Outcome, Phases};
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::server_memory::ServerMemory;
use crate::steps::StepSummary;
use crate::tally::Checked;
use crate::times::LowerBounds;
use talea_statistics::figures::{bytes, counted, measured, measured_or_none, whole};

/// The summary that `talea load` prints; as JSON with `--json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// Arrivals that still waited for a client then; in an open model.
    pub arrivals_not_begun: u64,
    /// Requests whose time is known by a lower bound alone: they timed out, or waited when a signal stopped the
    /// load. They count in all times as at least that long.
    pub requests_censored: u64,
    /// Requests that failed otherwise, without an answer, and count in no time.
    pub requests_untimed: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections opened to replace another.
    pub reconnects: u64,
    /// From the start of the first client to the end of the last.
    pub client_seconds: f64,
    /// The time in which requests were sent; in an open model that of the schedule at least.
    pub sending_seconds: f64,
    /// Requests sent a second of it.
    pub mean_rate: Option<f64>,
    /// Mean response time by the clock of the clients, in milliseconds.
    pub client_mean_ms: Option<f64>,
    /// Median.
    pub client_p50_ms: Option<f64>,
    /// 90th percentile.
    pub client_p90_ms: Option<f64>,
    /// 95th percentile.
    pub client_p95_ms: Option<f64>,
    /// 99th percentile.
    pub client_p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub client_p999_ms: Option<f64>,
    /// 99.99th percentile.
    pub client_p9999_ms: Option<f64>,
    /// The longest.
    pub client_max_ms: Option<f64>,
    /// Median of the response times from when each request was sent, without its lateness; in an open model.
    pub sent_p50_ms: Option<f64>,
    /// Their 90th percentile.
    pub sent_p90_ms: Option<f64>,
    /// Their 99th percentile.
    pub sent_p99_ms: Option<f64>,
    /// Times to connect and to the head of an answer.
    #[serde(flatten)]
    pub phases: Phases,
    /// The names of those of these times that are lower bounds.
    pub at_least: LowerBounds,
    /// The steps of the scenario.
    pub steps: Vec<StepSummary>,
    /// The checks of the steps.
    pub checks: Vec<CheckSummary>,
    /// The numbers in responses that steps add up.
    pub measures: Vec<NumberSummary>,
    /// Median of how late a client took what arrived; in an open model.
    pub late_p50_ms: Option<f64>,
    /// 99th percentile of it.
    pub late_p99_ms: Option<f64>,
    /// Arrivals that found all clients busy; in an open model.
    pub starved: u64,
    /// The generator's processor time a second; 1 is one core.
    pub generator_cores: f64,
    /// Why the generator, and not the server, may have been the limit.
    pub limits: Vec<String>,
    /// The memory of the server, if it was watched.
    pub server_memory: Option<ServerMemory>,
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
        let mut summary = Self {
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
            arrivals_not_begun: tally.not_begun,
            requests_censored: outcome.response_times.censored(),
            requests_untimed: tally.untimed(),
            connections: tally.connections,
            reconnects: tally.reconnects,
            client_seconds: outcome.elapsed.as_secs_f64(),
            sending_seconds: outcome.sending.as_secs_f64(),
            mean_rate: outcome.mean_rate(),
            steps: StepSummary::all_of(&plan.scenario, outcome),
            checks: CheckSummary::all_of(&plan.scenario, outcome),
            measures: NumberSummary::all_of(&plan.scenario, outcome),
            starved: outcome.health.starved,
            generator_cores: outcome.health.cores(),
            limits: outcome.limits(&plan.scenario),
            ..Self::default()
        };
        summary.phases.bytes_received = outcome.bytes_received;
        summary.set_times(&Distributions::of(outcome));
        summary
    }

    /// Sets all figures that come from distributions.
    pub(crate) fn set_times(&mut self, of: &Distributions) {
        let mut at_least = LowerBounds::default();
        let times = &of.responses;
        self.requests_censored = times.censored();
        self.client_mean_ms = at_least.note("client_mean_ms", times.mean());
        for (field, name, times, quantile) in [
            (&mut self.client_p50_ms, "client_p50_ms", times, 0.5),
            (&mut self.client_p90_ms, "client_p90_ms", times, 0.9),
            (&mut self.client_p95_ms, "client_p95_ms", times, 0.95),
            (&mut self.client_p99_ms, "client_p99_ms", times, 0.99),
            (&mut self.client_p999_ms, "client_p999_ms", times, 0.999),
            (&mut self.client_p9999_ms, "client_p9999_ms", times, 0.9999),
            (&mut self.client_max_ms, "client_max_ms", times, 1.0),
            (&mut self.sent_p50_ms, "sent_p50_ms", &of.sent, 0.5),
            (&mut self.sent_p90_ms, "sent_p90_ms", &of.sent, 0.9),
            (&mut self.sent_p99_ms, "sent_p99_ms", &of.sent, 0.99),
            (&mut self.phases.connect_p50_ms, "connect_p50_ms", &of.connects, 0.5),
            (&mut self.phases.connect_p99_ms, "connect_p99_ms", &of.connects, 0.99),
            (&mut self.phases.head_p50_ms, "head_p50_ms", &of.heads, 0.5),
            (&mut self.phases.head_p99_ms, "head_p99_ms", &of.heads, 0.99),
            (&mut self.late_p50_ms, "late_p50_ms", &of.late, 0.5),
            (&mut self.late_p99_ms, "late_p99_ms", &of.late, 0.99),
        ] {
            *field = at_least.note(name, times.quantile(quantile));
        }
        self.at_least = at_least;
        for (step, times) in self.steps.iter_mut().zip(&of.steps) {
            step.set_times(times);
        }
    }
}

/// How often a check passed and failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSummary {
    /// The name of its step.
    pub step: String,
    /// It in words.
    pub check: String,
    /// Responses that passed it.
    pub passed: u64,
    /// Responses that did not.
    pub failed: u64,
}

impl CheckSummary {
    /// Those of a scenario, in its order.
    pub fn all_of(scenario: &Scenario, outcome: &Outcome) -> Vec<Self> {
        let mut all = Vec::new();
        for (n, step) in scenario.steps.iter().enumerate() {
            for (nth, check) in step.checks.iter().enumerate() {
                let Checked { passed, failed } =
                    outcome.tally.checks.get(&(n, nth)).copied().unwrap_or_default();
                let (step, check) = (step.name.clone(), check.to_string());
                all.push(Self { step, check, passed, failed });
            }
        }
        all
    }
}

/// A number in responses, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NumberSummary {
    /// The name of its step.
    pub step: String,
    /// Its own.
    pub name: String,
    /// Responses that had it.
    pub count: u64,
    /// The sum over these.
    pub sum: f64,
    /// The mean; none of none.
    pub mean: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

impl NumberSummary {
    /// Those of a scenario, in its order.
    pub fn all_of(scenario: &Scenario, outcome: &Outcome) -> Vec<Self> {
        let mut all = Vec::new();
        for (n, step) in scenario.steps.iter().enumerate() {
            for (nth, measure) in step.measures.iter().enumerate() {
                let sum = outcome.tally.measures.get(&(n, nth));
                all.push(Self {
                    step: step.name.clone(),
                    name: measure.name.clone(),
                    count: sum.map_or(0, |sum| sum.count),
                    sum: sum.map_or(0.0, |sum| sum.sum),
                    mean: sum.map(|sum| sum.sum / sum.count as f64),
                    min: sum.map(|sum| sum.min),
                    max: sum.map(|sum| sum.max),
                });
            }
        }
        all
    }
}

/// Every kind of failure of an outcome with its count.
pub fn kinds_of_failure(scenario: &Scenario, outcome: &Outcome) -> Vec<KindOfFailure> {
    outcome
        .tally
        .failures
        .iter()
        .map(|(failure, count)| KindOfFailure { kind: failure.describe(scenario), count: *count })
        .collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}, {}, {}\n", self.url, self.scenario, self.model, self.protocol)?;
        let of = self.requests_planned.map(|planned| format!(" of {}", whole(planned)));
        let warm_up = match self.requests_of_warm_up {
            0 => String::new(),
            warm_up => format!(", and {} before that to warm up", whole(warm_up)),
        };
        let sent = whole(self.requests_sent);
        writeln!(f, "  requests sent  {sent}{}{warm_up}", of.unwrap_or_default())?;
        writeln!(f, "  responses      {}{}", whole(self.answers), self.by_status())?;
        writeln!(f, "  failed         {}", whole(self.failed))?;
        for failure in &self.failures {
            writeln!(f, "    {:>10}  {}", whole(failure.count), failure.kind)?;
        }
        if self.interrupted {
            writeln!(f, "  unanswered     {} when stopped", whole(self.unanswered))?;
        }
        if self.arrivals_not_begun > 0 {
            let waiting = whole(self.arrivals_not_begun);
            writeln!(f, "  not begun      {waiting} that waited for a client at the stop")?;
        }
        let over = match self.sending_seconds == self.client_seconds {
            true => String::new(),
            false => format!(" over {} s", measured(self.sending_seconds)),
        };
        writeln!(
            f,
            "  client time    {} s, {} requests a second{over}",
            measured_or_none(Some(self.client_seconds)),
            measured_or_none(self.mean_rate),
        )?;
        let shown = |field, ms| self.at_least.shown(field, ms);
        writeln!(
            f,
            "  response time  mean {} ms, p50 {}, p90 {}, p95 {}, p99 {}, p99.9 {}, p99.99 {}",
            shown("client_mean_ms", self.client_mean_ms),
            shown("client_p50_ms", self.client_p50_ms),
            shown("client_p90_ms", self.client_p90_ms),
            shown("client_p95_ms", self.client_p95_ms),
            shown("client_p99_ms", self.client_p99_ms),
            shown("client_p999_ms", self.client_p999_ms),
            shown("client_p9999_ms", self.client_p9999_ms),
        )?;
        if let Some((p50, p99)) = self.late_p50_ms.zip(self.late_p99_ms) {
            writeln!(
                f,
                "    without its lateness  p50 {} ms, p90 {}, p99 {}: from when each request was sent",
                shown("sent_p50_ms", self.sent_p50_ms),
                shown("sent_p90_ms", self.sent_p90_ms),
                shown("sent_p99_ms", self.sent_p99_ms),
            )?;
            let [p50, p99] = [p50, p99].map(measured);
            writeln!(f, "    lateness of the generator  p50 {p50} ms, p99 {p99}")?;
        }
        self.write_without_answer(f)?;
        let Phases { connect_p50_ms, connect_p99_ms, head_p50_ms, head_p99_ms, bytes_received } =
            self.phases;
        writeln!(
            f,
            "  to the head    p50 {} ms, p99 {}; {} of bodies",
            shown("head_p50_ms", head_p50_ms),
            shown("head_p99_ms", head_p99_ms),
            bytes(bytes_received),
        )?;
        self.write_steps(f)?;
        for CheckSummary { step, check, passed, failed } in &self.checks {
            let [passed, failed] = [passed, failed].map(|count| whole(*count));
            writeln!(f, "    {step}: {check}: {passed} passed, {failed} failed")?;
        }
        for NumberSummary { step, name, count, sum, mean, min, max } in &self.measures {
            let [sum, mean, min, max] = [Some(*sum), *mean, *min, *max].map(measured_or_none);
            let count = counted(*count, "response");
            writeln!(f, "    {step}: {name}: sum {sum} of {count}, mean {mean}, {min} to {max}")?;
        }
        writeln!(
            f,
            "  connections    {}, of which {} to replace one that was closed; p50 {} ms, p99 {}",
            whole(self.connections),
            whole(self.reconnects),
            shown("connect_p50_ms", connect_p50_ms),
            shown("connect_p99_ms", connect_p99_ms),
        )?;
        if let Some(memory) = &self.server_memory {
            writeln!(f, "  server memory  {memory}")?;
        }
        write!(f, "  generator      {} cores", measured_or_none(Some(self.generator_cores)))?;
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
                "    {:longest$}  {:>10} responses, {} failed, p50 {} ms, p90 {}, p99 {}",
                step.name,
                whole(step.answers),
                whole(step.failed),
                step.at_least.shown("p50_ms", step.p50_ms),
                step.at_least.shown("p90_ms", step.p90_ms),
                step.at_least.shown("p99_ms", step.p99_ms),
            )?;
        }
        Ok(())
    }

    /// The requests without an answer, and what they count for in the times.
    fn write_without_answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.requests_censored > 0 {
            let censored = counted(self.requests_censored, "request");
            writeln!(
                f,
                "    {censored} without a response when given up: counted as at least the time waited"
            )?;
        }
        if self.requests_untimed > 0 {
            let untimed = counted(self.requests_untimed, "request");
            writeln!(f, "    {untimed} that failed without a response: not timed")?;
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
