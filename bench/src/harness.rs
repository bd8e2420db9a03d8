//! How the subjects of a group take turns: all of them once in each round, in
//! an order that moves on by one from round to round, so that none is always
//! measured after the same other; medians over the rounds.

use anyhow::{Context, Result, ensure};

use crate::measure::{self, Cost};
use crate::process;
use crate::report::Row;
use crate::work::{Group, Place, Setting, Subject, Work};

/// Measures a group. Progress goes to standard error.
pub(crate) fn run(group: &Group, rounds: u32, setting: &Setting) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &threads in group.threads {
        let mut contenders = group
            .subjects
            .iter()
            .map(|subject| Contender::new(group, subject, threads, setting))
            .collect::<Result<Vec<_>>>()?;
        for round in 0..rounds as usize {
            eprintln!("{}, threads: {threads}, round {} of {rounds}", group.name, round + 1);
            for turn in 0..contenders.len() {
                let next = (turn + round) % contenders.len();
                contenders[next].take_turn(setting)?;
            }
        }
        for contender in &contenders {
            contender.check()?;
        }
        let talea = contenders.iter().find(|contender| contender.subject.is_talea());
        let talea = talea.map(|contender| contender.median().ns);
        rows.extend(contenders.iter().map(|contender| {
            let Cost { ns, allocs, bytes } = contender.median();
            Row {
                bench: process::bench_name(group, setting),
                threads,
                subject: contender.subject.name.to_owned(),
                ns: Some(ns),
                allocs_per_op: Some(allocs),
                bytes_per_op: Some(bytes),
                ratio_to_talea: talea.map(|talea| ns / talea),
                instructions: None,
                latencies: None,
                more: None,
                takes: None,
            }
        }));
    }
    Ok(rows)
}

/// A subject with its costs so far.
struct Contender {
    group: &'static str,
    subject: &'static Subject,
    threads: usize,
    costs: Vec<Cost>,
    /// Where it is measured here, and not in processes of its own.
    made: Option<Made>,
}

impl Contender {
    fn new(
        group: &Group,
        subject: &'static Subject,
        threads: usize,
        setting: &Setting,
    ) -> Result<Self> {
        let made = match group.place {
            Place::Here => Some(Made::new(subject, threads, setting)?),
            Place::Apart | Place::FromNothing => None,
        };
        Ok(Self { group: group.name, subject, threads, costs: Vec::new(), made })
    }

    fn take_turn(&mut self, setting: &Setting) -> Result<()> {
        let cost = match &mut self.made {
            Some(made) => made.measure(self.subject, self.threads),
            None => process::measure_self(self.group, self.subject.name, self.threads, setting)?,
        };
        self.costs.push(cost);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.made.as_ref().map_or(Ok(()), |made| {
            made.check(self.subject)
                .with_context(|| format!("{} of {}", self.subject.name, self.group))
        })
    }

    fn median(&self) -> Cost {
        let of = |part: fn(&Cost) -> f64| median(self.costs.iter().map(part));
        Cost { ns: of(|c| c.ns), allocs: of(|c| c.allocs), bytes: of(|c| c.bytes) }
    }
}

/// A subject that was made and calibrated, and how much it has to show.
pub(crate) struct Made {
    work: Box<dyn Work>,
    /// Operations of one thread in one measurement.
    n: u64,
    /// The library's count when all was done that was to be done.
    expected: u64,
}

impl Made {
    pub(crate) fn new(subject: &Subject, threads: usize, setting: &Setting) -> Result<Self> {
        let work = (subject.make)(setting).with_context(|| format!("making {}", subject.name))?;
        let before = work.done()?;
        let calibration = measure::calibrate(subject, &*work, threads);
        Ok(Self { work, n: calibration.n, expected: before + calibration.done })
    }

    pub(crate) fn measure(&mut self, subject: &Subject, threads: usize) -> Cost {
        let (cost, done) = measure::measure(subject, &*self.work, threads, self.n);
        self.expected += done;
        cost
    }

    /// Whether the work was really done.
    pub(crate) fn check(&self, subject: &Subject) -> Result<()> {
        let (done, expected) = (self.work.done()?, self.expected);
        let enough = (expected as f64 * (1.0 - subject.loses)) as u64;
        ensure!(
            (enough..=expected).contains(&done),
            "{done} operations were found, {expected} were done"
        );
        if done < expected {
            eprintln!("{} lost {} of {expected} operations", subject.name, expected - done);
        }
        Ok(())
    }
}

/// The median; NaN of nothing.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => f64::NAN,
        (len, half) if len % 2 == 1 => values[half],
        (_, half) => (values[half - 1] + values[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert!(median([].into_iter()).is_nan());
    }
}
