//! Runs: series of one family that lie in a row in a snapshot.
//!
//! A family has several, since only the series of one [batch](super::batch) are brought together.

use std::ops::Range;
use std::slice;

use super::series_copy::SeriesCopy;

/// Series of one family in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) family: u32,
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

/// Adds a run, or makes the last one longer.
pub(super) fn add(runs: &mut Vec<Run>, family: u32, from: usize, count: usize) {
    match runs.last_mut() {
        Some(last) if last.family == family && last.range().end == from => {
            last.count += count as u32
        }
        _ => runs.push(Run::new(family, from, count)),
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
