//! The study: load cases against a service, with the service's own metrics sampled while each case
//! runs.
//!
//! For each case: the database is emptied and the task peaks are reset, where the service is one
//! that can; a baseline is read; the clients run while a `sampler` reads the metrics every 100 ms;
//! a last reading is taken after the last answer. Server numbers are differences of readings or
//! high-water marks that the server keeps, client numbers come from the load alone, and where the
//! two disagree the finding says so.

mod case;
mod clients;
mod design;
mod finding;
mod measure;
mod prometheus;
mod reading;
pub mod rounds;
mod sampler;
mod scraper;
mod series;
mod server;
mod study_run;
mod target_process;

use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use self::case::{Case, KNOWN, LONG};
pub use self::clients::{Clients, Heat, Times};
pub use self::design::{
    AddressSource, Addresses, Design, Program, STUDY_ARGUMENTS, Service, Witness,
};
pub use self::finding::{Finding, Query};
pub use self::measure::{Measure, Measures};
pub use self::reading::{Between, Durations, Reading};
pub use self::sampler::SAMPLE_EVERY;
pub use self::series::{Sample, Series, WINDOW};
pub use self::server::Server;
pub use self::study_run::Unfinished;

use self::study_run::StudyRun;
use self::target_process::TargetProcess;
use crate::load::Meters;
use crate::machine::Machine;
use crate::stop::Stop;

/// A study that is done: all that a report says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Study {
    /// The results, case by case.
    pub cases: Vec<Finding>,
    /// Where the service was, in words.
    pub subject: String,
    /// Whether the study started it, so that both share the machine.
    pub started: bool,
    /// The scenario's name.
    pub scenario: String,
    /// The names of its steps.
    pub steps: Vec<String>,
    /// How, such as HTTP/1.1.
    pub protocol: String,
    /// Whether the service's database was emptied before each case.
    pub emptied: bool,
    /// Metrics that the service was said to have and did not report.
    #[serde(rename = "untold")]
    pub missing_metrics: Vec<String>,
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
    /// The version of the target, as it reports it.
    pub subject: String,
    /// Whether this program was optimised: `release` or `debug`.
    pub build: String,
}

/// How what was asked for ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// All cases are done.
    Done(T),
    /// A signal stopped it.
    Stopped(Unfinished),
}

/// Runs a study from the start of its target to its end.
///
/// A stop ends the clients first, then the target, and waits for it.
///
/// # Errors
/// When the target cannot be started or reached, dies, or its metrics cannot be read.
pub async fn run(design: &Design, meters: &Meters, mut stop: Stop) -> Result<Ended<Study>> {
    let begun = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let version = match &design.service {
        Service::Program(program) => target_process::version(program).await,
        Service::Running(_) => "unknown".to_owned(),
    };
    let mut study_run = StudyRun::new(design, meters);
    let ran = match &design.service {
        Service::Program(program) => {
            let mut process = TargetProcess::start(program)?;
            let ran = tokio::select! {
                ran = with(&mut process, &mut study_run) => Some(ran),
                () = stop.requested() => None,
            };
            // A target that died takes its clients down with it: its death is the reason, not
            // theirs.
            let ran = match ran {
                Some(Err(error)) => Some(Err(process.cause_of_death().await.unwrap_or(error))),
                ran => ran,
            };
            process.stop().await;
            ran
        }
        Service::Running(addresses) => tokio::select! {
            ran = against(addresses, design, &mut study_run) => Some(ran),
            () = stop.requested() => None,
        },
    };

    study_run.end().await;

    match ran {
        None => Ok(Ended::Stopped(study_run.unfinished())),
        Some(Err(error)) => Err(error.context(study_run.unfinished().to_string())),
        Some(Ok(())) => Ok(Ended::Done(Study {
            scrapes: study_run.scrapes(),
            missing_metrics: study_run.missing_metrics().to_vec(),
            cases: study_run.into_findings(),
            subject: design.service.to_string(),
            started: matches!(design.service, Service::Program(_)),
            scenario: design.scenario.name.clone(),
            steps: design.scenario.steps.iter().map(|step| step.name.clone()).collect(),
            protocol: design.protocol.to_string(),
            emptied: design.service.resets() || design.before_case.is_some(),
            machine: Machine::this(),
            versions: Versions {
                talea: env!("CARGO_PKG_VERSION").to_owned(),
                subject: version,
                build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            },
            command: design.command.clone(),
            begun,
            sampled_every_ms: SAMPLE_EVERY.as_millis() as u64,
        })),
    }
}

/// Runs all cases against a child process, unless it dies.
async fn with(process: &mut TargetProcess, study_run: &mut StudyRun<'_>) -> Result<()> {
    let addresses = process.ready().await?;
    tokio::select! {
        ran = study_run.run(addresses) => ran,
        death = process.died() => Err(death),
    }
}

/// Runs all cases against a service that runs already.
async fn against(
    addresses: &Addresses,
    design: &Design,
    study_run: &mut StudyRun<'_>,
) -> Result<()> {
    let items = addresses.items.clone().reached(design.timeout).await;
    let items = items.with_context(|| format!("{} cannot be reached", addresses.items))?;
    study_run.run(Addresses { items, metrics: addresses.metrics.clone() }).await
}
