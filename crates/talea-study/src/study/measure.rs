//! The measures that cases are compared by: a number for each round.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use talea_load::{Meters, Milliseconds, StepSummary, Times};
use talea_statistics::{Mean, Ratio, mean};

use super::clients::Clients;
use super::endpoints::EndpointSummary;
use super::server::Server;
use talea_view::families::{Between, quantile_of};

/// What the name of an endpoint of the server begins with in a condition.
pub(crate) const ENDPOINT: &str = "endpoint ";

/// A number that each round of a case has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Requests sent a second.
    Rate,
    /// The clients' time, in seconds.
    Time,
    /// Mean response time at the clients, in milliseconds.
    Mean,
    P50,
    /// 90th percentile of the response time at the clients.
    P90,
    P95,
    P99,
    P999,
    P9999,
    /// The whole distribution of the response time at the clients, in milliseconds: the geometric mean of its
    /// quantiles from 5 to 95 % and 99 %. The ratio of two is the mean shift of these quantiles.
    Whole,
    /// The server's processor time a request, in microseconds.
    Cpu,
    /// The most memory that the server had, in bytes.
    Memory,
    Failed,
}

/// A round's numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    #[serde(flatten)]
    values: BTreeMap<Measure, f64>,
    /// The measures whose numbers are lower bounds: they lie among requests that timed out or were cut off.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    at_least: BTreeSet<Measure>,
    /// The share of the requests that failed without an answer, and count in no time.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) untimed: f64,
    /// Requests that were sent or could not be.
    #[serde(default)]
    requests: u64,
    /// The share of the checks' results that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checks: Option<f64>,
    /// The share by which the server's memory grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory_growth: Option<f64>,
    /// The distribution of the response times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<Times>,
    /// The same of each step, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    steps: BTreeMap<String, Measures>,
    /// Those of each endpoint that the server counted requests of, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    endpoints: BTreeMap<String, Measures>,
    /// The distribution of the response times by the server, in seconds: buckets and what they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    buckets: Vec<(Between, f64)>,
}

/// A quantile of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantile {
    /// In milliseconds.
    pub(super) ms: f64,
    /// Whether that is a lower bound.
    pub(super) at_least: bool,
    /// The share of itself by which it may be wrong, at most.
    pub(super) error: f64,
}

fn is_none(share: &f64) -> bool {
    *share == 0.0
}

/// A measure's numbers in some rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    pub numbers: Vec<f64>,
    /// Whether one of them is a lower bound, and so their mean.
    pub at_least: bool,
    /// The mean share of requests that count in no time.
    pub untimed: f64,
    /// The share of itself by which a number may be wrong, at most.
    pub(crate) error: f64,
    /// Whether the numbers are known as closely as a server's buckets are wide.
    pub(crate) is_in_buckets: bool,
}

impl Measures {
    pub(crate) fn get(&self, measure: Measure) -> Option<f64> {
        self.values.get(&measure).copied()
    }

    /// Those of a step, or of an endpoint of the server (`endpoint GET /orders`).
    pub(crate) fn of_part(&self, name: &str) -> Option<&Self> {
        let endpoint = name.strip_prefix(ENDPOINT);
        self.steps.get(name).or_else(|| self.endpoints.get(endpoint?))
    }

