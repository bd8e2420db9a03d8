//! The process as the system sees it, under the names that every Prometheus
//! client uses.
//!
//! | metric | meaning |
//! |---|---|
//! | `process_cpu_seconds_total` | CPU time of all threads, user and system |
//! | `process_resident_memory_bytes` | memory that is in RAM |
//! | `process_virtual_memory_bytes` | address space |
//! | `process_virtual_memory_max_bytes` | address space that it may have (`RLIMIT_AS`); 2⁶⁴ if there is no limit, as Go's client shows it |
//! | `process_open_fds`, `process_max_fds` | open descriptors, and how many there may be |
//! | `process_threads` | threads |
//! | `process_start_time_seconds` | when it started, in seconds since 1970 |
//!
//! If processes share a registry, these are sums over the living ones. The start is the start of the first, and
//! the address space that a process may have is the smallest of all, since no limit is no number to add up.
//! CPU time is the total of all processes so far.
//!
//! Values are read at each snapshot, of the process that takes it. One that cannot be
//! read at that moment stays as it was. They come from `/proc/self/stat`,
//! `/proc/self/fd`, `getrlimit` and clocks, about 15 µs a snapshot; before
//! Linux 6.2 more with each open descriptor.
//!
//! They exist on Linux. On other systems nothing is registered.
//!
//! Go's client also shows `process_network_receive_bytes_total` and its like. They are not
//! here: the kernel counts these bytes for a network namespace, whichever process they
//! belong to. Page faults and context switches have no name that clients agree on.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod stat;

use talea::{Error, Registry};

/// Registers the metrics of this process, and reads them for the first time. Call it once
/// for a registry: CPU time would be counted twice.
///
/// If `/proc` cannot be read, only those metrics are registered that do not need it: CPU time and
/// the limits. On other systems than Linux nothing is registered.
///
/// # Errors
///
/// A metric cannot be registered: see [`Registry::register`].
pub fn register(registry: &Registry) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    linux::register(registry)?;
    #[cfg(not(target_os = "linux"))]
    let _ = registry;
    Ok(())
}
