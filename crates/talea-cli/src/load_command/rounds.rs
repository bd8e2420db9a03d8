//! Several rounds of one load: means with intervals.

use std::fmt;

use serde::Serialize;
use talea_load::Summary;
use talea_load::figures::measured;

use crate::study::{Measure, Measures};
use talea_statistics::Mean;

/// The means over whole rounds; none of fewer than two, or if one of them has no such number.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rounds {
    pub mean_rate: Option<Mean>,
    pub client_mean_ms: Option<Mean>,
    pub client_p50_ms: Option<Mean>,
    pub client_p99_ms: Option<Mean>,
    pub rounds: Vec<Summary>,
}

impl Rounds {
    pub(super) fn new(rounds: Vec<Summary>, measures: &[Measures]) -> Self {
        let mean = |measure: Measure| measure.of(measures).and_then(|values| measure.mean(&values));
        Self {
            mean_rate: mean(Measure::Rate),
            client_mean_ms: mean(Measure::Mean),
            client_p50_ms: mean(Measure::P50),
            client_p99_ms: mean(Measure::P99),
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
        for (name, mean, unit) in [
            ("requests a second", self.mean_rate, ""),
            ("mean response time", self.client_mean_ms, " ms"),
            ("p50", self.client_p50_ms, " ms"),
            ("p99", self.client_p99_ms, " ms"),
        ] {
            if let Some(Mean { mean, low, high }) = mean {
                let [mean, low, high] = [mean, low, high].map(measured);
                write!(f, "\n  {name:<20} {mean} ({low} to {high}){unit}")?;
            }
        }
        Ok(())
    }
}
