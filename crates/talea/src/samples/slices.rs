//! Slices of the window: how many samples of which size came in each, of those that the ring
//! holds no more.
//!
//! ```text
//!   word 0      its state: number:63 | clearing:1
//!   word 1      the sum, a float
//!   word 2…     buckets, in no order: key:24 | count:40; 0 is a free one
//! ```
//!
//! A bucket's key names a range of values at one of some levels, each twice as wide as the
//! one before. A value goes to a bucket of the finest level, unless where that would lie
//! there is no room; then to one of the next. Where all buckets are taken, it goes to the
//! nearest. A slice is used again for the one of its place
//! that comes after it: who meets it first clears it. One who is killed meanwhile leaves it
//! to the one after that.

use talea_region::{Cell, Segment, Segments};

use super::Window;

/// Slices: a fifth of the window each, and one that it has part of.
pub(super) const COUNT: usize = 6;
/// Buckets of a slice.
const BUCKETS: usize = 232;
const HEADER: usize = 2;
/// Words of a slice.
pub(super) const WORDS: usize = HEADER + BUCKETS;

/// The finest buckets of a factor of two.
const FINEST: f64 = 32.0;
/// The buckets of the last are as wide as a factor of sixteen.
const LEVELS: u32 = 8;
/// Buckets that are tried at a level.
const TRIES: usize = 32;
/// Bits of a count.
const COUNT_BITS: u32 = 40;
/// What the numbers of the finest buckets are counted from: the smallest float is beyond.
const FIRST: i64 = -1100 * FINEST as i64;

/// How often it is looked whether somebody else has cleared a slice.
const LOOKS: usize = 10_000;

/// A slice to add to.
pub(super) struct Slice {
    segments: Segments,
    segment: Segment,
}

impl Slice {
    /// That of a time, made if it is not there, and cleared if it was another's. `None` where
    /// the region has no room, or its place is a later one's.
    pub(super) fn of(segments: Segments, window: Window, millis: u64) -> Option<Self> {
        let number = window.slice_of(millis);
        let n = 1 + (number % COUNT as u64) as usize;
        let slice = Self { segments, segment: segments.make(n, WORDS, 0)? };
        slice.is_ready(number).then_some(slice)
    }

    fn cell(&self, n: usize) -> Option<Cell> {
        self.segments.cell(self.segment, n)
    }

    fn buckets(&self) -> impl Iterator<Item = Cell> {
        (HEADER..WORDS).filter_map(|n| self.cell(n))
    }

    /// Has it be that of a number; false where it is a later one's, or somebody takes long.
    fn is_ready(&self, number: u64) -> bool {
        let Some(state) = self.cell(0) else { return false };
        let (ready, clearing) = (number << 1, number << 1 | 1);
        for _ in 0..LOOKS {
            let mut seen = ready;
            let mut is_mine = false;
            state.update(|now| {
                seen = now;
                is_mine = now >> 1 < number;
                is_mine.then_some(clearing)
            });
            if is_mine {
                (1..WORDS).filter_map(|n| self.cell(n)).for_each(|cell| cell.set(0));
                state.set(ready);
                return true;
            }
            if seen != clearing {
                return seen == ready;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Counts a value. What is no number is not counted.
    pub(super) fn add(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        if !(0..LEVELS).any(|level| self.try_count(key(value, level))) {
            self.count_near(value);
        }
        if let Some(sum) = self.cell(1) {
            sum.add_float(value);
        }
    }

    /// Counts in the bucket of a key, or says that there is no room for it.
    fn try_count(&self, key: u64) -> bool {
        let first = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let places = (0..TRIES).map(|n| HEADER + (first + n) % BUCKETS);
        places.filter_map(|n| self.cell(n)).any(|bucket| {
            let mut fits = false;
            bucket.update(|word| {
                fits = word == 0 || word >> COUNT_BITS == key;
                fits.then_some((key << COUNT_BITS) + (word & COUNTS) + 1)
            });
            fits
        })
    }

    #[cold]
    fn count_near(&self, value: f64) {
        let distance = |bucket: &Cell| (middle(bucket.get() >> COUNT_BITS) - value).abs();
        let nearest = self.buckets().min_by(|one, other| distance(one).total_cmp(&distance(other)));
        if let Some(bucket) = nearest {
            bucket.add(1);
        }
    }
}

const COUNTS: u64 = (1 << COUNT_BITS) - 1;

/// The bucket of a value: `level + 1:4 | negative:1 | number:19`, the last 0 for zero.
fn key(value: f64, level: u32) -> u64 {
    let size = value.abs().min(f64::MAX);
    let number = if size == 0.0 {
        0
    } else {
        1 + (((size.log2() * FINEST).floor() as i64 - FIRST) as u64 >> level)
    };
    let sign = u64::from(value < 0.0);
    u64::from(level + 1) << 20 | sign << 19 | number
}

/// The middle of a bucket: off from what is in it by no more than half its width.
fn middle(key: u64) -> f64 {
    let (level, sign, number) = (key >> 20, key >> 19 & 1, key & 0x7_FFFF);
    if number == 0 {
        return 0.0;
    }
    let width = (1_u64 << level.saturating_sub(1).min(LEVELS.into())) as f64;
    let from = (number - 1) as f64 * width + FIRST as f64;
    let size = ((from + width / 2.0) / FINEST).exp2().min(f64::MAX);
    if sign == 1 { -size } else { size }
}

/// What was copied of a slice, if it is any: its number, the sum, and each bucket's value
/// with its count.
pub(super) fn read(words: &[u64]) -> Option<(u64, f64, impl Iterator<Item = (f64, u64)>)> {
    let (header, buckets) = words.split_at_checked(HEADER)?;
    let is_ready = header[0] & 1 == 0 && header[0] > 0;
    let all = buckets.iter().filter(|&&word| word != 0);
    let all = all.map(|word| (middle(word >> COUNT_BITS), word & COUNTS));
    is_ready.then(|| (header[0] >> 1, f64::from_bits(header[1]), all))
}
