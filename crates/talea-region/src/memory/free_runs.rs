//! Where a pool has free runs: a tree of hints above its bits.
//!
//! This is the radix tree of summaries of Go's page allocator (`runtime/mpagealloc.go`), reduced to
//! one number: for each word of bits a byte has the length of the longest free run that begins in
//! it, and for each word of bytes a byte of the level above has their maximum. So the first run of a
//! length is found from the top by one word of each level, wherever the holes are, and address-ordered
//! first fit keeps a pool dense. Departures from Go's:
//!
//! 1. The bytes are hints; the bits decide. A search that follows a byte which is too high corrects
//!    it and searches again, so neither a race nor damage hands out a granule twice.
//! 2. There is no lock. A thread that changes a bit, or the bytes of a word, then *refreshes* the
//!    byte above: it computes the byte again until it finds it right after its own last write. All
//!    these accesses are sequentially consistent. So of two threads that refresh one byte, the later
//!    one sees the change of the other, and when no thread is at it, no byte is too low.
//! 3. A process that is killed between a change and its refresh leaves bytes too low. The runs below
//!    them are found again when a neighbour changes, or by the repairs that begin when the pool is
//!    full.
//! 4. A run is seen up to the end of the next word of bits. A longer run is measured in the bits.
//!
//! ```text
//!   top        ┌──────────────┐      in the pool's marks
//!              │ 8 bytes      │
//!   level 1    ├──────────────┼───── …                 a byte a word of level 0
//!   level 0    ├──────────────┼───── … ───── …         a byte a word of bits
//!   bits       └──────────────┴───── … ───── … ───── … a bit a granule
//! ```

use std::sync::atomic::Ordering::SeqCst;

use super::words::Memory;
use crate::layout::*;
use crate::primitive::Word;

/// The longest run that every byte shows in full.
pub(super) const SHOWN: u64 = 64;

/// How often a search corrects what misled it before it gives up.
const CORRECTIONS: u64 = 64;

/// The most levels: those of a region of 1 TiB.
const LEVELS: usize = 11;

/// The tree of a pool.
pub(super) struct Tree<'a> {
    memory: &'a Memory,
    pool: &'a Pool,
    /// The offset of each level, and how many words it has. The last level has one.
    levels: [(u64, u64); LEVELS],
    top: usize,
}

impl<'a> Tree<'a> {
    pub(super) fn of(memory: &'a Memory, pool: &'a Pool) -> Self {
        let below = pool.words_of_bits();
        let (mut at, mut len) = (pool.bits + below * WORD, below.div_ceil(TREE_FAN));
        let (mut levels, mut top) = ([(0, 0); LEVELS], 0);
        while len > 1 && top + 1 < LEVELS {
            levels[top] = (at, len);
            at += len * WORD;
            len = len.div_ceil(TREE_FAN);
            top += 1;
        }
        levels[top] = (pool.marks + TOP, 1);
        Self { memory, pool, levels, top }
    }

    /// The first word of bits from `from` on in which a run of `count` granules begins; at most
    /// [`SHOWN`] can be asked for. Cost: a word of each level, unless bytes are corrected.
    pub(super) fn next(&self, mut from: u64, count: u64) -> Option<u64> {
        let mut corrections = 0;
        'from_the_top: while corrections < CORRECTIONS {
            let (mut level, mut n) = (self.top, 0);
            loop {
                // The first byte of this word that is at or behind `from`.
                let first = (from >> (3 * level)).saturating_sub(n * TREE_FAN);
                let word = if first < TREE_FAN { self.word(level, n).load(SeqCst) } else { 0 };
                match first_at_least(word, count, first) {
                    Some(byte) => n = n * TREE_FAN + byte,
                    None if level == self.top => return None,
                    None if first == 0 => {
                        self.refresh(level + 1, n);
                        corrections += 1;
                        continue 'from_the_top;
                    }
                    None => {
                        // Those before `from` are what the level above shows.
                        from = (n + 1) << (3 * (level + 1));
                        continue 'from_the_top;
                    }
                }
                if level == 0 {
                    return Some(n);
                }
                level -= 1;
                if n >= self.levels[level].1 {
                    self.refresh(level + 1, n);
                    corrections += 1;
                    continue 'from_the_top;
                }
            }
        }
        None
    }

    /// Refreshes the bytes of a run whose bits were changed.
    pub(super) fn refresh_run(&self, first: u64, count: u64) {
        let words = first / 64..(first + count).div_ceil(64);
        if let Some(before) = words.start.checked_sub(1) {
            // A run that begins in the word before can reach into this one.
            if self.memory.bits(self.pool, before).load(SeqCst) >> 63 == 0 {
                self.refresh(0, before);
            }
        }
        words.for_each(|n| self.refresh(0, n));
    }

    /// Refreshes byte `n` of a level, and those above as far as they change.
    pub(super) fn refresh(&self, level: usize, mut n: u64) {
        for level in level..=self.top {
            let word = self.word(level, n / TREE_FAN);
            let shift = n % TREE_FAN * 8;
            let mut changed = false;
            loop {
                let seen = word.load(SeqCst);
                let byte = self.longest(level, n);
                if seen >> shift & 0xFF == byte {
                    break;
                }
                let new = seen & !(0xFF << shift) | byte << shift;
                changed |= word.compare_exchange(seen, new, SeqCst, SeqCst).is_ok();
            }
            if !changed {
                return;
            }
            n /= TREE_FAN;
        }
    }

    /// The right value of byte `n` of a level.
    fn longest(&self, level: usize, n: u64) -> u64 {
        let Some(below) = level.checked_sub(1) else {
            return longest_run(self.memory.free_bits(self.pool, n));
        };
        if n >= self.levels[below].1 {
            return 0;
        }
        let bytes = self.word(below, n).load(SeqCst).to_le_bytes();
        u64::from(bytes.into_iter().max().unwrap_or(0))
    }

    fn word(&self, level: usize, n: u64) -> Word {
        self.memory.word_at(self.levels[level].0 + n * WORD)
    }

    /// Panics if a byte is not what follows from the bits.
    #[cfg(test)]
    pub(super) fn assert_right(&self) {
        for (level, &(_, len)) in self.levels[..=self.top].iter().enumerate() {
            for n in 0..len * TREE_FAN {
                let byte = self.word(level, n / TREE_FAN).load(SeqCst) >> (n % TREE_FAN * 8) & 0xFF;
                assert_eq!(byte, self.longest(level, n), "byte {n} of level {level}");
            }
        }
    }
}

