//! Several rounds of one load: what they have in common, and how sure that is.

use std::fmt;

use serde::Serialize;

use super::Summary;
use crate::figures::measured;

/// A mean over rounds, with the interval that holds the true one in 95 of 100 such experiments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Mean {
    /// The mean.
    pub(super) mean: f64,
    /// The interval's lower end.
    pub(super) low: f64,
    /// Its upper end.
    pub(super) high: f64,
}

/// What rounds have in common; none where a round has no such number.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rounds {
    /// Requests sent a second.
    pub mean_rate: Option<Mean>,
    /// Mean response time.
    pub client_mean_ms: Option<Mean>,
    /// Median response time.
    pub client_p50_ms: Option<Mean>,
    /// 99th percentile of the response time.
    pub client_p99_ms: Option<Mean>,
    /// Each round.
    pub rounds: Vec<Summary>,
}

impl Rounds {
    /// Puts rounds together.
    pub(super) fn new(rounds: Vec<Summary>) -> Self {
        let mean = |of: fn(&Summary) -> Option<f64>| {
            rounds.iter().map(of).collect::<Option<Vec<f64>>>().and_then(|values| Mean::of(&values))
        };
        Self {
            mean_rate: mean(|round| round.mean_rate),
            client_mean_ms: mean(|round| round.client_mean_ms),
            client_p50_ms: mean(|round| round.client_p50_ms),
            client_p99_ms: mean(|round| round.client_p99_ms),
            rounds,
        }
    }
}

impl Mean {
    /// That of some values, by Student's distribution; none of fewer than two.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = |value: &f64| (value - mean) * (value - mean);
        let variance = values.iter().map(square).sum::<f64>() / (count - 1.0);
        let half = students_t(values.len().checked_sub(2)?) * (variance / count).sqrt();
        Some(Self { mean, low: mean - half, high: mean + half })
    }
}

/// The 97.5 % quantile of Student's t; `beyond_one` are the degrees of freedom less one. Source:
/// any table of it, to three decimals; from 31 on the value for 30 is used, which is wider.
fn students_t(beyond_one: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    TABLE[beyond_one.min(TABLE.len() - 1)]
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, low, high } = self;
        write!(f, "{} ({} to {})", measured(*mean), measured(*low), measured(*high))
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, round) in self.rounds.iter().enumerate() {
            writeln!(f, "round {}\n{round}\n", n + 1)?;
        }
        write!(f, "over {} rounds, with intervals of 95 %", self.rounds.len())?;
        for (name, mean, unit) in [
            ("requests a second", self.mean_rate, ""),
            ("mean response time", self.client_mean_ms, " ms"),
            ("p50", self.client_p50_ms, " ms"),
            ("p99", self.client_p99_ms, " ms"),
        ] {
            if let Some(mean) = mean {
                write!(f, "\n  {name:<20} {mean}{unit}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        // Mean 5, standard deviation 2.138, eight values: 2.365 · 2.138 / √8 = 1.788.
        let mean = Mean::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(mean.mean, 5.0);
        assert!((mean.high - 6.788).abs() < 0.001 && (mean.low - 3.212).abs() < 0.001, "{mean}");
        assert_eq!(Mean::of(&[1.0]), None);
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[3.0, 3.0]), Some(Mean { mean: 3.0, low: 3.0, high: 3.0 }));
    }
}
