//! Pools: parts of the region that are handed out and taken back in runs of granules.
//!
//! A granule that is taken has its bit set. A run is taken by setting its bits, one word of bits
//! after the other; a thread that finds one set already clears those that it set and searches on. So
//! adjacent free runs are one run without being joined, and neither a stopped process nor a dead one
//! blocks a pool: a process that is killed leaks at most the run that it was just taking.
//!
//! A tree of hints (`free_runs.rs`) leads to the first free run that is long enough. Where there is
//! none, the pool's mark moves on, and the pages below it are backed before any process may touch
//! them. When the pool is full, each attempt repairs a part of the tree.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::free_runs::{SHOWN, Tree, first_at_least, first_run};
use super::planes;
use super::words::Memory;
use crate::layout::*;
use crate::primitive::Word;

/// How many runs a search tries that other threads take first, or that turn out too short, before
/// fresh memory is taken.
const TRIES: u64 = 16;

/// How many words of bits a repair looks at.
const REPAIR: u64 = 64;

impl Memory {
    /// Takes `count` granules in a row; returns the byte offset of the first from
    /// the pool's start. They are zeroed.
    pub(crate) fn take(&self, pool: &Pool, count: u64) -> Option<u64> {
        // Only a damaged record asks for 0.
        if count == 0 || count > pool.len / pool.granule {
            return None;
        }
        let n = self.take_granules(pool, count)?;
        // Whatever its bits and marks say.
        debug_assert!((n + count) * pool.granule <= pool.len, "{n} and {count} of {pool:?}");
        Some(n * pool.granule)
    }

    /// Takes `count` granules in a row; returns the number of the first.
    fn take_granules(&self, pool: &Pool, count: u64) -> Option<u64> {
        loop {
            if let Some(n) = self.take_returned(pool, count, TRIES) {
                return Some(n);
            }
            let Some(n) = self.extend(pool, count) else {
                // Full: now it is worth to look everywhere.
                self.repair(pool);
                return self.take_returned(pool, count, u64::MAX);
            };
            if self.claim(pool, n, count) {
                return Some(n);
            }
            // A search found some of the new granules first. The others are free.
            Tree::of(self, pool).refresh_run(n, count);
        }
    }

    /// Backs pages ahead for `count` granules beyond the used ones, up to the end of the pool.
    pub(crate) fn back_ahead(&self, pool: &Pool, count: u64) {
        let used = self.word_at(pool.marks + USED).load(SeqCst);
        let end = used.saturating_add(count * pool.granule).min(pool.len);
        let backed = self.word_at(pool.marks + BACKED);
        if end <= backed.load(Acquire) {
            return;
        }
        if pool.marks == M_LAZY {
            planes::announce(self, end);
        }
        if let Some(reached) = self.back(pool, used.min(end), end) {
            backed.fetch_max(reached, Release);
        }
    }

    /// Gives back what [`take`](Self::take) handed out. Its words must be zero again, and no thread
    /// may access them any more.
    pub(crate) fn give_back(&self, pool: &Pool, at: u64, count: u64) {
        // A damaged record could name anything.
        let end = count.checked_mul(pool.granule).and_then(|len| at.checked_add(len));
        if at % pool.granule != 0 || count == 0 || end.is_none_or(|end| end > pool.len) {
            return;
        }
        // Before another thread may take it: see `read/copy.rs`.
        self.word_at(M_RETURNED).fetch_add(1, Relaxed);
        let first = at / pool.granule;
        for (n, mask) in words_of(first, count) {
            self.bits(pool, n).fetch_and(!mask, SeqCst);
        }
        Tree::of(self, pool).refresh_run(first, count);
    }

    /// Sets the bit of a granule that the caller has, in case another thread cleared it.
    #[inline]
    pub(crate) fn note_taken(&self, pool: &Pool, n: u64) {
        if !self.is_taken(pool, n) {
            self.bits(pool, n / 64).fetch_or(1 << (n % 64), SeqCst);
            Tree::of(self, pool).refresh_run(n, 1);
        }
    }

    /// Whether a granule is taken.
    pub(crate) fn is_taken(&self, pool: &Pool, n: u64) -> bool {
        self.bits(pool, n / 64).load(Relaxed) >> (n % 64) & 1 == 1
    }

