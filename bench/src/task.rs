//! One measurement of a group's subject in a process of its own.

use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Result, ensure};

use crate::calibrated_work::CalibratedWork;
use crate::groups;
use crate::measure::{self, Cost};
use crate::memory;
use crate::process;
use crate::work::{Group, Place, Setting, Subject};

/// One measurement, written `GROUP/SUBJECT/THREADS`. This form and that of the answer, a
/// [`Cost`], stay as they are, so that later builds can ask earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    group: &'static Group,
    subject: &'static Subject,
    threads: usize,
}

impl FromStr for Task {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("{text:?} is no GROUP/SUBJECT/THREADS of this build");
        let [group, subject, threads] = text.split('/').collect::<Vec<_>>()[..] else {
            return Err(fail());
        };
        let group = groups::ALL.iter().find(|g| g.name == group).ok_or_else(fail)?;
        let subject = group.subjects.iter().find(|s| s.name == subject).ok_or_else(fail)?;
        Ok(Self { group, subject, threads: threads.parse().map_err(|_| fail())? })
    }
}

impl Task {
    pub(crate) fn new(group: &'static Group, subject: &'static Subject, threads: usize) -> Self {
        Self { group, subject, threads }
    }

    pub(crate) fn run_apart(&self, setting: &Setting) -> Result<Cost> {
        self.run_by(process::this_program()?, setting)
    }

    pub(crate) fn run_in(&self, program: &Path, setting: &Setting) -> Result<Cost> {
        self.run_by(Command::new(program), setting)
    }

    fn run_by(&self, mut program: Command, setting: &Setting) -> Result<Cost> {
        let Self { group, subject, threads } = self;
        let task = format!("{}/{}/{threads}", group.name, subject.name);
        process::ask(program.args(["--measure", &task, "--inserts", &setting.inserts.to_string()]))
    }

    pub(crate) fn run_here(&self, setting: &Setting) -> Result<Cost> {
        let &Self { group, subject, threads } = self;
        match group.place {
            Place::Here | Place::Apart => {
                let mut work = CalibratedWork::new(subject, threads, setting)?;
                let cost = work.measure(subject, threads);
                work.check(subject)?;
                Ok(cost)
            }
            Place::FromNothing => make_and_measure(subject, setting),
        }
    }
}

/// A group's name in the results, which names the number of inserts if it is not the usual one.
pub(crate) fn bench_name(group: &Group, setting: &Setting) -> String {
    match group.place {
        Place::FromNothing if setting.inserts != groups::INSERTS => {
            group.name.replace("5m", &setting.inserts.to_string())
        }
        _ => group.name.to_owned(),
    }
}

/// The whole life of a subject as one measurement.
fn make_and_measure(subject: &Subject, setting: &Setting) -> Result<Cost> {
    const PARTS: u64 = 10;
    let before = memory::held()?;
    let (making, made) = measure::once(1, || (subject.make)(setting));
    let work = made?;
    work.prepare()?;
    let parts: Vec<_> = (0..PARTS)
        .map(|part| {
            let n = setting.inserts * (part + 1) / PARTS - setting.inserts * part / PARTS;
            (n, measure::once(n, || work.run(0, n)).0)
        })
        .collect();
    let held = memory::held()?.saturating_sub(before);
    let (name, done, expected) = (subject.name, work.done()?, setting.inserts);
    ensure!(done == expected, "{name}: {done} operations were found, {expected} were done");
    let per_insert = |figure: fn(&Cost) -> f64| {
        let parts = parts.iter().map(|(n, cost)| figure(cost) * *n as f64);
        (figure(&making) + parts.sum::<f64>()) / setting.inserts as f64
    };
    let series = work.series().unwrap_or(setting.inserts);
    let (first, last) = (parts[0].1.ns, parts[parts.len() - 1].1.ns);
    Ok(Cost {
        ns: per_insert(|cost| cost.ns),
        allocs: per_insert(|cost| cost.allocs),
        bytes: held as f64 / series as f64,
        last_to_first: Some(last / first),
    })
}
