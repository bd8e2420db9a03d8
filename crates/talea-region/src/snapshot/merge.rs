//! Adding up two families of one name in a snapshot.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::copies::{Details, FamilyCopy, Snapshot};
use super::series_copy::{HAS_DETAILS, NOTHING, SeriesCopy};
use crate::values::Combine;

impl FamilyCopy {
    /// Whether another family has the same cells, with values that combine alike.
    fn has_cells_of(&self, other: &Self) -> bool {
        let cells =
            |it: &Self| (it.kind, it.number, it.combine, it.cells, it.segments, it.made_segment);
        cells(self) == cells(other)
    }
}

impl Snapshot {
    /// Adds the series of one family to those of another, both by their places among
    /// [`families`](Self::families). `key` has equal results for the label texts of equal series.
    /// The values of equal series are added up if `sums`; otherwise those of `into` stay. False, and
    /// nothing is added, if their cells differ, or are no sums that are to be added up.
    ///
    /// A sum has the latest exemplars of both, and the earlier time of creation.
    pub fn add_family_to(
        &mut self,
        into: usize,
        from: usize,
        sums: bool,
        key: impl Fn(&[u8]) -> Vec<u8>,
    ) -> bool {
        let (Some(ours), Some(theirs)) = (self.families.get(into), self.families.get(from)) else {
            return false;
        };
        if !ours.has_cells_of(theirs) || into == from || (sums && ours.combine != Combine::Sum) {
            return false;
        }
        let (ours, theirs) = (ours.clone(), theirs.clone());
        let [mut all, others] = [&ours, &theirs]
            .map(|family| self.places_of(family).map(|n| self.series[n]).collect::<Vec<_>>());
        let places = all.iter().enumerate();
        let places: HashMap<Vec<u8>, usize> =
            places.map(|(n, one)| (key(self.texts.at(one.text)), n)).collect();
        for other in others {
            match places.get(&key(self.texts.at(other.text))) {
                Some(&n) if sums => all[n] = self.sum_of(&ours, all[n], other),
                Some(_) => {}
                None => all.push(other),
            }
        }
        self.replace_copies(into, all);
        self.families[into].has_exemplars |= theirs.has_exemplars;
        true
    }

    /// The sum of two series of families with the same cells.
    fn sum_of(&mut self, family: &FamilyCopy, one: SeriesCopy, other: SeriesCopy) -> SeriesCopy {
        // 0 is not known.
        let created = match (one.created, other.created) {
            (0, created) | (created, 0) => created,
            (one, other) => one.min(other),
        };
        let beside = self.details_of_both(one, other);
        if family.is_plain() {
            let values = family.number.add(one.values, other.values);
            return SeriesCopy { values, created, beside, ..one };
        }
        let (cells, values) = (u64::from(family.cells), self.values.len());
        for n in 0..cells {
            let [one, other] = [one, other].map(|it| self.values[(it.values + n) as usize]);
            self.values.push(family.number.of_cell(n, cells).add(one, other));
        }
        SeriesCopy { values: values as u64, created, beside, ..one }
    }

    /// The details of two series: all segments, those that both have summed up.
    fn details_of_both(&mut self, one: SeriesCopy, other: SeriesCopy) -> u32 {
        let Some(theirs) = self.details_of(&other).cloned() else { return one.beside };
        let ours = self.details_of(&one).cloned().unwrap_or_default();
        let mut segments = self.segments[ours.segments].to_vec();
        for n in theirs.segments {
            let segment = self.segments[n];
            let same = segments.iter_mut().find(|ours| {
                (ours.n, ours.tag, ours.count) == (segment.n, segment.tag, segment.count)
            });
            match same {
                Some(ours) => {
                    let values = self.values.len();
                    for n in 0..usize::from(ours.count) {
                        let sum = self.values[ours.values + n]
                            .wrapping_add(self.values[segment.values + n]);
                        self.values.push(sum);
                    }
                    ours.values = values;
                }
                None => segments.push(segment),
            }
        }
        segments.sort_unstable_by_key(|segment| segment.n);
        let first = self.segments.len();
        self.segments.extend(segments);
        let segments = first..self.segments.len();
        // The latest of each cell.
        let mut exemplars = [ours.exemplars, theirs.exemplars].concat();
        exemplars.sort_by_key(|one| (one.n, Reverse(one.unix_nanos)));
        exemplars.dedup_by_key(|one| one.n);
        self.details.push(Details { exemplars, segments });
        (self.details.len() - 1) as u32 | HAS_DETAILS
    }
}

const _: () = assert!(NOTHING & HAS_DETAILS != 0);
