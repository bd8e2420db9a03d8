//! The generators that take turns, and their cost beside wrk's.

use anyhow::Result;
use talea_statistics::Ratio;

use crate::generator::{Generator, Load};
use crate::measurement::{self, Measurement};
use crate::turns::{self, Rounds};

pub(crate) type Named = (&'static str, Generator);

/// The generators. The second is the control: the difference of wrk from itself is chance.
pub(crate) const GENERATORS: [Named; 3] =
    [("wrk", Generator::Wrk), ("wrk again", Generator::Wrk), ("talea load", Generator::Talea)];

/// With oha behind them, if its path is known.
pub(crate) fn generators(oha: Option<String>) -> Vec<Named> {
    // It is needed as long as this process runs.
    let oha = oha.map(|path| ("oha", Generator::Oha(path.leak())));
    GENERATORS.into_iter().chain(oha).collect()
}

pub(crate) const WRK: usize = 0;
pub(crate) const TALEA: usize = 2;

/// The budget of a request, as a multiple of wrk's cost.
pub(crate) const BUDGET: f64 = 1.3;

pub(crate) struct Comparison {
    pub(crate) load: Load,
    pub(crate) rounds: u32,
    pub(crate) generators: Vec<Named>,
    pub(crate) found: Rounds,
}

impl Comparison {
    /// Measures all generators. Progress goes to standard error.
    pub(crate) async fn measure(load: Load, rounds: u32, generators: &[Named]) -> Result<Self> {
        let title = format!("{} connections", load.connections);
        let names: Vec<_> = generators.iter().map(|(name, _)| *name).collect();
        Ok(Self {
            load,
            rounds,
            generators: generators.to_vec(),
            found: turns::run(&title, rounds, &names, async |generator| {
                measurement::measure(generators[generator].1, load).await
            })
            .await?,
        })
    }

    /// The CPU time of a request of one generator to wrk's; none of wrk itself.
    pub(crate) fn to_wrk(&self, generator: usize) -> Option<Ratio> {
        let cpu = |generator| self.found.of(generator, |found: &Measurement| found.generator.both);
        (generator != WRK).then(|| Ratio::paired(&cpu(generator), &cpu(WRK)))?
    }
}

/// Whether a ratio meets the budget. It is sure if it is the same for the whole interval.
pub(crate) fn verdict(found: Ratio) -> &'static str {
    let is_met = |ratio: f64| ratio <= BUDGET;
    let is_sure = found.interval.is_some_and(|(low, high)| is_met(low) == is_met(high));
    match (is_met(found.ratio), is_sure) {
        (true, true) => "met",
        (true, false) => "met, not surely",
        (false, true) => "missed",
        (false, false) => "missed, not surely",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_sure_if_the_whole_interval_agrees() {
        for (ratio, words) in
            [(1.1, "met"), (1.25, "met, not surely"), (1.35, "missed, not surely"), (1.5, "missed")]
        {
            let interval = Some((ratio - 0.1, ratio + 0.1));
            assert_eq!(verdict(Ratio { ratio, interval }), words, "{ratio}");
        }
        assert_eq!(verdict(Ratio { ratio: 1.1, interval: None }), "met, not surely");
    }
}
