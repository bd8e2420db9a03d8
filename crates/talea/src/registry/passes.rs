//! Passes over the functions that read observable values.
//!
//! A function may panic, block, or take a snapshot of the registry that calls it. None of this may hold
//! the other functions, or a scrape for longer than [`LONGEST_WAIT`]. So a thread that needs fresh values
//! does not call the functions itself:
//!
//! 1. It asks for a pass that begins after its question, and waits for its end. Threads that wait at the
//!    same time share a pass. A thread that is made for it, the *runner*, calls one function after the
//!    other.
//! 2. A function that runs for longer than [`PATIENCE`] is set aside: another runner takes the pass from
//!    there, and the first one ends when the function returns. Threads wait for functions that were set
//!    aside in their pass after all others have returned.
//! 3. A function that still runs is not called again, and no pass waits for it. Its values stay as they
//!    were read last, with their age (`snapshot/observed.rs`).
//! 4. A thread that runs a function of a registry, or was made by one that does, gets the values as they
//!    are: else the function would wait for itself.
//!
//! If the system gives no thread, the asking thread calls the functions.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{process, thread};

/// How long a pass waits for one function before it goes on with the next.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a snapshot waits for its pass at most.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

thread_local! {
    /// The registries whose functions this thread runs, by the address of their refreshers.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Functions that are called one after the other. Further ones may be added at the end.
pub(super) trait Functions: Send + Sync {
    /// Their passes.
    fn passes(&self) -> &Passes;

    /// Whether there is one at this place.
    fn has(&self, n: usize) -> bool;

    /// Calls the one at this place, unless a thread still runs it.
    fn call(&self, n: usize);
}

/// The passes of a process, and the passes of its child made by `fork`, which has none of its threads and may
/// have been made while its lock was held.
#[derive(Debug)]
pub(super) struct Passes {
    process: u32,
    state: Mutex<State>,
    changed: Condvar,
    of_child: OnceLock<Box<Passes>>,
}

impl Default for Passes {
    fn default() -> Self {
        let (state, changed, of_child) = Default::default();
        Self { process: process::id(), state, changed, of_child }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The numbers of the last pass that a thread asked for, that has begun, and that has ended.
    wanted: u64,
    begun: u64,
    ended: u64,
    /// The number of the runner of the pass that has begun and not ended.
    runner: u64,
    /// The function that it calls, and since when.
    calls: Option<(usize, Instant)>,
    /// The runners that were set aside with their function, and the passes that these were of.
    aside: Vec<(u64, u64)>,
}

impl Passes {
    fn of_this_process(&self) -> &Self {
        let (process, mut passes) = (process::id(), self);
        while passes.process != process {
            passes = passes.of_child.get_or_init(Box::default);
        }
        passes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns after a pass that began after this call, or after [`LONGEST_WAIT`]; at once in a function of
    /// these refreshers.
    pub(super) fn make(&self, refreshers: &Arc<dyn Functions>) {
        let mut inside = INSIDE.with_borrow(Vec::clone);
        let own = Arc::as_ptr(refreshers).cast::<()>() as usize;
        if inside.contains(&own) {
            return;
        }
        inside.push(own);
        self.of_this_process().wait_for_pass(refreshers, &inside);
    }

    fn wait_for_pass(&self, refreshers: &Arc<dyn Functions>, inside: &[usize]) {
        let began = Instant::now();
        let mut state = self.lock();
        let own = state.begun + 1;
        state.wanted = state.wanted.max(own);
        if state.begun == state.ended {
            state.begun = state.wanted;
            if !run(&mut state, refreshers, inside, 0) {
                state.ended = state.begun;
                drop(state);
                run_here(&**refreshers, inside);
                return;
            }
        }
        while state.ended < own || state.aside.iter().any(|&(_, pass)| pass >= own) {
            let Some(left) = LONGEST_WAIT.checked_sub(began.elapsed()) else { return };
            let mut wait = left;
            if let Some((n, since)) = state.calls {
                let patience = PATIENCE.saturating_sub(since.elapsed());
                if patience.is_zero() {
                    set_aside(&mut state, refreshers, inside, n);
                    continue;
                }
                wait = wait.min(patience);
            } else if state.begun > state.ended {
                wait = wait.min(PATIENCE);
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Calls the functions from one on, as runner, until a pass is at its end and no thread wants another, or
    /// this runner is set aside.
    fn run(&self, refreshers: &dyn Functions, runner: u64, first: usize) {
        let mut n = first;
        let mut state = self.lock();
        while state.runner == runner {
            let is_there = refreshers.has(n);
            state.calls = is_there.then(|| (n, Instant::now()));
            if !is_there {
                state.ended = state.begun;
                self.changed.notify_all();
                if state.wanted == state.begun {
                    return;
                }
                (state.begun, n) = (state.wanted, 0);
                continue;
            }
            drop(state);
            refreshers.call(n);
            n += 1;
            state = self.lock();
        }
        state.aside.retain(|&(aside, _)| aside != runner);
        self.changed.notify_all();
    }
}

/// Sets the runner aside, with the function that it calls. Another takes its place, if the system gives a
/// thread.
fn set_aside(state: &mut State, refreshers: &Arc<dyn Functions>, inside: &[usize], n: usize) {
    let (runner, pass) = (state.runner, state.begun);
    state.calls = None;
    if run(state, refreshers, inside, n + 1) {
        state.aside.push((runner, pass));
    } else {
        state.runner = runner;
    }
}

/// Makes a runner, which begins with a function; false if the system gives no thread.
fn run(state: &mut State, refreshers: &Arc<dyn Functions>, inside: &[usize], first: usize) -> bool {
    state.runner += 1;
    let (runner, refreshers, inside) = (state.runner, Arc::clone(refreshers), inside.to_vec());
    // Miri takes a thread that outlives the program's first one for a mistake.
    let thread = thread::Builder::new().name("talea-observe".to_owned());
    let made = (!cfg!(miri)).then(|| {
        thread.spawn(move || {
            INSIDE.set(inside);
            refreshers.passes().of_this_process().run(&*refreshers, runner, first);
        })
    });
    made.is_some_and(|made| made.is_ok())
}

/// Calls all functions on this thread.
fn run_here(refreshers: &dyn Functions, inside: &[usize]) {
    let before = INSIDE.replace(inside.to_vec());
    let mut n = 0;
    while refreshers.has(n) {
        refreshers.call(n);
        n += 1;
    }
    INSIDE.set(before);
}
