//! The measures that cases are compared by: a number for each round.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use talea_load::Meters;
use talea_statistics::{Mean, Ratio};

use super::clients::Clients;
use super::server::Server;

/// A number that each round of a case has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// Requests sent a second.
    Rate,
    /// The clients' time, in seconds.
    Time,
    /// Mean response time at the clients, in milliseconds.
    Mean,
    P50,
    /// 90th percentile of the response time at the clients.
    P90,
    P99,
    P999,
    P9999,
    /// The server's processor time a request, in microseconds.
    Cpu,
    /// The most memory that the server had, in bytes.
    Memory,
    Failed,
}

/// A round's numbers.
pub(crate) type Measures = BTreeMap<Measure, f64>;

impl Measure {
    /// All of them, with their names, their titles in a report, and their units.
    pub(crate) const ALL: [(Self, &'static str, &'static str, &'static str); 11] = [
        (Self::Rate, "rate", "Requests a second", ""),
        (Self::Time, "time", "Client time", "s"),
        (Self::Mean, "mean", "Mean response time", "ms"),
        (Self::P50, "p50", "p50", "ms"),
        (Self::P90, "p90", "p90", "ms"),
        (Self::P99, "p99", "p99", "ms"),
        (Self::P999, "p99.9", "p99.9", "ms"),
        (Self::P9999, "p99.99", "p99.99", "ms"),
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
            Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::P9999 => Meters::QUANTILE_ERROR,
            Self::Rate | Self::Time | Self::Mean | Self::Cpu | Self::Memory | Self::Failed => 0.0,
        }
    }

    /// Its values in some rounds; none if a round does not have it, or there is no round.
    pub(crate) fn of(self, rounds: &[Measures]) -> Option<Vec<f64>> {
        let all: Option<Vec<f64>> = rounds.iter().map(|round| round.get(&self).copied()).collect();
        all.filter(|all| !all.is_empty())
    }

    /// The mean of some rounds, with its interval; none of fewer than two.
    pub(crate) fn mean(self, rounds: &[f64]) -> Option<Mean> {
        Mean::of(rounds).map(|mean| mean.known_within(self.error()))
    }

    /// The ratio of some rounds to others, with its interval. Paired are rounds that were run side
    /// by side.
    pub(crate) fn ratio(self, of: &[f64], to: &[f64], paired: bool) -> Option<Ratio> {
        let ratio = if paired { Ratio::paired(of, to) } else { Ratio::unpaired(of, to) };
        ratio.map(|ratio| ratio.known_within(self.error()))
    }

    pub(crate) fn more_is_better(self) -> bool {
        self == Self::Rate
    }

    /// The value of each measure in one case; unknown ones are left out.
    pub(crate) fn all_of(client: &Clients, server: Option<&Server>) -> Measures {
        let cpu = server.and_then(|server| server.cpu_seconds);
        let memory = server.and_then(|server| server.peak_memory_bytes);
        let of = |measure| match measure {
            Self::Rate => client.mean_rate,
            Self::Time => Some(client.seconds),
            Self::Mean => client.mean_ms,
            Self::P50 => client.p50_ms,
            Self::P90 => client.p90_ms,
            Self::P99 => client.p99_ms,
            Self::P999 => client.p999_ms,
            Self::P9999 => client.p9999_ms,
            Self::Cpu => cpu
                .filter(|_| client.requests_sent > 0)
                .map(|seconds| seconds / client.requests_sent as f64 * 1e6),
            Self::Memory => memory.map(|bytes| bytes as f64),
            Self::Failed => Some(client.failed as f64),
        };
        let known = Self::ALL.into_iter().filter_map(|(measure, ..)| Some((measure, of(measure)?)));
        known.collect()
    }
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
}
