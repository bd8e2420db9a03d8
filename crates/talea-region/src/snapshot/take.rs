//! Taking a snapshot out of a source of words, of which it trusts none.
//!
//! A region that this process maps and a copy of one that it does not are read by the same code:
//! each is a [`Source`]. Words that do not fit are left out, and lengths are bounded by the region's
//! own. The records are read a window at a time, so that a copy need not hold all of them at once.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering::Acquire;

use super::batch::{Batch, PlainGroup};
use super::copies::{Details, FamilyCopy, LastUse, More, SegmentCopy, Snapshot};
use super::series_copy::{HAS_DETAILS, NOTHING, SeriesCopy};
use super::taking::{Taken, Taking, Walk, text_place};
use crate::layout::*;
use crate::memory::runs::{CellRun, STRIPES, stripe_len};
use crate::memory::table;
use crate::primitive::fence;
use crate::series::exemplars;
use crate::series::extension::{bases_len, extension_len};
use crate::series::family::{self, FamilyHead, Idling};
use crate::series::groups;
use crate::series::record::{self, Head, PUBLISHED};
use crate::series::segment::{MadeSegment, Segment};
use crate::source::{Block, CELLS, CREATED, HEAD, MORE, PINS, Record, Source, TEXT, Windows};
use crate::values::{Combine, Number, Storage, unpack_present};

/// Copies the wanted families out of a source, into a snapshot whose memory is reused. It fails if a
/// window cannot be read.
pub(crate) fn take(
    mut windows: impl Windows,
    wants: &dyn Fn(&FamilyCopy) -> bool,
    out: &mut Snapshot,
) -> io::Result<()> {
    let mut taken = Taken::begin(windows.source(), out);
    Taking { source: windows.source(), taken: &mut taken }.families(wants);
    // A series whose removal is not counted yet is copied after this.
    fence(Acquire);
    let mut chosen = std::mem::take(&mut taken.scratch.chosen);
    let mut ranges = std::mem::take(&mut taken.scratch.windows);
    chosen.choose(&taken.s, taken.out.families.iter().map(|family| family.id));
    groups::windows_of(windows.source(), &chosen, &mut ranges);
    let wanted = ranges.iter().map(|records| records.end - records.start).sum();
    taken.reserve(windows.source(), wanted);
    let mut batch = std::mem::take(&mut taken.scratch.batch);
    let mut group = std::mem::take(&mut taken.scratch.group);
    let room = group.get_or_insert_default();
    batch.begin(taken.out.families.len(), wanted);
    let mut walk = Walk::new(&chosen);
    let mut result = Ok(());
    for window in &ranges {
        result = windows.turn_to(window.clone());
        if result.is_err() {
            break;
        }
        let mut taking = Taking { source: windows.source(), taken: &mut taken };
        taking.series(window.clone(), &mut walk, &mut batch, room);
    }
    taken.flush(&mut batch, &mut walk);
    taken.end();
    if result.is_ok() {
        result = windows.read_families_again();
        Taking { source: windows.source(), taken: &mut taken }.leave_out_repeats();
    }
    taken.scratch.chosen = chosen;
    taken.scratch.windows = ranges;
    taken.scratch.batch = batch;
    taken.scratch.group = group;
    taken.out.scratch = taken.scratch;
    result
}

impl<S: Source> Taking<'_, '_, S> {
    fn families(&mut self, wants: &dyn Fn(&FamilyCopy) -> bool) {
        // Names and definitions go where those of the last time were.
        let mut places = std::mem::take(&mut self.taken.out.families);
        let mut filled = 0;
        for id in 0..self.source.families_used() as u32 {
            if filled == places.len() {
                places.push(FamilyCopy::default());
            }
            let place = &mut places[filled];
            if self.family(id, place).is_none() {
                continue;
            }
            if place.dropped > 0 {
                let dropped = self.taken.out.dropped.entry(place.name.clone()).or_default();
                *dropped = dropped.wrapping_add(place.dropped);
            }
            filled += usize::from(wants(place));
        }
        places.truncate(filled);
        self.taken.out.families = places;
    }

