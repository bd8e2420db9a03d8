//! The state of taking a snapshot: the result so far, and the walk through the records.

use super::batch::Batch;
use super::copies::{Scratch, Snapshot};
use super::runs;
use crate::layout::*;
use crate::series::groups::FamilySet;
use crate::source::{self, Source};
use crate::values::Number;

/// A walk through the records, and the family of the current one. Mostly many series of a family
/// lie in a row.
pub(super) struct Walk<'a> {
    pub(super) chosen: &'a FamilySet,
    pub(super) id: u64,
    pub(super) place: u32,
    pub(super) number: Number,
    pub(super) may_be_plain: bool,
    /// How often the family changed since series were moved from the batch.
    pub(super) changes: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(chosen: &'a FamilySet) -> Self {
        // No family has that number.
        let id = u64::MAX;
        let number = Number::default();
        Self { chosen, id, place: 0, number, may_be_plain: false, changes: 0 }
    }
}

pub(super) struct Taken<'a> {
    pub(super) s: Sections,
    /// The seed of the region's hashes, which no other region has.
    pub(super) seed: u64,
    pub(super) scratch: Scratch,
    /// Bytes of names and definitions so far.
    pub(super) family_text: u64,
    /// Bytes of exemplars that there can still be.
    pub(super) exemplar_room: u64,
    /// More than this cannot be in the region.
    pub(super) limit: u64,
    pub(super) out: &'a mut Snapshot,
}

impl<'a> Taken<'a> {
    pub(super) fn begin(source: &impl Source, out: &'a mut Snapshot) -> Self {
        out.series.clear();
        out.runs.clear();
        out.texts.truncate(0);
        out.values.clear();
        out.owners.clear();
        out.details.clear();
        out.segments.clear();
        out.dropped.clear();
        let s = *source.sections();
        let mut scratch = std::mem::take(&mut out.scratch);
        let Scratch { planes: all, has_lazy_copies, living: alive, living_slots, blocks, .. } =
            &mut scratch;
        all.clear();
        all.extend(source::planes(source));
        *has_lazy_copies = source.has_lazy_copies();
        alive.clear();
        alive.extend(source::living(source));
        *living_slots = [0; SLOT_WORDS as usize];
        for slot in alive.iter().map(|block| block.owner.slot).filter(|&slot| slot < SLOT_COUNT) {
            living_slots[(slot / 64) as usize] |= 1 << (slot % 64);
        }
        blocks.clear();
        blocks.extend(alive.iter().map(|block| block.delta));
        let (seed, exemplar_room) = (source.seed(), s.singles.len);
        let limit = s.end();
        Self { s, seed, scratch, family_text: 0, exemplar_room, limit, out }
    }

    /// Reserves memory for the series of this number of records and for their texts: a buffer that grows step
    /// by step leaves holes in memory as large as itself, in each scrape.
    pub(super) fn reserve(&mut self, source: &impl Source, wanted: u64) {
        let all = (source.used_of(&self.s.records) / RECORD_LEN).max(1);
        // As much as their share of all texts.
        let texts =
            u128::from(source.used_of(&self.s.arena)) * u128::from(wanted) / u128::from(all);
        self.out.series.reserve(wanted as usize);
        self.out.texts.reserve(texts as u64);
    }

    pub(super) fn end(&mut self) {
        let Snapshot { families, runs, .. } = &mut *self.out;
        runs::of_families(runs, |family, runs, count, first| {
            let family = &mut families[family as usize];
            (family.runs, family.series, family.first) = (runs, count, first);
        });
    }

    pub(super) fn flush(&mut self, batch: &mut Batch, walk: &mut Walk<'_>) {
        let Snapshot { series, runs, texts, .. } = &mut *self.out;
        batch.flush(std::mem::take(&mut walk.changes), series, runs, texts);
    }
}

/// Takes what a source shows.
pub(super) struct Taking<'s, 'a, S> {
    pub(super) source: &'s S,
    pub(super) taken: &'s mut Taken<'a>,
}

/// Where the text at `span` begins, and how many words it has.
#[inline(always)]
pub(super) fn text_place(s: &Sections, span: Span) -> Option<(u64, u64)> {
    if span.at.checked_add(span.len)? > s.arena.len {
        return None;
    }
    Some((s.arena.at + span.at, span.len.div_ceil(WORD)))
}
