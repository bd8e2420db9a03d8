//! The last seconds before a process of a region died, or before now, from a history.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::exits;
use crate::history::{Stretch, Time};
use crate::live::{
    CREATED, ENDS, Mark, PROCESSES, REGION, Reading, Row, UP, Watch, Window, is_of_marks,
};
use talea_page::{Family, Label, Series};
use talea_view::families::Quantiles;

const OF_AGENT: [&str; 2] = ["talea_agent_", "talea_region_"];

/// The last seconds of a region.
#[derive(Debug, Serialize)]
pub struct Record {
    pub(crate) region: String,
    /// When the agent found that a process was gone, in milliseconds since 1970; `None` if none died
    /// while it watched.
    pub(crate) died_unix_millis: Option<i64>,
    /// How processes ended then, in words, as far as the agent found it.
    pub(crate) reasons: Vec<String>,
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
    /// Since the first tick of the history.
    after: Duration,
    families: Vec<Family>,
    /// How many processes of the region lived; `None` if the agent did not have it.
    processes: Option<f64>,
}

impl Record {
    /// The last of some seconds of a region, known by a label where a history has several. `None` if it has
    /// none.
    pub fn of(recorded: &Stretch, region: &str, label: &str, last: Duration) -> Option<Self> {
        let death = death(recorded, region);
        let afters = recorded.afters();
        let after = |number: usize| afters.get(number).copied().unwrap_or_default();
        let before = last.saturating_add(Duration::from_secs(1));
        let begins =
            death.as_ref().map_or(Duration::ZERO, |it| after(it.tick).saturating_sub(before));
        let mut ticks = Vec::new();
        let mut is_over = false;
        recorded.replay(|number, time, state| {
            if after(number) >= begins && !is_over {
                ticks.push(Tick::of(time, after(number), state.families(), region, label));
            }
            // A reading copies counts before it looks who lives, so the next one has the last counts.
            is_over |= death.as_ref().is_some_and(|death| {
                let is_earlier = death.unix_millis < time.unix_millis;
                number > death.tick || number == death.tick && is_earlier
            });
            // A second is a tick.
            if death.is_none() && ticks.len() as u64 > last.as_secs().saturating_add(1) {
                ticks.remove(0);
            }
        });
        ticks.iter().find(|tick| tick.processes.is_some())?;
        let found = death.as_ref().map(|death| after(death.tick));
        let reasons = found.map(|found| reasons(recorded, region, found, after));
        Some(Self {
            region: region.to_owned(),
            died_unix_millis: death.map(|death| death.unix_millis),
            reasons: reasons.unwrap_or_default(),
            seconds: seconds(&ticks),
            endpoints: endpoints(&ticks, last),
        })
    }
}

/// After a death was found, the agent finds within this time how the process ended.
const FINDS: Duration = Duration::from_secs(15);

/// How processes of a region ended about the time of a death.
fn reasons(
    recorded: &Stretch,
    region: &str,
    death: Duration,
    after: impl Fn(usize) -> Duration,
) -> Vec<String> {
    let (mut counted, mut reasons) = (BTreeMap::new(), BTreeMap::new());
    recorded.replay(|number, _, state| {
        let at = after(number);
        if at > death + FINDS {
            return;
        }
        for (labels, count) in ends_of(&state.families_named(|name| name == ENDS), region) {
            let before = counted.insert(labels.clone(), count).unwrap_or(0.0);
            if at + Duration::from_secs(1) >= death && count > before {
                *reasons.entry(labels).or_insert(0.0) += count - before;
            }
        }
    });
    let in_words = |((kind, detail), count): (&(String, String), &f64)| {
        let reason = exits::in_words(kind, detail);
        if *count > 1.0 { format!("{count} times: {reason}") } else { reason }
    };
    reasons.iter().map(in_words).collect()
}

