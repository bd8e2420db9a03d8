//! The contents of a snapshot, and how they are read.

use std::collections::BTreeMap;
use std::ops::Range;

use super::batch::{Batch, PlainGroup};
use super::runs::{Run, SeriesCopies};
use super::series_copy::{HAS_DETAILS, NOTHING, SeriesCopy};
use super::texts::Texts;
use crate::hash::hash;
use crate::layout::*;
use crate::memory::path::AddPath;
use crate::series::exemplars::Exemplar;
use crate::series::groups::FamilySet;
use crate::series::segment::MadeSegment;
use crate::source::{Block, Owner};
use crate::values::{Combine, Number};

/// A copy of a region's families, series and values.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) families: Vec<FamilyCopy>,
    pub(super) series: Vec<SeriesCopy>,
    pub(super) runs: Vec<Run>,
    pub(super) texts: Texts,
    pub(super) values: Vec<u64>,
    /// The processes whose own values some series are.
    pub(super) owners: Vec<Owner>,
    /// The exemplars and segments of the series that have some.
    pub(super) details: Vec<Details>,
    pub(super) segments: Vec<SegmentCopy>,
    /// The refused look-ups of new series, by the families' names.
    pub(super) dropped: BTreeMap<Vec<u8>, u64>,
    pub(super) scratch: Scratch,
}

impl Scratch {
    /// How far the copies of striped cells lie behind plane 0, by their place there.
    #[inline]
    pub(super) fn planes_of(&self, s: &Sections, at: u64) -> &[u64] {
        let has_shared = !s.is_lazy(at) || self.has_lazy_copies;
        let first = if has_shared { 0 } else { SHARED_PLANES as usize };
        self.planes.get(first..).unwrap_or_default()
    }
}

/// Buffers for taking a snapshot, reused by the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// How far each plane in use lies behind plane 0.
    pub(super) planes: Vec<u64>,
    /// Whether the first of them, plane 0, has copies of lazy cells.
    pub(super) has_lazy_copies: bool,
    pub(super) living: Vec<Block>,
    /// Their slots, a bit each.
    pub(super) living_slots: [u64; SLOT_WORDS as usize],
    /// How far each of those lies behind block 0.
    pub(super) blocks: Vec<u64>,
    pub(super) chosen: FamilySet,
    pub(super) windows: Vec<Range<u64>>,
    pub(super) batch: Batch,
    /// Made by the first snapshot.
    pub(super) group: Option<Box<PlainGroup>>,
    pub(super) more: More,
    /// The cells of a segment when its series was last wiped.
    pub(super) base: Vec<u64>,
}

/// A series' extension: its exemplars, segments and baseline.
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    /// Where its exemplars are, and when it was last wiped; or 0.
    pub(super) exemplars: u64,
    pub(super) wiped: u64,
    /// Its cells at that time, if it was.
    pub(super) base: Vec<u64>,
    /// The place of the table of its segments' cells at that time, or 0.
    pub(super) bases: u64,
    /// The entries of its segments that exist, by their number.
    pub(super) segments: Vec<(u64, u64)>,
}

/// A family in a snapshot.
#[derive(Clone, Debug, Default)]
pub struct FamilyCopy {
    /// The name that it is found by.
    pub name: Vec<u8>,
    /// The bytes that the layers above keep with it.
    pub definition: Vec<u8>,
    /// The number of its kind, which the layers above choose.
    pub kind: u8,
    /// The type of number in its cells.
    pub number: Number,
    /// How the values of several processes make one.
    pub combine: Combine,
    /// Nanoseconds since 1970.
    pub created_unix_nanos: u64,
    /// Series that live in it, without the overflow series. A kill may leave it one too high.
    pub live_series: u64,
    /// How often a new series was refused.
    pub dropped: u64,
    /// Whether a living process registered it, or otherwise when the last one that did was
    /// started. Of several families of one name, the greatest is the one that is in use.
    pub last_use: LastUse,
    /// Whether its series expire.
    pub expires: bool,
    /// Whether other definitions of its name stand beside it even while no process uses one of them.
    pub allows_others: bool,
    /// Whether some of its series may have exemplars; otherwise none has.
    pub has_exemplars: bool,
    pub(super) about: [u64; 5],
    pub(super) id: u32,
    /// How many removals of its series were begun when it was copied.
    pub(super) removals: u64,
    /// Whether one of them may be there twice: it was copied, removed and made again.
    pub(super) may_repeat: bool,
    pub(super) cells: u16,
    pub(super) segments: u16,
    /// The segment that a series is made with.
    pub(super) made_segment: MadeSegment,
    /// Its runs among all runs, in the order of their records, and the number of their series.
    pub(super) runs: Range<usize>,
    pub(super) series: usize,
    /// Where the first of them is.
    pub(super) first: usize,
}