    /// How many granules are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self, pool: &Pool) -> u64 {
        let words = (self.used(pool) / pool.granule).div_ceil(64);
        (0..words).map(|n| u64::from(self.bits(pool, n).load(Relaxed).count_ones())).sum()
    }

    /// Panics if the tree is not what follows from the bits.
    #[cfg(test)]
    pub(crate) fn assert_tree(&self, pool: &Pool) {
        Tree::of(self, pool).assert_right();
    }

    /// How far the pool was ever used and may be read, in bytes.
    pub(crate) fn used(&self, pool: &Pool) -> u64 {
        // The mark moves before the pages below it are backed.
        let backed = self.word_at(pool.marks + BACKED).load(Acquire);
        self.word_at(pool.marks + USED).load(Acquire).min(backed).min(pool.len)
    }

    /// Takes a run below the mark, after at most `tries` tries.
    fn take_returned(&self, pool: &Pool, count: u64, tries: u64) -> Option<u64> {
        let shown = count.min(SHOWN);
        // Nearly always there is none while a region fills, and this is all that it costs.
        first_at_least(self.word_at(pool.marks + TOP).load(Relaxed), shown, 0)?;
        let tree = Tree::of(self, pool);
        let mut from = 0;
        for _ in 0..tries {
            let word = tree.next(from, shown)?;
            let Some(first) = first_run(self.free_bits(pool, word), shown) else {
                tree.refresh(0, word);
                continue;
            };
            let first = word * 64 + first;
            let len = if count > shown { self.measure(pool, first, count) } else { count };
            if len < count {
                // The word in which it ends can be the begin of another one.
                from = ((first + len) / 64).max(word + 1);
            } else if self.claim(pool, first, count) {
                tree.refresh_run(first, count);
                return Some(first);
            }
        }
        None
    }

    /// How many granules are free from one on, up to `count`.
    fn measure(&self, pool: &Pool, first: u64, count: u64) -> u64 {
        let mut len = 0;
        while len < count {
            let at = first + len;
            let free = self.free_bits(pool, at / 64) >> (at % 64);
            let run = u64::from(free.trailing_ones());
            len += run;
            if run < 128 - at % 64 {
                break;
            }
        }
        len.min(count)
    }

    /// Refreshes a part of the tree: a process that was killed may have left bytes too low.
    fn repair(&self, pool: &Pool) {
        let words = (self.used(pool) / pool.granule).div_ceil(64).max(1);
        let first = self.word_at(pool.marks + REPAIRED).fetch_add(REPAIR, Relaxed) % words;
        let tree = Tree::of(self, pool);
        (first..words.min(first + REPAIR)).for_each(|n| tree.refresh(0, n));
    }

    /// The bits of a word and of the next one, inverted. Granules above the mark are not free.
    pub(super) fn free_bits(&self, pool: &Pool, n: u64) -> u128 {
        let granules = self.used(pool) / pool.granule;
        let free = |n: u64| match granules.saturating_sub(n * 64) {
            0 => 0,
            below => !self.bits(pool, n).load(SeqCst) & u64::MAX >> 64_u64.saturating_sub(below),
        };
        u128::from(free(n + 1)) << 64 | u128::from(free(n))
    }

    /// Sets the bits of a run, or none of them.
    fn claim(&self, pool: &Pool, first: u64, count: u64) -> bool {
        for (n, mask) in words_of(first, count) {
            let before = self.bits(pool, n).fetch_or(mask, SeqCst);
            if before & mask != 0 {
                self.bits(pool, n).fetch_and(!(mask & !before), SeqCst);
                for (n, mask) in words_of(first, count).take_while(|&(earlier, _)| earlier < n) {
                    self.bits(pool, n).fetch_and(!mask, SeqCst);
                }
                // Another thread may have refreshed while these were set.
                Tree::of(self, pool).refresh_run(first, count);
                return false;
            }
        }
        true
    }

    /// Moves the mark by `count` granules and backs their pages.
    fn extend(&self, pool: &Pool, count: u64) -> Option<u64> {
        let bytes = count.checked_mul(pool.granule)?;
        let used = self.word_at(pool.marks + USED);
        let moved = used.fetch_update(SeqCst, SeqCst, |at| {
            at.checked_add(bytes).filter(|&end| end <= pool.len)
        });
        let at = moved.ok()?;
        let backed = self.word_at(pool.marks + BACKED);
        if at + bytes > backed.load(Acquire) {
            let Some(reached) = self.back(pool, at, at + bytes) else {
                // If no thread has taken more since, the mark moves back.
                let _ = used.compare_exchange(at + bytes, at, SeqCst, Relaxed);
                return None;
            };
            backed.fetch_max(reached, Release);
        }
        Some(at / pool.granule)
    }

    /// Backs a pool's pages up to `end` at least; returns up to where.
    fn back(&self, pool: &Pool, at: u64, end: u64) -> Option<u64> {
        match pool.marks {
            M_STRIPED | M_LAZY => planes::back(self, pool, end),
            // A block is backed as a whole when its slot is taken.
            M_OWNED => Some(pool.len),
            _ => {
                // A chunk at a time, to save system calls while a region fills. If a chunk is
                // refused, exactly the pages that are needed are tried.
                const CHUNK: u64 = 16 * PAGE;
                let whole = end.next_multiple_of(CHUNK).min(pool.len);
                let from = self.word_at(pool.marks + BACKED).load(Acquire).min(at);
                let back = |to: u64| self.back_pages(pool.at + from, to - from).map(|()| to);
                back(whole).or_else(|| back(end))
            }
        }
    }

    pub(super) fn bits(&self, pool: &Pool, n: u64) -> Word {
        self.word_at(pool.bits + n * WORD)
    }
}

