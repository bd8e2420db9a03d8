//! Groups of series records, each with the range of families that have series in it.
//!
//! A reader of a few families skips the groups that have none of their series, so that a million
//! other series cost it one word for each 64. A word is
//! `first:32 | end:32`, the range of the families that ever had a series in the
//! group; 0 where none had.

use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::record::{self, Head, PUBLISHED};
use crate::layout::*;
use crate::region::Region;
use crate::source::Source;

/// Some of a region's families.
#[derive(Clone, Debug, Default)]
pub(crate) struct FamilySet {
    /// Of each family up to the last that is chosen, how many of those before it are; and
    /// how many are in all.
    before: Vec<u32>,
}

impl FamilySet {
    /// The set of the families with these numbers.
    pub(crate) fn of(s: &Sections, ids: impl Iterator<Item = u32>) -> Self {
        let mut chosen = Self::default();
        chosen.choose(s, ids);
        chosen
    }

    /// Chooses others, in the same memory.
    pub(crate) fn choose(&mut self, s: &Sections, ids: impl Iterator<Item = u32>) {
        let before = &mut self.before;
        before.clear();
        // As long as the last of them needs: a region can have many more families than it has.
        for id in ids.filter(|&id| u64::from(id) < s.family_max) {
            let after = id as usize + 1;
            before.resize(before.len().max(after + 1), 0);
            before[after] = 1;
        }
        for n in 1..before.len() {
            before[n] += before[n - 1];
        }
    }

    pub(crate) fn has(&self, family: u32) -> bool {
        self.place(family).is_some()
    }

    /// The place of a family in the set, counted from 0 in the order of their numbers.
    #[inline]
    pub(crate) fn place(&self, family: u32) -> Option<u32> {
        let after = *self.before.get(family as usize + 1)?;
        let before = self.before[family as usize];
        (before < after).then_some(before)
    }

    fn has_any(&self, first: u32, end: u32) -> bool {
        let all = self.before.last().copied().unwrap_or(0);
        let before = |n: u32| self.before.get(n as usize).copied().unwrap_or(all);
        before(first) < before(end)
    }
}

/// The groups of records below a mark, in bytes, that chosen families have series in: the
/// records of each.
pub(crate) fn groups_of(
    source: &impl Source,
    chosen: &FamilySet,
    used: u64,
) -> impl Iterator<Item = Range<u64>> {
    let records = used / RECORD_LEN;
    let groups = (0..records.div_ceil(GROUP)).filter(|group| {
        let word = source.word(source.sections().groups + group * WORD);
        chosen.has_any((word >> 32) as u32, word as u32)
    });
    groups.map(move |group| group * GROUP..records.min((group + 1) * GROUP))
}

/// Records that are read together at most: so many stay in a core's cache, with their texts and
/// cells.
const WINDOW: u64 = 64 * GROUP;

/// Replaces `windows` by the same groups, adjacent ones joined.
pub(crate) fn windows_of(source: &impl Source, chosen: &FamilySet, windows: &mut Vec<Range<u64>>) {
    let used = source.used_of(&source.sections().records);
    windows.clear();
    for group in groups_of(source, chosen, used) {
        match windows.last_mut() {
            Some(last) if last.end == group.start && group.end - last.start <= WINDOW => {
                last.end = group.end;
            }
            _ => windows.push(group),
        }
    }
}

impl Region {
    /// Notes that a record is about to be a series of a family.
    pub(crate) fn note_in_group(&self, id: u32, family: u32) {
        let word = self.memory.word_at(self.memory.sections.groups + u64::from(id) / GROUP * WORD);
        let family = u64::from(family);
        let _ = word.fetch_update(AcqRel, Acquire, |seen| {
            let (first, end) = match seen {
                0 => (family, family + 1),
                _ => ((seen >> 32).min(family), (seen & 0xFFFF_FFFF).max(family + 1)),
            };
            let wider = first << 32 | end;
            (wider != seen).then_some(wider)
        });
    }

    /// The public series of some families, each with its head.
    pub(crate) fn series_of(&self, chosen: &FamilySet) -> impl Iterator<Item = (u32, u64)> {
        let used = self.memory.used(&self.memory.sections.records);
        groups_of(&self.memory, chosen, used).flatten().filter_map(|record| {
            let id = record as u32;
            let head = self.series(id).word(SERIES_HEAD).load(Acquire);
            let is = record::state(head) == PUBLISHED && chosen.has(Head::unpack(head).family);
            is.then_some((id, head))
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_choice_knows_its_ranges() {
        let limits = Limits { len: 1 << 20, series: 100, planes: 3, lent: 0 };
        let s = Sections::new(limits).unwrap();
        let chosen = FamilySet::of(&s, [3, 7, u32::MAX].into_iter());
        for n in 0..300 {
            assert_eq!(chosen.has(n), n == 3 || n == 7, "{n}");
        }
        for (first, end, any) in [(0, 3, false), (0, 4, true), (4, 7, false), (4, 9, true)] {
            assert_eq!(chosen.has_any(first, end), any);
        }
        for (first, end) in [(0, 0), (9, 2), (8, u32::MAX), (u32::MAX, u32::MAX)] {
            assert!(!chosen.has_any(first, end), "{first} {end}");
        }
    }
}
