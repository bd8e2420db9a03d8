//! The figures that a condition can be about.

use std::fmt;

use talea_statistics::{Mean, Ratio, mean};

use super::measure::{Measure, Measures, Values, ratio};

/// A number of some rounds: a measure, or one that comes from a round's distribution and counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A measure.
    Measure(Measure),
    /// A quantile of the response times for which there is no measure, in milliseconds.
    Quantile(f64),
    /// A share, of which 1 is all.
    Share(Share),
}

/// A share of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Of the requests, those that failed.
    Failed,
    /// Of the results of checks, those that passed.
    Checks,
    /// Of the server's memory, by how much it grew.
    MemoryGrowth,
}

impl Figure {
    /// A measure in milliseconds, as quantiles are shown.
    pub(crate) const MS: Measure = Measure::P50;
    pub(crate) const RATE: Self = Self::Measure(Measure::Rate);

    /// Parses its name. If its limit is one in %, it is a share; one that grows, such as `+10%`, has a sign.
    pub(crate) fn parse(text: &str, limit: &str) -> Result<Self, String> {
        if limit.ends_with('%') {
            return match (text, limit.starts_with('+')) {
                ("failed", false) => Ok(Self::Share(Share::Failed)),
                ("checks", false) => Ok(Self::Share(Share::Checks)),
                ("memory", true) => Ok(Self::Share(Share::MemoryGrowth)),
                _ => Err(format!(
                    "found {text:?} with the limit {limit}, expected failed or checks with one such as 1%, \
                     or memory with one such as +10%"
                )),
            };
        }
        if let Ok(measure) = text.parse() {
            return Ok(Self::Measure(measure));
        }
        let percent = text.strip_prefix('p').and_then(|percent| percent.parse().ok());
        let percent = percent.filter(|percent: &f64| *percent > 0.0 && *percent <= 100.0);
        percent.map(|percent| Self::Quantile(percent / 100.0)).ok_or_else(|| {
            let known = Measure::ALL.map(|(_, name, ..)| name).join(", ");
            format!("found {text:?}, expected one of {known}, or another quantile such as p95")
        })
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Measure(measure) => measure.unit(),
            Self::Quantile(_) => Self::MS.unit(),
            Self::Share(_) => "%",
        }
    }

    /// Whether it comes from the metrics of the server, also if it is of all requests.
    pub(crate) fn is_of_server(self) -> bool {
        match self {
            Self::Measure(measure) => matches!(measure, Measure::Cpu | Measure::Memory),
            Self::Quantile(_) => false,
            Self::Share(share) => share == Share::MemoryGrowth,
        }
    }

    /// Of how many of the requests a response time says that they are no slower; none of other figures.
    pub(crate) fn share_of_requests(self) -> Option<f64> {
        match self {
            Self::Measure(measure) => measure.share(),
            Self::Quantile(quantile) => Some(quantile),
            Self::Share(_) => None,
        }
    }

    /// Its values in some rounds; none if a round does not have it, or there is no round.
    pub(crate) fn of(self, rounds: &[Measures]) -> Option<Values> {
        let is_in_buckets = rounds.iter().any(Measures::is_of_endpoint);
        let quantile = match self {
            Self::Measure(measure) => match measure.quantile() {
                Some(quantile) if is_in_buckets => quantile,
                _ => return measure.of(rounds),
            },
            Self::Share(share) => {
                let numbers = rounds.iter().map(|round| match share {
                    Share::Failed => round.failed_share(),
                    Share::Checks => round.checks,
                    Share::MemoryGrowth => round.memory_growth,
                });
                let numbers: Option<Vec<f64>> = numbers.collect();
                let numbers = numbers.filter(|all| !all.is_empty())?;
                let (at_least, is_in_buckets) = (false, false);
                return Some(Values { numbers, at_least, untimed: 0.0, error: 0.0, is_in_buckets });
            }
            Self::Quantile(quantile) => quantile,
        };
        let found: Option<Vec<_>> = rounds.iter().map(|round| round.quantile(quantile)).collect();
        let found = found.filter(|all| !all.is_empty())?;
        let untimed: Vec<f64> = rounds.iter().map(|round| round.untimed).collect();
        Some(Values {
            numbers: found.iter().map(|one| one.ms).collect(),
            at_least: found.iter().any(|one| one.at_least),
            untimed: mean(&untimed),
            error: found.iter().map(|one| one.error).fold(0.0, f64::max),
            is_in_buckets,
        })
    }

    /// The mean of some rounds, with its interval; none of fewer than two, unless it is only known within the
    /// buckets of a server, or of what is counted: that is no sample of anything.
    pub(crate) fn mean(self, rounds: &Values) -> Option<Mean> {
        let counted = [Share::Failed, Share::Checks].map(Self::Share);
        if self == Self::Measure(Measure::Failed) || counted.contains(&self) {
            return None;
        }
        let numbers = &rounds.numbers;
        let one = numbers.first().filter(|_| rounds.is_in_buckets);
        let one = one.map(|number| Mean { mean: *number, low: *number, high: *number });
        Mean::of(numbers).or(one).map(|mean| mean.known_within(rounds.error))
    }

    /// The ratio of some rounds to others, with its interval. Paired are rounds that were run side by side.
    /// Of single rounds it has one only if the numbers are known within the buckets of a server.
    pub(crate) fn ratio(self, of: &Values, to: &Values, paired: bool) -> Option<Ratio> {
        let paired = paired && to.numbers.len() == of.numbers.len();
        let found = ratio(&of.numbers, &to.numbers, paired)?;
        let is_in_buckets = of.is_in_buckets || to.is_in_buckets;
        let interval = found.interval.or(is_in_buckets.then_some((found.ratio, found.ratio)));
        Some(Ratio { interval, ..found }.known_within(of.error.max(to.error)))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measure(measure) => measure.fmt(f),
            Self::Quantile(quantile) => write!(f, "p{}", quantile * 100.0),
            Self::Share(Share::Failed) => f.write_str("failed"),
            Self::Share(Share::Checks) => f.write_str("checks"),
            Self::Share(Share::MemoryGrowth) => f.write_str("memory"),
        }
    }
}
