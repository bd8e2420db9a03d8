//! CPU time, as the kernel accounts for it.
//!
//! The time that the threads of a process ran is known to the nanosecond
//! (`/proc/PID/task/TID/schedstat`). Its user time is not: most kernels sample it at each tick
//! of a clock (`/proc/PID/stat`). So user and system time are the exact time, in the ratio of the
//! ticks.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Sub;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::io::Errno;

/// The CPU time of processes, since they began or between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuTime {
    /// Seconds that their threads ran.
    ran: f64,
    /// Ticks at which they were in user mode, and in the kernel.
    user_ticks: u64,
    system_ticks: u64,
}

impl CpuTime {
    /// The time of a process. Threads that have ended are left out.
    pub(crate) fn of_process(id: u32) -> Result<Self> {
        let folder = format!("/proc/{id}");
        Self::read(Path::new(&folder)).with_context(|| format!("reading {folder}"))
    }

    /// The time of the children of this process that ended and were waited for, to a tick.
    pub(crate) fn of_ended_children() -> Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
        let (user_ticks, system_ticks) = ticks(&stat, 16)?;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let ran = (user_ticks + system_ticks) as f64 / per_second;
        Ok(Self { ran, user_ticks, system_ticks })
    }

    fn read(folder: &Path) -> Result<Self> {
        let mut ran = 0;
        for thread in fs::read_dir(folder.join("task"))? {
            match fs::read_to_string(thread?.path().join("schedstat")) {
                Ok(schedstat) => ran += nanoseconds(&schedstat)?,
                Err(error) if has_ended(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (user_ticks, system_ticks) = ticks(&fs::read_to_string(folder.join("stat"))?, 14)?;
        Ok(Self { ran: ran as f64 / 1e9, user_ticks, system_ticks })
    }

    /// Seconds in user mode.
    pub(crate) fn user(&self) -> f64 {
        self.ran * self.user_ticks as f64 / ((self.user_ticks + self.system_ticks) as f64).max(1.0)
    }

    /// Seconds in the kernel.
    pub(crate) fn system(&self) -> f64 {
        self.ran - self.user()
    }

    pub(crate) fn both(&self) -> f64 {
        self.ran
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            ran: self.ran - earlier.ran,
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }
}

/// Whether a thread has ended since its folder was listed: its file is missing, or cannot be
/// read any more.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// The time that a thread ran: the first figure of its `schedstat`.
fn nanoseconds(schedstat: &str) -> Result<u64> {
    let first = schedstat.split_whitespace().next();
    Ok(first.context("schedstat is empty")?.parse()?)
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
    fn user_and_system_time_are_the_exact_time_in_the_ratio_of_ticks() {
        let earlier = CpuTime { ran: 1.0, user_ticks: 10, system_ticks: 90 };
        let later = CpuTime { ran: 3.0, user_ticks: 70, system_ticks: 230 };
        let spent = later - earlier;
        assert_eq!((spent.user(), spent.system(), spent.both()), (0.6, 1.4, 2.0));
        let nothing = earlier - earlier;
        assert_eq!((nothing.user(), nothing.system()), (0.0, 0.0));
    }

    #[test]
    fn a_process_that_works_has_cpu_time() {
        let before = CpuTime::of_process(std::process::id()).unwrap();
        let cores = crate::cores::allowed().unwrap();
        let busy_before = busy(&cores).unwrap();
        let mut spent = before - before;
        while spent.both() < 0.2 {
            std::hint::black_box((0..10_000).sum::<u64>());
            spent = CpuTime::of_process(std::process::id()).unwrap() - before;
        }
        let ticks = (spent.user_ticks + spent.system_ticks) as f64;
        assert!(ticks / rustix::param::clock_ticks_per_second() as f64 > 0.1, "{spent:?}");
        assert!(busy(&cores).unwrap() - busy_before > 0.1);
    }

    #[test]
    fn threads_may_end_while_they_are_read() {
        let beginning_and_ending = || {
            for _ in 0..500 {
                std::thread::spawn(|| {}).join().unwrap();
            }
        };
        let threads = [(); 4].map(|()| std::thread::spawn(beginning_and_ending));
        while !threads.iter().all(std::thread::JoinHandle::is_finished) {
            CpuTime::of_process(std::process::id()).unwrap();
        }
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
