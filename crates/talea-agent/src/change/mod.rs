//! Endpoints that became slower, fail more often, or get more or fewer requests than usual, and since when.
//!
//! What is usual is learnt for each endpoint (`usual`) and follows what is observed within half an hour. A sequential
//! test on whole distributions (`cusum`) finds the change and its second, at a rate of false alarms that is bounded over
//! all endpoints together. [`Changes`] takes one step after the other and knows nothing but their counts.

mod cusum;
#[cfg(test)]
pub(crate) mod tests;
mod usual;
mod watch;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use talea_statistics::figures::in_unit;

use self::cusum::SUMS;
use self::usual::{Counts, bound_of, bucket_of, quantile};
use self::watch::{Millis, Settings, Turn, Watch};
use crate::live::words::{self, share};
use crate::live::{Counts as Requests, Step, UP};
use talea_page::Family;

/// Further endpoints are not watched, which bounds the memory: an endpoint takes 10 to 45 KiB.
const MOST_ENDPOINTS: usize = 1_000;
/// An endpoint that is missing for so many steps is forgotten.
const MISSED: u32 = 3_600;
/// A step that is longer, as while the machine slept, says nothing of seconds.
const LONGEST: Duration = Duration::from_secs(30);
/// Requests are counted in windows of this length, since they come in bursts.
const WINDOW: Duration = Duration::from_secs(10);
/// False alarms a day, of all endpoints together.
const FALSE_ALARMS: f64 = 1.0;
/// The threshold is that of so many endpoints at least.
const FEW: usize = 10;

const LATENCY: Settings = Settings { factor: 1.1, least: 50.0, kept: 500.0 };
const ERRORS: Settings = Settings { factor: 1.0, least: 50.0, kept: 500.0 };
/// In windows. Traffic that is half as large again is no change.
const RATE: Settings = Settings { factor: 1.5, least: 30.0, kept: 180.0 };

/// What became otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    Slower,
    Errors,
    /// More requests.
    More,
    /// Fewer requests.
    Fewer,
}

impl Quantity {
    pub const ALL: [Self; 4] = [Self::Slower, Self::Errors, Self::More, Self::Fewer];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Errors => "errors",
            Self::More => "more_requests",
            Self::Fewer => "fewer_requests",
        }
    }
}

/// An endpoint that is otherwise than usual.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub endpoint: String,
    pub quantity: Quantity,
    /// In milliseconds since 1970.
    #[serde(rename = "since")]
    pub since_unix_millis: i64,
    /// What it was and what it is, in words: `p99 20.1 ms → 251 ms, requests as before`.
    pub text: String,
}

/// The family of an agent's page that has its changes.
pub(crate) const CHANGED: &str = "talea_agent_endpoint_changed_timestamp_seconds";

impl Change {
    /// The changes that an agent's page shows; `None` if it is no agent's page. It has no numbers of them.
    pub fn shown(families: &[Family]) -> Option<Vec<Self>> {
        if !families.iter().any(|family| family.name == UP) {
            return None;
        }
        let found = families.iter().filter(|family| family.name == CHANGED);
        let found = found.flat_map(|family| &family.series).filter_map(|series| {
            let label = |name| series.labels.iter().find(|it| it.name == name);
            let quantity = &label("change")?.value;
            Some(Self {
                endpoint: label("endpoint")?.value.clone(),
                quantity: Quantity::ALL.into_iter().find(|it| it.name() == quantity)?,
                since_unix_millis: (series.value.number()? * 1e3) as i64,
                text: String::new(),
            })
        });
        Some(found.collect())
    }

    /// `slower since 06:12:38Z: p99 20.1 ms → 251 ms, requests as before`.
    pub fn line(&self) -> String {
        let name = match self.quantity {
            Quantity::Slower => "slower",
            Quantity::Errors => "more errors",
            Quantity::More => "more requests",
            Quantity::Fewer => "fewer requests",
        };
        let since = words::clock(self.since_unix_millis);
        let colon = if self.text.is_empty() { "" } else { ": " };
        format!("{name} since {since}Z{colon}{}", self.text)
    }
}

/// A change that began or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub change: Change,
    pub has_begun: bool,
}

/// All endpoints, and what changed.
#[derive(Debug, Default)]
pub struct Changes {
    origin: Option<Instant>,
    endpoints: BTreeMap<String, Endpoint>,
    current: Vec<Change>,
    begun: [u64; Quantity::ALL.len()],
}

