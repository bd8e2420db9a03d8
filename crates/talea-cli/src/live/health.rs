//! Metrics of processes and of their runtimes, summed up where there are several.

use std::collections::BTreeMap;

use crate::families::endpoint_of;
use crate::families::protobuf::{Metric, MetricFamily};

/// Counters and gauges, by short names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Health {
    /// Each series apart: one of a process that is gone is no growth.
    counters: BTreeMap<(&'static str, String), f64>,
    gauges: BTreeMap<&'static str, f64>,
    /// The sum of the times at which processes started.
    started: Option<f64>,
}

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
    pub(super) fn of(families: &[MetricFamily]) -> Self {
        let mut health = Self::default();
        for family in families {
            let named = |table: &[(&str, &'static str)], ending: (&str, &'static str)| {
                let name = family.name.as_str();
                let found = table.iter().find(|(known, _)| *known == name);
                found.map(|it| it.1).or_else(|| name.ends_with(ending.0).then_some(ending.1))
            };
            let sum = || {
                let values = family.metric.iter().filter_map(Metric::value);
                values.filter(|value| value.is_finite()).reduce(|sum, value| sum + value)
            };
            if family.name == STARTED {
                health.started = sum();
            } else if let Some(name) = named(&COUNTERS, COUNTER_ENDING) {
                for metric in &family.metric {
                    let key = (name, endpoint_of(&metric.label));
                    let value = metric.value().filter(|value| value.is_finite());
                    value.into_iter().for_each(|it| *health.counters.entry(key.clone()).or_default() += it);
                }
            } else if let Some(name) = named(&GAUGES, GAUGE_ENDING) {
                sum().into_iter().for_each(|sum| *health.gauges.entry(name).or_default() += sum);
            }
        }
        health
    }

    /// The growth of each counter. One that fell began anew, or is a sum over processes of which one is
    /// gone: its growth is unknown.
    pub(super) fn since(&self, before: &Self) -> Self {
        let grown = |(key, now): (&(&'static str, String), &f64)| {
            let grown = now - before.counters.get(key).copied().unwrap_or(0.0);
            (grown >= 0.0).then(|| (key.clone(), grown))
        };
        Self { counters: self.counters.iter().filter_map(grown).collect(), ..self.clone() }
    }

    /// This growth and the next one together.
    pub(super) fn extended(&self, next: &Self) -> Self {
        let mut counters = self.counters.clone();
        for (key, grown) in &next.counters {
            *counters.entry(key.clone()).or_default() += grown;
        }
        Self { counters, ..next.clone() }
    }

    /// By how much a counter has grown.
    pub(super) fn grown(&self, name: &str) -> Option<f64> {
        let of_it = self.counters.iter().filter(|(key, _)| key.0 == name);
        of_it.map(|(_, grown)| *grown).reduce(|sum, grown| sum + grown)
    }

    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        self.gauges.get(name).copied()
    }

    /// All numbers by name, counters as their growth a second.
    pub(crate) fn numbers(&self, seconds: f64) -> BTreeMap<&'static str, f64> {
        let mut numbers = self.gauges.clone();
        for ((name, _), grown) in self.counters.iter().filter(|_| seconds > 0.0) {
            *numbers.entry(name).or_default() += grown / seconds;
        }
        numbers
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
    use crate::families;

    #[test]
    fn counters_are_shown_as_rates_and_gauges_as_they_are() {
        let of = |cpu: f64, fds: u32| {
            let page = format!(
                "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {cpu}\n\
                 # TYPE process_open_fds gauge\nprocess_open_fds{{pid=\"1\"}} {fds}\n\
                 process_open_fds{{pid=\"2\"}} 5\n\
                 # TYPE shop_tasks_alive gauge\nshop_tasks_alive 3\n"
            );
            Health::of(&families::read(page.as_bytes()).unwrap())
        };
        let first = of(7.0, 9).since(&of(5.0, 1));
        let both = first.extended(&of(0.5, 10).since(&of(7.0, 9)));
        let numbers = |of: &Health, seconds| of.numbers(seconds).into_iter().collect::<Vec<_>>();
        let expected = [(CPU, 1.0), ("open_fds", 14.0), ("tasks_alive", 3.0)];
        assert_eq!(numbers(&first, 2.0), expected);
        // The process began anew in the second step, in which nothing is known of its time.
        let expected = [(CPU, 0.4), ("open_fds", 15.0), ("tasks_alive", 3.0)];
        assert_eq!(numbers(&both, 5.0), expected);
    }
}
