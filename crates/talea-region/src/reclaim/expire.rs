//! Expiring: idle series go when somebody asks, rather than at their family's time.
//!
//! How long a series was idle is known by sweeps, and by when the last one began, by the
//! boot clock: see `sweep.rs`, which also says why nobody can add to a series that is taken out.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::clock::boot_nanos;
use crate::layout::*;
use crate::memory::guard::{Guard, last_stamp_of_sweep};
use crate::reclaim::sweep::{SWEEP_INTERVAL, sweeps_since};
use crate::region::Region;
use crate::series::groups::FamilySet;
use crate::series::record::Head;

impl Region {
    /// Removes those series that nobody looked up for `longer` or, where that is `None`, for
    /// their family's time; and does the sweep that is due. Returns how many went. `wants` says
    /// which families take part, each by its name and the minutes after which its idle series
    /// go, 0 for never.
    ///
    /// A series knows the sweep during which it was last looked up, and the region when the
    /// last one began, by the boot clock; sweeps begin at least a minute apart. So what goes was
    /// not looked up for so long, and what stays may have been idle for longer, most of all where
    /// nobody swept: of what was looked up since the last sweep began nothing is known. (Each call of
    /// [`sweep`](Self::sweep) counts as a minute.) Those stay that last as long as their
    /// family, that somebody keeps, or that hold what is in flight.
    pub fn expire(
        &'static self,
        longer: Option<Duration>,
        mut wants: impl FnMut(&[u8], u32) -> bool,
    ) -> u64 {
        let guard = self.memory.enter();
        let ids = (0..self.families_used()).filter(|&id| {
            let mut name = Vec::new();
            self.is_published(id) && {
                self.memory.read_text(self.family_span(id, FAMILY_NAME), &mut name);
                wants(&name, self.idling(id).sweeps)
            }
        });
        let chosen = FamilySet::of(&self.memory.sections, ids);
        // Before another sweep begins: it is since the last one that time is known.
        let now = boot_nanos();
        let mut may_search = true;
        let gone = self
            .series_of(&chosen)
            .filter(|&(id, seen)| self.expire_one(&guard, id, seen, longer, now, &mut may_search))
            .count();
        drop(guard);
        self.begin_sweep_if_due(now);
        self.sweep_all();
        gone as u64
    }

    fn expire_one(
        &'static self,
        guard: &Guard,
        id: u32,
        seen: u64,
        longer: Option<Duration>,
        now: u64,
        may_search: &mut bool,
    ) -> bool {
        let head = Head::unpack(seen);
        let Some(sweeps) = sweeps_since(guard, head) else { return false };
        let wanted = match (longer, self.idling(head.family).sweeps) {
            (Some(longer), _) => longer.as_nanos(),
            (None, 0) => return false,
            (None, minutes) => u128::from(minutes) * u128::from(SWEEP_INTERVAL),
        };
        let since_last = now.saturating_sub(self.memory.word_at(M_SWEPT_AT).load(Relaxed));
        let idle = u128::from(sweeps - 1) * u128::from(SWEEP_INTERVAL) + u128::from(since_last);
        let stamp = last_stamp_of_sweep(guard.sweep().saturating_sub(sweeps));
        idle >= wanted
            && !head.permanent
            && self.is_unreachable(stamp, may_search)
            && !self.is_pinned(id)
            && !self.is_held(id)
            // Where it fails, somebody looked it up.
            && self.retire(id, seen).is_ok()
    }
}
