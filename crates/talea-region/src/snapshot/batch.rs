//! A batch: series on their way into a snapshot.
//!
//! Series are copied in the order of their records, where those of families lie among each
//! other as they were born. To move them all to where their family's are would cost a walk
//! through all memory. So they come into a batch first, which a core's cache holds, and go from there to
//! the snapshot: in their order if they lie there in long runs, or else family by family, with their texts.
//! Plain series of a group that lie in long runs need no batch.

use super::runs::{self, Run};
use super::series_copy::{NOTHING, SeriesCopy};
use super::texts::Texts;
use crate::layout::*;

/// The most series of a batch: with their texts half a megabyte.
const SERIES: usize = 8 << 10;
/// The words of text that there is room for, for each series.
const WORDS: usize = 8;
/// So many series that need no change of order are moved at once, while they are in the nearest cache.
const FEW: usize = GROUP_SERIES / 2;
/// Series are brought together if the mean length of their runs is below this.
const SHORT: usize = 16;

const NONE: SeriesCopy = SeriesCopy { text: 0, values: 0, created: 0, family: 0, beside: NOTHING };

pub(super) const GROUP_SERIES: usize = GROUP as usize;
pub(super) const GROUP_TEXTS: usize = WORDS * GROUP_SERIES;

/// Room for the plain series of a group of records.
#[derive(Clone, Debug)]
pub(super) struct PlainGroup {
    pub(super) series: [SeriesCopy; GROUP_SERIES],
    pub(super) texts: [u64; GROUP_TEXTS],
}

impl Default for PlainGroup {
    fn default() -> Self {
        Self { series: [NONE; GROUP_SERIES], texts: [0; GROUP_TEXTS] }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// The first `count` are series, and the rest is room.
    pub(super) series: Vec<SeriesCopy>,
    pub(super) count: usize,
    /// The first `words` are texts, and the rest is room.
    pub(super) texts: Vec<u64>,
    pub(super) words: usize,
    /// The length of the snapshot's texts, where those of this batch come if they keep their order.
    begin: u64,
    /// For each family the number of its series here and of the words of their texts, then the places of
    /// its next. All 0 between calls.
    places: Vec<(usize, usize)>,
    /// There is room for so many series once it has some of families that lie among each other.
    most: usize,
}

impl Batch {
    /// Starts over, for the series of these numbers of families and records.
    pub(super) fn begin(&mut self, families: usize, records: u64) {
        (self.count, self.words, self.begin) = (0, 0, 0);
        self.places.resize(families, (0, 0));
        self.most = (records.next_multiple_of(GROUP) as usize).min(SERIES);
        self.series.truncate(SERIES);
        self.texts.truncate(WORDS * SERIES);
    }

    /// Whether it is to be moved to the snapshot before another group of records: it is as large as it gets,
    /// or needs no change of order. `changes` is as in [`flush`](Self::flush).
    pub(super) fn is_full(&self, changes: usize) -> bool {
        self.count + GROUP_SERIES > SERIES
            || self.words + GROUP_TEXTS > WORDS * SERIES
            || self.count >= FEW && !self.is_scattered(changes)
    }

    /// Adds plain series, whose texts are placed behind those that are there. False, and nothing is added, if
    /// they need no change of order, nor wait for others: then they go to the snapshot as they are.
    pub(super) fn add_group(
        &mut self,
        series: &[SeriesCopy],
        texts: &[u64],
        changes: usize,
    ) -> bool {
        if self.count == 0 && changes * SHORT <= series.len() {
            return false;
        }
        let (count, words) = (self.count + series.len(), self.words + texts.len());
        if count > self.series.len() {
            self.series.resize(count.max(self.most), NONE);
        }
        if words > self.texts.len() {
            self.texts.resize(words.max(WORDS * self.most), 0);
        }
        self.series[self.count..count].copy_from_slice(series);
        self.texts[self.words..words].copy_from_slice(texts);
        (self.count, self.words) = (count, words);
        true
    }

    /// Notes that the snapshot got texts of others.
    pub(super) fn begin_at(&mut self, texts: u64) {
        self.begin = texts;
    }

    fn is_scattered(&self, changes: usize) -> bool {
        changes * SHORT > self.count
    }

    /// The length of all texts, in bytes.
    pub(super) fn texts_len(&self) -> u64 {
        self.begin + self.words as u64 * WORD
    }

    pub(super) fn push(&mut self, series: SeriesCopy) {
        match self.series.get_mut(self.count) {
            Some(place) => *place = series,
            None => self.series.push(series),
        }
        self.count += 1;
    }

