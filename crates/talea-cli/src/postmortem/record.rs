//! The last seconds before a process of a region died, or before now, from a history.

use std::time::Duration;

use serde::Serialize;

use crate::families::Quantiles;
use crate::families::protobuf::{LabelPair, MetricFamily};
use crate::history::{Stretch, Time};
use crate::live::{Kind, Mark, Reading, Row, Watch, Window, is_of_marks};

/// The agent's gauge that says how many processes of a region live, and its label.
const PROCESSES: &str = "talea_region_processes";
const REGION: &str = "region";
/// Metrics of the agent itself.
const OF_AGENT: [&str; 2] = ["talea_agent_", "talea_region_"];

/// The last seconds of a region.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) region: String,
    /// When the agent found that a process was gone, in milliseconds since 1970; `None` if none died
    /// while it watched.
    pub(crate) died_unix_millis: Option<i64>,
    /// One after the other. The last one before a death has what was counted until then.
    pub(crate) seconds: Vec<Second>,
    /// The endpoints that had requests in these seconds, or in flight in the last of them.
    pub(crate) endpoints: Vec<Endpoint>,
}

/// The numbers of the time from one reading to the next one.
#[derive(Debug, Serialize)]
pub(crate) struct Second {
    /// When it ended, in milliseconds since 1970.
    pub(crate) unix_millis: i64,
    /// How long it was.
    pub(crate) seconds: f64,
    pub(crate) requests: u64,
    /// The share of responses with a status of 500 or more.
    pub(crate) errors: Option<f64>,
    #[serde(flatten)]
    pub(crate) times: Quantiles,
    pub(crate) in_flight: Option<f64>,
    pub(crate) cpu_cores: Option<f64>,
    pub(crate) memory_bytes: Option<f64>,
    /// Tasks of the runtime that lived.
    pub(crate) tasks: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    pub(crate) requests: u64,
    pub(crate) errors: Option<f64>,
    #[serde(flatten)]
    pub(crate) times: Quantiles,
    /// When a process was last seen alive: a reading later, those of a dead one are gone.
    pub(crate) in_flight: Option<f64>,
}

/// A tick of the history, of one region.
struct Tick {
    time: Time,
    families: Vec<MetricFamily>,
    /// How many processes of the region lived; `None` if the agent did not have it.
    processes: Option<f64>,
}

impl Record {
    /// The last of some seconds of a region, known by a label where a history has several. `None` if it has
    /// none.
    pub(crate) fn of(
        recorded: &Stretch,
        region: &str,
        label: &str,
        last: Duration,
    ) -> Option<Self> {
        let died = died(recorded, region);
        let mut ticks = Vec::new();
        let begins = died.map_or(i64::MIN, |died| died - millis(last) - 1_000);
        let mut is_over = false;
        recorded.replay(|_, time, state| {
            if time.unix_millis >= begins && !is_over {
                ticks.push(Tick::of(time, state.families(), region, label));
            }
            // A reading copies counts before it looks who lives, so the next one has the last counts.
            is_over |= died.is_some_and(|died| time.unix_millis > died);
            // A second is a tick.
            if died.is_none() && ticks.len() as u64 > last.as_secs().saturating_add(1) {
                ticks.remove(0);
            }
        });
        let first = ticks.first().filter(|_| ticks.iter().any(|it| it.processes.is_some()))?.time;
        Some(Self {
            region: region.to_owned(),
            died_unix_millis: died,
            seconds: seconds(&ticks, first),
            endpoints: endpoints(&ticks, first, last),
        })
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2)
}

/// When the latest death of a process of a region was found, by whatever agent.
fn died(recorded: &Stretch, region: &str) -> Option<i64> {
    let (mut watch, mut died) = (Watch::default(), None);
    recorded.replay(|_, time, state| {
        let marks = watch.next(time.unix_millis, &state.families_named(is_of_marks));
        let is_death = |mark: &&Mark| mark.of == region && mark.kind != Kind::Started;
        let last = marks.iter().filter(is_death).map(|mark| mark.unix_millis).max();
        died = last.or(died);
    });
    died
}

