//! Samples of the service's metrics while a case runs.
//!
//! The sampler has a thread of its own, so that a thousand clients that are ready to run do not
//! make it late. A sample that comes late all the same is stamped with its own time.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval_at};

use super::reading::Reading;
use super::scraper::Scraper;
use super::series::Sample;
use crate::load::Target;

/// The time between two samples, as aimed at.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// A running sampler. It ends when it is dropped.
pub(super) struct Sampler {
    end: oneshot::Sender<()>,
    thread: JoinHandle<Result<Samples>>,
}

/// The samples of a case.
pub(super) struct Samples {
    /// The baseline first, the reading after the last answer at the end.
    pub(super) samples: Vec<Sample>,
    /// Scrapes that were tried, the baseline not among them.
    pub(super) scrapes: u64,
    /// Scrapes in between that failed, each with a sample missing.
    pub(super) missed: u64,
}

impl Sampler {
    /// Starts to sample every [`SAMPLE_EVERY`] from the baseline on.
    pub(super) fn begin(metrics: Target, baseline: (Instant, Reading)) -> Result<Self> {
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || runtime.block_on(sample(metrics, baseline, ended)))?;
        Ok(Self { end, thread })
    }

    /// Takes the last sample.
    pub(super) async fn end(self) -> Result<Samples> {
        let Self { end, thread } = self;
        // It fails only when the thread is gone, which the join tells.
        let _ = end.send(());
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

async fn sample(
    metrics: Target,
    (begun, baseline): (Instant, Reading),
    mut ended: oneshot::Receiver<()>,
) -> Result<Samples> {
    let mut scraper = Scraper::new(metrics);
    let mut samples = vec![Sample { at: Duration::ZERO, reading: baseline }];
    let mut missed = 0;
    let mut ticks = interval_at((begun + SAMPLE_EVERY).into(), SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let last = tokio::select! {
            biased;
            _ = &mut ended => true,
            _ = ticks.tick() => false,
        };
        match scraper.scrape().await {
            Ok((at, reading)) => samples.push(Sample { at: at - begun, reading }),
            Err(error) if last => return Err(error).context("no reading at the end of the case"),
            Err(_) => missed += 1,
        }
        if last {
            return Ok(Samples { samples, scrapes: scraper.scrapes(), missed });
        }
    }
}
