//! A subject's work with a length of measurement that fits it, checked by the subject's own
//! count.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::measure::{self, Cost};
use crate::work::{Setting, Subject, Work};

pub(crate) struct CalibratedWork {
    work: Box<dyn Work>,
    /// Operations of one thread in one measurement.
    n: u64,
    /// The subject's count if it loses nothing.
    expected: u64,
    target: Duration,
}

impl CalibratedWork {
    pub(crate) fn new(subject: &Subject, threads: usize, setting: &Setting) -> Result<Self> {
        let work = (subject.make)(setting).with_context(|| format!("making {}", subject.name))?;
        let before = work.done()?;
        let (n, done) = measure::calibrate(subject, &*work, threads, setting.target);
        Ok(Self { work, n, expected: before + done, target: setting.target })
    }

    pub(crate) fn measure(&mut self, subject: &Subject, threads: usize) -> Cost {
        let (cost, done) = measure::measure(subject, &*self.work, threads, self.n, self.target);
        self.expected += done;
        cost
    }

    pub(crate) fn check(&self, subject: &Subject) -> Result<()> {
        let (name, done, expected) = (subject.name, self.work.done()?, self.expected);
        let enough = (expected as f64 * (1.0 - subject.loses)) as u64;
        let is_enough = (enough..=expected).contains(&done);
        ensure!(is_enough, "{name}: {done} operations were found, {expected} were done");
        if done < expected {
            eprintln!("{name} lost {} of {expected} operations", expected - done);
        }
        Ok(())
    }
}