/// How often processes of a region ended, by the kind of the reason and its detail.
fn ends_of(families: &[Family], region: &str) -> Vec<((String, String), f64)> {
    let value = |series: &Series, name: &str| {
        let label = series.labels.iter().find(|label| label.name == name);
        label.map(|label| label.value.clone()).unwrap_or_default()
    };
    let all = families.iter().flat_map(|family| &family.series);
    let of_region = all.filter(|series| value(series, REGION) == region);
    of_region
        .filter_map(|it| Some(((value(it, "reason"), value(it, "detail")), it.value.number()?)))
        .collect()
}

/// A death of a process: the number of the first tick that shows it, and when it was found.
struct Death {
    tick: usize,
    unix_millis: i64,
}

/// The latest death of a process of a region, by whatever agent. The order is that of the ticks: the wall clock may
/// be set back.
fn death(recorded: &Stretch, region: &str) -> Option<Death> {
    let (mut watch, mut latest) = (Watch::default(), None);
    recorded.replay(|tick, time, state| {
        let marks = watch.next(time.unix_millis, &state.families_named(is_of_marks));
        let is_death = |mark: &&Mark| mark.of == region && mark.kind.is_death();
        let last = marks.iter().filter(is_death).map(|mark| mark.unix_millis).max();
        latest = last.map(|unix_millis| Death { tick, unix_millis }).or(latest.take());
    });
    latest
}

impl Tick {
    fn of(
        time: Time,
        after: Duration,
        mut families: Vec<Family>,
        region: &str,
        label: &str,
    ) -> Self {
        let is = |pair: &Label, name: &str| pair.name == name && pair.value == region;
        let of_it = families.iter().filter(|family| family.name == PROCESSES);
        let of_it = of_it.flat_map(|family| &family.series);
        let of_it = of_it.filter(|metric| metric.labels.iter().any(|pair| is(pair, REGION)));
        let processes = of_it.filter_map(|metric| metric.value.number()).reduce(f64::max);
        let others = other_regions(&families, region);
        let is_kept = |family: &Family| [UP, CREATED].contains(&&*family.name);
        families.retain(|family| {
            is_kept(family) || !OF_AGENT.iter().any(|begin| family.name.starts_with(begin))
        });
        let by_region = families.iter_mut().filter(|family| is_kept(family));
        by_region
            .for_each(|it| it.series.retain(|it| it.labels.iter().any(|pair| is(pair, REGION))));
        for family in &mut families {
            // A region that is served alone has no such label. One that its service gave the series stays.
            family.series.retain(|metric| {
                !metric.labels.iter().any(|pair| pair.name == label && others.contains(&pair.value))
            });
            let labels = family.series.iter_mut().map(|metric| &mut metric.labels);
            labels.for_each(|labels| labels.retain(|pair| !is(pair, label)));
        }
        Self { time, after, families, processes }
    }

    fn reading(&self) -> Reading {
        Reading::recorded(self.after, self.time.unix_millis, self.families.clone())
    }

    /// The sum of a gauge's series, of all families with this ending.
    fn sum(&self, is_named: impl Fn(&str) -> bool) -> Option<f64> {
        let families = self.families.iter().filter(|family| is_named(&family.name));
        let metrics = families.flat_map(|family| &family.series);
        metrics.filter_map(|metric| metric.value.number()).reduce(|sum, value| sum + value)
    }
}

/// The other regions that an agent knew.
fn other_regions(families: &[Family], region: &str) -> BTreeSet<String> {
    let of_agent = families.iter().filter(|family| [PROCESSES, UP].contains(&&*family.name));
    let labels = of_agent.flat_map(|family| &family.series).flat_map(|metric| &metric.labels);
    let others = labels.filter(|pair| pair.name == REGION && pair.value != region);
    others.map(|pair| pair.value.clone()).collect()
}

fn seconds(ticks: &[Tick]) -> Vec<Second> {
    let mut seconds = Vec::new();
    // So short that only the latest step is in it.
    let mut window = Window::new(Duration::from_nanos(1));
    for (number, tick) in ticks.iter().enumerate() {
        window.add(&tick.reading());
        if number == 0 {
            continue;
        }
        let table = window.table();
        let Row { count, errors, times, in_flight, .. } = table.total;
        seconds.push(Second {
            unix_millis: tick.time.unix_millis,
            seconds: table.length.as_secs_f64(),
            requests: count.round() as u64,
            errors,
            times,
            in_flight,
            cpu_cores: table.cpu_cores,
            memory_bytes: table.memory_bytes.filter(|bytes| *bytes > 0.0),
            tasks: tick.sum(|name| name.ends_with("tasks_alive")),
        });
    }
    seconds
}

