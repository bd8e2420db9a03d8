//! The study: load cases against a service that runs in a child process, with the service's own
//! metrics sampled while each case runs.
//!
//! For each case: the database is emptied and the task peaks are reset; a baseline is read; the
//! clients run while a `sampler` reads the metrics every 100 ms; a last reading is
//! taken after the last answer. Server numbers are differences of readings or high-water marks that
//! the server keeps, client numbers come from the load alone, and where the two disagree the finding
//! says so.

mod case;
pub mod command;
mod course;
mod finding;
mod reading;
mod sampler;
mod scraper;
mod series;
mod subject;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde::{Deserialize, Serialize};

pub use self::case::{Case, KNOWN};
pub use self::course::Unfinished;
pub use self::finding::{Finding, disagreement};
pub use self::reading::Reading;
pub use self::sampler::SAMPLE_EVERY;
pub use self::series::{Sample, Series, WINDOW};

use self::course::Course;
use self::subject::Subject;
use crate::machine::Machine;
use crate::stop::Stop;

/// What to study.
#[derive(Clone, Debug)]
pub struct Design {
    /// The cases in their order.
    pub cases: Vec<Case>,
    /// The program that is the subject.
    pub api: PathBuf,
    /// How long a client waits for a connection or an answer.
    pub timeout: Duration,
}

/// A study that is done: all that a report says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Study {
    /// What was found, case by case.
    pub cases: Vec<Finding>,
    /// Where.
    pub machine: Machine,
    /// Of what.
    pub versions: Versions,
    /// The command that does it again.
    pub command: String,
    /// When it began, in RFC 3339.
    pub begun: String,
    /// How many times the metrics were scraped. None of the scrapes is among the requests received.
    pub scrapes: u64,
    /// The time between two samples of a case, as aimed at.
    pub sampled_every_ms: u64,
}

/// The versions of what took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Versions {
    /// Of this program.
    pub talea: String,
    /// What the subject says of itself.
    pub subject: String,
    /// Whether this program was optimised: `release` or `debug`.
    pub build: String,
}

/// How a study ended.
#[derive(Debug)]
pub enum Ended {
    /// All cases are done.
    Done(Box<Study>),
    /// A signal stopped it.
    Stopped(Unfinished),
}

/// Runs a study from the start of its subject to its end.
///
/// A stop ends the clients first, then the subject, and waits for it.
///
/// # Errors
/// When the subject cannot be started, dies, or its metrics lack what is needed.
pub async fn run(design: &Design, mut stop: Stop) -> Result<Ended> {
    let begun = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let versions = Versions {
        talea: env!("CARGO_PKG_VERSION").to_owned(),
        subject: subject::version(&design.api).await,
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    };
    let mut course = Course::new(design)?;
    let mut subject = Subject::start(&design.api)?;
    let ran = tokio::select! {
        ran = course.run(&mut subject) => Some(ran),
        () = stop.requested() => None,
    };
    // A subject that died takes its clients down with it: its death is the reason, not theirs.
    let ran = match ran {
        Some(Err(error)) => Some(Err(subject.cause_of_death().await.unwrap_or(error))),
        ran => ran,
    };
    subject.stop().await;

    match ran {
        None => Ok(Ended::Stopped(course.unfinished())),
        Some(Err(error)) => Err(error.context(course.unfinished().to_string())),
        Some(Ok(())) => Ok(Ended::Done(Box::new(Study {
            scrapes: course.scrapes(),
            cases: course.into_findings(),
            machine: Machine::this(),
            versions,
            command: command::as_typed(std::env::args()),
            begun,
            sampled_every_ms: SAMPLE_EVERY.as_millis() as u64,
        }))),
    }
}
