//! Cells: 64-bit words that are added to or set.

use std::sync::atomic::Ordering::Relaxed;

use super::record::Series;
use crate::error::Overflow;
use crate::memory::amount::Amount;
use crate::memory::planes;
use crate::memory::restartable::{RestartableAdd, Undone};
use crate::memory::runs::{CellRun, STRIPES, stripe_len};
use crate::primitive::{AtomicU64, Word, Words};
use crate::region::Region;
use crate::threads::thread_number;
use crate::values::{Combine, Number, Storage, pack_present, unpack_present};

/// Where the copies of a cell are.
#[derive(Clone, Copy)]
enum Place {
    /// One in each plane. The cell's word is that in plane 0.
    Planes,
    /// The cell's word is the only one.
    Word,
    /// One in each process's block. The cell's word is that in block 0.
    Own,
    /// As `Own`; 0 means that the process wrote nothing.
    OwnOrAbsent,
    /// Four, this number of bytes apart.
    Stripes(u32),
}

/// The places that the common paths compare with, packed.
const PLANES: u32 = 0;
const WORD: u32 = 1;

impl Place {
    fn of(run: CellRun, combine: Combine) -> Self {
        match run.storage {
            Storage::Striped => Self::Planes,
            Storage::Single => Self::Word,
            Storage::Owned if combine.may_be_absent() => Self::OwnOrAbsent,
            Storage::Owned => Self::Own,
            Storage::Stripes => Self::Stripes(stripe_len(run.count) as u32),
        }
    }

    // Stripes lie a cache line apart at least.
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::Planes => PLANES,
            Self::Word => WORD,
            Self::Own => 2,
            Self::OwnOrAbsent => 3,
            Self::Stripes(apart) => apart,
        }
    }

    #[inline]
    fn unpack(word: u32) -> Self {
        match word {
            PLANES => Self::Planes,
            WORD => Self::Word,
            2 => Self::Own,
            3 => Self::OwnOrAbsent,
            apart => Self::Stripes(apart),
        }
    }
}

/// The copies of a cell, beside the one that its handle points to.
// Two whole words: docs/explanations/adds.md, "Whole words".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    region: &'static Region,
    /// `series:32 | place:32`: the series that the cell belongs to, and its [`Place`].
    packed: u64,
}

impl Copies {
    /// The copies of a series' cells.
    #[inline]
    pub(crate) fn of(series: Series<'static>, run: CellRun, combine: Combine) -> Self {
        let place = Place::of(run, combine).pack();
        Self { region: series.region, packed: u64::from(series.id) << 32 | u64::from(place) }
    }

    #[inline]
    fn place(self) -> Place {
        Place::unpack(self.packed as u32)
    }

    #[inline]
    pub(crate) fn series(self) -> Series<'static> {
        self.region.series((self.packed >> 32) as u32)
    }

    /// Whether a word lies where the first copies of such cells do.
    fn may_have(self, word: Word) -> bool {
        let storage = match self.place() {
            Place::Planes => Storage::Striped,
            Place::Word | Place::Stripes(_) => Storage::Single,
            Place::Own | Place::OwnOrAbsent => Storage::Owned,
        };
        self.region.memory.has_first_copy(word, storage)
    }
}

/// One cell. A plain pointer: copy it, keep it, send it to other threads, use it
/// in children made by `fork`.
///
/// No add, set or read allocates on the heap, waits for another thread or panics. A CPU's first add may
/// make a system call, which backs pages of the region. Beyond these, [`words`](Self::words) returns a
/// `Vec`; [`keep`](Self::keep) takes memory of the region, and a lock if this process has a
/// [`Hold`](crate::Hold).
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    word: Word,
    copies: Copies,
}

/// Equal if they are the same word of the same region.
impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.word, other.word)
    }
}

impl Cell {
    #[inline]
    pub(crate) fn new(word: Word, copies: Copies) -> Self {
        debug_assert!(copies.may_have(word), "{copies:?}");
        Self { word, copies }
    }

    /// Adds to an integer cell. The add to a segment's cell can be refused, as
    /// [`count`](Self::count) says, and is lost then.
    ///
    /// Cost: one restartable sequence for a striped cell (no shared cache line
    /// is touched), else one atomic add.
    #[inline]
    pub fn add(self, n: u64) {
        self.add_amount(n);
    }

