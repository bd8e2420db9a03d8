//! Expiry on demand: idle series are removed when an operator asks, rather than at their family's
//! time.
//!
//! The idle time of a series follows from the number of sweeps since its last look-up, and from the
//! time at which the last sweep began, by the boot clock. `sweep.rs` has the reason why no thread
//! can add to a series that is being removed.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::clock::boot_nanos;
use crate::layout::*;
use crate::memory::guard::{Guard, last_stamp_of_sweep};
use crate::reclaim::sweep::{SWEEP_INTERVAL, sweeps_since};
use crate::region::Region;
use crate::series::groups::FamilySet;
use crate::series::record::{Head, Series};

impl Series<'_> {
    fn expire_one(
        self,
        guard: &Guard,
        seen: u64,
        longer: Option<Duration>,
        now: u64,
        may_search: &mut bool,
    ) -> bool {
        let head = Head::unpack(seen);
        let Some(sweeps) = sweeps_since(guard, head) else { return false };
        let wanted = match (longer, self.region.idling(head.family).sweeps) {
            (Some(longer), _) => longer.as_nanos(),
            (None, 0) => return false,
            (None, minutes) => u128::from(minutes) * u128::from(SWEEP_INTERVAL),
        };
        let since_last = now.saturating_sub(self.region.memory.word_at(M_SWEPT_AT).load(Relaxed));
        let idle = u128::from(sweeps - 1) * u128::from(SWEEP_INTERVAL) + u128::from(since_last);
        let stamp = last_stamp_of_sweep(guard.sweep.saturating_sub(sweeps));
        idle >= wanted
            && !head.permanent
            && self.region.memory.is_unreachable(stamp, may_search)
            && !self.is_pinned()
            && !self.is_held()
            // It fails if a thread looked the series up.
            && self.retire(seen, None).is_ok()
    }
}

impl Region {
    /// Removes the series that were not looked up for `longer` or, if that is `None`, for their
    /// family's time. Then it sweeps. Returns the number of removed series that snapshots showed. `wants` selects
    /// families, each by its name and the minutes after which its idle series expire, 0 for never.
    ///
    /// The record of a series has the number of the sweep during which it was last looked up, and
    /// the region has the time at which the last sweep began, by the boot clock. Sweeps begin at
    /// least a minute apart. So a removed series was idle for at least `longer`. A series that
    /// stays may have been idle for longer, most of all if no process swept: a look-up since the
    /// last sweep began has no known time. (Each call of [`sweep`](Self::sweep) counts as a
    /// minute.) Permanent series stay, and so do series that a process keeps or that count
    /// something in flight.
    pub fn expire(
        &'static self,
        longer: Option<Duration>,
        wants: impl FnMut(&[u8], u32) -> bool,
    ) -> u64 {
        let guard = self.memory.enter();
        let chosen = FamilySet::of(&self.memory.sections, self.families_where(wants));
        // Before another sweep begins: it is since the last one that time is known.
        let now = boot_nanos();
        let mut may_search = true;
        let gone = self
            .series_of(&chosen)
            .filter(|&(id, seen)| {
                // One that is hidden was seen by nobody: it goes, and does not count.
                self.series(id).expire_one(&guard, seen, longer, now, &mut may_search)
                    && !Head::unpack(seen).hidden
            })
            .count();
        drop(guard);
        self.begin_sweep_if_due(now);
        self.sweep_all();
        gone as u64
    }
}
