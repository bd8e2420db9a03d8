//! How subjects take turns within one process. Each time that a subject is measured,
//! `nothing` is too, right before it or right after, by turns; what counts is the
//! difference of the two. A measurement takes about 2 ms, so whatever makes the machine
//! slower or faster for longer than that is in both.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::subjects::{self, Subject};
use super::{CLOCK, Case};
use crate::harness::median;
use crate::measure::{self, Cost};
use crate::work::Work;

const TURNS: usize = 60;
/// Requests that are not measured.
const FIRST: u64 = 100;
const TURN: Duration = Duration::from_millis(2);

/// The results of a subject in one process: medians over the turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) subject: String,
    pub(super) cost: Cost,
    /// Than nothing. Of nothing itself, it is chance; of the clock, it says nothing.
    pub(super) more: Option<Cost>,
}

/// Measures all subjects.
pub(super) fn measure(case: Case) -> Result<Vec<Found>> {
    let mut subjects = subjects::ALL
        .iter()
        .map(|subject| Contender::new(subject, case))
        .collect::<Result<Vec<_>>>()?;
    let mut nothing = Contender::new(&subjects::NOTHING, case)?;
    let len = subjects.len();
    for turn in 0..TURNS {
        for place in 0..len {
            let subject = &mut subjects[(place + turn) % len];
            let (cost, beside) = if turn % 2 == 0 {
                let beside = nothing.measure();
                (subject.measure(), beside)
            } else {
                (subject.measure(), nothing.measure())
            };
            subject.costs.push(cost);
            subject.more.push(Cost {
                ns: cost.ns - beside.ns,
                allocs: cost.allocs - beside.allocs,
                bytes: cost.bytes - beside.bytes,
            });
        }
    }
    subjects.iter().chain([&nothing]).try_for_each(Contender::check)?;
    Ok(subjects.iter().map(Contender::found).collect())
}

/// A subject with its costs so far.
struct Contender {
    subject: &'static Subject,
    work: Box<dyn Work>,
    /// Operations of one measurement.
    n: u64,
    /// All that were done.
    done: u64,
    costs: Vec<Cost>,
    more: Vec<Cost>,
}

impl Contender {
    fn new(subject: &'static Subject, case: Case) -> Result<Self> {
        let work = (subject.make)(case).with_context(|| format!("making {}", subject.name))?;
        let (costs, more) = (Vec::new(), Vec::new());
        let mut contender = Self { subject, work, n: 1, done: 0, costs, more };
        contender.warm_up();
        contender.calibrate();
        Ok(contender)
    }

    /// The first requests create their series, so they are not representative.
    fn warm_up(&mut self) {
        self.work.run(0, FIRST);
        self.done += FIRST;
    }

    fn calibrate(&mut self) {
        let turn = TURN.as_nanos() as f64;
        loop {
            let took = self.measure().ns * self.n as f64;
            if took * 4.0 > turn {
                self.n = (self.n as f64 * turn / took).max(1.0) as u64;
                return;
            }
            self.n *= 4;
        }
    }

    fn measure(&mut self) -> Cost {
        self.done += self.n;
        measure::once(self.n, || self.work.run(0, self.n)).0
    }

    fn check(&self) -> Result<()> {
        let (name, found, done) = (self.subject.name, self.work.done()?, self.done);
        ensure!(found == done, "{name}: {found} requests were found, {done} were done");
        Ok(())
    }

    fn found(&self) -> Found {
        let name = self.subject.name;
        let more = (name != CLOCK).then(|| medians(&self.more));
        Found { subject: name.to_owned(), cost: medians(&self.costs), more }
    }
}

fn medians(costs: &[Cost]) -> Cost {
    let of = |part: fn(&Cost) -> f64| median(costs.iter().map(part));
    Cost { ns: of(|c| c.ns), allocs: of(|c| c.allocs), bytes: of(|c| c.bytes) }
}