    /// Adds to a float cell.
    #[inline]
    pub fn add_float(self, x: f64) {
        self.add_amount(x);
    }

    #[inline]
    fn add_amount<A: RestartableAdd>(self, amount: A) {
        debug_assert!(self.copies.may_have(self.word), "{self:?}");
        // Packed, so that the most frequent one is compared first.
        match self.copies.packed as u32 {
            PLANES => {
                let memory = &self.copies.region.memory;
                if !amount.add_in_sequence(self.word, &memory.adds.table) {
                    planes::finish_add(memory, self.word, amount);
                }
            }
            WORD => amount.add_atomically(self.word),
            _ => Self::add_elsewhere(self.word, self.copies, amount),
        }
    }

    // Out of line and by parts: docs/explanations/adds.md, "Registers".
    #[inline(never)]
    fn add_elsewhere<A: Amount>(word: Word, copies: Copies, amount: A) {
        let cell = Self::new(word, copies);
        match copies.place() {
            Place::OwnOrAbsent => _ = cell.change_own(|value| Some(amount.added_to(value))),
            _ => amount.add_atomically(cell.own()),
        }
    }

    /// As [`add`](Self::add); false if it is refused.
    pub fn try_add(self, n: u64) -> bool {
        if !matches!(self.copies.place(), Place::Planes) {
            self.add(n);
            return true;
        }
        let memory = &self.region().memory;
        n.add_in_sequence(self.word, &memory.adds.table)
            || planes::finish_anew(memory, None, self.word, n)
    }

    /// Counts one here and adds `n` to another integer cell, one of a series itself: an observation
    /// of a histogram.
    ///
    /// False if neither is added to. Only the count in a segment's cell can be refused: if the
    /// running CPU has no copy of it, as without a plane, and the system has no memory for a shared
    /// one.
    ///
    /// Cost: if both are striped cells of one region, a little less than two
    /// [`add`](Self::add)s; otherwise two adds.
    // Always: docs/explanations/adds.md, "Registers".
    #[inline(always)]
    pub fn count(self, other: Self, n: u64) -> bool {
        self.count_amount(other, n)
    }

    /// As [`count`](Self::count), if the other cell holds a float.
    #[inline]
    pub fn count_float(self, other: Self, x: f64) -> bool {
        self.count_amount(other, x)
    }

    #[inline(always)]
    fn count_amount<A: RestartableAdd>(self, other: Self, amount: A) -> bool {
        match (self.copies.place(), other.copies.place()) {
            (Place::Planes, Place::Planes) => match other.count_in_sequences(self.word, amount) {
                Ok(()) => true,
                Err(rest) => planes::finish_count(&other.region().memory, rest, other.word, amount),
            },
            (Place::Word, Place::Word) => {
                other.count_in_words(self.word, amount);
                true
            }
            _ => Self::count_elsewhere(self.word, self.copies, other.word, other.copies, amount),
        }
    }

    /// Adds 1 to another word and the amount to this one, both of which have a copy in each plane, as far
    /// as that goes in restartable sequences.
    #[inline(always)]
    pub(super) fn count_in_sequences<A: RestartableAdd>(
        self,
        one: Word,
        amount: A,
    ) -> Result<(), Undone> {
        debug_assert!(
            [one, self.word].into_iter().all(|word| self.region().memory.is_in_plane_0(word))
        );
        amount.count_in_sequences([one, self.word], &self.region().memory.adds.table)
    }

    /// Adds 1 to another word and the amount to this one, both of which are the only ones of their cells.
    #[inline(always)]
    pub(super) fn count_in_words<A: Amount>(self, one: Word, amount: A) {
        debug_assert!([one, self.word].into_iter().all(|word| self.copies.may_have(word)));
        1_u64.add_atomically(one);
        amount.add_atomically(self.word);
    }

    // As `add_elsewhere`.
    #[inline(never)]
    fn count_elsewhere<A: RestartableAdd>(
        word: Word,
        copies: Copies,
        other: Word,
        others: Copies,
        amount: A,
    ) -> bool {
        let is_counted = Self::new(word, copies).try_add(1);
        if is_counted {
            // It is no segment's, so it is not refused.
            Self::new(other, others).add_amount(amount);
        }
        is_counted
    }