fn endpoints(ticks: &[Tick], last: Duration) -> Vec<Endpoint> {
    let mut window = Window::new(last.saturating_mul(2));
    ticks.iter().for_each(|tick| window.add(&tick.reading()));
    let mut last_seen = Window::new(last);
    if let Some(tick) = ticks.iter().rev().find(|tick| tick.processes > Some(0.0)) {
        last_seen.add(&tick.reading());
    }
    let last_seen = last_seen.table();
    let last_rows = &last_seen.rows;
    let table = window.table();
    let mut endpoints: Vec<Endpoint> = table
        .rows
        .iter()
        .map(|row| Endpoint {
            name: row.name.clone(),
            requests: row.count.round() as u64,
            errors: row.errors,
            times: row.times.clone(),
            in_flight: last_rows.iter().find(|it| it.name == row.name).and_then(|it| it.in_flight),
        })
        .filter(|endpoint| endpoint.requests > 0 || endpoint.in_flight.is_some_and(|it| it > 0.0))
        .collect();
    endpoints
        .sort_by(|one, other| other.requests.cmp(&one.requests).then(one.name.cmp(&other.name)));
    endpoints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Extent, History};
    use crate::live::LAST_DEATH;
    use talea_view::families::pages::{self, gauge};

    const SHOP: &str = "region=\"shop\"";

    /// A history of the region `shop`: at each tick the wall clock, how many requests were counted, how many
    /// processes live, and when one was last found gone. Without requests, the region cannot be read.
    fn history(ticks: impl IntoIterator<Item = (i64, Option<u64>, u32, Option<i64>)>) -> History {
        let day = Duration::from_secs(86_400);
        let mut history = History::new(Extent { seconds: day, minutes: day, bytes: 1 << 20 });
        for (second, (unix_seconds, requests, processes, death)) in (0..).zip(ticks) {
            let mut page = requests.map_or_else(
                || gauge(UP, &[(SHOP, 0)]),
                |count| {
                    pages::requests(&[("method=\"GET\",route=\"/a\"", count)])
                        + &gauge(PROCESSES, &[(SHOP, processes)])
                },
            );
            if let Some(death) = death {
                page += &gauge(LAST_DEATH, &[(SHOP, format!("{death}.1"))]);
            }
            let steady = Duration::from_secs(second);
            let time = Time { unix_millis: unix_seconds * 1_000, steady };
            history.add(time, &pages::read(&page)).unwrap();
        }
        history
    }

    #[test]
    fn a_death_is_found_also_after_the_wall_clock_was_set_back() {
        // 100 seconds an hour ahead; then, by the right clock, a death at second 90.
        let wrong = (0..100).map(|second| (13_600 + second, Some(second as u64), 1, None));
        let right = (0..95).map(|second: i64| {
            let (processes, death) = if second < 90 { (1, None) } else { (0, Some(10_090)) };
            (10_000 + second, Some(100 + second.min(90) as u64), processes, death)
        });
        let recorded = history(wrong.chain(right)).last_seconds(Duration::MAX);
        let found = Record::of(&recorded, "shop", "region", Duration::from_secs(20)).unwrap();
        assert_eq!(found.died_unix_millis, Some(10_090_100));
        let seconds: Vec<i64> = found.seconds.iter().map(|it| it.unix_millis / 1_000).collect();
        assert_eq!(seconds, (10_070..=10_091).collect::<Vec<_>>());
        assert!(found.seconds.iter().all(|second| second.seconds == 1.0));
        assert_eq!(found.seconds.iter().map(|second| second.requests).sum::<u64>(), 21);
        assert_eq!(found.endpoints[0].requests, 21);
    }

    #[test]
    fn how_a_process_ended_is_in_the_record_of_its_death() {
        let of = |region: &str, reason: &str, detail: &str| {
            format!("region=\"{region}\",reason=\"{reason}\",detail=\"{detail}\"")
        };
        let ends = [
            // An hour ago; of another region; with the death; a second later, twice.
            (of("shop", "exit_code", "1"), 10),
            (of("bar", "signal", "SIGTERM"), 91),
            (of("shop", "oom", ""), 90),
            (of("shop", "signal", "SIGSEGV"), 91),
            (of("shop", "signal", "SIGSEGV"), 91),
            (of("shop", "exit_code", "0"), 110),
        ];
        let day = Duration::from_secs(86_400);
        let mut history = History::new(Extent { seconds: day, minutes: day, bytes: 1 << 20 });
        for second in 0..120u32 {
            let mut counts = BTreeMap::new();
            for (labels, since) in &ends {
                *counts.entry(&**labels).or_insert(0u32) += u32::from(second >= *since);
            }
            let counts: Vec<(&str, u32)> = counts.into_iter().collect();
            let page = gauge(PROCESSES, &[(SHOP, if second < 90 { 3 } else { 0 })])
                + &gauge(LAST_DEATH, &[(SHOP, if second < 90 { 5 } else { 90 })])
                + &pages::counter(ENDS, &counts);
            let steady = Duration::from_secs(second.into());
            let time = Time { unix_millis: i64::from(second) * 1_000, steady };
            history.add(time, &pages::read(&page)).unwrap();
        }
        let recorded = history.last_seconds(Duration::MAX);
        let found = Record::of(&recorded, "shop", "region", Duration::from_secs(20)).unwrap();
        let expected =
            ["was killed by the system, since memory ran out", "2 times: was killed by SIGSEGV"];
        assert_eq!(found.reasons, expected);
        let known = super::super::Postmortem { record: Some(found), region: None };
        for text in [known.text(), known.html(), known.json().unwrap()] {
            assert!(expected.iter().all(|reason| text.contains(reason)), "{text}");
        }
    }

    #[test]
    fn what_was_counted_before_a_region_could_not_be_read_is_not_counted_again_after() {
        let ticks = (0..60).map(|second: i64| {
            let is_readable = !(20..30).contains(&second);
            (second, is_readable.then_some(1_000_000 + second as u64), 1, None)
        });
        let recorded = history(ticks).last_seconds(Duration::MAX);
        let found = Record::of(&recorded, "shop", "region", Duration::from_secs(60)).unwrap();
        assert_eq!(found.seconds.iter().map(|second| second.requests).sum::<u64>(), 59);
        assert_eq!(found.endpoints[0].requests, 59);
        assert_eq!(found.died_unix_millis, None);
    }

    #[test]
    fn a_label_of_the_service_that_is_called_as_that_of_regions_hides_no_series() {
        let of = |region: &str| format!("region=\"{region}\"");
        let page = |regions: &[&str], labels: [&str; 2], count| {
            let regions: Vec<_> = regions.iter().map(|region| of(region)).collect();
            let processes: Vec<_> = regions.iter().map(|region| (&**region, 1)).collect();
            let labels = labels.map(|region| format!("method=\"GET\",route=\"/a\",{}", of(region)));
            let requests = labels.each_ref().map(|labels| (&**labels, count));
            pages::read(&(gauge(PROCESSES, &processes) + &pages::requests(&requests)))
        };
        // Alone, the region has no label of the agent.
        for (regions, labels, expected) in [
            (&["shop"][..], ["eu", "us"], vec![("GET /a eu", 3), ("GET /a us", 3)]),
            (&["shop", "bar"], ["shop", "bar"], vec![("GET /a", 3)]),
        ] {
            let ticks = [5, 8].map(|count| {
                let families = page(regions, labels, count);
                let time = Time { unix_millis: count as i64, steady: Duration::from_millis(count) };
                Tick::of(time, Duration::from_secs(count), families, "shop", REGION)
            });
            let found = endpoints(&ticks, Duration::from_secs(60));
            let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.requests)).collect();
            assert_eq!(found, expected);
        }
    }
}
