//! How the generator itself fared: whether it, and not the server, was the limit.

use std::time::Duration;

use talea::HistogramSnapshot;

use talea_statistics::figures::{counted, measured};

/// How a load's generator fared.
#[derive(Clone, Debug)]
pub struct Health {
    /// How late clients took what arrived, in an open model; empty in a closed one.
    pub late: HistogramSnapshot,
    /// Arrivals that had to wait because as many as may be were under way.
    pub starved: u64,
    pub threads: usize,
    /// Processor time of this process while it ran; 0 where the system does not report it.
    pub cpu: Duration,
    /// The part of it that the thread used which keeps the time of an open model: it looks at the clock until an
    /// arrival is due, and yields to clients meanwhile.
    pub timing: Duration,
    /// How long it ran.
    pub elapsed: Duration,
}

/// How late is late: a longer delay could be mistaken for the server's time.
const LATE: f64 = 0.01;
/// The share of its threads' time from which a warning says that none was left.
const BUSY: f64 = 0.9;
/// In a shorter time the first connections and requests take most of the processor.
const TOO_SHORT: Duration = Duration::from_millis(100);

impl Health {
    /// Processor time a second; 1 is one core.
    pub fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Processor time a second of all but the thread that keeps the time.
    fn busy_cores(&self) -> f64 {
        let busy = self.cpu.saturating_sub(self.timing);
        busy.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Whether the generator had no processor time left.
    pub fn is_limit(&self) -> bool {
        self.elapsed >= TOO_SHORT && self.busy_cores() > BUSY * self.threads as f64
    }

    /// Why the generator, and not the server, may have been the limit, with the numbers.
    pub fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if self.is_limit() {
            limits.push(format!(
                "the generator used {} cores, and its clients run on {}; the server may be faster \
                 than measured",
                measured(self.busy_cores()),
                counted(self.threads as u64, "thread"),
            ));
        }
        if self.starved > 0 {
            limits.push(format!(
                "{} found all clients busy and waited for one; allow more clients",
                counted(self.starved, "arrival")
            ));
        } else if let Some(late) = self.late.quantile(0.99).filter(|late| *late > LATE) {
            limits.push(format!(
                "1 % of the arrivals started more than {} ms late; the generator caused this",
                measured(late * 1e3),
            ));
        }
        limits
    }
}

/// Processor time of this process so far.
#[cfg(unix)]
pub(super) fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// Processor time of this thread so far.
#[cfg(unix)]
pub(super) fn thread_cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Processor time of this thread so far: unknown on this system.
#[cfg(not(unix))]
pub(super) fn thread_cpu_time() -> Duration {
    Duration::ZERO
}

/// Processor time of this process so far: unknown on this system.
#[cfg(not(unix))]
pub(super) fn cpu_time() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use talea::{Bucketing, Histogram, Opts, Registry, Seconds};

    use super::*;

    #[test]
    fn a_generator_without_time_left_is_named_unless_it_ran_for_an_instant() {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("late_seconds", "Late.").bucketing(Bucketing::Native);
        let _late: Histogram<Seconds> = registry.register(opts).unwrap();
        let late = registry.snapshot().histogram("late_seconds", &[]).unwrap();
        let limits_beside = |timing, cpu, elapsed| {
            let [timing, cpu, elapsed] = [timing, cpu, elapsed].map(Duration::from_millis);
            Health { late: late.clone(), starved: 0, threads: 2, cpu, timing, elapsed }.limits()
        };
        let limits = |cpu, elapsed| limits_beside(0, cpu, elapsed);
        let busy = limits(1900, 1000);
        assert!(busy[0].starts_with("the generator used 1.90 cores"), "{busy:?}");
        assert!(limits(1700, 1000).is_empty());
        assert!(limits_beside(900, 2600, 1000).is_empty(), "it waited for arrivals");
        assert!(limits_beside(900, 2800, 1000)[0].starts_with("the generator used 1.90 cores"));
        assert!(limits(5, 2).is_empty(), "it began, and was done");
        assert!(limits(1, 0).is_empty());
    }
}
