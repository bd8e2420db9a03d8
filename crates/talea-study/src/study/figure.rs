//! The figures that a condition can be about.

use std::fmt;

use talea_load::Meters;
use talea_statistics::{Mean, Ratio, mean};

use super::measure::{Measure, Measures, Values};

/// A number of some rounds: a measure, or one that comes from a round's distribution and counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A measure.
    Measure(Measure),
    /// A quantile of the response times for which there is no measure, in milliseconds.
    Quantile(f64),
    /// A share of the requests, from 0 to 1.
    Share(Share),
}

/// A share of something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Of the requests, those that failed.
    Failed,
    /// Of the results of checks, those that passed.
    Checks,
}

impl Figure {
    /// A measure in milliseconds, as quantiles are shown.
    pub(crate) const MS: Measure = Measure::P50;
    pub(crate) const RATE: Self = Self::Measure(Measure::Rate);

    /// Parses its name. With `share` it is a share of what is counted.
    pub(crate) fn parse(text: &str, share: bool) -> Result<Self, String> {
        if share {
            return match text {
                "failed" => Ok(Self::Share(Share::Failed)),
                "checks" => Ok(Self::Share(Share::Checks)),
                _ => Err(format!("found {text:?} with a limit in %, expected failed or checks")),
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
        let quantile = match self {
            Self::Measure(measure) => return measure.of(rounds),
            Self::Share(share) => {
                let numbers = rounds.iter().map(|round| match share {
                    Share::Failed => round.failed_share(),
                    Share::Checks => round.checks,
                });
                let numbers: Option<Vec<f64>> = numbers.collect();
                let numbers = numbers.filter(|all| !all.is_empty())?;
                return Some(Values { numbers, at_least: false, untimed: 0.0 });
            }
            Self::Quantile(quantile) => quantile,
        };
        let found: Option<Vec<_>> =
            rounds.iter().map(|round| round.times.as_ref()?.quantile(quantile)).collect();
        let found = found.filter(|all| !all.is_empty())?;
        let untimed: Vec<f64> = rounds.iter().map(|round| round.untimed).collect();
        Some(Values {
            numbers: found.iter().map(|one| one.ms).collect(),
            at_least: found.iter().any(|one| one.at_least),
            untimed: mean(&untimed),
        })
    }

    /// The mean of some rounds, with its interval; none of fewer than two, or of what is counted: that is no
    /// sample of anything.
    pub(crate) fn mean(self, rounds: &[f64]) -> Option<Mean> {
        match self {
            Self::Measure(Measure::Failed) | Self::Share(_) => None,
            Self::Measure(measure) => measure.mean(rounds),
            Self::Quantile(_) => {
                Mean::of(rounds).map(|mean| mean.known_within(Meters::QUANTILE_ERROR))
            }
        }
    }

    /// The ratio of some rounds to others, with its interval. Paired are rounds that were run side by side.
    pub(crate) fn ratio(self, of: &Values, to: &Values, paired: bool) -> Option<Ratio> {
        let paired = paired && to.numbers.len() == of.numbers.len();
        let measure = match self {
            Self::Measure(measure) => measure,
            Self::Quantile(_) => Self::MS,
            Self::Share(_) => Measure::Failed,
        };
        measure.ratio(&of.numbers, &to.numbers, paired)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measure(measure) => measure.fmt(f),
            Self::Quantile(quantile) => write!(f, "p{}", quantile * 100.0),
            Self::Share(Share::Failed) => f.write_str("failed"),
            Self::Share(Share::Checks) => f.write_str("checks"),
        }
    }
}
