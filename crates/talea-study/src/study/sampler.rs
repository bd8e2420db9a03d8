//! Samples of the service's metrics, and of the clients', while a case runs.
//!
//! The sampler has a thread of its own, so that a thousand clients that are ready to run do not
//! make it late. A sample that comes late all the same is stamped with its own time.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use talea_load::Window;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval_at};

use super::clients::{Observed, ResponseTimeline};
use super::reading::Reading;
use super::scraper::Scraper;
use super::series::{Counters, Sample};

/// The time between two samples, as aimed at.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// How many times as long as the time between two samples a case has been running, at least: a case of hours has
/// some ten thousand samples, and not one each [`SAMPLE_EVERY`].
const FINENESS: u32 = 6_000;

/// Whether another sample is due at a time of a case, after the last one.
fn is_due(at: Duration, last: Duration) -> bool {
    at.saturating_sub(last) >= at / FINENESS
}

/// A running sampler. It ends when it is dropped.
pub(super) struct Sampler {
    end: oneshot::Sender<()>,
    samples: oneshot::Receiver<Samples>,
    thread: JoinHandle<()>,
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
        let (all, samples) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || {
                let _ = all.send(runtime.block_on(sample(begun, service, clients, ended)));
            })
            .context("cannot start a thread for the sampler")?;
        Ok(Self { end, samples, thread })
    }

    pub(super) async fn end(self) -> Result<Samples> {
        let Self { end, samples, thread } = self;
        // It fails only when the thread is gone, which the join reports.
        let _ = end.send(());
        // A study that is stopped does not wait for a scrape, as it would for a join on a thread of
        // the runtime.
        if let Ok(samples) = samples.await {
            return Ok(samples);
        }
        match thread.join() {
            Ok(()) => bail!("the sampler ended without samples"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
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
    let mut sampled = Duration::ZERO;
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
        let at = begun.elapsed();
        if !last && !is_due(at, sampled) {
            continue;
        }
        sampled = at;
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

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::TcpListener;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context as PollContext, Waker};

    use talea_load::scenario::Names;
    use talea_load::{Meters, Target};

    use super::*;

    #[test]
    fn a_soak_of_a_day_has_no_more_samples_than_a_report_can_hold() {
        let samples = |seconds: u64| {
            let (mut last, mut samples) = (Duration::ZERO, 0);
            for tick in 1..=seconds * 10 {
                let at = Duration::from_millis(tick * 100);
                if is_due(at, last) {
                    (last, samples) = (at, samples + 1);
                }
            }
            samples
        };
        assert_eq!(samples(600), 6_000, "each that there can be in ten minutes");
        assert!((6_000..60_000).contains(&samples(86_400)), "{}", samples(86_400));
    }

    #[test]
    fn a_study_that_is_stopped_does_not_wait_for_a_page_that_never_comes() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}/metrics", silent.local_addr().unwrap());
        let names = Arc::new(Names::built_in("talea").unwrap());
        let scraper = Scraper::new(Target::page(&target).unwrap(), names);
        let meters = Meters::new(1).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let service = Some((scraper, Reading::default()));
        let sampler = Sampler::begin(Instant::now(), service, meters.window()).unwrap();
        let (mut asked, _) = silent.accept().unwrap();
        {
            let _guard = runtime.enter();
            let end = pin!(sampler.end());
            assert!(end.poll(&mut PollContext::from_waker(Waker::noop())).is_pending());
        }
        drop(runtime);
        // The scrape goes on: its connection has not ended.
        asked.set_nonblocking(true).unwrap();
        let ended = std::iter::repeat_with(|| asked.read(&mut [0; 1024]))
            .find(|read| !matches!(read, Ok(1..)));
        assert!(
            matches!(ended, Some(Err(ref error)) if error.kind() == ErrorKind::WouldBlock),
            "{ended:?}"
        );
    }
}