    /// The endpoints that the server counted requests of.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.endpoints.keys().map(String::as_str)
    }

    /// Whether its times are known by the buckets of a server.
    pub(super) fn is_of_endpoint(&self) -> bool {
        !self.buckets.is_empty()
    }

    /// A quantile of the response times; none of no times.
    pub(super) fn quantile(&self, quantile: f64) -> Option<Quantile> {
        if let Some(times) = &self.times {
            let Milliseconds { ms, at_least } = times.quantile(quantile)?;
            return Some(Quantile { ms, at_least, error: Meters::QUANTILE_ERROR });
        }
        let Between { low, high } = quantile_of(&self.buckets, quantile)?.times(1e3);
        Some(match high {
            Some(high) => Quantile {
                ms: (low + high) / 2.0,
                at_least: false,
                error: (high - low) / (high + low),
            },
            None => Quantile { ms: low, at_least: true, error: 0.0 },
        })
    }

    /// The share of the requests that failed.
    pub(crate) fn failed_share(&self) -> Option<f64> {
        let failed = self.get(Measure::Failed)?;
        (self.requests > 0).then(|| failed / self.requests as f64)
    }

    fn of_endpoint(endpoint: &EndpointSummary, seconds: f64) -> Self {
        let requests = endpoint.requests;
        let values = [
            (Measure::Rate, (seconds > 0.0).then(|| requests as f64 / seconds)),
            (Measure::Mean, endpoint.mean_ms),
            (Measure::Failed, endpoint.failed.map(|failed| failed as f64)),
        ];
        let values = values.into_iter().filter_map(|(measure, value)| Some((measure, value?)));
        let buckets = endpoint.times.buckets();
        Self { values: values.collect(), requests, buckets, ..Self::default() }
    }

    fn of_one_step(step: &StepSummary, seconds: f64) -> Self {
        let failed = step.failed as f64;
        let requests = step.requests();
        let values = [
            (Measure::Rate, (seconds > 0.0).then(|| requests as f64 / seconds)),
            (Measure::Mean, step.mean_ms),
            (Measure::P50, step.p50_ms),
            (Measure::P90, step.p90_ms),
            (Measure::P99, step.p99_ms),
            (Measure::Failed, Some(failed)),
        ];
        let times = step.times.clone();
        // Those that no field of a step has.
        let others = [(Measure::P95, 0.95), (Measure::P999, 0.999), (Measure::P9999, 0.9999)];
        let others = others.map(|(measure, quantile)| {
            let found = times.as_ref().and_then(|times| times.quantile(quantile));
            (measure, found)
        });
        let mut at_least: BTreeSet<Measure> = others
            .iter()
            .filter(|(_, it)| it.is_some_and(|it| it.at_least))
            .map(|it| it.0)
            .collect();
        let bounds = Measure::ALL.into_iter().map(|(measure, ..)| measure);
        at_least.extend(bounds.filter(|measure| step.at_least.contains(measure.field())));
        let values = values.into_iter().chain(others.map(|(of, it)| (of, it.map(|it| it.ms))));
        Self {
            values: values.filter_map(|(measure, value)| Some((measure, value?))).collect(),
            at_least,
            requests,
            times,
            ..Self::default()
        }
    }
}

impl Values {
    /// Whether a quantile may lie among the requests that count in no time, which are more than another's: the
    /// number alone then makes the one of them look fast that failed more.
    pub(crate) fn is_of_survivors(&self, measure: Measure, other: &Self) -> bool {
        let share = measure.share();
        self.untimed > other.untimed && share.is_some_and(|share| self.untimed >= 1.0 - share)
    }
}

impl Measure {
    /// All of them, with their names, their titles in a report, and their units.
    pub(crate) const ALL: [(Self, &'static str, &'static str, &'static str); 13] = [
        (Self::Rate, "rate", "Requests a second", ""),
        (Self::Time, "time", "Client time", "s"),
        (Self::Mean, "mean", "Mean response time", "ms"),
        (Self::P50, "p50", "p50", "ms"),
        (Self::P90, "p90", "p90", "ms"),
        (Self::P95, "p95", "p95", "ms"),
        (Self::P99, "p99", "p99", "ms"),
        (Self::P999, "p99.9", "p99.9", "ms"),
        (Self::P9999, "p99.99", "p99.99", "ms"),
        (Self::Whole, "whole", "Whole distribution", "ms"),
        (Self::Cpu, "cpu", "Server CPU a request", "µs"),
        (Self::Memory, "memory", "Server memory, peak", "bytes"),
        (Self::Failed, "failed", "Failed requests", ""),
    ];

    fn names(self) -> (&'static str, &'static str, &'static str) {
        let (_, name, title, unit) = Self::ALL[self as usize];
        (name, title, unit)
    }

    /// Its title in a report.
    pub(crate) fn title(self) -> &'static str {
        self.names().1
    }

