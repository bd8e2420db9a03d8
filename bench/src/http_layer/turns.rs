//! How subjects take turns within one process. Each time that a subject is measured,
//! `nothing` is too, right before it or right after, by turns, and the difference of the
//! two counts. A measurement takes about 2 ms, so a change of the machine's speed that lasts
//! longer is in both.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::subjects::{self, CLOCK, Subject};
use crate::measure::{self, Cost};
use crate::work::Work;

const TURNS: usize = 60;
/// Requests before the first measurement.
const FIRST: u64 = 100;
const TURN: Duration = Duration::from_millis(2);

/// The results of a subject in one process: medians over the turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SubjectCost {
    pub(super) subject: String,
    pub(super) cost: Cost,
    /// Beyond `nothing`. For `nothing` itself it is chance; the clock has none.
    pub(super) more: Option<Cost>,
}

pub(super) fn measure(case: Case) -> Result<Vec<SubjectCost>> {
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
                last_to_first: None,
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
    /// All operations so far.
    done: u64,
    costs: Vec<Cost>,
    more: Vec<Cost>,
}

impl Contender {
    fn new(subject: &'static Subject, case: Case) -> Result<Self> {
        let work = (subject.make)(case).with_context(|| format!("making {}", subject.name))?;
        let (costs, more) = (Vec::new(), Vec::new());
        let mut contender = Self { subject, work, n: 1, done: 0, costs, more };
        // The first requests create their series, so they are not representative.
        contender.work.run(0, FIRST);
        contender.done += FIRST;
        contender.calibrate();
        Ok(contender)
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

    fn found(&self) -> SubjectCost {
        let name = self.subject.name;
        let median = |costs: &[Cost]| Cost::median(costs.iter().copied());
        let more = (name != CLOCK).then(|| median(&self.more));
        SubjectCost { subject: name.to_owned(), cost: median(&self.costs), more }
    }
}
