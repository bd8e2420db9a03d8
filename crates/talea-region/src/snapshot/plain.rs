//! Plain series: one cell, single or striped, and nothing else. Most series are plain, and there may
//! be a million, so they have a path of their own, for speed alone: those of a group of records are
//! copied into a batch of a fixed size, and the batch to the snapshot at once.

use std::ops::Range;

use super::batch::{self, Batch, GROUP_SERIES, GROUP_TEXTS, PlainGroup};
use super::copies::Snapshot;
use super::series_copy::{NOTHING, SeriesCopy};
use super::taking::{Taking, Walk, text_place};
use crate::layout::*;
use crate::series::record::{self, HIDDEN, PUBLISHED, REMOVING};
use crate::source::{CELLS, CREATED, HEAD, MORE, Record, Source, TEXT};
use crate::values::{Number, Storage};

/// Words of a text that are copied at a time.
const BLOCK: usize = 4;

impl<S: Source> Taking<'_, '_, S> {
    /// Copies the series of records, up to the first that is not plain or does not fit. Returns the
    /// number of that record.
    #[inline(never)]
    pub(super) fn plain_series(
        &mut self,
        records: Range<u64>,
        walk: &mut Walk<'_>,
        batch: &mut Batch,
        group: &mut PlainGroup,
    ) -> u64 {
        // Where a group's texts at their longest fit the region, no series of it need be checked.
        if batch.texts_len() + GROUP_TEXTS as u64 * WORD > self.taken.limit {
            return records.start;
        }
        let begin = batch.texts_len();
        let at = self.taken.s.records.at + records.start * RECORD_LEN;
        let Some(all) = self.source.records(at, records.end - records.start) else {
            return records.start;
        };
        let (mut next, mut count, mut words) = (records.start, 0, 0);
        for record in all.take(GROUP_SERIES) {
            let head = record[HEAD];
            let is_wanted = record::state(head) == PUBLISHED
                && (head >> 32 == walk.id || self.come_to((head >> 32) as u32, walk))
                && self.source.stands(self.taken.s.records.at + next * RECORD_LEN);
            if is_wanted {
                if !walk.may_be_plain || !is_plain(&record) {
                    break;
                }
                let Some(value) = self.value(record[CELLS], walk.number) else { break };
                let span = Span::unpack(record[TEXT]);
                let Some(end) = self.put_text(span, &mut group.texts, words) else { break };
                // Below the length of a batch anyway, which the compiler does not see.
                group.series[count % GROUP_SERIES] = SeriesCopy {
                    text: Span { at: begin + words as u64 * WORD, len: span.len }.pack(),
                    values: value,
                    created: record[CREATED],
                    family: walk.place,
                    beside: NOTHING,
                };
                (count, words) = (count + 1, end);
            }
            next += 1;
        }
        let (copied, text) = (&group.series[..count], &group.texts[..words]);
        if !batch.add_group(copied, text, walk.changes) {
            let Snapshot { series, runs, texts, .. } = &mut *self.taken.out;
            batch::append(copied, std::mem::take(&mut walk.changes), series, runs);
            texts.push_whole(text);
            batch.begin_at(texts.len());
        }
        next
    }

    /// The value of a plain series' cell.
    #[inline(always)]
    fn value(&self, cell: u64, number: Number) -> Option<u64> {
        let at = cell >> 24;
        if cell & STRIPED == 0 {
            return self.source.block(at, 1).map(|[value]| value);
        }
        self.striped(at, number)
    }

    /// The value of a striped cell. Out of line, so that the loop over single ones stays small.
    #[inline(never)]
    fn striped(&self, at: u64, number: Number) -> Option<u64> {
        self.taken.scratch.planes_of(&self.taken.s, at).iter().try_fold(0, |sum, &delta| {
            let [part] = self.source.block(at.checked_add(delta)?, 1)?;
            Some(number.add(sum, part))
        })
    }

    /// Appends the text at `span` to the texts and returns its end. No word beyond the text is read:
    /// that word may lie in a page without memory.
    #[inline(always)]
    fn put_text(&self, span: Span, texts: &mut [u64; GROUP_TEXTS], from: usize) -> Option<usize> {
        let (mut at, mut left) = text_place(&self.taken.s, span)?;
        let mut end = from;
        while left > 0 {
            let count = left.min(BLOCK as u64);
            let block: [u64; BLOCK] = self.source.block(at, count)?;
            *texts.get_mut(end..)?.first_chunk_mut()? = block.map(u64::to_le);
            at += count * WORD;
            left -= count;
            end += count as usize;
        }
        Some(end)
    }
}

/// The bit of a run of cells that is set if it is striped and not single.
const STRIPED: u64 = (Storage::Striped as u64) << 16;
const _: () = assert!(Storage::Single as u64 == 0);

#[inline(always)]
fn is_plain(record: &Record) -> bool {
    const ONE_CELL: u64 = 1;
    record[CELLS] & 0xFF_FFFF & !STRIPED == ONE_CELL
        && record[MORE] | record[HEAD] & (HIDDEN | REMOVING) == 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use crate::layout::*;
    use crate::lookup::register::FamilySpec;
    use crate::snapshot::Snapshot;
    use crate::snapshot::take::take;
    use crate::source::Source;
    use crate::testing::{Watched, region};
    use crate::values::Storage;

    #[test]
    fn a_block_is_what_was_asked_for_and_nothing_beyond_it() {
        fn assert_all(source: &impl Source, from: u64, end: u64) {
            assert_eq!(source.block(from, 1), Some([1]));
            assert_eq!(source.block(from, 1), Some([1; 4]));
            assert_eq!(source.block(from + WORD, 2), Some([2, 3, 3, 3]));
            assert_eq!(source.block::<4>(from, 0), None);
            assert_eq!(source.block(end - WORD, 1), Some([0; 4]));
            for (at, count) in [(end - WORD, 2), (from + 1, 1), (u64::MAX - 7, 1)] {
                assert_eq!(source.block::<4>(at, count), None, "{at} {count}");
            }
        }
        let region = region();
        let from = region.memory.sections.arena.at;
        (0..3).for_each(|n| region.memory.map.word(from + n * WORD).unwrap().store(n + 1, Relaxed));
        assert_all(&region.memory, from, region.memory.map.len());
        assert_all(&Watched(region, |_| true), from, region.memory.map.len());
    }

    #[test]
    fn a_series_whose_record_changed_meanwhile_is_left_out() {
        let region = region();
        for (storage, cells) in [(Storage::Single, 1), (Storage::Striped, 1), (Storage::Single, 2)]
        {
            let name = [storage as u8, cells as u8];
            let spec = FamilySpec { name: &name, storage, cells, ..FamilySpec::default() };
            let family = region.family(spec).unwrap().family;
            for n in 0..120_u64 {
                family.permanent_series(n.to_string().as_bytes()).unwrap().at(0).add(n);
            }
        }
        let mut snapshot = Snapshot::default();
        // Every third record has changed since it was read.
        take(&Watched(region, |n| n % 3 != 0), &|_| true, &mut snapshot).unwrap();
        for family in snapshot.families() {
            let texts = snapshot.series(family).map(|series| series.text.to_vec());
            let values = snapshot.series(family).map(|series| series.values[0]);
            let standing = || (0..120).filter(|n| n % 3 != 0);
            assert!(values.eq(standing()));
            assert!(texts.eq(standing().map(|n| n.to_string().into_bytes())));
        }
        assert_eq!(snapshot.families().len(), 3);
    }
}
