//! Process slots: who has the region open, whether they live, and the block of
//! cells that each of them owns.
//!
//! A process lives while the byte of its slot is locked. The lock belongs to an opening of the
//! file that is the process's alone and is never mapped (`mapping.rs`), so it works across pid
//! namespaces and goes at death, however that comes. An owned cell has the same place in every block; only the owner
//! writes to a block, atomically (it may have several threads).
//!
//! After `fork` the child leaves its parent's opening, opens the file anew, and takes a slot and a
//! block of its own: its parent goes on with the old ones. That runs
//! in the child before anything else does, and so calls only what is safe after
//! a fork.

#[cfg(not(loom))]
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::{
    AtomicU64 as OwnWord,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use crate::clock::boot_nanos;
use crate::layout::*;
use crate::membarrier;
use crate::primitive::{AtomicU64, fence};
use crate::region::Region;

/// This process's part in a region. It stands in memory of the process, so a
/// child changes its own copy.
#[derive(Debug, Default)]
pub(crate) struct OwnSlot {
    /// The slot's number; `SLOT_COUNT` for the block that is shared.
    slot: OwnWord,
    /// How far its block lies behind block 0.
    block: OwnWord,
    /// How many of its guard words are one thread's alone.
    alone: OwnWord,
    /// The region that this process opened before this one.
    #[cfg(not(loom))]
    next: AtomicPtr<Region>,
}

/// The regions that this process has open, the newest first.
#[cfg(not(loom))]
static OPEN: AtomicPtr<Region> = AtomicPtr::new(std::ptr::null_mut());

/// Takes a slot for a region that was just opened.
pub(crate) fn join(region: &'static Region) {
    region.take_slot(None);
    #[cfg(not(loom))]
    list(region);
}

/// Sees to it that children made by `fork` take slots of their own.
#[cfg(not(loom))]
fn list(region: &'static Region) {
    let this = std::ptr::from_ref(region).cast_mut();
    let mut newest = OPEN.load(Acquire);
    loop {
        region.own.next.store(newest, Relaxed);
        match OPEN.compare_exchange(newest, this, Release, Acquire) {
            Ok(_) => break,
            Err(now) => newest = now,
        }
    }
    #[cfg(all(target_os = "linux", not(loom)))]
    {
        static HANDLER: std::sync::Once = std::sync::Once::new();
        // SAFETY: the handler calls only what is safe in the child of a process
        // with threads; a library that holds it is never unloaded, since regions
        // are never unmapped.
        HANDLER.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(after_fork));
        });
    }
}

/// Runs in a child that was just made. No allocation, no lock.
#[cfg(all(target_os = "linux", not(loom)))]
extern "C" fn after_fork() {
    crate::threads::after_fork();
    let mut at = OPEN.load(Acquire);
    // SAFETY: the list holds leaked regions only, linked before they were
    // published.
    while let Some(region) = unsafe { at.as_ref() } {
        if region.map.backing().leave_parent() {
            region.take_slot(Some(region.own_slot()));
        } else {
            region.own.set(SLOT_COUNT, 0, &region.s);
        }
        at = region.own.next.load(Relaxed);
    }
}

impl OwnSlot {
    fn set(&self, slot: u64, alone: u64, s: &Sections) {
        self.alone.store(alone, Relaxed);
        self.slot.store(slot, Relaxed);
        self.block.store(slot * s.owned.len, Relaxed);
    }
}

impl Region {
    /// Takes the first free slot and clears what belongs to it. Where all are
    /// taken, or no memory is left, the process shares the block behind the last
    /// slot, which counts as living always.
    fn take_slot(&self, parent: Option<u64>) {
        let mut taken = (SLOT_COUNT, 0);
        let alone = if membarrier::register() { self.guards_alone() } else { 0 };
        for slot in 0..SLOT_COUNT {
            if !matches!(self.map.backing().lock_slot(slot), Ok(true)) {
                continue;
            }
            let parts = self.s.parts_of(slot);
            if parts.into_iter().any(|(at, len)| self.map.back(at, len).is_err()) {
                break;
            }
            let at = SLOTS + slot * SLOT_LEN;
            self.mark(at + SLOT_GENERATION).fetch_add(1, SeqCst);
            for (at, len) in parts {
                for word in self.map.words(at, len / WORD).unwrap_or(&[]) {
                    word.store(0, Relaxed);
                }
            }
            self.inherit_families(slot, parent);
            self.inherit_pins(slot, parent);
            self.mark(at + SLOT_STARTED).store(boot_nanos(), Relaxed);
            self.mark(at + SLOT_ALONE).store(alone, SeqCst);
            self.mark(at + SLOT_NAMESAKE).store(0, Relaxed);
            self.mark(at + SLOT_PID).store(u64::from(std::process::id()), Release);
            self.mark(M_SLOTS).fetch_max(slot + 1, SeqCst);
            // Who searches for guards and does not see this slot yet: we see all that it
            // put away.
            fence(SeqCst);
            let has_namesake = self.has_namesake(slot);
            self.mark(at + SLOT_NAMESAKE).store(u64::from(has_namesake), Release);
            taken = (slot, alone);
            break;
        }
        self.own.set(taken.0, taken.1, &self.s);
    }

    /// Whether another living process has the id of the one in `slot`, as two containers may have.
    ///
    /// Asked once the slot says its id, and then a full fence: of two that ask at once, one finds
    /// the other. It sets no value before, so no two are ever shown by the same name.
    fn has_namesake(&self, slot: u64) -> bool {
        let pid = |slot: u64| self.mark(SLOTS + slot * SLOT_LEN + SLOT_PID).load(Acquire);
        let lives = |slot| self.map.backing().others_hold(slot..slot + 1).unwrap_or(true);
        let own = pid(slot);
        (0..SLOT_COUNT).any(|other| other != slot && pid(other) == own && lives(other))
    }

    /// How far the blocks that anybody ever had lie behind block 0.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> {
        let slots = self.mark(M_SLOTS).load(Acquire).min(SLOT_COUNT);
        (0..slots).chain([SLOT_COUNT]).map(|slot| slot * self.s.owned.len)
    }

    /// This process's copy of an owned cell.
    #[inline]
    pub(crate) fn own_copy(&self, cell: &'static AtomicU64) -> &'static AtomicU64 {
        self.word_after(cell, self.own.block.load(Relaxed)).unwrap_or(cell)
    }

    /// This process's slot; `SLOT_COUNT` where it has none.
    #[inline]
    pub(crate) fn own_slot(&self) -> u64 {
        self.own.slot.load(Relaxed)
    }

    /// How many guard words of this process are one thread's alone.
    #[inline]
    pub(crate) fn words_alone(&self) -> u64 {
        self.own.alone.load(Relaxed)
    }
}
