//! Cells: 64-bit words that are added to or set.

use std::sync::atomic::Ordering::Relaxed;

use crate::guard::thread_number;
use crate::planes;
use crate::primitive::AtomicU64;
use crate::record::{STRIPES, stripe_len};
use crate::region::Region;
use crate::restartable;

/// How the cells of a family are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Storage {
    /// One word, added to atomically. For what is set, and for the many series
    /// that are each cold.
    Single = 0,
    /// A copy in each CPU's plane; the value is their sum. For what is hot.
    Striped = 1,
    /// A copy in each process's own block; the value combines those of the
    /// living. What a dead process held leaves with it.
    Owned = 2,
    /// Four copies on lines of their own, each added to atomically; the value is
    /// their sum. For what is hot where the planes have no room.
    Stripes = 3,
}

impl Storage {
    pub(crate) fn from_u8(n: u8) -> Option<Self> {
        [Self::Single, Self::Striped, Self::Owned, Self::Stripes]
            .into_iter()
            .find(|storage| *storage as u8 == n)
    }
}

/// What the cells of a family count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Number {
    /// Unsigned integers; sums wrap, so that adding `n.wrapping_neg()` takes away.
    Integer = 0,
    /// 64-bit floats.
    Float = 1,
}

/// Which copies of a cell there are beside the one that its handle points to.
///
/// Two whole words, since every look-up moves it: of an enum with a smaller tag the
/// halves would be written apart and read at once, which the processor is slow at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    region: &'static Region,
    /// One of the three below, or how many bytes four copies lie apart.
    how: u64,
}

/// None: the word is the cell.
const ONE: u64 = 0;
/// One in each plane; the word is that in plane 0.
const PLANES: u64 = 1;
/// One in each process's block; the word is that in block 0.
const BLOCKS: u64 = 2;

impl Copies {
    /// Those of a series of so many cells.
    #[inline]
    pub(crate) fn of(region: &'static Region, storage: Storage, cells: u64) -> Self {
        let how = match storage {
            Storage::Single => ONE,
            Storage::Striped => PLANES,
            Storage::Owned => BLOCKS,
            Storage::Stripes => stripe_len(cells),
        };
        Self { region, how }
    }
}

/// One cell. A plain pointer: copy it, keep it, send it to other threads, use it
/// in children made by `fork`.
///
/// No operation allocates, blocks or panics.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    word: &'static AtomicU64,
    copies: Copies,
}

/// Equal where they are the same word of the same region.
impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.word, other.word)
    }
}

impl Cell {
    /// Adds to an integer cell.
    ///
    /// Cost: one restartable sequence for a striped cell (no shared cache line
    /// is touched), else one atomic add.
    #[inline]
    pub fn add(self, n: u64) {
        let Copies { region, how } = self.copies;
        if how != PLANES {
            self.own().fetch_add(n, Relaxed);
        } else if !restartable::add(self.word, region.cpu_table(), n) {
            planes::add_slowly(region, self.word, n);
        }
    }

    /// Adds to a float cell.
    #[inline]
    pub fn add_float(self, x: f64) {
        let Copies { region, how } = self.copies;
        if how != PLANES {
            add_float_atomically(self.own(), x);
        } else if !restartable::add_float(self.word, region.cpu_table(), x) {
            planes::add_float_slowly(region, self.word, x);
        }
    }

    /// Adds to an integer cell and returns the new value, as it was at that
    /// instant. Where there are several copies, there is no such instant: one is
    /// added to, and the sum is read afterwards.
    #[inline]
    pub fn add_and_get(self, n: u64) -> u64 {
        if self.is_striped() {
            self.add(n);
            self.get()
        } else {
            self.own().fetch_add(n, Relaxed).wrapping_add(n)
        }
    }

    /// Stores a value. A striped cell is never stored to (an add under way would
    /// undo it): there, the call does nothing.
    #[inline]
    pub fn set(self, value: u64) {
        if !self.is_striped() {
            self.own().store(value, Relaxed);
        }
    }

    /// Replaces the value by `change(value)`, unless that is `None`. Does nothing
    /// to a striped cell.
    #[inline]
    pub fn update(self, change: impl FnMut(u64) -> Option<u64>) {
        if !self.is_striped() {
            let _ = self.own().fetch_update(Relaxed, Relaxed, change);
        }
    }

    /// The value of an integer cell: of a striped one, the sum over its copies; of
    /// an owned one, what this process holds.
    pub fn get(self) -> u64 {
        let mut sum = 0_u64;
        self.each_copy(|copy| sum = sum.wrapping_add(copy));
        sum
    }

    /// The value of a float cell.
    pub fn get_float(self) -> f64 {
        // As an empty sum of floats is, so that the value is that of a snapshot.
        let mut sum = 0.0;
        self.each_copy(|copy| sum += f64::from_bits(copy));
        sum
    }

    fn each_copy(self, mut each: impl FnMut(u64)) {
        let Copies { region, how } = self.copies;
        match how {
            ONE | BLOCKS => each(self.own().load(Relaxed)),
            PLANES => planes::copies(region, self.word).for_each(|copy| each(copy.load(Relaxed))),
            apart => (0..STRIPES)
                .filter_map(|n| region.word_after(self.word, n * apart))
                .for_each(|copy| each(copy.load(Relaxed))),
        }
    }

    #[inline]
    fn is_striped(self) -> bool {
        !matches!(self.copies.how, ONE | BLOCKS)
    }

    /// The word that this thread adds to atomically.
    #[inline]
    fn own(self) -> &'static AtomicU64 {
        let Copies { region, how } = self.copies;
        match how {
            ONE | PLANES => self.word,
            BLOCKS => region.own_copy(self.word),
            apart => {
                let copy = region.word_after(self.word, thread_number() % STRIPES * apart);
                copy.unwrap_or(self.word)
            }
        }
    }
}

pub(crate) fn add_float_atomically(word: &AtomicU64, x: f64) {
    let mut seen = word.load(Relaxed);
    while let Err(now) =
        word.compare_exchange_weak(seen, (f64::from_bits(seen) + x).to_bits(), Relaxed, Relaxed)
    {
        seen = now;
    }
}

/// The run of cells that a series owns.
#[derive(Clone, Copy, Debug)]
pub struct Cells {
    words: &'static [AtomicU64],
    copies: Copies,
}

/// Equal where they are the same run of the same region.
impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.words, other.words)
    }
}

impl Cells {
    pub(crate) fn new(words: &'static [AtomicU64], copies: Copies) -> Self {
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
}
