//! A tokio runtime: its tasks, its workers and how busy they are.
//!
//! | metric | what it says |
//! |---|---|
//! | `tokio_alive_tasks` | tasks spawned on the runtime and not yet done, everybody's |
//! | `tokio_workers` | threads that poll tasks |
//! | `tokio_busy_seconds_total` | time the workers spent awake, all together |
//!
//! This is what stable tokio tells. Its queues are not among it, so tasks that
//! are ready are counted by [`TaskMeter`](crate::tasks::TaskMeter).

use talea::{Combine, Error, Gauge, Opts, Registry};
use tokio::runtime::{Handle, RuntimeMetrics};

/// Registers the metrics of the runtime that `runtime` belongs to.
///
/// Register one runtime in a registry: the metrics have no label to tell two
/// apart. Busy time needs 64-bit atomics; a platform without them does not have
/// that metric.
///
/// # Errors
///
/// A metric cannot be registered: see [`Registry::register`].
pub fn register(registry: &Registry, runtime: Handle) -> Result<(), Error> {
    // Of all processes that share the registry.
    let sum = |name, help| registry.register::<Gauge>(Opts::new(name, help).combine(Combine::Sum));
    let alive = sum("tokio_alive_tasks", "Tasks of the tokio runtime that are not done yet.")?;
    let workers = sum("tokio_workers", "Worker threads of the tokio runtime.")?;
    let metrics = runtime.metrics();
    register_busy(registry, metrics.clone())?;
    registry.on_snapshot(move || {
        alive.set(metrics.num_alive_tasks() as i64);
        workers.set(metrics.num_workers() as i64);
    });
    Ok(())
}

#[cfg(target_has_atomic = "64")]
fn register_busy(registry: &Registry, metrics: RuntimeMetrics) -> Result<(), Error> {
    let help = "Time that the workers of the tokio runtime were not parked, in seconds.";
    registry.observable_counter(Opts::new("tokio_busy_seconds_total", help), move || {
        let busy =
            (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker));
        busy.map(|time| time.as_secs_f64()).sum()
    })
}

#[cfg(not(target_has_atomic = "64"))]
fn register_busy(_: &Registry, _: RuntimeMetrics) -> Result<(), Error> {
    Ok(())
}