    /// Its unit; empty where it has none.
    pub(crate) fn unit(self) -> &'static str {
        self.names().2
    }

    /// The share of itself by which a value may be wrong, at most: quantiles come from buckets.
    fn error(self) -> f64 {
        match self {
            Self::P50
            | Self::P90
            | Self::P95
            | Self::P99
            | Self::P999
            | Self::P9999
            | Self::Whole => Meters::QUANTILE_ERROR,
            Self::Rate | Self::Time | Self::Mean | Self::Cpu | Self::Memory | Self::Failed => 0.0,
        }
    }

    /// Of how many of the requests a response time says that they are no slower; all for the mean.
    pub(super) fn share(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::P9999 => Some(0.9999),
            Self::Whole => Some(0.99),
            Self::Mean => Some(1.0),
            Self::Rate | Self::Time | Self::Cpu | Self::Memory | Self::Failed => None,
        }
    }

    /// The quantile of the response times that it is.
    pub(super) fn quantile(self) -> Option<f64> {
        self.share().filter(|_| !matches!(self, Self::Mean | Self::Whole))
    }

    /// Its values in some rounds; none if a round does not have it, or there is no round.
    pub fn of(self, rounds: &[Measures]) -> Option<Values> {
        let numbers: Option<Vec<f64>> = rounds.iter().map(|round| round.get(self)).collect();
        let untimed: Vec<f64> = rounds.iter().map(|round| round.untimed).collect();
        Some(Values {
            numbers: numbers.filter(|all| !all.is_empty())?,
            at_least: rounds.iter().any(|round| round.at_least.contains(&self)),
            untimed: mean(&untimed),
            error: self.error(),
            is_in_buckets: false,
        })
    }

    /// The mean of some rounds, with its interval; none of fewer than two.
    pub fn mean(self, rounds: &[f64]) -> Option<Mean> {
        Mean::of(rounds).map(|mean| mean.known_within(self.error()))
    }

    /// The ratio of some rounds to others, with its interval. Paired are rounds that were run side
    /// by side.
    pub(crate) fn ratio(self, of: &[f64], to: &[f64], paired: bool) -> Option<Ratio> {
        ratio(of, to, paired).map(|ratio| ratio.known_within(self.error()))
    }

    pub(crate) fn more_is_better(self) -> bool {
        self == Self::Rate
    }

    /// The value of each measure in one case; unknown ones are left out.
    pub(crate) fn all_of(client: &Clients, server: Option<&Server>) -> Measures {
        let cpu = server.and_then(|server| server.cpu_seconds);
        let memory = server.and_then(|server| server.peak_memory_bytes);
        let whole = client.distribution.as_ref().and_then(whole);
        let of = |measure| match measure {
            Self::Rate => client.mean_rate,
            Self::Time => Some(client.seconds),
            Self::Mean => client.mean_ms,
            Self::P50 => client.p50_ms,
            Self::P90 => client.p90_ms,
            Self::P95 => client.p95_ms,
            Self::P99 => client.p99_ms,
            Self::P999 => client.p999_ms,
            Self::P9999 => client.p9999_ms,
            Self::Whole => whole.map(|whole| whole.ms),
            Self::Cpu => cpu
                .filter(|_| client.requests_sent > 0)
                .map(|seconds| seconds / client.requests_sent as f64 * 1e6),
            Self::Memory => memory.map(|bytes| bytes as f64),
            Self::Failed => Some(client.failed as f64),
        };
        let known = Self::ALL.into_iter().filter_map(|(measure, ..)| Some((measure, of(measure)?)));
        let bounds = Self::ALL.into_iter().map(|(measure, ..)| measure);
        let is_bound = whole.is_some_and(|whole| whole.at_least);
        let bounds = bounds.filter(|measure| match measure {
            Self::Whole => is_bound,
            measure => client.at_least.contains(measure.field()),
        });
        let seconds = client.sending_seconds;
        let steps = client.steps.iter();
        let steps = steps.map(|step| (step.name.clone(), Measures::of_one_step(step, seconds)));
        let endpoints = server.map_or(&[][..], |server| &server.endpoints).iter();
        let endpoints = endpoints.map(|it| (it.name.clone(), Measures::of_endpoint(it, seconds)));
        Measures {
            values: known.collect(),
            at_least: bounds.collect(),
            untimed: client.untimed_share(),
            requests: client.requests_sent + client.requests_not_sent,
            checks: client.passed_checks(),
            memory_growth: server.and_then(|it| it.memory_growth).map(|growth| growth.share),
            times: client.distribution.clone(),
            steps: steps.collect(),
            endpoints: endpoints.collect(),
            buckets: Vec::new(),
        }
    }

    /// The field of [`Clients`] that has a response time; empty for other measures.
    fn field(self) -> &'static str {
        match self {
            Self::Mean => "mean_ms",
            Self::P50 => "p50_ms",
            Self::P90 => "p90_ms",
            Self::P95 => "p95_ms",
            Self::P99 => "p99_ms",
            Self::P999 => "p999_ms",
            Self::P9999 => "p9999_ms",
            Self::Whole | Self::Rate | Self::Time | Self::Cpu | Self::Memory | Self::Failed => "",
        }
    }
}

