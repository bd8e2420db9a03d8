//! Measurements in processes of their own: this program run again, or an earlier
//! build of it, with a hidden argument that names the task. The answer is one
//! line of JSON. The argument and the line stay as they are, so that later
//! builds can ask earlier ones.

use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use crate::groups;
use crate::harness::Made;
use crate::measure::{self, Cost};
use crate::memory;
use crate::work::{Group, Place, Setting, Subject};

/// One measurement, written `GROUP/SUBJECT/THREADS`.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    group: &'static Group,
    subject: &'static Subject,
    threads: usize,
}

impl FromStr for Task {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail =
            || format!("{text:?} is no task; GROUP/SUBJECT/THREADS of this build was expected");
        let [group, subject, threads] = text.split('/').collect::<Vec<_>>()[..] else {
            return Err(fail());
        };
        let group = groups::ALL.iter().find(|g| g.name == group).ok_or_else(fail)?;
        let subject = group.subjects.iter().find(|s| s.name == subject).ok_or_else(fail)?;
        Ok(Self { group, subject, threads: threads.parse().map_err(|_| fail())? })
    }
}

/// A group's name in the results; it says so where `--inserts` changed what it
/// is.
pub(crate) fn bench_name(group: &Group, setting: &Setting) -> String {
    match group.place {
        Place::FromNothing if setting.inserts != groups::INSERTS => {
            format!("insert-{}", setting.inserts)
        }
        _ => group.name.to_owned(),
    }
}

/// Measures a task in a new process of this program.
pub(crate) fn measure_self(
    group: &str,
    subject: &str,
    threads: usize,
    setting: &Setting,
) -> Result<Cost> {
    let program = std::env::current_exe().context("finding this program")?;
    measure_in(&program, group, subject, threads, setting)
}

/// Measures a task in a new process of some build of this program.
pub(crate) fn measure_in(
    program: &Path,
    group: &str,
    subject: &str,
    threads: usize,
    setting: &Setting,
) -> Result<Cost> {
    let task = format!("{group}/{subject}/{threads}");
    let output = Command::new(program)
        .args(["--measure", &task, "--inserts", &setting.inserts.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    ensure!(output.status.success(), "{} --measure {task}: {}", program.display(), output.status);
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("reading what {} --measure {task} says", program.display()))
}

/// Does a task and prints its cost: what the new process does.
pub(crate) fn answer(task: &Task, setting: &Setting) -> Result<()> {
    let &Task { group, subject, threads } = task;
    let cost = match group.place {
        Place::Here | Place::Apart => {
            let mut made = Made::new(subject, threads, setting)?;
            let cost = made.measure(subject, threads);
            made.check(subject)?;
            cost
        }
        Place::FromNothing => make_and_measure(subject, setting)?,
    };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

/// The whole life of a subject as one measurement.
fn make_and_measure(subject: &Subject, setting: &Setting) -> Result<Cost> {
    let before = memory::held()?;
    let (cost, made) = measure::once(setting.inserts, || {
        let work = (subject.make)(setting);
        work.iter().for_each(|work| work.run(0, setting.inserts));
        work
    });
    let held = memory::held()?.saturating_sub(before);
    let done = made?.done()?;
    ensure!(
        done == setting.inserts,
        "{}: {done} operations were found, {} were done",
        subject.name,
        setting.inserts
    );
    Ok(Cost { bytes: held as f64 / setting.inserts as f64, ..cost })
}