/// When a family was last registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastUse {
    /// By processes that are dead, the last of which was started at that time, in nanoseconds
    /// of the boot clock; 0 if other processes have their places since.
    Dead(u64),
    /// By a process that lives.
    Living,
}

impl Default for LastUse {
    fn default() -> Self {
        Self::Dead(0)
    }
}

impl FamilyCopy {
    /// A digest that identifies the family among those of all regions: two copies with the same
    /// digest have one name, definition, kind and number.
    pub fn about(&self) -> [u64; 5] {
        self.about
    }

    /// Its number, which no other family of the region has.
    pub fn number(&self) -> u32 {
        self.id
    }

    /// Whether its series are one cell and nothing else.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        (self.cells, self.segments) == (1, 0)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Details {
    pub(super) exemplars: Vec<Exemplar>,
    pub(super) segments: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentCopy {
    pub(super) n: u16,
    pub(super) tag: u16,
    pub(super) count: u16,
    pub(super) values: usize,
}

/// A segment in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SegmentView<'a> {
    /// Its number in its series.
    pub n: u16,
    /// The mark that the layers above gave it.
    pub tag: u16,
    /// The value of each of its cells.
    pub values: &'a [u64],
}

/// A series in a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SeriesView<'a> {
    /// Its label text.
    pub text: &'a [u8],
    /// The value of each cell; of a float, its bits.
    pub values: &'a [u64],
    /// Nanoseconds since 1970.
    pub created_unix_nanos: u64,
    /// Its exemplars, at most one for each cell.
    pub exemplars: &'a [Exemplar],
    pub(super) segments: SegmentCopies<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentCopies<'a> {
    pub(super) own: &'a [SegmentCopy],
    pub(super) values: &'a [u64],
}

impl<'a> SeriesView<'a> {
    /// Its segments, by their number.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = SegmentView<'a>> + Clone + use<'a> {
        let SegmentCopies { own, values } = self.segments;
        own.iter().map(move |&SegmentCopy { n, tag, count, values: at }| SegmentView {
            n,
            tag,
            values: &values[at..at + usize::from(count)],
        })
    }
}

impl Snapshot {
    #[inline]
    pub(super) fn details_of(&self, series: &SeriesCopy) -> Option<&Details> {
        if series.beside == NOTHING || series.beside & HAS_DETAILS == 0 {
            return None;
        }
        self.details.get((series.beside & !HAS_DETAILS) as usize)
    }

    /// The families in the order of their registration.
    pub fn families(&self) -> &[FamilyCopy] {
        &self.families
    }

    /// The label text of all series, and zeros between.
    pub fn text(&self) -> &[u8] {
        self.texts.bytes()
    }

    /// The series of a family in the order of their records, which is the order of their making
    /// as long as none was removed.
    pub fn series<'a>(
        &'a self,
        family: &'a FamilyCopy,
    ) -> impl ExactSizeIterator<Item = SeriesView<'a>> {
        self.copies(family, 0).map(|series| self.view(family, series))
    }

    /// The series with a number, counted from 0.
    #[inline]
    pub fn series_at<'a>(&'a self, family: &'a FamilyCopy, n: usize) -> Option<SeriesView<'a>> {
        if n >= family.series {
            return None;
        }
        // A family has a run at least, and mostly one.
        let series = match n {
            0 => self.series.get(family.first)?,
            _ => self.copies(family, n).next()?,
        };
        Some(self.view(family, series))
    }

    /// The series of a family from number `from` on, if they are one cell each: in pieces, the place
    /// of each label text in [`text`](Self::text), and its value.
    #[inline]
    pub fn single_values<'a>(
        &'a self,
        family: &'a FamilyCopy,
        from: usize,
    ) -> Option<impl Iterator<Item = impl Iterator<Item = (Range<usize>, u64)>>> {
        let pieces = family.is_plain().then(|| self.copies(family, from).pieces())?;
        Some(pieces.map(|piece| {
            piece.iter().map(|series| {
                let Span { at, len } = Span::unpack(series.text);
                (at as usize..(at + len) as usize, series.values)
            })
        }))
    }

    #[inline]
    pub(super) fn copies(&self, family: &FamilyCopy, from: usize) -> SeriesCopies<'_> {
        SeriesCopies::new(&self.series, &self.runs[family.runs.clone()], family.series, from)
    }

    #[inline]
    pub(super) fn values_of<'a>(
        &'a self,
        family: &FamilyCopy,
        series: &'a SeriesCopy,
    ) -> &'a [u64] {
        if family.is_plain() {
            return std::slice::from_ref(&series.values);
        }
        &self.values[series.values as usize..][..usize::from(family.cells)]
    }

    #[inline]
    pub(super) fn view<'a>(
        &'a self,
        family: &'a FamilyCopy,
        series: &'a SeriesCopy,
    ) -> SeriesView<'a> {
        let details = self.details_of(series);
        let own = details.map_or(0..0, |details| details.segments.clone());
        SeriesView {
            text: self.texts.at(series.text),
            values: self.values_of(family, series),
            created_unix_nanos: series.created,
            exemplars: details.map_or(&[], |details| details.exemplars.as_slice()),
            segments: SegmentCopies { own: &self.segments[own], values: &self.values },
        }
    }
}

