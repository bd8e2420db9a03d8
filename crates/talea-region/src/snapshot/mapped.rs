//! Snapshots of a region that this process maps.

use std::sync::atomic::Ordering::Acquire;

use super::copies::{FamilyCopy, Snapshot};
use super::take::take;
use crate::layout::M_AHEAD;
use crate::region::Region;

impl Region {
    /// Copies all values out. Cost: the living series and the planes in use;
    /// how many processes wrote, or died, does not matter.
    pub fn snapshot(&'static self) -> Snapshot {
        self.snapshot_of(&|_| true)
    }

    /// Copies those families out that are wanted; they know nothing of their series then. Cost: their series, and a word
    /// for each 64 others.
    pub fn snapshot_of(&'static self, wants: &dyn Fn(&FamilyCopy) -> bool) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(&mut snapshot, wants);
        snapshot
    }

    /// Copies the families that `wants` selects into a snapshot, whose memory is reused.
    pub fn snapshot_into(&'static self, out: &mut Snapshot, wants: &dyn Fn(&FamilyCopy) -> bool) {
        // Nothing that is being copied is used for something else meanwhile.
        let _guard = self.memory.enter();
        if self.memory.word_at(M_AHEAD).load(Acquire) > 0 {
            self.back_segments_ahead();
        }
        self.memory.restore_cpu_table();
        self.memory.restore_slot_count();
        // A mapped region can always be read.
        let _ = take(&self.memory, wants, out);
    }
}
