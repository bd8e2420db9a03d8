//! Processes that open a region: each takes a slot, and so does a child made by `fork`.

#[cfg(not(loom))]
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::AtomicU64 as OwnWord;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::clock::boot_nanos;
#[cfg(all(target_os = "linux", not(loom)))]
use crate::fork::at_fork;
use crate::layout::*;
use crate::memory::{membarrier, path};
use crate::primitive::fence;
use crate::region::Region;

/// The regions that this process has open, the newest first.
#[cfg(not(loom))]
static OPEN: AtomicPtr<Region> = AtomicPtr::new(std::ptr::null_mut());

/// Takes a slot for a region that was just opened.
pub(crate) fn join(region: &'static Region) {
    region.take_slot(None);
    #[cfg(not(loom))]
    list(region);
}

/// Adds a region to the list for which children made by `fork` take slots of their own.
#[cfg(not(loom))]
fn list(region: &'static Region) {
    let this = std::ptr::from_ref(region).cast_mut();
    let mut newest = OPEN.load(Acquire);
    loop {
        region.opened_before.store(newest, Relaxed);
        match OPEN.compare_exchange(newest, this, Release, Acquire) {
            Ok(_) => break,
            Err(now) => newest = now,
        }
    }
    #[cfg(all(target_os = "linux", not(loom)))]
    {
        static HANDLER: std::sync::Once = std::sync::Once::new();
        // SAFETY: the handlers call only functions that are safe in the child of a process with threads.
        HANDLER.call_once(|| unsafe { at_fork(Some(before_fork), after_fork) });
    }
}

/// Forks of this process, and those that lead to it, since a region was first opened.
static FORKS: OwnWord = OwnWord::new(0);
/// Those that lead to this process.
static GENERATION: OwnWord = OwnWord::new(0);

/// How often this process forked or was forked since it first opened a region. What is the same before and
/// after, no other process shares.
pub fn forks() -> u64 {
    FORKS.load(Relaxed)
}

/// Differs between a process and its children. Cost: a load.
#[inline]
pub fn fork_generation() -> u64 {
    GENERATION.load(Relaxed)
}

#[cfg(all(target_os = "linux", not(loom)))]
extern "C" fn before_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// Runs in a child that was just made. No allocation, no lock.
#[cfg(all(target_os = "linux", not(loom)))]
extern "C" fn after_fork() {
    GENERATION.fetch_add(1, Relaxed);
    crate::threads::after_fork();
    let mut at = OPEN.load(Acquire);
    // SAFETY: the list holds leaked regions only, linked before they were
    // published.
    while let Some(region) = unsafe { at.as_ref() } {
        if region.memory.map.backing().leave_parent() {
            region.take_slot(Some(region.memory.own_slot()));
        } else {
            region.memory.set_own_slot(SLOT_COUNT, 0);
        }
        at = region.opened_before.load(Relaxed);
    }
}

impl Region {
    /// Takes the first free slot and clears its parts. If all are taken, or no memory is left, the
    /// process shares the block behind the last slot, which always counts as living.
    fn take_slot(&self, parent: Option<u64>) {
        let mut taken = (SLOT_COUNT, 0);
        let alone = if membarrier::register() { self.memory.guards_alone() } else { 0 };
        for slot in 0..self.memory.sections.slots {
            if !matches!(self.memory.map.backing().lock_slot(slot), Ok(true)) {
                continue;
            }
            let (parts, at) = (self.memory.sections.parts_of(slot), SLOTS + slot * SLOT_LEN);
            let mut all = parts.into_iter().chain([(at, SLOT_LEN)]);
            if all.any(|(at, len)| self.memory.map.back(at, len).is_err()) {
                break;
            }
            let word = |at| self.memory.slot_word_at(slot, at);
            word(SLOT_GENERATION).fetch_add(1, SeqCst);
            for (at, len) in parts {
                let words = self.memory.map.words(at, len / WORD);
                debug_assert!(words.is_some(), "a part of slot {slot} is outside the region");
                words.into_iter().flatten().for_each(|word| word.store(0, Relaxed));
            }
            self.inherit_families(slot, parent);
            self.inherit_pins(slot, parent);
            word(SLOT_STARTED).store(boot_nanos(), Relaxed);
            word(SLOT_ALONE).store(alone, SeqCst);
            word(SLOT_NAMESAKE).store(0, Relaxed);
            word(SLOT_ADDS).store(path::current() as u64, Relaxed);
            word(SLOT_PID).store(u64::from(std::process::id()), Release);
            self.memory.word_at(M_SLOTS).fetch_max(slot + 1, SeqCst);
            // If a thread that searches for guards does not see this slot yet, this process sees
            // all that it retired.
            fence(SeqCst);
            word(SLOT_NAMESAKE).store(u64::from(self.has_namesake(slot)), Release);
            taken = (slot, alone);
            break;
        }
        self.memory.set_own_slot(taken.0, taken.1);
    }

    /// Whether another living process has the id of the one in `slot`, as two containers may have.
    ///
    /// It is read after the slot has its id and a full fence: of two processes that read at once,
    /// one finds the other. A process sets no value before, so no two are ever shown by the same
    /// name.
    fn has_namesake(&self, slot: u64) -> bool {
        let pid = |slot| self.memory.slot_word_at(slot, SLOT_PID).load(Acquire);
        let own = pid(slot);
        let mut namesakes =
            self.memory.slots_used().filter(|&other| other != slot && pid(other) == own);
        namesakes
            .any(|other| self.memory.map.backing().others_hold(other..other + 1).unwrap_or(true))
    }
}
