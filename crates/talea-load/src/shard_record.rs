//! The result of one part of a load, and how the parts are put together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::distributions::Distributions;
use crate::meters::Window;
use crate::model::Model;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::scenario::Shard;
use crate::steps::StepSummary;
use crate::summary::{CheckSummary, KindOfFailure, NumberSummary, Summary};
use crate::times::Times;
use talea_statistics::figures::{measured, whole};

/// The version of the format.
const VERSION: u32 = 1;

/// The result of a part of a load; one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShardRecord {
    /// The version of this format. It stands first, so that a record is found in a log.
    talea_load: u32,
    /// Which part it is.
    pub shard: Shard,
    /// The whole load in words; parts of other loads do not fit.
    load: String,
    /// The model of the whole in words.
    model: String,
    /// Clients of the whole at most.
    clients: u64,
    /// Requests of the whole, if that is known beforehand.
    requests_planned: Option<u64>,
    /// When it was to begin, in seconds since 1970.
    start_at: Option<f64>,
    /// When it began, by the clock of its machine.
    began: f64,
    /// By how much the clock of its machine is ahead of the server's, in seconds, to within a second; none if the
    /// server sends no date.
    clock: Option<f64>,
    summary: Summary,
    distributions: Distributions,
    /// Each second of the load.
    timeline: Vec<Slice>,
}

/// One second of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Since the load began.
    pub second: u64,
    /// Responses, and requests that timed out.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Their response times.
    pub times: Times,
}

/// The seconds of a load that is under way.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    slices: Vec<Slice>,
    before: Option<(Times, u64)>,
}

impl Timeline {
    /// Ends a second of the load.
    pub fn end_second(&mut self, second: u64, window: &Window) {
        let (times, failed) = (window.response_times(), window.requests_failed());
        let (slice, failed_before) = match &self.before {
            Some((before, failed)) => (times.since(before), *failed),
            None => (times.clone(), 0),
        };
        self.before = Some((times, failed));
        let requests = slice.known() + slice.censored();
        let failed = failed - failed_before;
        if requests > 0 || failed > 0 {
            self.slices.push(Slice { second, requests, failed, times: slice });
        }
    }
}

/// When a part of a load was to begin and did.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When all parts were to begin, if that was said.
    pub at: Option<SystemTime>,
    /// When this one did.
    pub began: SystemTime,
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

impl ShardRecord {
    /// The record of a part that was run; the model is that of the whole.
    pub fn new(
        plan: &Plan,
        all: &Model,
        outcome: &Outcome,
        timeline: Timeline,
        start: Start,
    ) -> Self {
        let (target, scenario, protocol) = (&plan.target, &plan.scenario.name, plan.protocol);
        let requests = all.iterations().zip(plan.scenario.requests_of_iteration());
        Self {
            talea_load: VERSION,
            shard: plan.shard,
            load: format!("{target}, {scenario}, {all}, {protocol}, seed {}", plan.seed),
            model: all.to_string(),
            clients: all.clients(),
            requests_planned: requests.map(|(runs, each)| runs.saturating_mul(each)),
            start_at: start.at.map(seconds),
            began: seconds(start.began),
            clock: outcome.tally.clock,
            summary: Summary::new(plan, outcome),
            distributions: Distributions::of(outcome),
            timeline: timeline.slices,
        }
    }

    /// The records in a text, such as a file or the log of several parts. A line that is cut off is none, and counted.
    pub fn all_in(text: &str) -> (Vec<Self>, u64) {
        const MARK: &str = "{\"talea_load\":";
        let (mut records, mut broken) = (Vec::new(), 0);
        for line in text.lines() {
            let Some(at) = line.find(MARK) else { continue };
            match serde_json::from_str::<Self>(&line[at..]) {
                Ok(record) if record.talea_load == VERSION => records.push(record),
                _ => broken += 1,
            }
        }
        (records, broken)
    }
}

/// Parts of a load, put together.
#[derive(Clone, Debug, Serialize)]
pub struct Merged {
    /// The counts and times of all parts.
    pub summary: Summary,
    /// Why the whole is not what was asked for, in words: parts that are missing, ended early, began late, or whose
    /// clock is off.
    pub faults: Vec<String>,
    /// Whether a part is missing or was stopped.
    pub is_incomplete: bool,
    /// Each second of the load, of all parts.
    pub timeline: Vec<Slice>,
    /// The distributions of all parts.
    pub distributions: Distributions,
}

/// A part that began later than this is named.
const LATE: f64 = 1.0;
/// A clock that differs from the others' by more is named. Dates of servers have whole seconds.
const CLOCK: f64 = 2.0;

