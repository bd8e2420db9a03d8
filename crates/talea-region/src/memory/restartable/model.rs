//! A model of restartable sequences: plain adds of threads that say that they run on a CPU. As the
//! kernel does, it lets only one sequence of a CPU run at a time.

// The operations that are not modelled.
#[path = "missing.rs"]
#[allow(dead_code)]
mod missing;

pub(crate) use missing::{add_float, count, count_float, detect, disable};

use super::CpuTable;
use crate::layout::WORD;
use crate::primitive::AtomicU64;
use loom::sync::Mutex;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

loom::thread_local! {
    /// The CPU on which this thread runs sequences.
    pub(crate) static MODEL_CPU: Cell<Option<u64>> = Cell::new(None);
}

loom::lazy_static! {
    static ref RUNNING: [Mutex<()>; 2] = [Mutex::new(()), Mutex::new(())];
}

pub(crate) fn enabled() -> bool {
    cpu().is_some()
}

pub(crate) fn cpu() -> Option<u64> {
    MODEL_CPU.with(Cell::get)
}

pub(crate) fn add(cell: &AtomicU64, table: &&CpuTable, value: u64) -> bool {
    let Some(cpu) = cpu() else { return false };
    let _running = RUNNING[cpu as usize].lock().unwrap();
    let delta = table[cpu as usize].load(Relaxed);
    if delta == 0 {
        return false;
    }
    // SAFETY: as in the real sequence, the delta leads to the same cell's copy in another plane.
    let copy = unsafe { &*std::ptr::from_ref(cell).add((delta / WORD) as usize) };
    copy.store(copy.load(Relaxed).wrapping_add(value), Relaxed);
    true
}
