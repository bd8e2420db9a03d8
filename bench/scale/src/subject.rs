//! The counters that are compared.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use rustix::time::{ClockId, clock_gettime};
use talea::{AddPath, Counter, Opts, Registry};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// By restartable sequences.
    Talea,
    /// With restartable sequences off: atomic adds to a copy of each CPU.
    TaleaPercpuAtomic,
    /// Atomic adds to one copy.
    TaleaSingle,
    /// As `talea`, in a static program with musl.
    TaleaMusl,
    /// One atomic that all threads share.
    FetchAdd,
    /// The crate `prometheus`.
    #[cfg(feature = "peers")]
    Prometheus,
    /// The crate `measured`.
    #[cfg(feature = "peers")]
    Measured,
}

impl Subject {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// The name that the command line has for it, such as `talea-percpu-atomic`.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The value of `TALEA_PLANES`.
    pub(crate) fn path(self) -> Option<&'static str> {
        match self {
            Self::TaleaPercpuAtomic => Some(AddPath::Atomic.name()),
            Self::TaleaSingle => Some(AddPath::Single.name()),
            _ => None,
        }
    }

    /// The CPU time of one of so many adds by so many threads, in nanoseconds.
    pub(crate) fn measure(self, threads: usize, adds: u64) -> Result<f64> {
        match self {
            Self::Talea | Self::TaleaPercpuAtomic | Self::TaleaSingle | Self::TaleaMusl => {
                let registry = Registry::new()?;
                let counter: Counter = registry.register(Opts::new("adds", "Adds."))?;
                run(threads, adds, || counter.inc(), || counter.get())
            }
            Self::FetchAdd => {
                let counter = Line::default();
                run(
                    threads,
                    adds,
                    || {
                        counter.0.fetch_add(1, Relaxed);
                    },
                    || counter.0.load(Relaxed),
                )
            }
            #[cfg(feature = "peers")]
            Self::Prometheus => {
                let counter = prometheus::IntCounter::new("adds", "Adds.")?;
                run(threads, adds, || counter.inc(), || counter.get())
            }
            #[cfg(feature = "peers")]
            Self::Measured => {
                let counter = measured::Counter::new();
                run(threads, adds, || counter.inc(), || counter.get_metric().count.load(Relaxed))
            }
        }
    }
}

/// An atomic with two cache lines to itself, since processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Adds from all threads at once. Fails if an add is lost.
fn run(threads: usize, adds: u64, add: impl Fn() + Sync, total: impl Fn() -> u64) -> Result<f64> {
    let each = adds / threads as u64;
    let start = Barrier::new(threads);
    let spent: Duration = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    // So that no first add is measured.
                    add();
                    start.wait();
                    let before = cpu_time();
                    (0..each).for_each(|_| add());
                    cpu_time() - before
                })
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).sum()
    });
    let expected = (each + 1) * threads as u64;
    ensure!(total() == expected, "{} of {expected} adds were counted", total());
    Ok(spent.as_secs_f64() * 1e9 / (each * threads as u64) as f64)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