/// Where the first run of at most [`SHOWN`] granules begins among the first 64 bits.
pub(super) fn first_run(free: u128, count: u64) -> Option<u64> {
    let (mut starts, mut len) = (free, 1);
    while len < count {
        let more = len.min(count - len);
        starts &= starts >> more;
        len += more;
    }
    Some(u64::from((starts as u64).trailing_zeros())).filter(|&at| at < 64)
}

/// The length of the longest run that begins among the first 64 bits.
fn longest_run(free: u128) -> u64 {
    if free as u64 == 0 {
        return 0;
    }
    if free == u128::MAX {
        return 128;
    }
    // Where runs of 1, 2, 4, … bits begin, as long as there are any.
    let mut starts = [free; 7];
    let mut power = 0;
    while power < 6 {
        let longer = starts[power] & starts[power] >> (1 << power);
        if longer as u64 == 0 {
            break;
        }
        power += 1;
        starts[power] = longer;
    }
    let (mut found, mut len) = (starts[power], 1 << power);
    for power in (0..power).rev() {
        let longer = found & starts[power] >> len;
        if longer as u64 != 0 {
            found = longer;
            len += 1 << power;
        }
    }
    len
}

/// The first byte of a word from `from` on that is at least `count`, which is below 128.
pub(super) fn first_at_least(word: u64, count: u64, from: u64) -> Option<u64> {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES << 7;
    // No byte borrows from the next one, since each has its high bit set.
    let enough = (((word | HIGH) - count * ONES) | word) & HIGH;
    let enough = enough.checked_shr((from * 8) as u32)? << (from * 8);
    (enough != 0).then(|| u64::from(enough.trailing_zeros()) / 8)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn the_first_byte_that_is_enough_is_found() {
        let word = u64::from_le_bytes([3, 0, 128, 64, 127, 65, 255, 1]);
        let cases = [(1, 0, 0), (4, 0, 2), (64, 3, 3), (65, 3, 4), (127, 5, 6), (1, 7, 7)];
        for (count, from, byte) in cases {
            assert_eq!(first_at_least(word, count, from), Some(byte), "{count} from {from}");
        }
        assert_eq!(first_at_least(word, 2, 7), None);
        assert_eq!(first_at_least(word, 1, 8), None);
        assert_eq!(first_at_least(0, 1, 0), None);
    }

    #[test]
    fn runs_of_two_words_are_found_bit_by_bit() {
        let mut random = Random(1);
        let mut next = || random.next();
        for n in 0..if cfg!(miri) { 14 } else { 2000 } {
            let mut free = u128::from(next()) << 64 | u128::from(next());
            // Longer runs, and shorter ones.
            (0..n % 7).for_each(|_| free |= u128::from(next()) << 64 | u128::from(next()));
            let run = |at: u32| u64::from((!(free >> at)).trailing_zeros().min(128 - at));
            assert_eq!(longest_run(free), (0..64).map(run).max().unwrap(), "{free:#x}");
            for count in 1..=SHOWN {
                let expected = (0..64).find(|&at| run(at) >= count).map(u64::from);
                assert_eq!(first_run(free, count), expected, "{count} in {free:#x}");
            }
        }
        assert_eq!([0, 1, u128::MAX, 1 << 64].map(longest_run), [0, 1, 128, 0]);
    }
}