/// The ratio of some rounds to others. Paired are rounds that were run side by side.
pub(super) fn ratio(of: &[f64], to: &[f64], paired: bool) -> Option<Ratio> {
    if paired { Ratio::paired(of, to) } else { Ratio::unpaired(of, to) }
}

/// The geometric mean of the quantiles of some times; none of no times.
fn whole(times: &Times) -> Option<Milliseconds> {
    let shares = (1..20).map(|n| f64::from(n) * 0.05).chain([0.99]);
    let quantiles: Option<Vec<Milliseconds>> = shares.map(|share| times.quantile(share)).collect();
    let quantiles = quantiles?;
    // A time below a nanosecond is none.
    let logarithms: f64 = quantiles.iter().map(|it| it.ms.max(1e-6).ln()).sum();
    Some(Milliseconds {
        ms: (logarithms / quantiles.len() as f64).exp(),
        at_least: quantiles.iter().any(|it| it.at_least),
    })
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().0)
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, name, ..)| *name == text);
        found.map(|(measure, ..)| measure).ok_or_else(|| {
            let known = Self::ALL.map(|(_, name, ..)| name).join(", ");
            format!("found {text:?}, expected one of {known}")
        })
    }
}

#[cfg(test)]
impl Measures {
    /// Of some numbers, or of lower bounds.
    pub(crate) fn of_test(values: &[(Measure, f64)], at_least: bool, untimed: f64) -> Self {
        let bounds = values.iter().filter(|_| at_least).map(|(measure, _)| *measure);
        let values = values.iter().copied().collect();
        Self { values, at_least: bounds.collect(), untimed, ..Self::default() }
    }

    /// Of a server whose memory grew.
    pub(crate) fn of_growth_in_test(share: f64) -> Self {
        Self { memory_growth: Some(share), ..Self::default() }
    }

    /// Of an endpoint that had requests for 2 s: bounds of buckets in seconds, and what they hold.
    pub(crate) fn of_endpoint_in_test(
        name: &str,
        requests: u64,
        failed: u64,
        buckets: &[(f64, Option<f64>, f64)],
    ) -> Self {
        let summary =
            EndpointSummary { requests, failed: Some(failed), ..EndpointSummary::default() };
        let buckets = buckets.iter().map(|&(low, high, count)| (Between { low, high }, count));
        let of_it = Self { buckets: buckets.collect(), ..Self::of_endpoint(&summary, 2.0) };
        Self { endpoints: BTreeMap::from([(name.to_owned(), of_it)]), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_is_known_by_its_name() {
        for (n, (measure, name, ..)) in Measure::ALL.into_iter().enumerate() {
            assert_eq!(measure as usize, n, "names() looks it up by its place");
            assert_eq!(name.parse(), Ok(measure));
            assert_eq!(measure.to_string(), name);
        }
        assert!("p98".parse::<Measure>().unwrap_err().contains("p99.9"));
    }

    #[test]
    fn a_shift_of_all_times_is_the_ratio_of_the_whole_distributions() {
        let whole_of = |shift: f64| {
            let registry = talea::Registry::for_test().unwrap();
            let opts =
                talea::Opts::new("x_seconds", "x").bucketing(talea::Bucketing::Native).schema(5);
            let histogram: talea::Histogram<talea::Seconds> = registry.register(opts).unwrap();
            for micros in 1..=1_000u64 {
                let seconds = (micros * micros) as f64 * 1e-6 * shift;
                histogram.observe(std::time::Duration::from_secs_f64(seconds));
            }
            let known = registry.snapshot().histogram("x_seconds", &[]).unwrap();
            whole(&Times::all_known(&known)).unwrap().ms
        };
        let ratio = whole_of(1.3) / whole_of(1.0);
        assert!((ratio / 1.3 - 1.0).abs() < Meters::QUANTILE_ERROR, "{ratio}");
    }
}