/// The words of bits of a run, each with those that are the run's.
fn words_of(first: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = first + count;
    (first / 64..end.div_ceil(64)).map(move |n| {
        let from = first.saturating_sub(n * 64);
        let to = (end - n * 64).min(64);
        (n, u64::MAX >> (64 - (to - from)) << from)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::testing::{Random, region};

    #[test]
    fn a_damaged_record_that_asks_for_no_granules_gets_none() {
        let memory = &region().memory;
        let pool = memory.sections.singles;
        // Also where the next free granule is in the middle of a word.
        for _ in 0..3 {
            assert_eq!(memory.take(&pool, 0), None);
            assert!(memory.take(&pool, 3).is_some());
        }
    }

    #[test]
    fn the_words_of_a_run_are_those_that_it_covers() {
        let words = |first, count| words_of(first, count).collect::<Vec<_>>();
        assert_eq!(words(0, 1), [(0, 1)]);
        assert_eq!(words(63, 1), [(0, 1 << 63)]);
        assert_eq!(words(60, 8), [(0, 0xF << 60), (1, 0xF)]);
        assert_eq!(words(64, 64), [(1, u64::MAX)]);
        assert_eq!(words(1, 130), [(0, u64::MAX << 1), (1, u64::MAX), (2, 7)]);
    }

    /// How often; under Miri a hundredth.
    const fn times(n: u64) -> u64 {
        if cfg!(miri) { n / 100 } else { n }
    }

    /// Runs of a pool that are held. Each granule has one owner at most.
    struct Held {
        memory: &'static Memory,
        pool: Pool,
        owners: Vec<bool>,
        runs: Vec<(u64, u64)>,
    }

    impl Held {
        fn of(memory: &'static Memory, pool: Pool) -> Self {
            let owners = vec![false; (pool.len / pool.granule) as usize];
            Self { memory, pool, owners, runs: Vec::new() }
        }

        fn own(&mut self, at: u64, count: u64, owned: bool) {
            let first = (at / self.pool.granule) as usize;
            for owner in &mut self.owners[first..first + count as usize] {
                assert_eq!(std::mem::replace(owner, owned), !owned);
            }
        }

        fn take(&mut self, count: u64) -> bool {
            let Some(at) = self.memory.take(&self.pool, count) else { return false };
            self.own(at, count, true);
            self.runs.push((at, count));
            true
        }

        fn give_back(&mut self, n: usize) {
            let (at, count) = self.runs.swap_remove(n);
            self.own(at, count, false);
            self.memory.give_back(&self.pool, at, count);
        }

        fn give_back_any(&mut self, random: &mut Random) {
            if !self.runs.is_empty() {
                self.give_back(random.below(self.runs.len() as u64) as usize);
            }
        }

        fn taken(&self) -> u64 {
            self.runs.iter().map(|(_, count)| count).sum()
        }

        fn check(&self) {
            assert_eq!(self.memory.taken(&self.pool), self.taken());
            self.memory.assert_tree(&self.pool);
        }
    }

    #[test]
    fn runs_do_not_overlap_and_come_back() {
        let memory = &region().memory;
        let mut held = Held::of(memory, memory.sections.arena);
        let mut random = Random(1);
        for _ in 1..times(20_000) {
            if random.below(2) == 0 && held.runs.len() < 100 {
                assert!(held.take(random.below(150) + 1));
            } else {
                held.give_back_any(&mut random);
            }
        }
        held.check();
        // At most 100 runs of at most 150: twice that would be careless.
        assert!(memory.used(&held.pool) <= 2 * 100 * 150 * 8, "{}", memory.used(&held.pool));
    }

    #[test]
    fn in_any_order_of_takes_and_returns_no_granule_is_lost_or_handed_out_twice() {
        // Under Miri, a pool of each kind once, and short phases.
        let (seeds, steps) = if cfg!(miri) { (2, 20) } else { (60, 500) };
        for seed in 0..seeds {
            let memory = &region().memory;
            // Pools with a tree of one level and of several, and with two sizes of granules.
            let sections = &memory.sections;
            let pools = [sections.owned, sections.records, sections.singles, sections.arena];
            let mut held = Held::of(memory, pools[seed as usize % pools.len()]);
            let mut random = Random(seed);
            let room = held.pool.len / held.pool.granule;
            for _ in 0..10 {
                // Each phase has a longest run of its own, and ends nearly full or nearly empty.
                let longest = 1 << random.below(10).min(u64::from(room.ilog2()));
                let target = random.below(room + room / 4);
                for _ in 0..steps {
                    if held.taken() < target {
                        held.take(random.below(longest) + 1);
                    } else {
                        held.give_back_any(&mut random);
                    }
                }
                held.check();
            }
            // To the end of the pool, granule by granule.
            while held.take(1) {}
            assert_eq!(held.taken(), room, "seed {seed}");
            while !held.runs.is_empty() {
                held.give_back_any(&mut random);
            }
            held.check();
            // All is one run again.
            assert!(held.take(room), "seed {seed}");
            held.check();
        }
    }

    #[test]
    fn runs_of_other_lengths_use_the_holes_of_removed_ones() {
        let memory = &region().memory;
        let mut held = Held::of(memory, memory.sections.arena);
        let mut random = Random(1);
        let mut lens = [1, 8];
        let mut most = 0;
        for _ in 0..10 {
            while held.taken() < if cfg!(miri) { 400 } else { 4000 } {
                assert!(held.take(lens[0] + random.below(lens[1])));
            }
            most = most.max(held.taken());
            for _ in 0..held.runs.len() / 2 {
                held.give_back_any(&mut random);
            }
            held.check();
            // Short texts and long ones take turns.
            lens = [9 - lens[0], 9 - lens[1]];
        }
        let used = memory.used(&held.pool) / 8;
        assert!(used * 10 <= most * 13, "{used} granules for {most}");
    }

    #[test]
    fn a_repair_finds_runs_that_a_killed_process_left_unknown() {
        let memory = &region().memory;
        let pool = if cfg!(miri) { memory.sections.owned } else { memory.sections.singles };
        let mut held = Held::of(memory, pool);
        while held.take(3) {}
        let at = held.runs[held.runs.len() / 2].0 / 8;
        // This is as far as that process came.
        words_of(at, 3).for_each(|(n, mask)| {
            memory.bits(&held.pool, n).fetch_and(!mask, SeqCst);
        });
        let attempts = held.pool.words_of_bits().div_ceil(REPAIR);
        let found = (0..attempts).find_map(|_| memory.take(&held.pool, 3));
        assert_eq!(found, Some(at * 8));
    }

    #[test]
    fn a_damaged_tree_hands_out_no_granule_twice() {
        let memory = &region().memory;
        let mut held = Held::of(memory, memory.sections.arena);
        let mut random = Random(1);
        let pool = held.pool;
        let tree = pool.bits + pool.words_of_bits() * WORD..memory.sections.singles.bits;
        let words = (tree.end.min(memory.sections.arena.at) - tree.start) / WORD;
        for _ in 0..times(5000) {
            let word = match random.below(words + 1) {
                0 => pool.marks + TOP,
                n => tree.start + (n - 1) * WORD,
            };
            let damage = [0, u64::MAX, random.below(u64::MAX), 0x4040_4040_4040_4040];
            let damage = damage[random.below(4) as usize];
            memory.word_at(word).store(damage, Relaxed);
            if random.below(2) == 0 {
                held.take(random.below(90) + 1);
            } else {
                held.give_back_any(&mut random);
            }
        }
        assert_eq!(memory.taken(&pool), held.taken());
    }

    #[test]
    fn a_full_pool_says_so_and_goes_on_when_something_comes_back() {
        // Under Miri, one that is full soon.
        let memory = &region().memory;
        let pool = if cfg!(miri) { memory.sections.owned } else { memory.sections.singles };
        let mut held: Vec<u64> = std::iter::from_fn(|| memory.take(&pool, 3)).collect();
        assert_eq!(held.len() as u64, pool.len / 24);
        memory.give_back(&pool, held.swap_remove(7), 3);
        assert_eq!(memory.take(&pool, 4), None);
        assert!(memory.take(&pool, 3).is_some());
        assert_eq!(memory.take(&pool, 3), None);
    }

    #[test]
    fn many_threads_share_a_pool() {
        let memory = &region().memory;
        let pool = memory.sections.arena;
        let writers: Vec<_> = (1..=4_u64)
            .map(|me| {
                std::thread::spawn(move || {
                    for n in 0..times(20_000) {
                        let count = n * me % 70 + 1;
                        let at = memory.take(&pool, count).unwrap();
                        let words = memory.map.words(pool.at + at, count).unwrap();
                        for word in words {
                            assert_eq!(word.swap(me, Relaxed), 0);
                        }
                        for word in words {
                            assert_eq!(word.swap(0, Relaxed), me);
                        }
                        memory.give_back(&pool, at, count);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(memory.taken(&pool), 0);
        memory.assert_tree(&pool);
    }
}
