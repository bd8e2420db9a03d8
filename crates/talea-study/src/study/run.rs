//! Runs a study once, from the start of its target to its end.

use std::time::SystemTime;

use anyhow::{Context, Result};
use talea_load::Meters;
use talea_load::stop::Stop;

use super::design::{Addresses, Design, Service};
use super::outcome::{RunEnd, Study, Versions};
use super::sampler::SAMPLE_EVERY;
use super::study_run::StudyRun;
use super::target_process::{self, TargetProcess};
use super::watcher::Watcher;
use crate::machine::Machine;

/// Runs a study from the start of its target to its end.
///
/// A stop ends the clients first, then the target, and waits for it.
/// Fails when the target cannot be started or reached, dies, or its metrics cannot be read.
pub(crate) async fn run(
    design: &Design,
    meters: &Meters,
    watcher: Option<&dyn Watcher>,
    mut stop: Stop,
) -> Result<RunEnd<Study>> {
    let begun = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let version = match &design.service {
        Service::Program(program) => target_process::version(program).await,
        Service::Running(_) => "unknown".to_owned(),
    };
    let mut study_run = StudyRun::new(design, meters, watcher);
    let ran = match &design.service {
        Service::Program(program) => {
            let mut process = TargetProcess::start(program).await?;
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
        None => Ok(RunEnd::Stopped(study_run.unfinished())),
        Some(Err(error)) => Err(error.context(study_run.unfinished().to_string())),
        Some(Ok(())) => Ok(RunEnd::Done(Study {
            scrapes: study_run.scrapes,
            missing_metrics: study_run.missing_metrics,
            cases: study_run.results,
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
