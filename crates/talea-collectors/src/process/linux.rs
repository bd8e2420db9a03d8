//! The gauges of a Linux process and where each is read.

use std::process;
use std::sync::{Mutex, PoisonError};

use super::stat::{Stat, open_descriptors};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use talea::{Combine, Error, FloatGauge, Gauge, Opts, Registry};

pub(super) fn register(registry: &Registry) -> Result<(), Error> {
    register_cpu(registry)?;
    register_stat(registry)?;
    register_address_space(registry)?;
    register_descriptors(registry)
}

fn register_cpu(registry: &Registry) -> Result<(), Error> {
    let help = "User and system CPU time of the process in seconds.";
    let spent = Mutex::new(Spent::default());
    registry.observable_counter(Opts::new("process_cpu_seconds_total", help), move || {
        // Not from `/proc/self/stat`, whose ticks of 10 ms are coarse for a load that lasts less than a
        // second.
        let own = seconds(ClockId::ProcessCPUTime);
        spent.lock().unwrap_or_else(PoisonError::into_inner).grown_to(process::id(), own)
    })
}

/// CPU time that goes on from a parent's in a child made by `fork`, whose clock begins at 0. If the
/// child's own time alone were read, its part up to the parent's last reading would not count.
#[derive(Default)]
struct Spent {
    process: u32,
    /// The time that was read last before this process was made.
    before: f64,
    total: f64,
}

impl Spent {
    fn grown_to(&mut self, process: u32, own: f64) -> f64 {
        if self.process != process {
            (self.process, self.before) = (process, self.total);
        }
        self.total = self.before + own;
        self.total
    }
}

/// When the system started, in seconds since 1970. Not from `/proc/stat`, which a process with a
/// `/proc` of processes alone does not see.
fn boot_time() -> f64 {
    seconds(ClockId::Realtime) - seconds(ClockId::Boottime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn register_stat(registry: &Registry) -> Result<(), Error> {
    if Stat::read().is_none() {
        return Ok(());
    }
    let boot_time = boot_time();
    let opts = Opts::new(
        "process_start_time_seconds",
        "When the process started, in seconds since 1970-01-01 UTC.",
    );
    let start: FloatGauge = registry.register(opts.combine(Combine::Min))?;
    let ticks_per_second = clock_ticks_per_second() as f64;

    let resident = sum(
        registry,
        "process_resident_memory_bytes",
        "Memory of the process that is in RAM, in bytes.",
    )?;
    let virtual_memory =
        sum(registry, "process_virtual_memory_bytes", "Address space of the process in bytes.")?;
    let threads = sum(registry, "process_threads", "Threads of the process.")?;
    let page = page_size() as i64;
    show(registry, move || {
        if let Some(stat) = Stat::read() {
            // A child made by `fork` has a start of its own, which it shows when its parent has ended.
            start.set(boot_time + stat.start_ticks as f64 / ticks_per_second);
            resident.set(stat.resident_pages * page);
            virtual_memory.set(stat.virtual_bytes);
            threads.set(stat.threads);
        }
    });
    Ok(())
}

fn register_address_space(registry: &Registry) -> Result<(), Error> {
    let opts = Opts::new(
        "process_virtual_memory_max_bytes",
        "Address space that the process may have, in bytes; 2^64 if there is no limit.",
    );
    // No limit of several processes is no limit: 2^64 must not be added up.
    let max: FloatGauge = registry.register(opts.combine(Combine::Min))?;
    show(registry, move || {
        // The kernel's own number for no limit, which is what the Go client shows.
        max.set(getrlimit(Resource::As).current.unwrap_or(u64::MAX) as f64);
    });
    Ok(())
}

/// More than a process may have: the sum over all processes stays an `i64`.
const MOST_FDS: i64 = 1 << 40;

fn register_descriptors(registry: &Registry) -> Result<(), Error> {
    let max = sum(registry, "process_max_fds", "Descriptors that the process may have open.")?;
    show(registry, move || {
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.and_then(|n| n.try_into().ok()).unwrap_or(MOST_FDS);
        max.set(limit.min(MOST_FDS));
    });

    if open_descriptors().is_err() {
        return Ok(());
    }
    let open = sum(registry, "process_open_fds", "Descriptors that the process has open.")?;
    show(registry, move || {
        if let Ok(count) = open_descriptors() {
            open.set(count as i64);
        }
    });
    Ok(())
}

/// A gauge that is the sum over the processes that share the registry.
fn sum(registry: &Registry, name: &str, help: &str) -> Result<Gauge, Error> {
    registry.register(Opts::new(name, help).combine(Combine::Sum))
}

/// Refreshes now and before each snapshot.
fn show(registry: &Registry, refresh: impl Fn() + Send + Sync + 'static) {
    refresh();
    registry.on_snapshot(refresh);
}
