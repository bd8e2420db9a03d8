//! Wiping: all series of a family count from 0 again, and families end.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::layout::*;
use crate::memory::guard::Guard;
use crate::region::Region;
use crate::series::family::{ENDED, Family};
use crate::series::groups::FamilySet;
use crate::series::record::{Head, Series};

impl Series<'_> {
    fn wipe_one(self, guard: &Guard, seen: u64) -> bool {
        let stays = Head::unpack(seen).permanent || self.is_held() || self.is_pinned();
        if !stays && self.remove(guard) {
            return true;
        }
        self.reset()
    }
}

impl Region {
    /// Resets the families with these names. Their series are removed, except permanent ones and
    /// those that a living process keeps: these are set to 0. Owned values (of what is in flight,
    /// for example) stay as they are.
    ///
    /// Additions by other threads at the same time count before or after. If there is no room for
    /// the base of a series, the series keeps its value, and this returns false.
    pub fn wipe(&'static self, mut wants: impl FnMut(&[u8]) -> bool) -> bool {
        let guard = self.memory.enter();
        self.wipe_families(&guard, self.families_where(|name, _| wants(name)))
    }

    /// Ends the families of a name: they are no longer shown, additions through their handles are
    /// discarded, and the name is free for another definition. A family that is registered again
    /// with the same definition counts from 0, also through its old handles. Returns false if there
    /// is no such family.
    pub fn end_families(&'static self, name: &[u8]) -> bool {
        let guard = self.memory.enter();
        let mut ids = Vec::new();
        self.each_named(name, |id| ids.extend(self.end_one(id).then_some(id)));
        let any = !ids.is_empty();
        self.wipe_families(&guard, ids);
        any
    }

    /// Ends all families whose names `wants` selects. Cost: a read of each family, and of each of
    /// their series.
    pub fn end_families_where(&'static self, mut wants: impl FnMut(&[u8]) -> bool) {
        let guard = self.memory.enter();
        let ids = self.families_where(|name, _| wants(name));
        let ids: Vec<u32> = ids.filter(|&id| self.end_one(id)).collect();
        self.wipe_families(&guard, ids);
    }

    fn end_one(&self, id: u32) -> bool {
        let word = self.family_word(id, FAMILY_HEAD);
        let seen = word.load(Acquire);
        let ended = seen & !0xFF | ENDED;
        self.is_published(id) && word.compare_exchange(seen, ended, AcqRel, Relaxed).is_ok()
    }

    /// Resets some families, as [`wipe`](Self::wipe).
    pub(crate) fn wipe_families(
        &'static self,
        guard: &Guard,
        ids: impl IntoIterator<Item = u32>,
    ) -> bool {
        let chosen = FamilySet::of(&self.memory.sections, ids.into_iter());
        let mut all = true;
        for (id, seen) in self.series_of(&chosen) {
            all &= self.series(id).wipe_one(guard, seen);
        }
        self.sweep_a_little(guard, 0);
        all
    }
}

impl Family {
    /// Resets the family, as [`Region::wipe`].
    pub fn wipe(&self) -> bool {
        let guard = self.region.memory.enter();
        self.region.wipe_families(&guard, [self.id])
    }

    /// Removes the series whose label text `wants` selects, as [`remove`](Self::remove), and
    /// returns their number. Cost: a read of each series of the family, and a word for each 64
    /// others.
    pub fn remove_where(&self, mut wants: impl FnMut(&[u8]) -> bool) -> u64 {
        let region = self.region;
        let guard = region.memory.enter();
        let chosen = FamilySet::of(&region.memory.sections, [self.id].into_iter());
        let mut text = Vec::new();
        let mut removed = 0;
        for (id, _) in region.series_of(&chosen) {
            text.clear();
            let span = Span::unpack(region.series(id).word(SERIES_TEXT).load(Acquire));
            region.memory.read_text(span, &mut text);
            if wants(&text) && region.series(id).remove(&guard) {
                removed += 1;
            }
        }
        region.sweep_a_little(&guard, 0);
        removed
    }
}
