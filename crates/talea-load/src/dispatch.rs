//! The clients of an open load: as many as needed, started as requests arrive.
//!
//! A thread of its own keeps the time, since the runtime's timers step by a millisecond. It sleeps until just before an
//! arrival is due, with the least slack that the system allows, and looks at the clock for the rest.

use std::sync::atomic::{AtomicU64, Ordering::Acquire};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_channel::Receiver;

use crate::client::{Client, ClientTask};
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
}

/// How long before an arrival the thread wakes up: a sleep ends late, by so much where a core is free.
const AHEAD: Duration = Duration::from_micros(60);

const STOP_CHECK_EVERY: Duration = Duration::from_millis(50);

impl Dispatch {
    /// Sends arrivals to clients at their time, and starts one where all are busy. Blocks until the
    /// last has arrived, or a stop is requested.
    pub(super) fn run(self) -> OpenLoad {
        let _exact = ExactSleeps::begin();
        let served = Arc::new(AtomicU64::new(0));
        let (sender, receiver) = async_channel::unbounded();
        let waiting = receiver.clone();
        let mut load = OpenLoad { clients: Vec::new(), waiting, starved: 0 };
        for (sent, offset) in (0..).zip(self.arrivals.offsets(self.seed)) {
            let intended = self.threads.started() + offset;
            if !self.wait_until(intended) {
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
        load
    }

    /// False if a stop is requested before.
    fn wait_until(&self, instant: Instant) -> bool {
        loop {
            if self.stop.is_requested() || self.waiting.strong_count() == 0 {
                return false;
            }
            let left = instant.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            match left.checked_sub(AHEAD) {
                Some(sleep) if !sleep.is_zero() => std::thread::sleep(sleep.min(STOP_CHECK_EVERY)),
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