#[derive(Debug)]
struct Endpoint {
    /// In the order of [`Quantity::ALL`].
    watches: [Watch; Quantity::ALL.len()],
    /// When each changed, by the wall clock of then, since that and the clock of the watches drift apart; and what it was
    /// and is, as of the last requests.
    said: [(i64, String); Quantity::ALL.len()],
    window: Window,
    missed: u32,
}

/// The requests of some seconds.
#[derive(Debug)]
struct Window {
    requests: f64,
    began: Millis,
    length: Duration,
}

impl Window {
    fn new(began: Millis) -> Self {
        Self { requests: 0.0, began, length: Duration::ZERO }
    }
}

/// What a step observed of an endpoint.
#[derive(Debug)]
struct Observed {
    count: f64,
    latencies: Counts,
    failures: Counts,
}

impl Changes {
    /// Adds a step that ended at this time of the wall clock: what began or ended with it.
    pub fn add(&mut self, unix_millis: i64, step: &Step) -> Vec<Event> {
        let origin = *self.origin.get_or_insert(step.ended);
        let ended = step.ended.saturating_duration_since(origin).as_millis() as Millis;
        let began = ended - step.length.as_millis() as Millis;
        self.endpoints.retain(|name, endpoint| {
            endpoint.missed = if step.grown.contains_key(name) { 0 } else { endpoint.missed + 1 };
            endpoint.missed < MISSED
        });
        if step.length > LONGEST || step.length.is_zero() {
            return Vec::new();
        }
        let threshold = threshold(step.grown.len());
        let mut turns = Vec::new();
        for (name, requests) in &step.grown {
            if !self.endpoints.contains_key(name) && self.endpoints.len() >= MOST_ENDPOINTS {
                continue;
            }
            let endpoint =
                self.endpoints.entry(name.clone()).or_insert_with(|| Endpoint::new(began));
            let found = endpoint.add(began, step.length, Observed::of(requests), threshold);
            for (quantity, turn) in &found {
                if let Turn::Changed(since) = turn {
                    endpoint.said[*quantity as usize].0 = unix_millis - (ended - since);
                }
            }
            turns.extend(found.into_iter().map(|(quantity, turn)| (name, quantity, turn)));
        }
        let before = std::mem::take(&mut self.current);
        for (name, endpoint) in &mut self.endpoints {
            self.current.extend(endpoint.changes(name, ended));
        }
        let mut events = Vec::new();
        for (name, quantity, turn) in turns {
            let has_begun = matches!(turn, Turn::Changed(_));
            self.begun[quantity as usize] += u64::from(has_begun);
            let all = if has_begun { &self.current } else { &before };
            let change =
                all.iter().find(|it| it.endpoint == *name && it.quantity == quantity).cloned();
            events.extend(change.map(|change| Event { change, has_begun }));
        }
        events
    }

    /// All that is otherwise than usual.
    pub fn current(&self) -> &[Change] {
        &self.current
    }

    /// How many changes of each quantity began.
    pub(crate) fn begun(&self) -> [u64; Quantity::ALL.len()] {
        self.begun
    }
}

/// The threshold of all tests. Each of the sums exceeds it once in `exp(threshold)` steps in the mean, as long as
/// nothing changes.
fn threshold(endpoints: usize) -> f64 {
    const DAY: f64 = 86_400.0;
    let tests_a_day = 2.0 * DAY + 2.0 * DAY / WINDOW.as_secs_f64();
    (SUMS as f64 * endpoints.max(FEW) as f64 * tests_a_day / FALSE_ALARMS).ln()
}

impl Endpoint {
    fn new(now: Millis) -> Self {
        let watches = [LATENCY, ERRORS, RATE, RATE].map(|settings| Watch::new(settings, now));
        Self { watches, said: Default::default(), window: Window::new(now), missed: 0 }
    }

