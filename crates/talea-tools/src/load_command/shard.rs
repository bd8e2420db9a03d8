//! `talea load --record`: a load whose result is a line for `talea load merge`; mostly one of several parts.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Error, Result};
use talea_load::stop::Stop;
use talea_load::{Meters, Plan, ShardRecord, Start, Summary, Timeline, Window};
use talea_view::screen;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::arguments::LoadArguments;
use crate::ending::Ending;
use talea_study::compare::Finding;

const SECOND: Duration = Duration::from_secs(1);

pub(super) async fn run(
    arguments: &LoadArguments,
    plan: &Plan,
    meters: &Meters,
    mut stop: Stop,
) -> Result<Ending> {
    let path = arguments.record.as_deref().context("no file")?;
    open(path)?;
    let warmed_up = super::warmed_up(arguments, plan, meters, &stop).await?;
    wait_until(arguments.start_at, &mut stop).await;
    let start = Start { at: arguments.start_at, began: SystemTime::now() };
    let window = meters.window();
    let timeline = Arc::new(Mutex::new(Timeline::default()));
    let seconds = tokio::spawn(follow(window.clone(), timeline.clone()));
    let outcome = super::one(plan, &window, &stop, arguments.output.quiet).await;
    seconds.abort();
    // It has ended then.
    let _ = seconds.await;
    let mut timeline = std::mem::take(&mut *lock(&timeline));
    let torn_down = talea_load::tear_down(plan).await.map_err(Error::msg);
    let outcome = outcome?;
    timeline.end_second(outcome.elapsed.as_secs(), &window);
    let all = super::model(arguments)?;
    let record = ShardRecord::new(plan, &all, &outcome, timeline, start);
    let line = serde_json::to_string(&record)? + "\n";
    if path == Path::new("-") {
        screen::write(line.as_bytes()).context("standard output")?;
    } else {
        open(path)?.write_all(line.as_bytes()).with_context(|| cannot(path))?;
        let mut summary = Summary::new(plan, &outcome);
        summary.requests_of_warm_up = warmed_up;
        screen::print(&summary)?;
    }
    torn_down?;
    match outcome.interrupted {
        true => Ok(Ending::Interrupted),
        false => Ok(Ending::of(outcome.tally.failed() == 0, Finding::Passed)),
    }
}

/// Notes each second of a load, until it is aborted.
async fn follow(window: Window, timeline: Arc<Mutex<Timeline>>) {
    let mut ticks = interval_at(Instant::now() + SECOND, SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let begun = Instant::now();
    loop {
        ticks.tick().await;
        let second = begun.elapsed().as_secs().saturating_sub(1);
        lock(&timeline).end_second(second, &window);
    }
}

fn lock(timeline: &Mutex<Timeline>) -> MutexGuard<'_, Timeline> {
    timeline.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a time, or a request to stop.
pub(super) async fn wait_until(time: Option<SystemTime>, stop: &mut Stop) {
    let left = time.and_then(|time| time.duration_since(SystemTime::now()).ok());
    let Some(left) = left else { return };
    tokio::select! {
        () = tokio::time::sleep(left) => {}
        () = stop.requested() => {}
    }
}

fn open(path: &Path) -> Result<std::fs::File> {
    let path = if path == Path::new("-") { Path::new("/dev/null") } else { path };
    OpenOptions::new().append(true).create(true).open(path).with_context(|| cannot(path))
}

fn cannot(path: &Path) -> String {
    format!("the record cannot be written to {}", path.display())
}
