//! Series that a snapshot met twice.
//!
//! Records are copied one after the other while others write. A series that is copied, then removed
//! and made again has another record, which is copied too if its turn comes later. So both would be
//! shown, with one label text, and a scraper refuses one of them or the whole page. Each removal is
//! counted in its family before the record changes its state: a family whose count is the same before
//! its first series and after its last has none twice.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Acquire;

use super::copies::Snapshot;
use super::taking::Taking;
use crate::layout::*;
use crate::primitive::fence;
use crate::source::Source;

impl<S: Source> Taking<'_, '_, S> {
    /// Leaves out those that were removed and made again since they were copied.
    pub(super) fn leave_out_repeats(&mut self) {
        // The counts are read after the series.
        fence(Acquire);
        for n in 0..self.taken.out.families.len() {
            let family = &self.taken.out.families[n];
            let at = self.taken.s.families + u64::from(family.id) * FAMILY_LEN;
            let removals = self.source.word(at + FAMILY_REMOVALS);
            if family.may_repeat || removals != family.removals {
                self.taken.out.leave_out_repeats_of(n);
            }
        }
    }
}

impl Snapshot {
    /// Keeps of the series of one text only that which was copied last, since it was made last.
    /// Values of several processes are apart.
    fn leave_out_repeats_of(&mut self, family: usize) {
        let places: Vec<usize> = self.places_of(&self.families[family]).collect();
        let owner = |n: usize| self.owners.get(self.series[n].beside as usize);
        let key = |n: usize| (self.texts.at(self.series[n].text), owner(n).map(|owner| owner.slot));
        let last: HashMap<_, usize> = places.iter().map(|&n| (key(n), n)).collect();
        if last.len() == places.len() {
            return;
        }
        let kept = places.into_iter().filter(|&n| last.get(&key(n)) == Some(&n));
        let kept: Vec<_> = kept.map(|n| self.series[n]).collect();
        self.replace_copies(family, kept);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;
    use std::ops::Range;
    use std::sync::atomic::Ordering::{AcqRel, Release};

    use super::*;
    use crate::lookup::register::FamilySpec;
    use crate::region::Region;
    use crate::series::family::Family;
    use crate::series::groups::FamilySet;
    use crate::series::record::REMOVING;
    use crate::snapshot::take::take;
    use crate::testing::{self, Watched};
    use crate::values::{Combine, Storage};

    /// Takes a snapshot, and calls a function when a record is read.
    fn snapshot_with(region: &'static Region, record: u64, meddle: impl FnOnce()) -> Snapshot {
        let meddle = Cell::new(Some(meddle));
        let source = Watched(region, |n| {
            if n == record {
                meddle.take().into_iter().for_each(|meddle| meddle());
            }
            true
        });
        let mut snapshot = Snapshot::default();
        take(&source, &|_| true, &mut snapshot).unwrap();
        snapshot
    }

    /// Removes series and reclaims their records, which the next series get.
    fn leave(region: &'static Region, family: Family, series: Range<u64>) {
        series.for_each(|n| assert!(family.remove(n.to_string().as_bytes())));
        (0..3).for_each(|_| region.sweep());
    }

    #[test]
    fn a_series_that_is_removed_and_made_again_meanwhile_is_shown_once() {
        for (storage, cells, combine) in [
            (Storage::Single, 1, Combine::Sum),
            (Storage::Striped, 1, Combine::Sum),
            (Storage::Single, 3, Combine::Sum),
            (Storage::Owned, 1, Combine::Each),
        ] {
            let spec = FamilySpec { storage, cells, combine, ..FamilySpec::default() };
            let (region, family) = testing::family(spec);
            let add = |n: u64| match combine {
                Combine::Each => family.series(n.to_string().as_bytes()).unwrap().at(0).set(n),
                _ => family.series(n.to_string().as_bytes()).unwrap().at(0).add(n),
            };
            (0..90).for_each(add);
            leave(region, family, 60..90);
            let snapshot = snapshot_with(region, 50, || {
                for n in [7, 20] {
                    assert!(family.remove(n.to_string().as_bytes()));
                    add(n);
                }
                // One that is made and one that is removed are there or not.
                add(60);
                assert!(family.remove(b"30"));
            });
            let mut found: Vec<u64> = snapshot
                .series(&snapshot.families()[0])
                .map(|series| std::str::from_utf8(series.text).unwrap().parse().unwrap())
                .collect();
            found.sort_unstable();
            assert_eq!(found, (0..=60).collect::<Vec<u64>>(), "{storage:?} {combine:?}");
        }
    }

    #[test]
    fn a_removal_that_was_counted_before_its_family_was_read_counts_too() {
        let (region, family) = testing::family(FamilySpec::default());
        (0..300).for_each(|n: u64| drop(family.series(n.to_string().as_bytes()).unwrap()));
        leave(region, family, 200..300);
        // As by a thread that was stopped between its count and the removal.
        let all = FamilySet::of(&region.memory.sections, [family.id].into_iter());
        let (first, _) = region.series_of(&all).next().unwrap();
        region.series(first).word(SERIES_HEAD).fetch_or(REMOVING, AcqRel);
        region.family_word(family.id, FAMILY_REMOVALS).fetch_add(1, AcqRel);
        let word = region.family_word(family.id, FAMILY_REMOVALS);
        let snapshot = snapshot_with(region, 150, || {
            let before = word.load(Acquire);
            assert!(family.remove(b"0"));
            drop(family.series(b"0").unwrap());
            word.store(before, Release);
        });
        assert_eq!(snapshot.series(&snapshot.families()[0]).count(), 200);
    }
}