    /// Appends a text by its words, the last one padded with zeros. Returns its span, packed.
    pub(super) fn push_text(&mut self, words: impl Iterator<Item = u64>, len: u64) -> u64 {
        let at = self.texts_len();
        for word in words {
            match self.texts.get_mut(self.words) {
                Some(place) => *place = word.to_le(),
                None => self.texts.push(word.to_le()),
            }
            self.words += 1;
        }
        Span { at, len }.pack()
    }

    /// Moves all to a snapshot. Series of a family keep their order. `changes` is how often the family
    /// changed from one to the next, or more.
    pub(super) fn flush(
        &mut self,
        changes: usize,
        series: &mut Vec<SeriesCopy>,
        runs: &mut Vec<Run>,
        texts: &mut Texts,
    ) {
        if self.is_scattered(changes) {
            self.bring_together(series, runs, texts);
        } else {
            append(&self.series[..self.count], changes, series, runs);
            texts.push_whole(&self.texts[..self.words]);
        }
        (self.count, self.words, self.begin) = (0, 0, texts.len());
    }

    /// A reader of a family's series then reads them and their texts in a row.
    fn bring_together(
        &mut self,
        series: &mut Vec<SeriesCopy>,
        runs: &mut Vec<Run>,
        texts: &mut Texts,
    ) {
        let Self { places, begin, .. } = self;
        let copied = &self.series[..self.count];
        let words_of = |text: u64| Span::unpack(text).len.div_ceil(WORD) as usize;
        let first = runs.len();
        // Values of several processes have one text, and keep it.
        let mut text_before = None;
        for one in copied {
            let (count, words) = &mut places[one.family as usize];
            if *count == 0 {
                runs.push(Run::new(one.family, 0, 0));
            }
            *count += 1;
            if text_before.replace(one.text) != Some(one.text) {
                *words += words_of(one.text);
            }
        }
        let (mut next, mut next_text) = (series.len(), texts.words.len());
        for run in &mut runs[first..] {
            let place = &mut places[run.family as usize];
            let (count, words) = std::mem::replace(place, (next, next_text));
            *run = Run::new(run.family, next, count);
            (next, next_text) = (next + count, next_text + words);
        }
        series.resize(next, NONE);
        texts.words.resize(next_text, 0);
        let mut before = (None, 0);
        for one in copied {
            let (place, next_text) = &mut places[one.family as usize];
            if before.0 != Some(one.text) {
                let Span { at, len } = Span::unpack(one.text);
                let (from, count) = (((at - *begin) / WORD) as usize, words_of(one.text));
                let to = Span { at: *next_text as u64 * WORD, len }.pack();
                copy_words(&mut texts.words[*next_text..][..count], &self.texts[from..][..count]);
                *next_text += count;
                before = (Some(one.text), to);
            }
            series[*place] = SeriesCopy { text: before.1, ..*one };
            *place += 1;
        }
        runs[first..].iter().for_each(|run| places[run.family as usize] = (0, 0));
    }
}

/// Appends series in their order.
pub(super) fn append(
    copied: &[SeriesCopy],
    changes: usize,
    series: &mut Vec<SeriesCopy>,
    runs: &mut Vec<Run>,
) {
    match copied {
        // Mostly all are of one family.
        [first, .., last] if changes <= 1 && first.family == last.family => {
            runs::add(runs, first.family, series.len(), copied.len());
        }
        _ => {
            let mut from = series.len();
            for run in copied.chunk_by(|one, next| one.family == next.family) {
                runs::add(runs, run[0].family, from, run.len());
                from += run.len();
            }
        }
    }
    series.extend_from_slice(copied);
}

/// Copies a text. Most are of a few words: by blocks of one size, the last of which may lie over the one
/// before, without a call.
#[inline(always)]
fn copy_words(to: &mut [u64], from: &[u64]) {
    const BLOCK: usize = 4;
    let Some(last) = from.last_chunk::<BLOCK>() else {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        return;
    };
    for (to, from) in to.chunks_exact_mut(BLOCK).zip(from.chunks_exact(BLOCK)) {
        to.copy_from_slice(from);
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::hash::words_of;
    use crate::lookup::register::FamilySpec;
    use crate::region::Region;
    use crate::series::family::Family;
    use crate::snapshot::Snapshot;
    use crate::snapshot::runs::{SeriesCopies, of_families};
    use crate::testing::Random;
    use crate::values::Storage;

    /// Copies runs of series, each of a family and a length, and finds the series of each family.
    fn found(families: usize, copied: &[(u32, usize)]) -> Vec<Vec<u64>> {
        let (mut series, mut runs, mut batch) = (Vec::new(), Vec::new(), Batch::default());
        let (mut texts, mut number, mut changes) = (Texts::default(), 0, 0);
        // It may grow to hold fewer than there are.
        batch.begin(families, copied.len() as u64);
        for &(family, count) in copied {
            changes += 1;
            for _ in 0..count {
                if batch.is_full(changes) {
                    batch.flush(std::mem::take(&mut changes), &mut series, &mut runs, &mut texts);
                }
                let text = text_of(number);
                let text = batch.push_text(words_of(text.as_bytes()), text.len() as u64);
                batch.push(SeriesCopy { text, values: number, family, ..NONE });
                number += 1;
            }
        }
        batch.flush(changes, &mut series, &mut runs, &mut texts);
        for one in &series {
            assert_eq!(texts.at(one.text), text_of(one.values).as_bytes());
        }
        let mut ranges = vec![(0..0, 0); families];
        of_families(&mut runs, |family, range, count, _| ranges[family as usize] = (range, count));
        let all = ranges.into_iter().map(|(range, count)| {
            let all = SeriesCopies::new(&series, &runs[range.clone()], count, 0);
            assert_eq!(all.len(), count);
            for from in [1, count / 3, count / 2, count.saturating_sub(1), count, count + 1] {
                let some = SeriesCopies::new(&series, &runs[range.clone()], count, from);
                assert_eq!(some.len(), count.saturating_sub(from));
                assert!(
                    some.map(|one| one.values).eq(all.clone().skip(from).map(|one| one.values))
                );
            }
            all.map(|one| one.values).collect()
        });
        all.collect()
    }

    /// A text of a series, of any number of words.
    fn text_of(value: u64) -> String {
        value.to_string().repeat((value % 11) as usize)
    }

    fn expected(families: usize, copied: &[(u32, usize)]) -> Vec<Vec<u64>> {
        let mut all = vec![Vec::new(); families];
        let mut next = 0..;
        for &(family, count) in copied {
            all[family as usize].extend(next.by_ref().take(count));
        }
        all
    }

    #[test]
    fn each_family_has_its_own_in_their_order() {
        let mut random = Random(1);
        let mut below = |bound| random.below(bound);
        for n in 1..if cfg!(miri) { 4 } else { 300 } {
            let most = [2, 40_000][usize::from(n % 10 == 0)];
            let copied: Vec<_> = (0..below(200))
                .map(|run| {
                    (below(7) as u32, 1 + below(if run % 20 == 0 { most } else { 3 }) as usize)
                })
                .collect();
            assert_eq!(found(7, &copied), expected(7, &copied), "{copied:?}");
        }
    }

    #[test]
    fn families_that_lie_among_each_other_over_many_batches_come_together_on_each() {
        let copied: Vec<_> =
            (0..if cfg!(miri) { 400 } else { 100_000 }).map(|n| (n % 20, 1)).collect();
        assert_eq!(found(20, &copied), expected(20, &copied));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn families_of_all_kinds_among_each_other_keep_their_texts_and_values() {
        let kinds = [
            (Storage::Single, 1),
            (Storage::Striped, 1),
            (Storage::Single, 3),
            (Storage::Owned, 1),
        ];
        for seed in 0..6 {
            let region = Region::anonymous(Config::with_len(64 << 20)).unwrap();
            let mut random = Random(seed);
            let families: Vec<Family> = (0..12_u8)
                .map(|n| {
                    let (storage, cells) = kinds[usize::from(n) % kinds.len()];
                    let spec = FamilySpec {
                        name: &[n],
                        storage,
                        cells,
                        limit: 1 << 20,
                        ..FamilySpec::default()
                    };
                    region.family(spec).unwrap().family
                })
                .collect();
            let mut expected = vec![Vec::new(); families.len()];
            // From runs of one series on to runs of many.
            let longest = 1 << (3 * (seed % 3));
            while expected.iter().map(Vec::len).sum::<usize>() < 20_000 {
                let family = random.below(12) as usize;
                for _ in 0..=random.below(longest) {
                    let number = expected.iter().map(Vec::len).sum::<usize>() as u64;
                    let is_long = number < 8 || random.below(2_000) == 0;
                    let most = if is_long { 1_000_000 } else { 60 };
                    let text = format!("{number}:{}", "x".repeat(random.below(most) as usize));
                    let cells = families[family].permanent_series(text.as_bytes()).unwrap();
                    (0..cells.len()).for_each(|n| cells.at(n).add(number + n as u64));
                    let values: Vec<u64> = (0..cells.len() as u64).map(|n| number + n).collect();
                    expected[family].push((text.into_bytes(), values));
                }
            }
            let mut snapshot = Snapshot::default();
            // The second is taken in the memory of the first.
            for _ in 0..2 {
                region.snapshot_into(&mut snapshot, &|_| true);
                for (family, expected) in snapshot.families().iter().zip(&expected) {
                    let found =
                        snapshot.series(family).map(|one| (one.text.to_vec(), one.values.to_vec()));
                    assert!(
                        found.eq(expected.iter().cloned()),
                        "seed {seed}, family {:?}",
                        family.name
                    );
                }
            }
        }
    }
}
