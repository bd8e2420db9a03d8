//! How generators take turns: all of them once in each round, on a new service each.

use anyhow::Result;

use super::generator::Generator;
use super::round::{self, Found};
use crate::arguments::Generators;
use crate::budget::Verdict;
use crate::cores::Pair;
use crate::experiment;
use crate::statistics::Estimate;

/// The subjects that take turns.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) generator: Generator,
}

pub(super) const WRK: usize = 0;
pub(super) const TALEA: usize = 2;

/// The second is the control: what wrk differs from itself by is chance.
pub(super) const ALL: [Subject; 3] = [
    Subject { name: "wrk", generator: Generator::Wrk },
    Subject { name: "wrk again", generator: Generator::Wrk },
    Subject { name: "talea load", generator: Generator::Talea },
];

/// The budget of a request, as a multiple of wrk's cost.
const BUDGET: f64 = 1.3;

/// The results with so many connections, by subject and by round.
pub(super) struct Course {
    pub(super) connections: u64,
    pub(super) rounds: u32,
    pub(super) seconds: u32,
    pub(super) found: [Vec<Found>; ALL.len()],
}

impl Course {
    /// Progress goes to standard error.
    pub(super) async fn run(plan: &Generators, connections: u64, cores: Pair) -> Result<Self> {
        let Generators { rounds, seconds, .. } = *plan;
        let mut found: [Vec<Found>; ALL.len()] = Default::default();
        for round in 0..rounds {
            eprintln!("{connections} connections, round {} of {rounds}", round + 1);
            for subject in experiment::order::<{ ALL.len() }>(round as usize) {
                let Subject { name, generator } = ALL[subject];
                let measured = round::measure(name, generator, connections, seconds, cores).await?;
                found[subject].push(measured);
            }
        }
        Ok(Self { connections, rounds, seconds, found })
    }

    /// A figure of one subject, by round.
    pub(super) fn of(&self, subject: usize, figure: fn(&Found) -> f64) -> Vec<f64> {
        self.found[subject].iter().map(figure).collect()
    }

    /// A figure of one subject to wrk's.
    pub(super) fn to_wrk(&self, subject: usize, figure: fn(&Found) -> f64) -> Estimate {
        Estimate::of_ratios(&self.of(subject, figure), &self.of(WRK, figure))
    }

    /// Whether the budget is met.
    pub(super) fn verdict(&self) -> Verdict {
        let budget = format!("talea load to wrk, {} connections", self.connections);
        Verdict::new(budget, self.to_wrk(TALEA, Found::cpu), Some(BUDGET))
    }
}