    /// Adds to a cell that is likely one of this process's own: as [`add`](Self::add), but in
    /// place.
    #[inline]
    pub fn add_own(self, n: u64) {
        match self.copies.place() {
            Place::Own => n.add_atomically(self.own()),
            _ => self.add(n),
        }
    }

    /// How it is stored, if it is in one word or in planes.
    #[inline]
    pub(crate) fn storage(self) -> Option<Storage> {
        match self.copies.place() {
            Place::Word => Some(Storage::Single),
            Place::Planes => Some(Storage::Striped),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn region(self) -> &'static Region {
        self.copies.region
    }

    pub(crate) fn series(self) -> Series<'static> {
        self.copies.series()
    }

    /// Adds to an integer cell and returns the new value, as it was at that
    /// instant. Where there are several copies, there is no such instant: one is
    /// added to, and the sum is read afterwards.
    #[inline]
    pub fn add_and_get(self, n: u64) -> u64 {
        match self.copies.place() {
            Place::Word | Place::Own => self.own().fetch_add(n, Relaxed).wrapping_add(n),
            Place::OwnOrAbsent => self.change_own(|value| Some(value.wrapping_add(n))),
            _ => {
                self.add(n);
                self.get()
            }
        }
    }

    /// Stores a value. A striped cell is never stored to (an add under way would
    /// undo it): there, the call does nothing.
    #[inline]
    pub fn set(self, value: u64) {
        match self.copies.place() {
            Place::Word | Place::Own => self.own().store(value, Relaxed),
            Place::OwnOrAbsent => self.own().store(pack_present(value), Relaxed),
            _ => {}
        }
    }

    /// Takes this process's value out of an owned cell. False if the process has a value nevertheless: the
    /// cell has one of all processes, or a process without a value counts as 0.
    pub fn unset(self) -> bool {
        if matches!(self.copies.place(), Place::Own | Place::OwnOrAbsent) {
            self.own().store(0, Relaxed);
        }
        matches!(self.copies.place(), Place::OwnOrAbsent)
    }

    /// Stores a float, as [`set`](Self::set).
    #[inline]
    pub fn set_float(self, x: f64) {
        match self.copies.place() {
            // −0.0 would be kept as silence.
            Place::OwnOrAbsent => self.set((x + 0.0).to_bits()),
            _ => self.set(x.to_bits()),
        }
    }

    /// Replaces the value by `change(value)`, unless that is `None`. Does nothing
    /// to a striped cell.
    #[inline]
    pub fn update(self, mut change: impl FnMut(u64) -> Option<u64>) {
        match self.copies.place() {
            Place::Word | Place::Own => {
                let _ = self.own().fetch_update(Relaxed, Relaxed, change);
            }
            Place::OwnOrAbsent => {
                self.change_own(&mut change);
            }
            _ => {}
        }
    }

    /// As [`update`](Self::update), but an owned cell that may have no value and has none gets `first`.
    #[inline]
    pub fn update_or_set(self, first: u64, mut change: impl FnMut(u64) -> Option<u64>) {
        match self.copies.place() {
            Place::OwnOrAbsent => {
                let _ = self.own().fetch_update(Relaxed, Relaxed, |word| {
                    unpack_present(word).map_or(Some(first), &mut change).map(pack_present)
                });
            }
            _ => self.update(change),
        }
    }

    /// Changes an owned cell that may have no value, and returns the new one. A cell without a
    /// value is changed from 0.
    fn change_own(self, mut change: impl FnMut(u64) -> Option<u64>) -> u64 {
        let mut now = 0;
        let _ = self.own().fetch_update(Relaxed, Relaxed, |word| {
            now = unpack_present(word).unwrap_or(0);
            let changed = change(now)?;
            now = changed;
            Some(pack_present(changed))
        });
        now
    }

    /// The value of an integer cell. For a striped cell it is the sum over its copies since the
    /// last wipe, for an owned cell the value of this process.
    pub fn get(self) -> u64 {
        let mut sum = 0_u64;
        self.each_copy(|copy| sum = sum.wrapping_add(copy));
        match self.base() {
            Some(base) => Number::Integer.since(sum, base),
            None => sum,
        }
    }

    /// The value of a float cell.
    pub fn get_float(self) -> f64 {
        // The sum starts at the value at which a snapshot starts, so that both are equal.
        let mut sum = 0.0;
        self.each_copy(|copy| sum += f64::from_bits(copy));
        match self.base() {
            Some(base) => f64::from_bits(Number::Float.since(sum.to_bits(), base)),
            None => sum,
        }
    }

