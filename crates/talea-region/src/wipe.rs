//! Wiping: series count from 0 again, and families end.
//!
//! Nobody may store to a cell that others add to, since an add under way would undo
//! it. So what a series counted is kept as its *base* (`more.rs`), which readers take
//! away; but for floats that are added to by exchange, which go back to 0.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::cells::{Combine, Number, Storage};
use crate::clock::unix_nanos;
use crate::families::{ENDED, Family, FamilyHead};
use crate::groups::Chosen;
use crate::guard::Guard;
use crate::layout::*;
use crate::more::{More, Rest};
use crate::primitive::AtomicU64;
use crate::record::{CellRun, Head};
use crate::region::Region;

impl Region {
    /// Has the families with these names count from 0 again. Their series go, except
    /// those that stay as long as their family or that a living process keeps: these
    /// are 0. What is owned by processes (what is in flight, say) stays as it is.
    ///
    /// What other threads add at the same time counts before or after. Where there is
    /// no room to note what a series counted, it goes on; then this is false.
    pub fn wipe(&'static self, mut wants: impl FnMut(&[u8]) -> bool) -> bool {
        let guard = self.enter();
        let ids = (0..self.families_used()).filter(|&id| self.has_wanted_name(id, &mut wants));
        let chosen = Chosen::of(&self.s, ids);
        self.wipe_chosen(&guard, &chosen)
    }

    /// Ends the families of a name: they are not shown any more, what is added to
    /// their handles goes nowhere, and the name is free for another definition. One
    /// that is registered again as it was counts from 0, by its old handles too. False
    /// where there is no such family.
    pub fn end_families(&'static self, name: &[u8]) -> bool {
        let guard = self.enter();
        let mut ids = Vec::new();
        self.each_named(name, |id| ids.extend(self.end_one(id).then_some(id)));
        let any = !ids.is_empty();
        self.wipe_chosen(&guard, &Chosen::of(&self.s, ids.into_iter()));
        any
    }

    /// The same of all families whose names are wanted. Cost: a look at each family, and each of
    /// their series.
    pub fn end_families_where(&'static self, mut wants: impl FnMut(&[u8]) -> bool) {
        let guard = self.enter();
        let ids = (0..self.families_used()).filter(|&id| self.has_wanted_name(id, &mut wants));
        let ids: Vec<u32> = ids.filter(|&id| self.end_one(id)).collect();
        self.wipe_chosen(&guard, &Chosen::of(&self.s, ids.into_iter()));
    }

    fn end_one(&self, id: u32) -> bool {
        let word = self.family_word(id, FAMILY_HEAD);
        let seen = word.load(Acquire);
        let ended = seen & !0xFF | ENDED;
        self.is_published(id) && word.compare_exchange(seen, ended, AcqRel, Relaxed).is_ok()
    }

    /// Whether a family is public and its name is wanted.
    fn has_wanted_name(&self, id: u32, wants: &mut impl FnMut(&[u8]) -> bool) -> bool {
        self.is_published(id) && {
            let mut name = Vec::new();
            self.read_text(self.family_span(id, FAMILY_NAME), &mut name);
            wants(&name)
        }
    }

    pub(crate) fn wipe_chosen(&'static self, guard: &Guard, chosen: &Chosen) -> bool {
        let mut all = true;
        for (id, seen) in self.series_of(chosen) {
            all &= self.wipe_one(guard, id, seen);
        }
        self.sweep_a_little(guard, 0);
        all
    }

    fn wipe_one(&'static self, guard: &Guard, id: u32, seen: u64) -> bool {
        let stays = Head::unpack(seen).lasting || self.is_held(id) || self.is_pinned(id);
        if !stays && self.remove(guard, id) {
            return true;
        }
        self.count_from_zero(id)
    }

    /// Has a series count from 0, as far as it is one that counts.
    pub(crate) fn count_from_zero(&self, id: u32) -> bool {
        let word = |at| self.series_word(id, at).load(Acquire);
        let family = Head::unpack(word(SERIES_HEAD)).family;
        let head = FamilyHead::unpack(self.family_word(family, FAMILY_HEAD).load(Acquire));
        let run = CellRun::unpack(word(SERIES_CELLS)).filter(|&run| self.is_in_its_pool(run));
        let (Some((_, head)), Some(run)) = (head, run) else { return true };
        match (head.storage, head.combine) {
            // Also where there was no room for it among the owned cells.
            (Storage::Owned, _) => true,
            (_, Combine::Sum) => self.raise_base(id, run, head.number),
            (_, _) => {
                self.for_each_word(run, |cell| cell.store(0, Relaxed));
                true
            }
        }
    }

