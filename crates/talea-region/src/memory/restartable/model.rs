//! A model of restartable sequences: plain adds of threads that say that they run on a CPU. As the
//! kernel does, it lets only one sequence of a CPU run at a time.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::Mutex;

use super::{CpuTable, RestartableAdd, Undone};
use crate::layout::WORD;
use crate::memory::amount::Amount;
use crate::primitive::{AtomicU64, Word};

loom::thread_local! {
    /// The CPU on which this thread runs sequences.
    pub(crate) static MODEL_CPU: Cell<Option<u64>> = Cell::new(None);
}

loom::lazy_static! {
    static ref RUNNING: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
}

pub(crate) fn detect() {}

pub(crate) fn disable() {}

pub(crate) fn enabled() -> bool {
    cpu().is_some()
}

pub(crate) fn cpu() -> Option<u64> {
    MODEL_CPU.with(Cell::get)
}

impl<A: Amount> RestartableAdd for A {
    fn add_in_sequence(self, cell: &AtomicU64, table: &&CpuTable) -> bool {
        let Some(cpu) = cpu() else { return false };
        let _running = RUNNING[cpu as usize].lock().unwrap();
        let delta = table[cpu as usize].load(Relaxed);
        if delta == 0 {
            return false;
        }
        // SAFETY: as in the real sequence, the delta leads to the same cell's copy in another plane.
        let copy = unsafe { &*std::ptr::from_ref(cell).add((delta / WORD) as usize) };
        copy.store(self.added_to(copy.load(Relaxed)), Relaxed);
        true
    }

    /// Leaves both adds to the cold path, which makes them one at a time.
    fn count_in_sequences(self, [one, _]: [Word; 2], _: &&CpuTable) -> Result<(), Undone> {
        Err(Undone { first: Some(one) })
    }
}