    fn each_copy(self, mut each: impl FnMut(u64)) {
        let region = self.copies.region;
        match self.copies.place() {
            Place::Word | Place::Own => each(self.own().load(Relaxed)),
            Place::OwnOrAbsent => each(unpack_present(self.own().load(Relaxed)).unwrap_or(0)),
            Place::Planes => {
                planes::copies(&region.memory, self.word).for_each(|copy| each(copy.load(Relaxed)))
            }
            Place::Stripes(apart) => (0..STRIPES)
                .filter_map(|n| region.memory.word_after(self.word, n * u64::from(apart)))
                .for_each(|copy| each(copy.load(Relaxed))),
        }
    }

    /// Its value when its series was last wiped, if it was.
    fn base(self) -> Option<u64> {
        self.copies.series().base_of(self.word)
    }

    /// The word that this thread adds to atomically.
    #[inline]
    fn own(self) -> Word {
        let region = self.copies.region;
        match self.copies.place() {
            Place::Word | Place::Planes => self.word,
            Place::Own | Place::OwnOrAbsent => region.memory.own_copy(self.word),
            Place::Stripes(apart) => {
                let n = thread_number() % STRIPES * u64::from(apart);
                region.memory.word_after(self.word, n).unwrap_or(self.word)
            }
        }
    }

    /// Words that code of another language may add to by its own atomic instructions, exactly beside all
    /// other adds: at most `most`, of which any thread may use any. Those of a striped cell are one for
    /// each CPU from 0 on, so that CPUs do not meet; of a segment's, none if there is no memory for all.
    /// Of an owned cell it is this process's word; a child made by `fork` has another. Empty for
    /// an owned cell that may have no value, whose word is not the value.
    ///
    /// A float's word holds its bits. Cost: for a striped cell a plane for each CPU, as in a process that
    /// adds atomically.
    pub fn words(self, most: usize) -> Vec<&'static AtomicU64> {
        let memory = &self.copies.region.memory;
        match self.copies.place() {
            Place::Planes => planes::atomic_copies(memory, self.word, most).unwrap_or_default(),
            Place::OwnOrAbsent => Vec::new(),
            Place::Word | Place::Own => (0..most.min(1)).map(|_| self.own()).collect(),
            Place::Stripes(apart) => (0..STRIPES.min(most as u64))
                .filter_map(|n| memory.word_after(self.word, n * u64::from(apart)))
                .collect(),
        }
    }

    /// The first copy.
    pub(crate) fn word(self) -> Word {
        self.word
    }

    /// Keeps the series of a cell that was just looked up, as [`SeriesGuard::keep`].
    ///
    /// # Errors
    ///
    /// [`Overflow`] where there is no room to note it.
    ///
    /// [`SeriesGuard::keep`]: crate::SeriesGuard::keep
    pub fn keep(self) -> Result<(), Overflow> {
        self.series().keep()
    }
}

/// The run of cells that a series owns.
#[derive(Clone, Copy, Debug)]
pub struct Cells {
    words: Words,
    copies: Copies,
}

/// Equal if they are the same run of the same region.
impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.words, other.words)
    }
}

impl Cells {
    pub(crate) fn new(words: Words, copies: Copies) -> Self {
        debug_assert!(
            [words.first(), words.last()]
                .into_iter()
                .all(|word| { word.is_some_and(|word| copies.may_have(word)) })
        );
        Self { words, copies }
    }

    /// How many there are; at least one.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The cell at `i`, or the last one where there are fewer.
    #[inline]
    pub fn at(&self, i: usize) -> Cell {
        Cell { word: &self.words[i.min(self.words.len() - 1)], copies: self.copies }
    }

    /// The last one.
    #[inline]
    pub fn last(&self) -> Cell {
        self.at(usize::MAX)
    }
}

impl Series<'static> {
    /// Cells as handles have them; `None` where they cannot lie there.
    #[inline]
    pub(crate) fn cells(self, run: CellRun, combine: Combine) -> Option<Cells> {
        let memory = &self.region.memory;
        let words = memory.map.words(run.at, run.count);
        let words = words.filter(|_| memory.is_in_its_part(run))?;
        Some(Cells::new(words, Copies::of(self, run, combine)))
    }
}
