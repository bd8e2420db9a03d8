//! Tokio runtimes: their tasks, their workers and how busy they are.
//!
//! Each metric has the label `runtime`, the name that [`register`] is given.
//!
//! | metric | meaning |
//! |---|---|
//! | `tokio_workers` | threads that poll tasks |
//! | `tokio_alive_tasks` | tasks spawned on the runtime and not yet done, everybody's |
//! | `tokio_global_queue_depth` | tasks that wait in the queue that all workers share |
//! | `tokio_busy_seconds_total` | time the workers spent awake, all together |
//! | `tokio_worker_parks_total` | times that a worker ran out of work and went to sleep |
//! | `tokio_tasks_spawned_total` | tasks spawned on the runtime by any code; only in a program that is built with `--cfg tokio_unstable`, where tokio reports it |
//!
//! These are the values that stable tokio reports. A worker adds to its busy time when it goes to
//! sleep, so a long busy time shows only afterwards. The queue of each worker is not reported, so
//! ready tasks are counted by [`TaskMeter`](crate::tasks::TaskMeter).
//!
//! If processes share a registry, gauges are sums over the living ones, and counters over all that
//! ever were, by the runtime's name.
//!
//! Cost of a snapshot: for each runtime some loads, two for each of its workers, and a
//! system call.

mod names;
mod series;
mod work;

use series::series;
use talea::{Combine, Error, Gauge, Opts, Registry};
use tokio::runtime::{Handle, RuntimeMetrics};
use work::Work;

/// Registers the metrics of the runtime that `runtime` belongs to, with `name` as their
/// label `runtime`, and reads them for the first time.
///
/// ```
/// use talea::Registry;
/// use tokio::runtime::Builder;
///
/// let registry = Registry::for_test()?;
/// let api = Builder::new_multi_thread().worker_threads(2).build().unwrap();
/// let jobs = Builder::new_multi_thread().worker_threads(1).build().unwrap();
/// talea_collectors::tokio::register(&registry, "api", api.handle().clone())?;
/// talea_collectors::tokio::register(&registry, "jobs", jobs.handle().clone())?;
/// assert_eq!(registry.snapshot().value("tokio_workers", &[("runtime", "api")]), Some(2.0));
/// assert_eq!(registry.snapshot().value("tokio_workers", &[("runtime", "jobs")]), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
///
/// A runtime is shown as long as the registry lives; one that was shut down has no tasks.
/// It is shown by this process only: a child made by `fork` has none of its threads, and
/// registers its own runtime, by the same name if it likes.
///
/// # Errors
///
/// This process shows a runtime of that name in this registry already; the name is too
/// long; or a metric cannot be registered: see [`Registry::register`].
pub fn register(registry: &Registry, name: &str, runtime: Handle) -> Result<(), Error> {
    let shown = Shown::new(registry, name, runtime.metrics())?;
    names::take(name, &shown.workers, || shown.refresh())?;
    registry.on_snapshot(move || shown.refresh());
    Ok(())
}

/// A runtime, and what shows it.
struct Shown {
    metrics: RuntimeMetrics,
    workers: Gauge,
    alive_tasks: Gauge,
    global_queue_depth: Gauge,
    work: Work,
    /// The id of the process that has the runtime's threads.
    process: u32,
}

impl Shown {
    fn new(registry: &Registry, name: &str, metrics: RuntimeMetrics) -> Result<Self, Error> {
        let gauge = |metric, help| {
            // The sum over all processes that share the registry.
            series(registry, Opts::new(metric, help).combine(Combine::Sum), metric, name)
        };
        Ok(Self {
            metrics,
            workers: gauge("tokio_workers", "Worker threads of the tokio runtime.")?,
            alive_tasks: gauge(
                "tokio_alive_tasks",
                "Tasks of the tokio runtime that are not done yet.",
            )?,
            global_queue_depth: gauge(
                "tokio_global_queue_depth",
                "Tasks that wait in the queue that all workers of the tokio runtime share.",
            )?,
            work: Work::register(registry, name)?,
            process: std::process::id(),
        })
    }

    fn refresh(&self) {
        // A child made by `fork` sees its parent's runtime as it was.
        if std::process::id() != self.process {
            return;
        }
        self.workers.set(self.metrics.num_workers() as i64);
        self.alive_tasks.set(self.metrics.num_alive_tasks() as i64);
        self.global_queue_depth.set(self.metrics.global_queue_depth() as i64);
        self.work.follow(&self.metrics);
    }
}