impl Merged {
    /// Puts parts together.
    ///
    /// # Errors
    /// There is none, two are the same part, or they are of different loads.
    pub fn of(mut records: Vec<ShardRecord>) -> Result<Self, String> {
        records.sort_by_key(|record| record.shard.number);
        let first =
            records.first().ok_or("found no result of a load, expected files of --record")?;
        for (one, next) in records.iter().zip(&records[1..]) {
            if one.load != next.load || one.shard.of != next.shard.of {
                return Err(format!(
                    "found parts of different loads: {} has {:?}, {} has {:?}",
                    one.shard, one.load, next.shard, next.load
                ));
            }
            if one.shard == next.shard {
                return Err(format!("found {} twice", one.shard));
            }
        }
        let (mut faults, is_incomplete) = faults(&records);
        let mut summary = first.summary.clone();
        let mut distributions = first.distributions.clone();
        let mut timeline: BTreeMap<u64, Slice> = BTreeMap::new();
        for record in &records[1..] {
            add(&mut summary, &record.summary);
            distributions.add(&record.distributions);
        }
        for slice in records.iter().flat_map(|record| &record.timeline) {
            timeline
                .entry(slice.second)
                .and_modify(|all| {
                    all.requests += slice.requests;
                    all.failed += slice.failed;
                    all.times.add(&slice.times);
                })
                .or_insert_with(|| slice.clone());
        }
        summary.model = first.model.clone();
        summary.clients = first.clients;
        summary.requests_planned = first.requests_planned;
        summary.iterations = None;
        summary.mean_rate = (summary.sending_seconds > 0.0)
            .then(|| summary.requests_sent as f64 / summary.sending_seconds);
        summary.set_times(&distributions);
        if let Some(planned) = summary.requests_planned.filter(|it| *it > summary.requests_sent) {
            faults.push(format!(
                "{} of {} requests were offered, {} a second",
                whole(summary.requests_sent),
                whole(planned),
                summary.mean_rate.map_or_else(|| "0".to_owned(), measured),
            ));
        }
        let timeline = timeline.into_values().collect();
        Ok(Self { summary, faults, is_incomplete, timeline, distributions })
    }
}

/// What is wrong with some parts, and whether the whole lacks something.
fn faults(records: &[ShardRecord]) -> (Vec<String>, bool) {
    let mut faults = Vec::new();
    let of = records.first().map_or(0, |record| record.shard.of);
    let present: BTreeSet<u64> = records.iter().map(|record| record.shard.number).collect();
    for number in (0..of).filter(|number| !present.contains(number)) {
        let shard = Shard { number, of };
        faults.push(format!(
            "{shard} has no result: it did not run, or it died; {} % of the load is missing",
            measured(100.0 / of as f64)
        ));
    }
    for record in records.iter().filter(|record| record.summary.interrupted) {
        faults.push(format!("{} was stopped before it was done", record.shard));
    }
    let is_incomplete = !faults.is_empty();
    for record in records {
        let late = record.start_at.map_or(0.0, |at| record.began - at);
        if late > LATE {
            faults.push(format!("{} began {} s late", record.shard, measured(late)));
        }
    }
    let mut clocks: Vec<f64> = records.iter().filter_map(|record| record.clock).collect();
    clocks.sort_by(f64::total_cmp);
    let usual = clocks.get(clocks.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    for record in records {
        let off = record.clock.map_or(0.0, |clock| clock - usual);
        if off.abs() > CLOCK {
            let way = if off > 0.0 { "ahead of" } else { "behind" };
            faults.push(format!(
                "the clock of {} is {} s {way} the others', so it began at another time than they",
                record.shard,
                measured(off.abs())
            ));
        }
    }
    (faults, is_incomplete)
}

/// Adds the counts of another part to a summary.
fn add(all: &mut Summary, other: &Summary) {
    for (count, more) in [
        (&mut all.requests_of_warm_up, other.requests_of_warm_up),
        (&mut all.requests_sent, other.requests_sent),
        (&mut all.requests_not_sent, other.requests_not_sent),
        (&mut all.answers, other.answers),
        (&mut all.failed, other.failed),
        (&mut all.unanswered, other.unanswered),
        (&mut all.arrivals_not_begun, other.arrivals_not_begun),
        (&mut all.requests_untimed, other.requests_untimed),
        (&mut all.connections, other.connections),
        (&mut all.reconnects, other.reconnects),
        (&mut all.starved, other.starved),
        (&mut all.phases.bytes_received, other.phases.bytes_received),
    ] {
        *count += more;
    }
    for (status, count) in &other.answers_by_status {
        *all.answers_by_status.entry(*status).or_default() += count;
    }
    for KindOfFailure { kind, count } in &other.failures {
        match all.failures.iter_mut().find(|known| known.kind == *kind) {
            Some(known) => known.count += count,
            None => all.failures.push(KindOfFailure { kind: kind.clone(), count: *count }),
        }
    }
    for (step, StepSummary { answers, failed, failed_without_answer, .. }) in
        all.steps.iter_mut().zip(&other.steps)
    {
        step.answers += answers;
        step.failed += failed;
        step.failed_without_answer += failed_without_answer;
    }
    for (check, CheckSummary { passed, failed, .. }) in all.checks.iter_mut().zip(&other.checks) {
        check.passed += passed;
        check.failed += failed;
    }
    for (number, other) in all.measures.iter_mut().zip(&other.measures) {
        let NumberSummary { count, sum, min, max, .. } = other;
        number.count += count;
        number.sum += sum;
        number.mean = (number.count > 0).then(|| number.sum / number.count as f64);
        number.min = [number.min, *min].into_iter().flatten().reduce(f64::min);
        number.max = [number.max, *max].into_iter().flatten().reduce(f64::max);
    }
    all.interrupted |= other.interrupted;
    all.client_seconds = all.client_seconds.max(other.client_seconds);
    all.sending_seconds = all.sending_seconds.max(other.sending_seconds);
    all.generator_cores += other.generator_cores;
    for limit in &other.limits {
        if !all.limits.contains(limit) {
            all.limits.push(limit.clone());
        }
    }
}
