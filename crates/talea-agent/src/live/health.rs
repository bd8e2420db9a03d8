//! Metrics of processes and of their runtimes, summed up where there are several.

use std::collections::BTreeMap;
use std::ops::Add;
use std::time::{Duration, Instant};

use super::regions::{known_regions, named_in};
use talea_page::Family;
use talea_view::families::endpoint_of;

/// Counters and gauges, by short names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Health {
    /// Each series apart: one of a process that is gone is no growth.
    counters: BTreeMap<(&'static str, String), Growth>,
    /// By name and region.
    gauges: BTreeMap<(&'static str, String), f64>,
    /// The sum of the times at which processes started.
    started: Option<f64>,
}

/// The numbers of one region, or of all processes together, by name.
pub(crate) type Numbers = BTreeMap<&'static str, f64>;

/// A counter. A process refreshes some of its metrics every few seconds, so the rate is the one between two
/// changes, and holds until the next.
#[derive(Clone, Debug, PartialEq)]
struct Growth {
    region: String,
    value: f64,
    /// When it was first seen with this value.
    changed: Instant,
    /// Whether it changed then, rather than was seen for the first time.
    is_known: bool,
    /// `None` if it is not known yet.
    rate: Option<f64>,
}

/// A counter that did not change for so long stands still.
const STILL: Duration = Duration::from_secs(10);

pub(crate) const CPU: &str = "cpu_cores";
pub(crate) const MEMORY: &str = "memory_bytes";

/// Families whose growth a second is shown, and under which name.
const COUNTERS: [(&str, &str); 5] = [
    ("process_cpu_seconds_total", CPU),
    ("process_cpu_time_seconds_total", CPU),
    ("tokio_busy_seconds_total", "tokio_busy_workers"),
    ("tokio_worker_parks_total", "tokio_parks_per_second"),
    ("tokio_tasks_spawned_total", "tasks_spawned_per_second"),
];

/// Families whose values are shown.
const GAUGES: [(&str, &str); 10] = [
    ("process_resident_memory_bytes", MEMORY),
    ("process_memory_usage_bytes", MEMORY),
    ("process_open_fds", "open_fds"),
    ("process_threads", "threads"),
    ("tokio_workers", "tokio_workers"),
    ("tokio_alive_tasks", "tokio_tasks_alive"),
    ("tokio_global_queue_depth", "tokio_queue_depth"),
    ("jemalloc_allocated_bytes", "allocated_bytes"),
    ("talea_region_processes", "processes"),
    ("process_virtual_memory_bytes", "virtual_memory_bytes"),
];

/// Endings of families that a service names itself.
const COUNTER_ENDING: (&str, &str) = ("_tasks_spawned_total", "tasks_spawned_per_second");
const GAUGE_ENDING: (&str, &str) = ("_tasks_alive", "tasks_alive");
const STARTED: &str = "process_start_time_seconds";

/// Whether a family is one of those that are read.
pub(super) fn is_of_health(name: &str) -> bool {
    let named = |table: &[(&str, &str)], ending: (&str, &str)| {
        name.ends_with(ending.0) || table.iter().any(|(known, _)| *known == name)
    };
    name == STARTED || named(&COUNTERS, COUNTER_ENDING) || named(&GAUGES, GAUGE_ENDING)
}

impl Health {
    /// The numbers of a reading at that time, without rates.
    pub(super) fn of(families: &[Family], at: Instant) -> Self {
        let mut health = Self::default();
        let known = known_regions(families);
        for family in families {
            let named = |table: &[(&str, &'static str)], ending: (&str, &'static str)| {
                let name = family.name.as_str();
                let found = table.iter().find(|(known, _)| *known == name);
                found.map(|it| it.1).or_else(|| name.ends_with(ending.0).then_some(ending.1))
            };
            if family.name == STARTED {
                let values = family.series.iter().filter_map(|it| it.value.number());
                health.started = values.filter(|value| value.is_finite()).reduce(f64::add);
            } else if let Some(name) = named(&COUNTERS, COUNTER_ENDING) {
                for metric in &family.series {
                    let key = (name, endpoint_of(&metric.labels));
                    if let Some(value) = metric.value.number().filter(|value| value.is_finite()) {
                        let region = named_in(&known, &metric.labels).to_owned();
                        let new =
                            Growth { region, value: 0.0, changed: at, is_known: false, rate: None };
                        health.counters.entry(key).or_insert(new).value += value;
                    }
                }
            } else if let Some(name) = named(&GAUGES, GAUGE_ENDING) {
                for metric in &family.series {
                    if let Some(value) = metric.value.number().filter(|value| value.is_finite()) {
                        let region = named_in(&known, &metric.labels).to_owned();
                        *health.gauges.entry((name, region)).or_default() += value;
                    }
                }
            }
        }
        health
    }

    /// Finds the rates, by the reading before. A counter that fell began anew, or is a sum over processes of
    /// which one is gone: its rate is unknown.
    pub(super) fn follow(&mut self, before: &Self) {
        for (key, now) in &mut self.counters {
            let Some(before) = before.counters.get(key) else { continue };
            let grown = now.value - before.value;
            let passed = now.changed.saturating_duration_since(before.changed);
            if grown == 0.0 {
                now.rate = if passed < STILL { before.rate } else { Some(0.0) };
                (now.changed, now.is_known) = (before.changed, before.is_known);
            } else {
                now.is_known = grown > 0.0;
                let is_known = grown > 0.0 && before.is_known && !passed.is_zero();
                now.rate = is_known.then(|| grown / passed.as_secs_f64());
            }
        }
    }

    /// The rate of a counter, of all processes together.
    pub(super) fn rate(&self, name: &str) -> Option<f64> {
        let of_it = self.counters.iter().filter(|(key, _)| key.0 == name);
        of_it.filter_map(|(_, growth)| growth.rate).reduce(|sum, rate| sum + rate)
    }

    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        let of_it = self.gauges.iter().filter(|(key, _)| key.0 == name);
        of_it.map(|(_, value)| *value).reduce(f64::add)
    }

    /// All numbers by name, of counters their rates.
    pub(crate) fn numbers(&self) -> Numbers {
        let mut all = Numbers::new();
        for (name, number) in self.by_region().into_values().flatten() {
            *all.entry(name).or_default() += number;
        }
        all
    }

    /// All numbers of each region.
    pub(crate) fn by_region(&self) -> BTreeMap<&str, Numbers> {
        let mut all: BTreeMap<&str, Numbers> = BTreeMap::new();
        for ((name, region), value) in &self.gauges {
            *all.entry(region).or_default().entry(name).or_default() += value;
        }
        for ((name, _), Growth { region, rate, .. }) in &self.counters {
            if let Some(rate) = rate {
                *all.entry(region).or_default().entry(name).or_default() += rate;
            }
        }
        all
    }

    /// Whether a process has started meanwhile. A process reports its start to a few milliseconds.
    pub(super) fn is_another(&self, now: &Self) -> bool {
        let started = self.started.zip(now.started);
        started.is_some_and(|(before, now)| (now - before).abs() > 0.05)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_view::families::pages::{self, counter, gauge};

    #[test]
    fn a_rate_is_the_one_between_two_changes() {
        let began = Instant::now();
        let of = |second: u64, cpu: f64, fds: u32| {
            let page = [
                counter("process_cpu_seconds_total", &[("", cpu)]),
                gauge("process_open_fds", &[("pid=\"1\"", fds), ("pid=\"2\"", 5)]),
                gauge("shop_tasks_alive", &[("", 3)]),
            ];
            let families = pages::read(&page.concat());
            assert!(families.iter().all(|family| is_of_health(&family.name)));
            Health::of(&families, began + Duration::from_secs(second))
        };
        let mut last = of(0, 5.0, 1);
        // It is refreshed every 5 seconds; the process begins anew at 14, and ends its work at 17.
        for (second, cpu, rate) in [
            (1, 5.0, None),
            // It was 5.0 for nobody knows how long.
            (2, 10.0, None),
            (7, 15.0, Some(1.0)),
            (8, 15.0, Some(1.0)),
            (12, 17.5, Some(0.5)),
            (14, 1.0, None),
            (15, 1.5, None),
            (17, 2.5, Some(0.5)),
            (26, 2.5, Some(0.5)),
            (27, 2.5, Some(0.0)),
        ] {
            let mut now = of(second, cpu, second as u32);
            now.follow(&last);
            assert_eq!(now.rate(CPU), rate, "{second}");
            let expected = [("open_fds", second as f64 + 5.0), ("tasks_alive", 3.0)];
            let expected: BTreeMap<_, _> =
                rate.map(|rate| (CPU, rate)).into_iter().chain(expected).collect();
            assert_eq!(now.numbers(), expected, "{second}");
            last = now;
        }
    }
}
