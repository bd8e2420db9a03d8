//! Process slots: who has the region open, whether they live, and the block of
//! cells that each of them owns.
//!
//! A process lives while the byte of its slot is locked. The lock belongs to
//! the open file, so it works across pid namespaces and goes at death, however
//! that comes. An owned cell has the same place in every block; only the owner
//! writes to a block, atomically (it may have several threads).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::layout::*;
use crate::mapping::Mapping;
use crate::region::{Region, unix_nanos};

/// Takes the first free slot and clears its block. Where all are taken, or no
/// memory is left, the process shares the block behind the last slot, which
/// counts as living always.
pub(crate) fn take(map: &Mapping, s: &Sections) -> u64 {
    for slot in 0..SLOT_COUNT {
        if !matches!(map.backing().lock_slot(slot), Ok(true)) {
            continue;
        }
        let block = s.owned + slot * s.owned_len;
        if map.back(block, s.owned_len).is_err() {
            break;
        }
        let put = |at, value| {
            if let Some(word) = map.word(at) {
                word.store(value, Relaxed);
            }
        };
        (0..s.owned_len / WORD).for_each(|n| put(block + n * WORD, 0));
        put(SLOTS + slot * SLOT_LEN + SLOT_PID, u64::from(std::process::id()));
        put(SLOTS + slot * SLOT_LEN + SLOT_STARTED, unix_nanos());
        return slot;
    }
    SLOT_COUNT
}

impl Region {
    /// Takes `bytes` in every owned block; returns the offset from a block's
    /// start.
    pub(crate) fn take_owned(&self, bytes: u64) -> Option<u64> {
        self.mark(M_OWNED)
            .fetch_update(Relaxed, Relaxed, |n| {
                n.checked_add(bytes).filter(|&end| end <= self.s.owned_len)
            })
            .ok()
    }

    /// This process's copy of a run of owned cells, given its place in block 0.
    pub(crate) fn own_copy(&self, first: u64, cells: u64) -> Option<&'static [AtomicU64]> {
        self.map.words(first + self.slot * self.s.owned_len, cells)
    }

    /// How far the block of each living process lies behind block 0.
    pub(crate) fn living(&self) -> impl Iterator<Item = u64> + '_ {
        // The block that is shared belongs to nobody who could be dead.
        (0..=SLOT_COUNT).filter(|&slot| self.lives(slot)).map(|slot| slot * self.s.owned_len)
    }

    fn lives(&self, slot: u64) -> bool {
        if slot == self.slot || slot == SLOT_COUNT {
            return true;
        }
        self.mark(SLOTS + slot * SLOT_LEN + SLOT_PID).load(Relaxed) != 0
            && self.map.backing().others_hold(slot..slot + 1).unwrap_or(true)
    }
}
