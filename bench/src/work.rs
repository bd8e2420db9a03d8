//! Groups, their subjects, and the work that these do.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Result;

/// One kind of work that several subjects do.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// The numbers of threads that do it at once; each is measured on its own.
    pub(crate) threads: &'static [usize],
    pub(crate) subjects: &'static [Subject],
    pub(crate) place: Place,
    pub(crate) note: &'static str,
}

/// The note of groups that measure time alone.
pub(crate) const TIME: &str =
    "ns: time of a thread for one operation; CPU time where threads outnumber cores.";

/// The process and the length of a subject's measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Made once, measured over and over, for about 75 ms each time.
    Here,
    /// Made in a new process for each measurement of about 75 ms, since other subjects change the
    /// heap.
    Apart,
    /// Made in a new process for each measurement, which includes the making and is
    /// `Setting::inserts` operations long. Bytes are then the memory that the
    /// system gave to the process.
    FromNothing,
}

/// A library, used as its documentation recommends.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// Whether Talea may use restartable sequences.
    pub(crate) restartable: bool,
    /// The share of its operations that the library is known to lose.
    pub(crate) loses: f64,
    pub(crate) make: fn(&Setting) -> Result<Box<dyn Work>>,
}

impl Subject {
    pub(crate) const fn new(
        name: &'static str,
        make: fn(&Setting) -> Result<Box<dyn Work>>,
    ) -> Self {
        Self { name, restartable: true, loses: 0.0, make }
    }

    /// Talea without restartable sequences.
    pub(crate) const fn talea_atomic(make: fn(&Setting) -> Result<Box<dyn Work>>) -> Self {
        Self { name: "talea-atomic", restartable: false, loses: 0.0, make }
    }

    /// Whether it is Talea with its defaults, the base of ratios.
    pub(crate) fn is_talea(&self) -> bool {
        matches!(self.name, "talea" | "talea-dual")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) inserts: u64,
    /// About how long one measurement takes.
    pub(crate) target: Duration,
}

pub(crate) trait Work: Send + Sync {
    /// Reaches the state in which the operation is measured. Only measurements from nothing call it.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Does the operation `n` times, as thread number `thread`.
    fn run(&self, thread: usize, n: u64);

    /// The number of operations by the library's own count.
    fn done(&self) -> Result<u64>;

    /// The number of series that exist, if their memory is measured.
    fn series(&self) -> Option<u64> {
        None
    }
}

/// Work on a state: `run` is the loop, `done` the library's own count.
pub(crate) fn work<S: Send + Sync + 'static>(
    state: S,
    run: fn(&S, usize, u64),
    done: fn(&S) -> Result<u64>,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(StatefulWork { state, run, done }))
}

/// Work that `once` does, within the loop.
pub(crate) fn looped<S: Send + Sync + 'static, R: 'static>(
    state: S,
    once: impl Fn(&S) -> R + Send + Sync + 'static,
    done: fn(&S) -> Result<u64>,
) -> Result<Box<dyn Work>> {
    work(
        (state, once, done),
        |(state, once, _), _, n| {
            (0..n).for_each(|_| {
                once(state);
            })
        },
        |(state, _, done)| done(state),
    )
}

/// Work that `once` does, in milliseconds and more; it returns how much of it succeeded.
pub(crate) fn repeated<S: Send + Sync + 'static>(
    state: S,
    once: fn(&S) -> u64,
) -> Result<Box<dyn Work>> {
    work(
        (state, once, AtomicU64::new(0)),
        |(state, once, done), _, n| {
            (0..n).for_each(|_| {
                done.fetch_add(once(state), Relaxed);
            })
        },
        |(.., done)| Ok(done.load(Relaxed)),
    )
}

struct StatefulWork<S> {
    state: S,
    run: fn(&S, usize, u64),
    done: fn(&S) -> Result<u64>,
}

impl<S: Send + Sync> Work for StatefulWork<S> {
    fn run(&self, thread: usize, n: u64) {
        (self.run)(&self.state, thread, n);
    }

    fn done(&self) -> Result<u64> {
        (self.done)(&self.state)
    }
}