    fn family(&mut self, id: u32, out: &mut FamilyCopy) -> Option<()> {
        const WORDS: usize = (FAMILY_USERS / WORD) as usize;
        let at = self.taken.s.families + u64::from(id) * FAMILY_LEN;
        let words: [u64; WORDS] = self.source.block(at, WORDS as u64)?;
        let word = |at: u64| words[(at / WORD) as usize];
        let (family::PUBLISHED, head) = FamilyHead::unpack(word(FAMILY_HEAD))? else {
            return None;
        };
        let [name, definition, created] =
            [FAMILY_NAME, FAMILY_DEFINITION, FAMILY_CREATED].map(word);
        let spans = [name, definition].map(Span::unpack);
        // Each has text of its own, so together it fits the region.
        self.taken.family_text += spans[0].len + spans[1].len;
        if self.taken.family_text > self.taken.limit {
            return None;
        }
        // Where a family is that was published, there is never another.
        let about = [self.taken.seed, word(FAMILY_HEAD), name, definition, created];
        if out.about != about {
            out.about = [0; 5];
            out.name.clear();
            out.definition.clear();
            self.text(spans[0], &mut out.name)?;
            self.text(spans[1], &mut out.definition)?;
            out.about = about;
        }
        out.kind = head.kind;
        out.number = head.number;
        out.combine = head.combine;
        out.created_unix_nanos = created;
        out.live_series = word(FAMILY_SERIES);
        out.dropped = word(FAMILY_DROPPED);
        out.last_use = match word(FAMILY_ALWAYS_USED) {
            0 => self.last_use(at),
            _ => LastUse::Living,
        };
        let idling = Idling::unpack(word(FAMILY_IDLE));
        (out.expires, out.allows_others) = (idling.sweeps > 0, idling.allows_others);
        (out.removals, out.may_repeat) = (word(FAMILY_REMOVALS), false);
        out.has_exemplars = false;
        out.id = id;
        out.cells = head.cells;
        out.segments = head.segments;
        out.made_segment = MadeSegment::unpack(word(FAMILY_MADE));
        (out.runs, out.series) = (0..0, 0);
        Some(())
    }

    /// When a process last had the family at an offset.
    fn last_use(&self, at: u64) -> LastUse {
        // 64 slots a word.
        let users = |n: u64| self.source.word(at + FAMILY_USERS + n * WORD);
        let mut living = self.taken.scratch.living_slots.iter().zip(0..);
        if living.any(|(&bits, n)| bits != 0 && bits & users(n) != 0) {
            return LastUse::Living;
        }
        let slots = 0..self.source.word(M_SLOTS).min(self.taken.s.slots);
        let slots = slots.filter(|slot| users(slot / 64) >> (slot % 64) & 1 == 1);
        let started = slots.map(|slot| self.source.slot_word(slot, SLOT_STARTED));
        let of_others = self.source.word(at + FAMILY_LAST_USED);
        LastUse::Dead(started.fold(of_others, u64::max))
    }

    fn series(
        &mut self,
        records: Range<u64>,
        walk: &mut Walk<'_>,
        batch: &mut Batch,
        group: &mut PlainGroup,
    ) {
        for first in records.clone().step_by(GROUP as usize) {
            if batch.is_full(walk.changes) {
                self.taken.flush(batch, walk);
            }
            let mut rest = first..records.end.min(first + GROUP);
            while !rest.is_empty() {
                rest.start = self.plain_series(rest.clone(), walk, batch, group);
                for n in rest.by_ref() {
                    self.any_series(n, walk, batch);
                    if walk.may_be_plain {
                        break;
                    }
                }
            }
        }
    }

    /// Moves a walk to a family; false if that is not wanted.
    #[inline(never)]
    pub(super) fn come_to(&mut self, id: u32, walk: &mut Walk<'_>) -> bool {
        let Some(place) = walk.chosen.place(id) else { return false };
        let Some(family) = self.taken.out.families.get(place as usize) else { return false };
        walk.may_be_plain = family.is_plain() && !family.combine.may_be_absent();
        (walk.id, walk.place, walk.number) = (u64::from(id), place, family.number);
        walk.changes += 1;
        true
    }

