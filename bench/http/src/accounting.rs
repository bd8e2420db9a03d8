//! CPU time and memory, as the kernel accounts for them.

use std::fs;
use std::ops::Sub;

use anyhow::{Context, Result};

/// The CPU time of processes in seconds, since they began or between two moments, to a tick of the clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuTime {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl CpuTime {
    pub(crate) fn of_process(id: u32) -> Result<Self> {
        Self::read(&format!("/proc/{id}/stat"), 14)
    }

    /// The time of the children of this process that ended and were waited for.
    pub(crate) fn of_ended_children() -> Result<Self> {
        Self::read("/proc/self/stat", 16)
    }

    fn read(path: &str, first: usize) -> Result<Self> {
        let stat = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
        let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        let (user, system) = ticks(&stat, first)?;
        Ok(Self { user: seconds(user), system: seconds(system) })
    }

    pub(crate) fn both(&self) -> f64 {
        self.user + self.system
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user: self.user - earlier.user, system: self.system - earlier.system }
    }
}

/// User and system ticks: a figure of a process's `stat`, and the next. Its name, the second, is
/// in parentheses and may contain anything.
fn ticks(stat: &str, first: usize) -> Result<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(')').context("stat has no name")?;
    let mut figures = after_name.split_whitespace().skip(first - 3);
    let mut next = || anyhow::Ok(figures.next().context("stat is short")?.parse()?);
    Ok((next()?, next()?))
}

/// Seconds that these cores worked since the system started, for any process or for another
/// guest of the hypervisor.
pub(crate) fn busy(cores: &[usize]) -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    let ticks = busy_ticks(&stat, cores).context("reading /proc/stat")?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The figures of a core are ticks of user, nice, system, idle, iowait, irq, softirq and
/// steal. Interrupts are left out: those of the loopback are part of the load.
fn busy_ticks(stat: &str, cores: &[usize]) -> Result<u64> {
    let names: Vec<_> = cores.iter().map(|core| format!("cpu{core}")).collect();
    let mut busy = 0;
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|name| names.iter().any(|one| one == name)) {
            let ticks = words.map(str::parse).collect::<Result<Vec<u64>, _>>()?;
            busy += [0, 1, 2, 7].iter().filter_map(|&place| ticks.get(place)).sum::<u64>();
        }
    }
    Ok(busy)
}

/// Bytes of memory that a process has had at most so far, shared memory included.
pub(crate) fn most_memory(id: u32) -> Result<u64> {
    let path = format!("/proc/{id}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    peak(&status).with_context(|| format!("{path} has no VmHWM"))
}

fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "3611 (a ) b (c) R 3600 3600 2951 0 -1 4194304 105 0 0 0 71 182 3 4 20 0 \
        1 0 1126503 3133440 390 18446744073709551615 94805664284672";

    #[test]
    fn a_process_may_have_any_name() {
        assert_eq!(ticks(STAT, 14).unwrap(), (71, 182));
        assert_eq!(ticks(STAT, 16).unwrap(), (3, 4));
        assert!(ticks("3611 (short) R 1 2 3", 14).is_err());
    }

    #[test]
    fn a_process_that_works_has_cpu_time() {
        let read = || CpuTime::of_process(std::process::id()).unwrap();
        let cores: Vec<usize> = (0..1024).collect();
        let (before, busy_before) = (read(), busy(&cores).unwrap());
        while (read() - before).both() < 0.2 {
            std::hint::black_box((0..10_000).sum::<u64>());
        }
        assert!(busy(&cores).unwrap() - busy_before > 0.1);
    }

    #[test]
    fn a_running_process_has_a_most_memory() {
        assert_eq!(peak("VmPeak:\t 9 kB\nVmHWM:\t    5296 kB\nVmRSS:\t 1 kB\n"), Some(5296 * 1024));
        assert_eq!(peak("VmHWM:\n"), None);
        assert!(most_memory(std::process::id()).unwrap() > 1 << 20);
    }

    #[test]
    fn only_the_named_cores_count() {
        let stat = "cpu  10 1 20 900 5 3 2 4 0 0\ncpu0 6 1 12 450 5 3 2 1 0 0\n\
            cpu1 4 0 8 450 0 0 0 3 0 0\ncpu11 1000 0 0 0 0 0 0 0 0 0\nintr 1 2 3\n";
        assert_eq!(busy_ticks(stat, &[0, 1]).unwrap(), 35);
        assert_eq!(busy_ticks(stat, &[1, 2]).unwrap(), 15);
    }
}