    fn add(
        &mut self,
        time: Millis,
        length: Duration,
        observed: Observed,
        threshold: f64,
    ) -> Vec<(Quantity, Turn)> {
        let [slower, errors, more, fewer] = &mut self.watches;
        let Observed { count, latencies, failures } = observed;
        let mut turns = vec![
            (Quantity::Slower, slower.add(time, latencies, threshold)),
            (Quantity::Errors, errors.add(time, failures, threshold)),
        ];
        let Window { requests, began, length: passed } = &mut self.window;
        *requests += count;
        *passed += length;
        if *passed >= WINDOW {
            let rate = bucket_of(*requests / passed.as_secs_f64());
            turns.push((Quantity::More, more.add(*began, [(rate, 1.0)].into(), threshold)));
            // A rate that falls is a greater one of what it is divided by.
            turns.push((Quantity::Fewer, fewer.add(*began, [(-rate, 1.0)].into(), threshold)));
            self.window = Window::new(time + length.as_millis() as Millis);
        }
        turns.into_iter().filter_map(|(quantity, turn)| Some((quantity, turn?))).collect()
    }

    fn changes(&mut self, name: &str, now: Millis) -> Vec<Change> {
        let mut changes = Vec::new();
        for quantity in Quantity::ALL {
            let Some(since) = self.watches[quantity as usize].since() else { continue };
            let text = self.text(quantity, now - since);
            let (since_unix_millis, said) = &mut self.said[quantity as usize];
            text.into_iter().for_each(|text| *said = text);
            changes.push(Change {
                endpoint: name.to_owned(),
                quantity,
                since_unix_millis: *since_unix_millis,
                text: said.clone(),
            });
        }
        changes
    }

    /// What it was and what it is; `None` if nothing is known of the last minute.
    fn text(&self, quantity: Quantity, lasts: Millis) -> Option<String> {
        let [slower, errors, more, _] = &self.watches;
        let seconds = lasts.clamp(1_000, watch::RECENT) as f64 / 1e3;
        let recent = slower.recent(watch::RECENT.min(lasts));
        let (usual, now) = (mean(more.usual()), recent.values().sum::<f64>() / seconds);
        let as_before = now < usual * RATE.factor && now * RATE.factor > usual;
        let requests = match as_before {
            true => "requests as before".to_owned(),
            false => format!("requests {}/s → {}/s", words::rate(usual), words::rate(now)),
        };
        Some(match quantity {
            Quantity::Slower => format!("{}, {requests}", slowed(slower.usual(), &recent)?),
            Quantity::Errors => {
                let now = failed(&errors.recent(watch::RECENT.min(lasts)))?;
                let usual = share(failed(errors.usual()));
                format!("errors {usual} → {}, {requests}", share(Some(now)))
            }
            Quantity::More | Quantity::Fewer => requests,
        })
    }
}

/// The buckets of responses without and with an error of the server.
const FINE: i16 = 0;
const FAILED: i16 = 1;

impl Observed {
    fn of(requests: &Requests) -> Self {
        let (mut latencies, mut failures) = (Counts::new(), Counts::new());
        for (bucket, count) in requests.times.buckets() {
            // What is beyond the last threshold is greater than all else.
            *latencies.entry(bucket.high.map_or(i16::MAX, bucket_of)).or_default() += count;
        }
        for (status, count) in requests.statuses.iter().filter(|it| *it.1 > 0.0) {
            let bucket = if status.starts_with('5') { FAILED } else { FINE };
            *failures.entry(bucket).or_default() += count;
        }
        Self { count: requests.times.count, latencies, failures }
    }
}

fn failed(counts: &Counts) -> Option<f64> {
    let all: f64 = counts.values().sum();
    (all > 0.0).then(|| counts.get(&FAILED).copied().unwrap_or(0.0) / all)
}

fn mean(counts: &Counts) -> f64 {
    let sum: f64 = counts.iter().map(|(bucket, count)| bound_of(*bucket) * count).sum();
    sum / counts.values().sum::<f64>().max(1.0)
}

/// The quantile that says most of how much slower it is.
fn slowed(usual: &Counts, now: &Counts) -> Option<String> {
    let of = |level: f64| Some((quantile(usual, level)?, quantile(now, level)?));
    let (p50, p99) = (of(0.5), of(0.99));
    let has_grown = p99.is_some_and(|(usual, now)| now > LATENCY.factor * usual);
    let (name, found) = if has_grown { ("p99", p99) } else { ("p50", p50) };
    let (usual, now) = found?;
    let now = match now.is_finite() {
        true => in_unit(now, Some("seconds")),
        false => "beyond the last bucket".to_owned(),
    };
    Some(format!("{name} {} → {now}", in_unit(usual, Some("seconds"))))
}
