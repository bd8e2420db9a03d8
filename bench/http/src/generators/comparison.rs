//! The generators that take turns, and their cost beside wrk's.

use anyhow::Result;

use crate::generator::{Generator, Load};
use crate::measurement::{self, Measurement};
use crate::statistics::Estimate;
use crate::turns::{self, Rounds};
use crate::verdict::Verdict;

/// The generators. The second is the control: the difference of wrk from itself is chance.
pub(super) const GENERATORS: [(&str, Generator); 3] =
    [("wrk", Generator::Wrk), ("wrk again", Generator::Wrk), ("talea load", Generator::Talea)];

pub(super) const WRK: usize = 0;
pub(super) const TALEA: usize = 2;

/// The budget of a request, as a multiple of wrk's cost.
const BUDGET: f64 = 1.3;

pub(super) struct Comparison {
    pub(super) load: Load,
    pub(super) rounds: u32,
    pub(super) found: Rounds,
}

impl Comparison {
    /// Measures all generators. Progress goes to standard error.
    pub(super) async fn measure(load: Load, rounds: u32) -> Result<Self> {
        let title = format!("{} connections", load.connections);
        let names = GENERATORS.map(|(name, _)| name);
        let once = async |generator| measure(generator, load).await;
        Ok(Self { load, rounds, found: turns::run(&title, rounds, &names, once).await? })
    }

    /// The CPU time of a request of one generator to wrk's.
    pub(super) fn to_wrk(&self, generator: usize) -> Estimate {
        let cpu = |generator| self.found.of(generator, |found| found.generator.both);
        Estimate::of_ratios(&cpu(generator), &cpu(WRK))
    }

    pub(super) fn verdict(&self) -> Verdict {
        let budget = format!("talea load to wrk, {} connections", self.load.connections);
        Verdict::new(budget, self.to_wrk(TALEA), Some(BUDGET))
    }
}

/// Measures a generator, by its place, with a service that counts the requests that it receives.
pub(super) async fn measure(generator: usize, load: Load) -> Result<Measurement> {
    measurement::measure("metered", GENERATORS[generator].1, load).await
}