impl Snapshot {
    /// Changes the label text of each series that is one process's own value: `name` gets the text
    /// and the process.
    pub fn name_owners(&mut self, mut name: impl FnMut(&mut Vec<u8>, Owner)) {
        if self.owners.is_empty() {
            return;
        }
        for series in &mut self.series {
            if let Some(owner) = self.owners.get(series.beside as usize) {
                let mut text = self.texts.at(series.text).to_vec();
                name(&mut text, *owner);
                series.text = self.texts.push(&text);
            }
        }
    }

    /// The processes whose own values are in it, once for each such series.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The processes that had the region open and lived, by their slots: those that have one.
    pub fn living(&self) -> impl Iterator<Item = LivingProcess> + '_ {
        let slots = self.scratch.living.iter().filter(|block| block.owner.slot < SLOT_COUNT);
        slots.map(|block| LivingProcess {
            slot: block.owner.slot,
            started_boot_nanos: block.started,
            pid: block.owner.pid,
            adds: block.adds,
        })
    }

    /// How often a new series was refused, by the family's name, where it was; also of
    /// families that were not wanted. Sorted.
    pub fn dropped(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.dropped.iter().map(|(name, count)| (name.as_slice(), *count))
    }

    /// Replaces the series of a family by others of one cell each.
    pub fn replace_series(&mut self, family: usize, series: impl IntoIterator<Item = OneCell>) {
        if family >= self.families.len() {
            return;
        }
        let series = series.into_iter().map(|one| SeriesCopy {
            text: self.texts.push(&one.text),
            values: one.value,
            created: one.created_unix_nanos,
            family: family as u32,
            beside: NOTHING,
        });
        let series = series.collect();
        self.replace_copies(family, series);
        (self.families[family].cells, self.families[family].segments) = (1, 0);
    }

    /// Adds a family that the region does not hold, whose series are integers that are summed.
    pub fn add_family(
        &mut self,
        name: &str,
        definition: Vec<u8>,
        kind: u8,
        series: impl IntoIterator<Item = OneCell>,
    ) {
        let digests = [name.as_bytes(), &definition].map(|text| hash(0, u64::from(kind), text));
        self.families.push(FamilyCopy {
            name: name.as_bytes().to_vec(),
            definition,
            kind,
            last_use: LastUse::Living,
            about: [digests[0], digests[1], 0, 0, 0],
            // No record of the region has this number.
            id: u32::MAX,
            ..FamilyCopy::default()
        });
        self.replace_series(self.families.len() - 1, series);
    }

    pub(super) fn replace_copies(&mut self, family: usize, series: Vec<SeriesCopy>) {
        let (run, first, count) = (self.runs.len(), self.series.len(), series.len());
        self.runs.push(Run::new(family as u32, first, count));
        self.series.extend(series);
        let family = &mut self.families[family];
        (family.runs, family.series, family.first) = (run..run + 1, count, first);
    }

    /// The places of a family's series among all.
    pub(super) fn places_of(&self, family: &FamilyCopy) -> impl Iterator<Item = usize> {
        self.runs[family.runs.clone()].iter().flat_map(Run::range)
    }
}

/// A series of one cell that a reader puts into a snapshot.
#[derive(Clone, Debug, Default)]
pub struct OneCell {
    /// Its label text.
    pub text: Vec<u8>,
    /// The value of its cell.
    pub value: u64,
    /// Nanoseconds from 1970 to its creation; 0 if that is not known.
    pub created_unix_nanos: u64,
}

/// A process that had the region open when a snapshot was taken, and lived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LivingProcess {
    /// Its slot, which is its alone while it lives.
    pub slot: u64,
    /// When it took the slot, in nanoseconds of the boot clock.
    pub started_boot_nanos: u64,
    /// Its id, as it sees it itself.
    pub pid: u64,
    /// The path of its striped adds.
    pub adds: AddPath,
}
