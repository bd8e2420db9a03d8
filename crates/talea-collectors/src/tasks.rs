//! Tasks spawned, alive and ready, counted around each task.
//!
//! *Ready* means woken and not yet polled: what waits in the runtime's queues. Stable tokio shows
//! only its global queue, which sees wake-ups from outside the runtime. A [`TaskMeter`] counts
//! every wake and every poll of the tasks that are spawned through it, and keeps high-water marks
//! that also include peaks between two scrapes.
//!
//! It does not see tasks that are spawned in another way, and a task that the runtime polls without
//! a wake (only to drop it after an abort, say).

mod metered;
mod tally;

use metered::Metered;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use talea::{Combine, Counter, Error, Gauge, Opts, Registry};
use tally::{Level, Tallies};
use tokio::task::JoinHandle;

/// Spawns tasks and counts them: those alive and those ready, now and at most, and all that were
/// ever spawned.
///
/// Clones share their counts. [`TaskMeter::default`] makes a meter that is in no registry.
#[derive(Debug, Clone, Default)]
pub struct TaskMeter {
    tallies: Arc<Tallies>,
}

impl TaskMeter {
    /// Makes a meter that `registry` shows as a counter and four gauges:
    ///
    /// | metric | meaning |
    /// |---|---|
    /// | `{name}_tasks_spawned_total` | tasks that were ever spawned, over all processes |
    /// | `{name}_tasks_alive` | tasks not yet done, dropped or aborted |
    /// | `{name}_tasks_alive_peak` | the most of them at one moment since the last reset |
    /// | `{name}_tasks_ready` | tasks woken, or just spawned, and not yet polled |
    /// | `{name}_tasks_ready_peak` | the most of them at one moment since the last reset |
    ///
    /// If processes share the registry, alive and ready tasks are sums over the living processes, and each
    /// peak is the highest of a process: peaks of different moments do not add up. A child made by `fork` has
    /// none of its parent's tasks in these gauges, and none of its own.
    ///
    /// Give each meter of a registry another name: two of one name would write to
    /// the same gauges.
    ///
    /// # Errors
    ///
    /// A metric cannot be registered: see [`Registry::register`].
    pub fn register(registry: &Registry, name: &str) -> Result<TaskMeter, Error> {
        let gauge = |ending: &str, help: &str, combine| -> Result<Gauge, Error> {
            registry.register(Opts::new(&format!("{name}_tasks_{ending}"), help).combine(combine))
        };
        let (sum, max) = (Combine::Sum, Combine::Max);
        let alive = gauge("alive", "Tasks that are not done yet.", sum)?;
        let alive_peak =
            gauge("alive_peak", "Most tasks alive at once since the last reset.", max)?;
        let ready = gauge("ready", "Tasks that were woken and not polled yet.", sum)?;
        let ready_peak =
            gauge("ready_peak", "Most tasks ready at once since the last reset.", max)?;
        let spawned: Counter =
            registry.register(Opts::new(&format!("{name}_tasks_spawned"), "Tasks spawned."))?;

        let tallies = Tallies { shown_spawned: Some(spawned), ..Tallies::default() };
        let meter = TaskMeter { tallies: Arc::new(tallies) };
        let tallies = Arc::clone(&meter.tallies);
        let process = std::process::id();
        registry.on_snapshot(move || {
            // A child made by `fork` has a copy of its parent's tallies.
            if std::process::id() != process {
                return;
            }
            show(tallies.alive.read(), &alive, &alive_peak);
            show(tallies.ready.read(), &ready, &ready_peak);
        });
        Ok(meter)
    }

    /// Spawns `future` on the current runtime, like [`tokio::spawn`], and meters it.
    ///
    /// # Panics
    ///
    /// Panics when called outside a tokio runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.meter(future))
    }

    /// Wraps `future` so that it counts as a task of this meter: for a `JoinSet`,
    /// a `LocalSet` or another runtime's spawn.
    ///
    /// It counts as alive and ready from this call on.
    pub fn meter<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Metered::new(future, Arc::clone(&self.tallies))
    }

    /// All tasks that were spawned or wrapped so far.
    pub fn spawned(&self) -> u64 {
        self.tallies.spawned.load(Relaxed)
    }

    /// Tasks spawned and not yet done, dropped or aborted.
    pub fn alive(&self) -> usize {
        at_least_zero(self.tallies.alive.read().now)
    }

    /// The most tasks alive at one moment since the start or the last reset.
    pub fn alive_peak(&self) -> usize {
        at_least_zero(self.tallies.alive.read().peak)
    }

    /// Tasks woken, or just spawned, and not yet polled.
    pub fn ready(&self) -> usize {
        at_least_zero(self.tallies.ready.read().now)
    }

    /// The most tasks ready at one moment since the start or the last reset.
    pub fn ready_peak(&self) -> usize {
        at_least_zero(self.tallies.ready.read().peak)
    }

    /// Sets each peak to its current count.
    ///
    /// A peak is never below its count, whatever happens at the same time.
    pub fn reset_peaks(&self) {
        self.tallies.alive.reset_peak();
        self.tallies.ready.reset_peak();
    }
}

fn show(Level { now, peak }: Level, now_gauge: &Gauge, peak_gauge: &Gauge) {
    now_gauge.set(i64::from(now.max(0)));
    peak_gauge.set(i64::from(peak.max(0)));
}

fn at_least_zero(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}
