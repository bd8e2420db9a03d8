//! Runs: series of one family that lie in a row in a snapshot.
//!
//! Series are copied in the order of their records, where those of families lie among each
//! other as they were born. To move them all to where their family's are would cost a walk
//! through all memory, so only those that were copied one soon after the other, and that a
//! core's cache still holds, are brought together with their texts, and a family has several runs.

use std::ops::Range;
use std::slice;

use super::series_copy::SeriesCopy;
use super::texts::Texts;

/// Series of one family in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    family: u32,
    /// The place of the first among all series.
    from: u32,
    count: u32,
    /// The number of the family's series before them.
    before: u32,
}

impl Run {
    pub(super) fn new(family: u32, from: usize, count: usize) -> Self {
        Self { family, from: from as u32, count: count as u32, before: 0 }
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.from as usize..self.from as usize + self.count as usize
    }
}

/// The number of series that are brought together at a time: half a megabyte.
const BATCH: usize = 16 << 10;
/// Series are brought together if the mean length of the runs in a batch is below this.
const SHORT: usize = 16;

/// Finds runs while series are copied.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathering {
    /// The first series and the first run that were not brought together.
    series: usize,
    runs: usize,
    /// For each family the number of its series there, then the place of its next. All 0 between
    /// batches.
    places: Vec<u32>,
    /// The place of the first text that was not brought together.
    text: u64,
    ordered: Texts,
}

impl Gathering {
    /// Starts over, for `families` families.
    pub(super) fn begin(&mut self, families: usize) {
        (self.series, self.runs, self.text) = (0, 0, 0);
        self.places.resize(families, 0);
    }

    /// Whether there are enough series for them to be brought together.
    pub(super) fn is_full(&self, series: &[SeriesCopy]) -> bool {
        series.len() - self.series >= BATCH
    }

    /// Brings the series of each family together that were copied since the last call, if they are
    /// scattered, and the texts that came with them into the same order. Within a family they keep
    /// their order.
    pub(super) fn gather(
        &mut self,
        series: &mut [SeriesCopy],
        runs: &mut Vec<Run>,
        texts: &mut Texts,
    ) {
        let (from, first) = (self.series, self.runs);
        let found = runs.len() - first;
        if found > 1 && found * SHORT > series.len() - from {
            self.bring_together(&mut series[from..], runs);
            self.order_texts(&mut series[from..], texts);
        }
        (self.series, self.runs, self.text) = (series.len(), runs.len(), texts.len());
    }

    fn bring_together(&mut self, series: &mut [SeriesCopy], runs: &mut Vec<Run>) {
        let Self { series: from, runs: first, places, .. } = self;
        let mut families = *first;
        for n in *first..runs.len() {
            let Run { family, count, .. } = runs[n];
            let place = &mut places[family as usize];
            if *place == 0 {
                runs[families].family = family;
                families += 1;
            }
            *place += count;
        }
        runs.truncate(families);
        let mut begin = 0;
        for run in &mut runs[*first..] {
            let place = &mut places[run.family as usize];
            *run = Run::new(run.family, *from + begin as usize, *place as usize);
            (*place, begin) = (begin, begin + *place);
        }
        for one in series.iter_mut() {
            let place = &mut places[one.family as usize];
            one.family = *place;
            *place += 1;
        }
        // Each exchange has one more where it belongs.
        for n in 0..series.len() {
            let mut one = series[n];
            while one.family as usize != n {
                let place = one.family as usize;
                std::mem::swap(&mut one, &mut series[place]);
            }
            series[n] = one;
        }
        runs[*first..].iter().for_each(|run| places[run.family as usize] = 0);
    }

    /// A reader of a family's series then reads their texts in a row.
    fn order_texts(&mut self, series: &mut [SeriesCopy], texts: &mut Texts) {
        let Self { text: from, ordered, .. } = self;
        ordered.truncate(0);
        ordered.reserve(texts.len() - *from);
        for one in series {
            one.text = ordered.push_from(texts, one.text, *from);
        }
        texts.truncate(*from);
        texts.push_whole(&ordered.words);
    }
}

/// Brings each family's runs together. `found` gets the family, the range of its runs, the number of
/// its series and the place of the first.
pub(super) fn of_families(
    runs: &mut [Run],
    mut found: impl FnMut(u32, Range<usize>, usize, usize),
) {
    runs.sort_unstable_by_key(|run| (run.family, run.from));
    let mut first = 0;
    for of_it in runs.chunk_by_mut(|one, next| one.family == next.family) {
        let mut count = 0;
        for run in of_it.iter_mut() {
            run.before = count;
            count += run.count;
        }
        let end = first + of_it.len();
        found(of_it[0].family, first..end, count as usize, of_it[0].from as usize);
        first = end;
    }
}

/// The series of a family, one after the other.
#[derive(Clone, Debug)]
pub(super) struct SeriesCopies<'a> {
    all: &'a [SeriesCopy],
    runs: slice::Iter<'a, Run>,
    here: slice::Iter<'a, SeriesCopy>,
    left: usize,
}

impl<'a> SeriesCopies<'a> {
    /// The series in these runs, `count` in all, without the first `from`.
    #[inline]
    pub(super) fn new(all: &'a [SeriesCopy], runs: &'a [Run], count: usize, from: usize) -> Self {
        // Nearly always there is one run.
        let n = match runs {
            [_] | [] => 0,
            _ => runs.partition_point(|run| run.before as usize <= from) - 1,
        };
        let Some((first, rest)) = runs.get(n..).and_then(<[Run]>::split_first) else {
            return Self { all, runs: [].iter(), here: [].iter(), left: 0 };
        };
        let skipped = (from - first.before as usize).min(first.count as usize);
        let here = all[first.range()][skipped..].iter();
        Self { all, runs: rest.iter(), here, left: count.saturating_sub(from) }
    }

    /// Those that lie in a row, together.
    #[inline]
    pub(super) fn pieces(self) -> impl Iterator<Item = &'a [SeriesCopy]> {
        let Self { all, runs, here, .. } = self;
        std::iter::once(here.as_slice()).chain(runs.map(|run| &all[run.range()]))
    }
}

impl<'a> Iterator for SeriesCopies<'a> {
    type Item = &'a SeriesCopy;

    #[inline]
    fn next(&mut self) -> Option<&'a SeriesCopy> {
        loop {
            if let Some(one) = self.here.next() {
                self.left -= 1;
                return Some(one);
            }
            self.here = self.all[self.runs.next()?.range()].iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for SeriesCopies<'_> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::snapshot::series_copy::NOTHING;
    use crate::testing::Random;

    /// Copies runs of series, each of a family and a length, and finds the series of each family.
    fn found(families: usize, copied: &[(u32, usize)]) -> Vec<Vec<u64>> {
        let (mut series, mut runs, mut gathering) = (Vec::new(), Vec::new(), Gathering::default());
        let mut texts = Texts::default();
        gathering.begin(families);
        for &(family, count) in copied {
            runs.push(Run::new(family, series.len(), count));
            for _ in 0..count {
                let values = series.len() as u64;
                let text = texts.push(text_of(values).as_bytes());
                series.push(SeriesCopy { text, values, created: 0, family, beside: NOTHING });
            }
            if gathering.is_full(&series) {
                gathering.gather(&mut series, &mut runs, &mut texts);
            }
        }
        gathering.gather(&mut series, &mut runs, &mut texts);
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
        for n in 0..300 {
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
        let copied: Vec<_> = (0..100_000).map(|n| (n % 20, 1)).collect();
        assert_eq!(found(20, &copied), expected(20, &copied));
    }
}
