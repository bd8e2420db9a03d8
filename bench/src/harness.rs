//! How the subjects of a group take turns: each of them once in a round. The order moves on by
//! one from round to round, so that a subject does not always begin. Figures are medians over
//! the rounds.

use anyhow::{Context, Result};

use crate::calibrated_work::CalibratedWork;
use crate::measure::Cost;
use crate::row::Row;
use crate::task::{self, Task};
use crate::work::{Group, Place, Setting, Subject};

/// Measures a group. Progress goes to standard error.
pub(crate) fn run(group: &'static Group, rounds: u32, setting: &Setting) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &threads in group.threads {
        let contender = |subject| Contender::new(group, subject, threads, setting);
        let mut contenders = group.subjects.iter().map(contender).collect::<Result<Vec<_>>>()?;
        for round in 0..rounds as usize {
            eprintln!("{}, threads: {threads}, round {} of {rounds}", group.name, round + 1);
            for turn in 0..contenders.len() {
                let next = (turn + round) % contenders.len();
                contenders[next].take_turn(setting)?;
            }
        }
        contenders.iter().try_for_each(Contender::check)?;
        let talea = contenders.iter().find(|contender| contender.subject.is_talea());
        let talea = talea.map(|contender| contender.median().ns);
        let bench = task::bench_name(group, setting);
        rows.extend(contenders.iter().map(|contender| {
            let cost = contender.median();
            let ratio_to_talea = talea.map(|talea| cost.ns / talea);
            let row = Row::of_cost(&bench, contender.subject.name, cost);
            Row { threads, ratio_to_talea, ..row }
        }));
    }
    Ok(rows)
}

/// A subject with its costs so far.
struct Contender {
    group: &'static Group,
    subject: &'static Subject,
    threads: usize,
    costs: Vec<Cost>,
    /// None if each measurement is a process of its own.
    work: Option<CalibratedWork>,
}

impl Contender {
    fn new(
        group: &'static Group,
        subject: &'static Subject,
        threads: usize,
        setting: &Setting,
    ) -> Result<Self> {
        let is_here = group.place == Place::Here;
        let work = is_here.then(|| CalibratedWork::new(subject, threads, setting)).transpose()?;
        Ok(Self { group, subject, threads, costs: Vec::new(), work })
    }

    fn take_turn(&mut self, setting: &Setting) -> Result<()> {
        let cost = match &mut self.work {
            Some(work) => work.measure(self.subject, self.threads),
            None => Task::new(self.group, self.subject, self.threads).run_apart(setting)?,
        };
        self.costs.push(cost);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let checked = self.work.as_ref().map_or(Ok(()), |work| work.check(self.subject));
        checked.context(self.group.name)
    }

    fn median(&self) -> Cost {
        Cost::median(self.costs.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::groups;

    /// Once and short: each subject of each group counts what it did, beside the others of its group.
    #[test]
    fn every_group_runs_and_each_subject_counts_its_own_operations() {
        let setting = Setting { inserts: 1000, target: Duration::from_millis(1) };
        for &group in groups::ALL {
            if group.place == Place::Here {
                run(group, 1, &setting).unwrap_or_else(|error| panic!("{}: {error:#}", group.name));
                continue;
            }
            for subject in group.subjects {
                for &threads in group.threads {
                    let cost = Task::new(group, subject, threads).run_here(&setting);
                    cost.unwrap_or_else(|error| {
                        panic!("{}, {}: {error:#}", group.name, subject.name)
                    });
                }
            }
        }
    }
}