impl Tick {
    fn of(time: Time, mut families: Vec<MetricFamily>, region: &str, label: &str) -> Self {
        let is = |pair: &LabelPair, name: &str| pair.name == name && pair.value == region;
        let of_it = families.iter().filter(|family| family.name == PROCESSES);
        let of_it = of_it.flat_map(|family| &family.metric);
        let of_it = of_it.filter(|metric| metric.label.iter().any(|pair| is(pair, REGION)));
        let processes = of_it.filter_map(|metric| metric.value()).reduce(f64::max);
        families.retain(|family| !OF_AGENT.iter().any(|begin| family.name.starts_with(begin)));
        for family in &mut families {
            // Without that label, there is one region only.
            let is_other = |pair: &LabelPair| pair.name == label && pair.value != region;
            family.metric.retain(|metric| !metric.label.iter().any(is_other));
            let labels = family.metric.iter_mut().map(|metric| &mut metric.label);
            labels.for_each(|labels| labels.retain(|pair| pair.name != label));
        }
        Self { time, families, processes }
    }

    fn reading(&self, first: Time) -> Reading {
        let after = self.time.steady.saturating_sub(first.steady);
        Reading::recorded(after, self.families.clone())
    }

    /// The sum of a gauge's series, of all families with this ending.
    fn sum(&self, is_named: impl Fn(&str) -> bool) -> Option<f64> {
        let families = self.families.iter().filter(|family| is_named(&family.name));
        let metrics = families.flat_map(|family| &family.metric);
        metrics.filter_map(|metric| metric.value()).reduce(|sum, value| sum + value)
    }
}

fn seconds(ticks: &[Tick], first: Time) -> Vec<Second> {
    let mut seconds = Vec::new();
    // So short that only the latest step is in it.
    let mut window = Window::new(Duration::from_nanos(1));
    for (number, tick) in ticks.iter().enumerate() {
        window.add(&tick.reading(first));
        if number == 0 {
            continue;
        }
        let table = window.table();
        let Row { count, errors, in_flight, .. } = table.total;
        seconds.push(Second {
            unix_millis: tick.time.unix_millis,
            seconds: table.length.as_secs_f64(),
            requests: count.round() as u64,
            errors,
            times: times(&table.total),
            in_flight,
            cpu_cores: table.cpu_cores,
            memory_bytes: table.memory_bytes.filter(|bytes| *bytes > 0.0),
            tasks: tick.sum(|name| name.ends_with("tasks_alive")),
        });
    }
    seconds
}

fn times(row: &Row) -> Quantiles {
    Quantiles { p50_ms: row.p50_ms, p90_ms: row.p90_ms, p99_ms: row.p99_ms }
}

fn endpoints(ticks: &[Tick], first: Time, last: Duration) -> Vec<Endpoint> {
    let mut window = Window::new(last.saturating_mul(2));
    ticks.iter().for_each(|tick| window.add(&tick.reading(first)));
    let mut last_seen = Window::new(last);
    if let Some(tick) = ticks.iter().rev().find(|tick| tick.processes > Some(0.0)) {
        last_seen.add(&tick.reading(first));
    }
    let last_seen = last_seen.table();
    let in_flight = |name: &str| {
        let row = last_seen.rows.iter().find(|row| row.name == name);
        row.and_then(|row| row.in_flight)
    };
    let table = window.table();
    let mut endpoints: Vec<Endpoint> = table
        .rows
        .iter()
        .map(|row| Endpoint {
            name: row.name.clone(),
            requests: row.count.round() as u64,
            errors: row.errors,
            times: times(row),
            in_flight: in_flight(&row.name),
        })
        .filter(|endpoint| endpoint.requests > 0 || endpoint.in_flight.is_some_and(|it| it > 0.0))
        .collect();
    endpoints
        .sort_by(|one, other| other.requests.cmp(&one.requests).then(one.name.cmp(&other.name)));
    endpoints
}