    fn raise_base(&self, id: u32, run: CellRun, number: Number) -> bool {
        let Some(More { exemplars, wiped, rest }) = self.more_or_new(id) else { return false };
        // Places first: where one is missing, everything goes on.
        let mut runs = Vec::new();
        match rest {
            Rest::Base(base) => runs.push((run, number, base)),
            Rest::Directory(directory) => {
                let Some(bases) = self.bases_or_new(&directory, run.count) else { return false };
                runs.push((run, number, bases.of_cells));
                for (segment, n) in self.segments_in(directory.table) {
                    let base = self.base_of_segment(bases.of_segments, n, segment);
                    let Some(base) = base else { return false };
                    runs.push((segment, Number::Integer, base));
                }
            }
        }
        runs.into_iter().for_each(|(run, number, base)| self.raise(run, number, base));
        self.forget_exemplars(exemplars.load(Acquire), run.count);
        // By a later time than before readers know that it counts anew; the wall clock may have been
        // set back.
        let created = self.series_word(id, SERIES_CREATED).load(Relaxed);
        let now = unix_nanos().max(created.wrapping_add(1));
        let later = |before: u64| Some(now.max(before.wrapping_add(1)));
        let _ = wiped.fetch_update(AcqRel, Acquire, later);
        true
    }

    /// Notes what the cells of a run hold.
    ///
    /// A float beside a large base would have lost its last digits, or all. So floats that are
    /// added to by exchange are taken away instead: an add under way finds that and begins again.
    fn raise(&self, run: CellRun, number: Number, base: &[AtomicU64]) {
        let mut sums = vec![0_u64; run.count as usize];
        let of_cell = |n: usize| number.of_cell(n as u64, run.count);
        let goes = |n: usize| of_cell(n) != Number::Integer && run.storage != Storage::Striped;
        let mut n = 0;
        self.for_each_word(run, |cell| {
            let place = n % run.count as usize;
            n += 1;
            if goes(place) {
                cell.store(0, Relaxed);
            } else {
                sums[place] = add(of_cell(place), sums[place], cell.load(Relaxed));
            }
        });
        for (n, (word, sum)) in base.iter().zip(sums).enumerate() {
            if goes(n) {
                word.store(0, Release);
                continue;
            }
            // Of two that wipe at once, the later one counts.
            let later = |before| is_later(of_cell(n), sum, before).then_some(sum);
            let _ = word.fetch_update(AcqRel, Acquire, later);
        }
    }

    /// What a cell held when its series was last wiped; the cell by its first copy.
    pub(crate) fn base_of(&self, id: u32, cell: &'static AtomicU64) -> Option<u64> {
        let More { wiped, rest, .. } = self.more(id)?;
        if wiped.load(Acquire) == 0 {
            return None;
        }
        let run = CellRun::unpack(self.series_word(id, SERIES_CELLS).load(Acquire))?;
        let base = match rest {
            Rest::Base(base) => base,
            Rest::Directory(directory) => self.bases(&directory, run.count)?.of_cells,
        };
        let n = self.map.offset_of(cell)?.checked_sub(run.at)? / WORD;
        base.get(n as usize).map(|word| word.load(Acquire))
    }
}

impl Family {
    /// Has the family count from 0 again, as [`Region::wipe`].
    pub fn wipe(&self) -> bool {
        let guard = self.region.enter();
        self.region.wipe_chosen(&guard, &Chosen::of(&self.region.s, [self.id].into_iter()))
    }

    /// Removes the series whose label text is wanted, as [`remove`](Self::remove);
    /// returns how many those were. Cost: a look at each series of the family, and a
    /// word for each 64 others.
    pub fn remove_where(&self, mut wants: impl FnMut(&[u8]) -> bool) -> u64 {
        let region = self.region;
        let guard = region.enter();
        let chosen = Chosen::of(&region.s, [self.id].into_iter());
        let mut text = Vec::new();
        let mut removed = 0;
        for (id, _) in region.series_of(&chosen) {
            text.clear();
            let span = Span::unpack(region.series_word(id, SERIES_TEXT).load(Acquire));
            region.read_text(span, &mut text);
            if wants(&text) && region.remove(&guard, id) {
                removed += 1;
            }
        }
        region.sweep_a_little(&guard, 0);
        removed
    }
}

/// What readers show of a cell whose copies sum up to `sum`.
pub(crate) fn since(number: Number, sum: u64, base: u64) -> u64 {
    let float = || f64::from_bits(sum) - f64::from_bits(base);
    match number {
        // Who reads while others wipe may see less than the base.
        Number::Integer => sum.saturating_sub(base),
        Number::Float => float().max(0.0).to_bits(),
        Number::FloatLast => float().to_bits(),
    }
}

/// The sum of two values.
pub(crate) fn add(number: Number, one: u64, other: u64) -> u64 {
    match number {
        Number::Integer => one.wrapping_add(other),
        Number::Float | Number::FloatLast => {
            (f64::from_bits(one) + f64::from_bits(other)).to_bits()
        }
    }
}

/// Whether a sum is later than the one that was noted before, as far as that can be known.
fn is_later(number: Number, sum: u64, before: u64) -> bool {
    match number {
        Number::Integer => sum.wrapping_sub(before) as i64 > 0,
        Number::Float => f64::from_bits(sum) > f64::from_bits(before),
        Number::FloatLast => sum != before,
    }
}
