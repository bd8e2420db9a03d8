//! Samples of the service's metrics, and of the clients', while a case runs.
//!
//! The sampler has a thread of its own, so that a thousand clients that are ready to run do not
//! make it late. A sample that comes late all the same is stamped with its own time.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use talea_load::Window;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval_at};

use super::clients::{Observed, ResponseTimeline};
use super::reading::Reading;
use super::scraper::Scraper;
use super::series::{Counters, Sample};

/// The time between two samples, as aimed at.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// A running sampler. It ends when it is dropped.
pub(super) struct Sampler {
    end: oneshot::Sender<()>,
    thread: JoinHandle<Samples>,
}

#[derive(Default)]
pub(super) struct Samples {
    /// The baseline first, the reading after the last answer at the end; nothing where the service
    /// has no metrics.
    pub(super) samples: Vec<Sample>,
    /// The clients' counts in the meantime.
    pub(super) timeline: ResponseTimeline,
    /// Scrapes that were tried, the baseline not among them.
    pub(super) scrapes: u64,
    /// Scrapes in between that failed, each with a sample missing.
    pub(super) missed: u64,
    /// Why there is no reading after the last answer.
    pub(super) unread: Option<anyhow::Error>,
}

impl Sampler {
    /// Starts to sample every [`SAMPLE_EVERY`] from an instant on. The scraper, with the baseline
    /// that was read then, is there where the service has metrics.
    pub(super) fn begin(
        begun: Instant,
        service: Option<(Scraper, Reading)>,
        clients: Window,
    ) -> Result<Self> {
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || runtime.block_on(sample(begun, service, clients, ended)))
            .context("no thread for the sampler")?;
        Ok(Self { end, thread })
    }

    pub(super) async fn end(self) -> Result<Samples> {
        let Self { end, thread } = self;
        // It fails only when the thread is gone, which the join reports.
        let _ = end.send(());
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        Ok(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

async fn sample(
    begun: Instant,
    service: Option<(Scraper, Reading)>,
    clients: Window,
    mut ended: oneshot::Receiver<()>,
) -> Samples {
    let mut all = Samples::default();
    let mut counters = Counters::default();
    let mut scraper = service.map(|(scraper, reading)| {
        all.samples.push(counters.sample(Duration::ZERO, reading));
        // Its connection is to be driven by this thread too.
        scraper.another()
    });
    let mut ticks = interval_at((begun + SAMPLE_EVERY).into(), SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let last = tokio::select! {
            biased;
            _ = &mut ended => true,
            _ = ticks.tick() => false,
        };
        match last {
            false => all.timeline.record(begun.elapsed(), || Observed::of(&clients)),
            true => all.timeline.end(begun.elapsed(), Observed::of(&clients)),
        }
        if let Some(scraper) = &mut scraper {
            let scraped = match last {
                true => scraper.scrape_at_last().await,
                false => scraper.scrape().await,
            };
            match scraped {
                Ok((at, reading)) => all.samples.push(counters.sample(at - begun, reading)),
                Err(error) if last => all.unread = Some(error),
                Err(_) => all.missed += 1,
            }
            all.scrapes = scraper.scrapes;
        }
        if last {
            return all;
        }
    }
}
