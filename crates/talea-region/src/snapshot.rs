//! A snapshot: every family, series and value at one instant, copied out.
//!
//! Planes are read in a fixed order and cells only grow, so of two snapshots
//! the later never shows less. Nothing in it points into the region.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use crate::cells::{Number, Storage};
use crate::families::{FamilyHead, PUBLISHED};
use crate::layout::*;
use crate::planes;
use crate::region::Region;
use crate::series::SeriesHead;

/// A copy of a region's families, series and values.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    families: Vec<FamilyCopy>,
    /// Grouped by family, in the order of birth within one.
    series: Vec<SeriesCopy>,
    text: Vec<u8>,
    values: Vec<u64>,
}

/// A family in a snapshot.
#[derive(Clone, Debug)]
pub struct FamilyCopy {
    /// The name that it is found by.
    pub name: Vec<u8>,
    /// What the layers above keep with it.
    pub definition: Vec<u8>,
    /// Their number for it.
    pub kind: u8,
    /// What its cells count in.
    pub number: Number,
    /// Nanoseconds since 1970.
    pub created_unix_nanos: u64,
    /// How often a new series was refused.
    pub dropped: u64,
    id: u32,
    cells: u32,
    series: std::ops::Range<usize>,
}

#[derive(Clone, Debug)]
struct SeriesCopy {
    family: u32,
    created: u64,
    text: std::ops::Range<usize>,
    values: usize,
}

/// A series in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SeriesView<'a> {
    /// The label text that it was made with.
    pub text: &'a [u8],
    /// The value of each cell; of a float, its bits.
    pub values: &'a [u64],
    /// Nanoseconds since 1970.
    pub created_unix_nanos: u64,
}

impl Snapshot {
    /// The families in the order of their registration.
    pub fn families(&self) -> &[FamilyCopy] {
        &self.families
    }

    /// The series of a family in the order of their birth.
    pub fn series<'a>(
        &'a self,
        family: &'a FamilyCopy,
    ) -> impl ExactSizeIterator<Item = SeriesView<'a>> {
        self.series[family.series.clone()].iter().map(|series| SeriesView {
            text: &self.text[series.text.clone()],
            values: &self.values[series.values..series.values + family.cells as usize],
            created_unix_nanos: series.created,
        })
    }
}

/// Where the copies of a cell lie, behind its first.
struct Copies {
    planes: Vec<u64>,
    living: Vec<u64>,
}

impl Region {
    /// Copies all values out. Cost: the living series and the planes in use;
    /// how many processes wrote, or died, does not matter.
    pub fn snapshot(&'static self) -> Snapshot {
        let mut snapshot = Snapshot { families: self.copy_families(), ..Snapshot::default() };
        let copies =
            Copies { planes: planes::deltas(self).collect(), living: self.living().collect() };
        let used =
            self.mark(M_SERIES).load(Acquire).min(self.s.series_max * SERIES_LEN) / SERIES_LEN;
        // The mark moves before the pages behind it are backed.
        let backed = self.mark(M_SERIES + BACKED).load(Acquire) / SERIES_LEN;
        let mut place = vec![None; self.s.family_max as usize];
        for (n, family) in snapshot.families.iter().enumerate() {
            place[family.id as usize] = Some(n as u32);
        }
        for id in 0..used.min(backed) as u32 {
            let Some((PUBLISHED, head)) =
                SeriesHead::unpack(self.series_word(id, SERIES_HEAD).load(Acquire))
            else {
                continue;
            };
            let Some(&Some(family)) = place.get(head.family as usize) else { continue };
            self.copy_series(&mut snapshot, family, id, head, &copies);
        }
        // Stable: within a family the order of birth stays.
        snapshot.series.sort_by_key(|series| series.family);
        let mut from = 0;
        for (n, family) in snapshot.families.iter_mut().enumerate() {
            let count = snapshot.series[from..].iter().take_while(|s| s.family == n as u32).count();
            family.series = from..from + count;
            from += count;
        }
        snapshot
    }

    fn copy_families(&self) -> Vec<FamilyCopy> {
        let used = self.mark(M_FAMILIES).load(Acquire).min(self.s.family_max) as u32;
        (0..used).filter_map(|id| self.copy_family(id)).collect()
    }

    fn copy_family(&self, id: u32) -> Option<FamilyCopy> {
        let (PUBLISHED, head) =
            FamilyHead::unpack(self.family_word(id, FAMILY_HEAD).load(Acquire))?
        else {
            return None;
        };
        let (mut name, mut definition) = (Vec::new(), Vec::new());
        let whole = self.copy_text(self.family_span(id, FAMILY_NAME), &mut name)
            && self.copy_text(self.family_span(id, FAMILY_DEFINITION), &mut definition);
        whole.then(|| FamilyCopy {
            name,
            definition,
            kind: head.kind,
            number: head.number,
            created_unix_nanos: self.family_word(id, FAMILY_CREATED).load(Relaxed),
            dropped: self.family_word(id, FAMILY_DROPPED).load(Relaxed),
            id,
            cells: head.cells,
            series: 0..0,
        })
    }

    fn copy_series(
        &self,
        out: &mut Snapshot,
        family: u32,
        id: u32,
        head: SeriesHead,
        copies: &Copies,
    ) {
        let FamilyCopy { cells, number, .. } = out.families[family as usize];
        let first = self.series_word(id, SERIES_CELLS).load(Relaxed);
        let values = out.values.len();
        let text = out.text.len();
        let deltas: &[u64] = match head.storage {
            Storage::Single => &[0],
            Storage::Striped => &copies.planes,
            Storage::Owned => &copies.living,
        };
        let mut add = |delta| self.add_copy(&mut out.values, values, first + delta, cells, number);
        let summed = deltas.iter().all(|&delta| add(delta));
        let span = Span::unpack(self.series_word(id, SERIES_TEXT).load(Relaxed));
        if !summed || !self.copy_text(span, &mut out.text) {
            out.values.truncate(values);
            out.text.truncate(text);
            return;
        }
        let created = self.series_word(id, SERIES_CREATED).load(Relaxed);
        out.series.push(SeriesCopy { family, created, text: text..out.text.len(), values });
    }

    /// Adds one copy of a run of cells to `values[from..]`; false where the run
    /// lies outside the region.
    fn add_copy(
        &self,
        values: &mut Vec<u64>,
        from: usize,
        at: u64,
        cells: u32,
        number: Number,
    ) -> bool {
        let Some(words) = self.map.words(at, u64::from(cells)) else { return false };
        values.resize(from + cells as usize, 0);
        let load = |word: &AtomicU64| word.load(Relaxed);
        for (value, word) in values[from..].iter_mut().zip(words) {
            *value = match number {
                Number::Integer => value.wrapping_add(load(word)),
                Number::Float => (f64::from_bits(*value) + f64::from_bits(load(word))).to_bits(),
            };
        }
        true
    }
}
