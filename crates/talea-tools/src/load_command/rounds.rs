//! Several rounds of one load: means with intervals.

use std::fmt;

use serde::Serialize;
use talea_load::{LowerBounds, Milliseconds, Summary};
use talea_statistics::figures::measured;

use talea_statistics::Mean;
use talea_study::study::{Measure, Measures};

/// The means over whole rounds; none of fewer than two, or if one of them has no such number.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rounds {
    pub mean_rate: Option<Mean>,
    pub client_mean_ms: Option<Mean>,
    pub client_p50_ms: Option<Mean>,
    pub client_p99_ms: Option<Mean>,
    /// The names of those of these means that are lower bounds, without an interval that holds the true one.
    pub at_least: LowerBounds,
    pub rounds: Vec<Summary>,
}

impl Rounds {
    pub(super) fn new(rounds: Vec<Summary>, measures: &[Measures]) -> Self {
        let mut at_least = LowerBounds::default();
        let mut mean = |measure: Measure, field: &str| {
            let values = measure.of(measures)?;
            let mean = measure.mean(&values.numbers)?;
            at_least.note(field, Some(Milliseconds { ms: mean.mean, at_least: values.at_least }));
            Some(mean)
        };
        Self {
            mean_rate: mean(Measure::Rate, "mean_rate"),
            client_mean_ms: mean(Measure::Mean, "client_mean_ms"),
            client_p50_ms: mean(Measure::P50, "client_p50_ms"),
            client_p99_ms: mean(Measure::P99, "client_p99_ms"),
            at_least,
            rounds,
        }
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, round) in self.rounds.iter().enumerate() {
            let gap = if n == 0 { "" } else { "\n\n" };
            write!(f, "{gap}round {}\n{round}", n + 1)?;
        }
        let whole = self.rounds.iter().filter(|round| !round.interrupted).count();
        // A signal stopped the others: one has no interval.
        if whole < 2 {
            return Ok(());
        }
        write!(f, "\n\nover {whole} rounds, with intervals of 95 %")?;
        for (name, field, mean, unit) in [
            ("requests a second", "mean_rate", self.mean_rate, ""),
            ("mean response time", "client_mean_ms", self.client_mean_ms, " ms"),
            ("p50", "client_p50_ms", self.client_p50_ms, " ms"),
            ("p99", "client_p99_ms", self.client_p99_ms, " ms"),
        ] {
            let Some(Mean { mean, low, high }) = mean else { continue };
            let shown = self.at_least.shown(field, Some(mean));
            match self.at_least.contains(field) {
                true => write!(f, "\n  {name:<20} {shown}{unit}")?,
                false => {
                    let [low, high] = [low, high].map(measured);
                    write!(f, "\n  {name:<20} {shown} ({low} to {high}){unit}")?;
                }
            }
        }
        Ok(())
    }
}