    /// Copies the series of a record, if there is one that is wanted.
    #[inline(never)]
    fn any_series(&mut self, n: u64, walk: &mut Walk<'_>, batch: &mut Batch) {
        let at = self.taken.s.records.at + n * RECORD_LEN;
        let record = self.source.record(at);
        let head = record[HEAD];
        if record::state(head) != PUBLISHED {
            return;
        }
        let head = Head::unpack(head);
        if u64::from(head.family) != walk.id && !self.come_to(head.family, walk) {
            return;
        }
        // The removal was counted before its family was copied, and is under way.
        self.taken.out.families[walk.place as usize].may_repeat |= head.removing;
        let (count, words) = (batch.count, batch.words);
        let (values, segments) = (self.taken.out.values.len(), self.taken.out.segments.len());
        let copied = self.one_series(&record, walk.place, head, batch);
        if copied.is_none() || !self.source.stands(at) {
            (batch.count, batch.words) = (count, words);
            self.taken.out.values.truncate(values);
            self.taken.out.segments.truncate(segments);
        }
    }

    fn one_series(
        &mut self,
        record: &Record,
        family: u32,
        head: Head,
        batch: &mut Batch,
    ) -> Option<()> {
        let of = &self.taken.out.families[family as usize];
        let FamilyCopy { cells, segments, number, combine, .. } = *of;
        let is_plain = of.is_plain();
        let run = CellRun::unpack(record[CELLS])?;
        if run.count != u64::from(cells) {
            return None;
        }
        // A false claim of a damaged record costs nothing: its text is copied before its cells are
        // summed, and each series has cells and text of its own, so together they fit the region.
        let values = self.taken.out.values.len();
        let span = Span::unpack(record[TEXT]);
        if (values as u64 + run.count) * WORD > self.taken.limit
            || batch.texts_len() + span.len > self.taken.limit
        {
            return None;
        }
        let (at, count) = text_place(&self.taken.s, span)?;
        let text = batch.push_text(self.source.words(at, count)?, span.len);
        let created = record[CREATED];
        let (from, values) = (values, values as u64);
        let mut series = SeriesCopy { text, values, created, family, beside: NOTHING };
        if run.storage == Storage::Owned && combine.may_be_absent() {
            return self.owned_values(series, run, number, combine, batch);
        }
        let more = self.more(record[MORE], run, segments).is_some();
        // Most series are one cell.
        let digest = match (run.storage, run.count) {
            (Storage::Single, 1) => {
                let value = self.source.words(run.at, 1)?.next()?;
                self.taken.out.values.push(value);
                value
            }
            _ => self.sum(run, number)?,
        };
        if head.hidden && digest == self.seen(record[PINS])? {
            return None;
        }
        if more {
            self.details(&mut series, run, number, segments)?;
        }
        if is_plain {
            series.values = self.taken.out.values.get(from).copied()?;
            self.taken.out.values.truncate(from);
        }
        batch.push(series);
        Some(())
    }

    /// Copies the extension of a series, if it has one; before its cells, so that no baseline is
    /// subtracted that is newer than the values.
    #[inline]
    fn more(&mut self, at: u64, run: CellRun, segments: u16) -> Option<()> {
        let (cells, count) = (run.count, u64::from(segments));
        if !self.taken.s.lies_in_singles(at, extension_len(cells, count)) {
            return None;
        }
        let More { exemplars, wiped, base, bases, segments } = &mut self.taken.scratch.more;
        [*exemplars, *wiped] = self.source.block(at, EXTENSION_REST)?;
        let rest = at + EXTENSION_REST * WORD;
        *bases = 0;
        base.clear();
        segments.clear();
        if count == 0 {
            if *wiped > 0 {
                base.extend(self.source.words(rest, cells)?);
            }
            return Some(());
        }
        if *wiped > 0 {
            let at = self.source.word(rest + DIRECTORY_BASES * WORD);
            if self.taken.s.lies_in_singles(at, bases_len(cells, count)) {
                base.extend(self.source.words(at, cells)?);
                *bases = at + cells * WORD;
            }
        }
        table::entries(self.source, rest + DIRECTORY_TABLE * WORD, count, segments)
    }

