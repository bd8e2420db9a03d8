//! The clients of an open load: as many as needed, started as requests arrive.
//!
//! A thread of its own keeps the time, since the runtime's timers step by a millisecond. It sleeps until just before an
//! arrival is due, with the least slack that the system allows, and looks at the clock for the rest. How long before
//! depends on how late sleeps end: some microseconds on a machine of one's own, a hundred and more on a virtual one.

use std::sync::atomic::{AtomicU64, Ordering::Acquire};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_channel::Receiver;

use crate::client::{Client, ClientTask};
use crate::health::thread_cpu_time;
use crate::meters::Meters;
use crate::model::Arrivals;
use crate::stop::Stop;
use crate::threads::Threads;

pub(super) struct Dispatch {
    pub(super) seed: u64,
    pub(super) arrivals: Arrivals,
    pub(super) at_most: u64,
    pub(super) meters: Meters,
    pub(super) stop: Stop,
    /// Dropped when the caller no longer waits for the load.
    pub(super) waiting: Weak<()>,
    pub(super) threads: Arc<Threads>,
}

/// The clients that were started, and how often all were busy.
pub(super) struct OpenLoad {
    pub(super) clients: Vec<ClientTask>,
    /// The arrivals that no client has taken yet.
    pub(super) waiting: Receiver<Instant>,
    /// Arrivals that found all busy, when no more could be started.
    pub(super) starved: u64,
    /// Processor time of the thread that keeps the time.
    pub(super) timing: Duration,
}

/// How long before an arrival the thread wakes up, at least and at most; never more than a quarter of the time between
/// two arrivals, since a server on the same machine needs the core too.
const LEAST_AHEAD: Duration = Duration::from_micros(60);
const MOST_AHEAD: Duration = Duration::from_micros(400);
const MOST_OF_GAP: u32 = 4;

/// How long before an arrival the thread is to wake up, after a sleep that ended so late: as long as the latest of
/// some hundred sleeps, so that one of a hundred is late.
fn ahead_after(ahead: Duration, late: Duration) -> Duration {
    late.max(ahead - ahead / 128).clamp(LEAST_AHEAD, MOST_AHEAD)
}

const STOP_CHECK_EVERY: Duration = Duration::from_millis(50);

impl Dispatch {
    /// Sends arrivals to clients at their time, and starts one where all are busy. Blocks until the
    /// last has arrived, or a stop is requested.
    pub(super) fn run(self) -> OpenLoad {
        let _exact = ExactSleeps::begin();
        let served = Arc::new(AtomicU64::new(0));
        let (sender, receiver) = async_channel::unbounded();
        let waiting = receiver.clone();
        let timing = Duration::ZERO;
        let mut load = OpenLoad { clients: Vec::new(), waiting, starved: 0, timing };
        let (cpu, mut ahead) = (thread_cpu_time(), LEAST_AHEAD);
        let mut before = Duration::ZERO;
        for (sent, offset) in (0..).zip(self.arrivals.offsets(self.seed)) {
            let intended = self.threads.started() + offset;
            let gap = offset.saturating_sub(before);
            let most = (gap / MOST_OF_GAP).min(MOST_AHEAD);
            before = offset;
            if !self.wait_until(intended, most, &mut ahead) {
                break;
            }
            let clients = load.clients.len() as u64;
            // All are busy, or will be with the arrivals in the queue.
            if sent - served.load(Acquire) >= clients {
                if clients == self.at_most {
                    load.starved += 1;
                } else {
                    let client = self.threads.spawn(clients, |plan| {
                        let client = Client::new(plan, clients, self.meters.clone());
                        client.serve(receiver.clone(), served.clone(), self.stop.clone())
                    });
                    load.clients.push(ClientTask(client));
                }
            }
            // It is never full, and open as long as there is a receiver, which is here.
            let _ = sender.try_send(intended);
        }
        load.timing = thread_cpu_time().saturating_sub(cpu);
        load
    }

    /// False if a stop is requested before.
    fn wait_until(&self, instant: Instant, most_ahead: Duration, ahead: &mut Duration) -> bool {
        loop {
            if self.stop.is_requested() || self.waiting.strong_count() == 0 {
                return false;
            }
            let now = Instant::now();
            let left = instant.saturating_duration_since(now);
            if left.is_zero() {
                return true;
            }
            match left.checked_sub(most_ahead.min(*ahead)) {
                Some(sleep) if !sleep.is_zero() => {
                    let sleep = sleep.min(STOP_CHECK_EVERY);
                    std::thread::sleep(sleep);
                    *ahead = ahead_after(*ahead, now.elapsed().saturating_sub(sleep));
                }
                // Clients that share the core go first.
                _ => std::thread::yield_now(),
            }
        }
    }
}

/// While it lives, sleeps of this thread end when they should: usually the system may add 50 µs, to let several end
/// together.
struct ExactSleeps {
    #[cfg(target_os = "linux")]
    usual: Option<std::num::NonZeroU64>,
}

#[cfg(target_os = "linux")]
impl ExactSleeps {
    fn begin() -> Self {
        let usual = rustix::thread::current_timer_slack().ok().and_then(std::num::NonZeroU64::new);
        // Without it the load is later, and says so.
        let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
        Self { usual }
    }
}

#[cfg(target_os = "linux")]
impl Drop for ExactSleeps {
    fn drop(&mut self) {
        let _ = rustix::thread::set_current_timer_slack(self.usual);
    }
}

#[cfg(not(target_os = "linux"))]
impl ExactSleeps {
    fn begin() -> Self {
        Self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_wakes_up_as_early_as_sleeps_end_late_within_bounds() {
        let micros = Duration::from_micros;
        let mut ahead = ahead_after(LEAST_AHEAD, micros(5));
        assert_eq!(ahead, LEAST_AHEAD);
        ahead = ahead_after(ahead, micros(150));
        assert_eq!(ahead, micros(150), "at once");
        for _ in 0..30 {
            ahead = ahead_after(ahead, micros(80));
        }
        assert!(ahead > micros(110), "{ahead:?}: the next of a hundred may be as late");
        for _ in 0..300 {
            ahead = ahead_after(ahead, micros(5));
        }
        assert_eq!(ahead, LEAST_AHEAD);
        assert_eq!(ahead_after(ahead, Duration::from_secs(1)), MOST_AHEAD);
    }
}
