//! Groups, their subjects, and the work that these do.

use anyhow::Result;

/// One kind of work, done by several subjects.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// How many threads do it at once; each number is measured on its own.
    pub(crate) threads: &'static [usize],
    pub(crate) subjects: &'static [Subject],
    pub(crate) place: Place,
    /// A note for readers of the table.
    pub(crate) note: &'static str,
}

/// Where and for how long a subject of a group is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Made once, measured over and over, for about 75 ms each time.
    Here,
    /// The same in a new process for each measurement, where what others did to
    /// the heap would tell.
    Apart,
    /// In a new process for each measurement, which includes the making and is
    /// `Setting::inserts` operations long. Bytes are then the memory that the
    /// system gave to the process.
    FromNothing,
}

/// A library, in the way that it is meant to be used.
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

    /// Talea as it is where the kernel has no restartable sequences.
    pub(crate) const fn talea_atomic(make: fn(&Setting) -> Result<Box<dyn Work>>) -> Self {
        Self { name: "talea-atomic", restartable: false, loses: 0.0, make }
    }

    /// Whether it is Talea as it is by default: what ratios are to.
    pub(crate) fn is_talea(&self) -> bool {
        matches!(self.name, "talea" | "talea-dual")
    }
}

/// Settings of the work from the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) inserts: u64,
}

/// The operation that a subject repeats.
pub(crate) trait Work: Send + Sync {
    /// Does the operation `n` times, as thread number `thread`.
    fn run(&self, thread: usize, n: u64);

    /// How often the operation was done, as the library itself reports it.
    fn done(&self) -> Result<u64>;
}

/// Work on some state: the loop, and the library's own count.
pub(crate) fn work<S: Send + Sync + 'static>(
    state: S,
    run: fn(&S, usize, u64),
    done: fn(&S) -> Result<u64>,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(On { state, run, done }))
}

struct On<S> {
    state: S,
    run: fn(&S, usize, u64),
    done: fn(&S) -> Result<u64>,
}

impl<S: Send + Sync> Work for On<S> {
    fn run(&self, thread: usize, n: u64) {
        (self.run)(&self.state, thread, n);
    }

    fn done(&self) -> Result<u64> {
        (self.done)(&self.state)
    }
}
