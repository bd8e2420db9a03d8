//! One measurement: some threads do the same work at the same time.
//!
//! Time in which a thread could have run but other programs had the cores is
//! not counted. Threads that wait for a core do not contend with each other either,
//! so a measurement in which others had much of the cores is repeated.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use talea_region::{AddPath, Region};

use crate::work::{Subject, Work};
use talea_statistics::median;

/// How long a measurement takes, unless a test wants it short.
pub(crate) const TARGET: Duration = Duration::from_millis(75);

/// The share of the cores' time that others may have, and how often a measurement is tried.
const CALM: f64 = 0.03;
const TRIES: u64 = 6;

/// The cost of one operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Wall time of a thread, less what it waited for a core; CPU time where
    /// threads outnumber cores.
    pub(crate) ns: f64,
    /// Calls of the allocator that give memory.
    pub(crate) allocs: f64,
    pub(crate) bytes: f64,
    /// The time of the last tenth of the operations to that of the first, where it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_to_first: Option<f64>,
}

impl Cost {
    pub(crate) fn median(costs: impl Iterator<Item = Self> + Clone) -> Self {
        let of = |part: fn(&Self) -> f64| median(costs.clone().map(|cost| part(&cost)));
        let ratios = costs.clone().filter_map(|cost| cost.last_to_first);
        let last_to_first = ratios.clone().next().map(|_| median(ratios));
        let (ns, allocs, bytes) = (of(|c| c.ns), of(|c| c.allocs), of(|c| c.bytes));
        Self { ns, allocs, bytes, last_to_first }
    }
}

/// Measures `n` operations on each of `threads` threads, which start together.
/// Returns also how many operations were done in all.
pub(crate) fn measure(
    subject: &Subject,
    work: &dyn Work,
    threads: usize,
    n: u64,
    target: Duration,
) -> (Cost, u64) {
    let cores = cpus().len();
    let mut best = spend(subject, work, threads, n);
    let mut tries = 1;
    while tries < TRIES && taken_by_others(&best, cores) > CALM {
        thread::sleep(target);
        let again = spend(subject, work, threads, n);
        tries += 1;
        if taken_by_others(&again, cores) < taken_by_others(&best, cores) {
            best = again;
        }
    }
    let operations = (threads as u64 * n) as f64;
    let cost = Cost {
        ns: best
            .iter()
            .map(|one| if threads > cores { one.cpu } else { one.running })
            .sum::<Duration>()
            .as_nanos() as f64
            / operations,
        allocs: best.iter().map(|one| one.allocs).sum::<u64>() as f64 / operations,
        bytes: best.iter().map(|one| one.bytes).sum::<u64>() as f64 / operations,
        last_to_first: None,
    };
    (cost, tries * threads as u64 * n)
}

/// The share of the cores' time that these threads wanted and did not get.
fn taken_by_others(spent: &[TimeSpent], cores: usize) -> f64 {
    if spent.len() > cores {
        let had: Duration = spent.iter().map(|one| one.cpu).sum();
        let whole = spent.iter().map(|one| one.wall).max().unwrap_or_default();
        return 1.0 - had.as_secs_f64() / (whole.as_secs_f64() * cores as f64).max(1e-9);
    }
    spent
        .iter()
        .map(|one| 1.0 - one.running.as_secs_f64() / one.wall.as_secs_f64().max(1e-9))
        .fold(0.0, f64::max)
}

/// How many operations a thread must do for a measurement of 50 to 100 ms, and how many all
/// threads did to find that out.
pub(crate) fn calibrate(
    subject: &Subject,
    work: &dyn Work,
    threads: usize,
    target: Duration,
) -> (u64, u64) {
    let (mut n, mut done) = (1, 0);
    loop {
        let took = spend(subject, work, threads, n).iter().map(|one| one.running).max();
        let took = took.unwrap_or_default().as_secs_f64().max(1e-6);
        done += threads as u64 * n;
        let fitting = (n as f64 * target.as_secs_f64() / took).max(1.0);
        // A short try is mostly start-up: the last one must have been of the right order.
        if took * 4.0 > target.as_secs_f64() {
            return (fitting as u64, done);
        }
        n = fitting.min(n as f64 * 100.0) as u64;
    }
}

struct TimeSpent {
    wall: Duration,
    /// The wall time less what it waited for a core.
    running: Duration,
    cpu: Duration,
    allocs: u64,
    bytes: u64,
}

fn spend(subject: &Subject, work: &dyn Work, threads: usize, n: u64) -> Vec<TimeSpent> {
    if !subject.restartable {
        Region::choose_add_path(AddPath::Atomic);
    }
    let cpus = cpus();
    let start = Barrier::new(threads);
    let spent = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                // A core each, so that they run at the same time.
                let cpu = (1 < threads && threads <= cpus.len()).then(|| cpus[thread]);
                let start = &start;
                scope.spawn(move || {
                    cpu.into_iter().for_each(pin_to);
                    start.wait();
                    spend_alone(|| work.run(thread, n)).0
                })
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect::<Vec<_>>()
    });
    Region::choose_add_path(AddPath::Restartable);
    assert_eq!(spent.len(), threads, "a thread of {} panicked", subject.name);
    spent
}

fn spend_alone<T>(run: impl FnOnce() -> T) -> (TimeSpent, T) {
    let (waited, heap) = (waited_for_a_core(), densa_alloc::thread_stats());
    let (cpu, wall) = (thread_cpu_time(), Instant::now());
    let result = run();
    let (wall, cpu) = (wall.elapsed(), thread_cpu_time() - cpu);
    let heap = densa_alloc::thread_stats().since(heap);
    // Waiting may have gone on while it was read; CPU time is time that it ran.
    let running = wall.saturating_sub(waited_for_a_core().saturating_sub(waited)).max(cpu);
    let (allocs, bytes) = (heap.allocs + heap.reallocs, heap.bytes_allocated);
    (TimeSpent { wall, running, cpu, allocs, bytes }, result)
}

/// Measures something that is done once, on this thread, as `n` operations.
pub(crate) fn once<T>(n: u64, run: impl FnOnce() -> T) -> (Cost, T) {
    let (spent, result) = spend_alone(run);
    let per_operation = |total: u64| total as f64 / n as f64;
    let cost = Cost {
        ns: per_operation(spent.running.as_nanos() as u64),
        allocs: per_operation(spent.allocs),
        bytes: per_operation(spent.bytes),
        last_to_first: None,
    };
    (cost, result)
}

/// How long this thread could have run but had no core, since it began; 0 if the kernel does
/// not report it. (The second figure of `/proc/PID/schedstat`.)
fn waited_for_a_core() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split_whitespace().nth(1).and_then(|figure| figure.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

fn thread_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

/// Pins this thread to a core of its own, by its number.
pub(crate) fn pin_by_number(thread: usize) {
    let cpus = cpus();
    cpus.get(thread % cpus.len().max(1)).copied().into_iter().for_each(pin_to);
}

fn pin_to(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    // If this is refused, the threads run, but may share a core.
    let _ = sched_setaffinity(None, &only);
}