    /// Subtracts the baseline, and adds exemplars and segments.
    fn details(
        &mut self,
        series: &mut SeriesCopy,
        run: CellRun,
        number: Number,
        count: u16,
    ) -> Option<()> {
        let more = std::mem::take(&mut self.taken.scratch.more);
        let More { exemplars, wiped, base, bases, segments } = &more;
        if *wiped > 0 {
            series.created = series.created.max(*wiped);
            subtract_base(number, &mut self.taken.out.values[series.values as usize..], base);
        }
        let made = self.taken.out.families[series.family as usize].made_segment;
        let most = run.count + u64::from(made.cells);
        // Each has a place of its own, so together they fit the region.
        let exemplars =
            exemplars::read(self.source, *exemplars, most, &mut self.taken.exemplar_room);
        self.taken.out.families[series.family as usize].has_exemplars |= !exemplars.is_empty();
        let first = self.taken.out.segments.len();
        self.segments(segments, *bases, count)?;
        let segments = first..self.taken.out.segments.len();
        if !exemplars.is_empty() || !segments.is_empty() {
            series.beside = self.taken.out.details.len() as u32 | HAS_DETAILS;
            self.taken.out.details.push(Details { exemplars, segments });
        }
        self.taken.scratch.more = more;
        Some(())
    }

    /// Appends a series' segments, of `count` that it may have, less their baseline: the table at
    /// `bases`, if that is not 0.
    fn segments(&mut self, entries: &[(u64, u64)], bases: u64, count: u16) -> Option<()> {
        for &(n, entry) in entries {
            let Some((run, tag)) = Segment::unpack(entry) else { continue };
            let values = self.taken.out.values.len();
            // Each has cells of its own, so together they fit the region.
            if (values as u64 + run.count) * WORD > self.taken.limit {
                return None;
            }
            self.base_of_segment((bases, count), n, run);
            if self.sum(run, Number::Integer).is_none() {
                // Younger than what was copied; its turn comes.
                self.taken.out.values.truncate(values);
                continue;
            }
            subtract_base(
                Number::Integer,
                &mut self.taken.out.values[values..],
                &self.taken.scratch.base,
            );
            let (n, count) = (n as u16, run.count as u16);
            self.taken.out.segments.push(SegmentCopy { n, tag, count, values });
        }
        Some(())
    }

    /// Copies the baseline of a segment: its cells when its series was last wiped, if it was.
    fn base_of_segment(&mut self, (bases, count): (u64, u16), n: u64, run: CellRun) {
        self.taken.scratch.base.clear();
        if bases == 0 {
            return;
        }
        let at = table::entry(self.source, bases, u64::from(count), n);
        if self.taken.s.lies_in_singles(at, run.count) {
            self.taken.scratch.base.extend(self.source.words(at, run.count).into_iter().flatten());
        }
    }

    /// The sum of a kept series' cells at the last sweep.
    fn seen(&self, pins: u64) -> Option<u64> {
        let can_be = self.taken.s.lies_in_singles(pins, PINS_LEN / WORD);
        can_be.then(|| self.source.word(pins + PINS_SEEN))
    }

