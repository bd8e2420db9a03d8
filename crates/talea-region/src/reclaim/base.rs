//! Bases: a series counts from 0 again.
//!
//! No thread may store to a cell that others add to, since an add under way would undo it. So the
//! value at the wipe is kept as the series' *base* (`series/extension.rs`), and readers subtract it.
//! The exception is a float that is added to by exchange: it goes back to 0.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::clock::unix_nanos;
use crate::layout::*;
use crate::memory::runs::CellRun;
use crate::primitive::AtomicU64;
use crate::series::extension::{Extension, Rest};
use crate::series::record::Series;
use crate::series::segment::runs_in;
use crate::values::{Combine, Number, Storage};

impl Series<'_> {
    /// Resets a series to 0, if its values are sums.
    pub(crate) fn reset(self) -> bool {
        let head = self.region.family_head(self.family());
        let (Some((_, head)), Some(run)) = (head, self.run()) else { return true };
        match (head.storage, head.combine) {
            // Also where there was no room for it among the owned cells.
            (Storage::Owned, _) => true,
            (_, Combine::Sum) => self.raise_base(run, head.number),
            (_, _) => {
                self.region.memory.for_each_word(run, |cell| cell.store(0, Relaxed));
                true
            }
        }
    }

    fn raise_base(self, run: CellRun, number: Number) -> bool {
        let Some(Extension { exemplars, wiped, rest }) = self.extension_or_new() else {
            return false;
        };
        // All places first: if there is no room for one, nothing is reset.
        let mut runs = Vec::new();
        match rest {
            Rest::Base(base) => runs.push((run, number, base)),
            Rest::Directory(directory) => {
                let Some(bases) = self.bases_or_new(&directory, run.count) else { return false };
                runs.push((run, number, bases.of_cells));
                for (segment, n) in runs_in(&self.region.memory, directory.table) {
                    let base = self.base_of_segment(bases.of_segments, n, segment);
                    let Some(base) = base else { return false };
                    runs.push((segment, Number::Integer, base));
                }
            }
        }
        runs.into_iter().for_each(|(run, number, base)| self.raise(run, number, base));
        self.forget_exemplars(exemplars.load(Acquire));
        // A later time than before shows readers that the series was reset. The wall clock may have
        // been set back.
        let created = self.word(SERIES_CREATED).load(Relaxed);
        let now = unix_nanos().max(created.wrapping_add(1));
        let _ = wiped.fetch_update(AcqRel, Acquire, |before| Some(now.max(before.wrapping_add(1))));
        true
    }

    /// Notes the values of a run of cells as their bases.
    ///
    /// A float beside a large base would lose its last digits, or all. So floats that are added to
    /// by exchange are set to 0 instead: an add under way notices that and starts again.
    fn raise(self, run: CellRun, number: Number, base: &[AtomicU64]) {
        let mut sums = vec![0_u64; run.count as usize];
        let of_cell = |n: usize| number.of_cell(n as u64, run.count);
        let goes = |n: usize| of_cell(n) != Number::Integer && run.storage != Storage::Striped;
        let mut n = 0;
        self.region.memory.for_each_word(run, |cell| {
            let place = n % run.count as usize;
            n += 1;
            if goes(place) {
                cell.store(0, Relaxed);
            } else {
                sums[place] = of_cell(place).add(sums[place], cell.load(Relaxed));
            }
        });
        for (n, (word, sum)) in base.iter().zip(sums).enumerate() {
            if goes(n) {
                word.store(0, Release);
                continue;
            }
            // Of two that wipe at once, the later one counts.
            let _ = word.fetch_update(AcqRel, Acquire, |before| {
                of_cell(n).is_later(sum, before).then_some(sum)
            });
        }
    }
}