    /// Appends the values of a run of cells; returns what its words sum up to.
    #[inline(never)]
    fn sum(&mut self, run: CellRun, number: Number) -> Option<u64> {
        let stripes: [u64; STRIPES as usize] =
            std::array::from_fn(|n| n as u64 * stripe_len(run.count));
        let copies: &[u64] = match run.storage {
            Storage::Single => return self.singles(run, number),
            Storage::Stripes => &stripes,
            Storage::Striped => self.taken.scratch.planes_of(&self.taken.s, run.at),
            Storage::Owned => &self.taken.scratch.blocks,
        };
        let from = self.taken.out.values.len();
        self.taken.out.values.resize(from + run.count as usize, 0);
        let mut digest = 0_u64;
        for &delta in copies {
            let words = self.source.words(run.at.checked_add(delta)?, run.count)?;
            let values = &mut self.taken.out.values[from..];
            // A loop of its own for what most are.
            if number == Number::Integer {
                for (value, word) in values.iter_mut().zip(words) {
                    digest = digest.wrapping_add(word);
                    *value = value.wrapping_add(word);
                }
                continue;
            }
            for (n, (value, word)) in (0..).zip(values.iter_mut().zip(words)) {
                digest = digest.wrapping_add(word);
                *value = number.of_cell(n, run.count).add(*value, word);
            }
        }
        Some(digest)
    }

    /// As [`sum`](Self::sum), of single cells.
    fn singles(&mut self, run: CellRun, number: Number) -> Option<u64> {
        let from = self.taken.out.values.len();
        self.taken.out.values.extend(self.source.words(run.at, run.count)?);
        let words = self.taken.out.values.get(from..)?;
        let digest = words.iter().fold(0_u64, |digest, word| digest.wrapping_add(*word));
        // As if they were added to 0: of floats -0 becomes that.
        let floats = match number {
            Number::Integer => run.count,
            Number::FloatLast => run.count.saturating_sub(1),
            Number::Float => 0,
        };
        for n in floats..run.count {
            let value = self.taken.out.values.get_mut(from + n as usize)?;
            *value = number.of_cell(n, run.count).add(0, *value);
        }
        Some(digest)
    }

    /// Appends the values of the living processes that set one: each of them, or the extreme of all.
    fn owned_values(
        &mut self,
        series: SeriesCopy,
        run: CellRun,
        number: Number,
        combine: Combine,
        batch: &mut Batch,
    ) -> Option<()> {
        let is_plain = self.taken.out.families[series.family as usize].is_plain();
        let mut any = false;
        let Taken { scratch, out, limit, .. } = &mut *self.taken;
        for &Block { delta, owner, .. } in &scratch.living {
            let words = self.source.words(run.at.checked_add(delta)?, run.count)?;
            let Some(own) = words.map(unpack_present).collect::<Option<Vec<u64>>>() else {
                continue;
            };
            // Each owner has a block of its own.
            if (out.values.len() + out.owners.len()) as u64 * WORD + run.count * WORD > *limit {
                return None;
            }
            let beside = if combine == Combine::Each { out.owners.len() as u32 } else { NOTHING };
            if any && combine != Combine::Each {
                let extreme = match is_plain {
                    true => std::slice::from_mut(&mut batch.series[batch.count - 1].values),
                    false => &mut out.values[series.values as usize..],
                };
                let both = extreme.iter_mut().zip(own);
                both.for_each(|(one, other)| *one = combine.choose(number, *one, other));
                continue;
            }
            any = true;
            if combine == Combine::Each {
                out.owners.push(owner);
            }
            let values = if is_plain { *own.first()? } else { out.values.len() as u64 };
            if !is_plain {
                out.values.extend(own);
            }
            batch.push(SeriesCopy { values, beside, ..series });
        }
        Some(())
    }

    fn text(&self, span: Span, out: &mut Vec<u8>) -> Option<()> {
        let end = out.len() + span.len as usize;
        let (at, count) = text_place(&self.taken.s, span)?;
        out.reserve((count * WORD) as usize);
        self.source.words(at, count)?.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        out.truncate(end);
        Some(())
    }
}

/// Subtracts the values of cells when they were last wiped.
fn subtract_base(number: Number, values: &mut [u64], base: &[u64]) {
    let count = values.len() as u64;
    for (n, (value, base)) in (0..).zip(values.iter_mut().zip(base)) {
        *value = number.of_cell(n, count).since(*value, *base);
    }
}
