//! Pools: parts of the region that are handed out and taken back in runs of granules.
//!
//! A granule that is taken has its bit set. A run is taken by setting its bits, one word of bits
//! after the other; a thread that finds one set already clears those that it set and searches on. So
//! adjacent free runs are one run without being joined, and neither a stopped process nor a dead one
//! blocks a pool: a process that is killed leaks at most the run that it was just taking.
//!
//! In a small pool, a search begins at the first word that is not full, so that the pool stays
//! dense. In a large one it begins where the last search ended, and gives up after some words. Then
//! the pool's mark moves on, and the pages below it are backed before any process may touch them.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use super::planes;
use super::words::Memory;
use crate::layout::*;
use crate::primitive::AtomicU64;

/// Words of bits that a search looks at: those of 64 Ki granules.
const WINDOW: u64 = 1024;

impl Memory {
    /// Takes `count` granules in a row; returns the byte offset of the first from
    /// the pool's start. They are zeroed.
    pub(crate) fn take(&self, pool: &Pool, count: u64) -> Option<u64> {
        loop {
            if let Some(n) = self.take_returned(pool, count, WINDOW) {
                return Some(n * pool.granule);
            }
            let Some(n) = self.extend(pool, count) else {
                // Full: now it is worth to look everywhere.
                return Some(self.take_returned(pool, count, u64::MAX)? * pool.granule);
            };
            if self.claim(pool, n, count) {
                return Some(n * pool.granule);
            }
            // A search found some of the new granules first. The others are free.
            self.count_free(pool, count);
        }
    }

    /// Backs pages ahead for so many granules beyond those in use, up to the end of the pool.
    pub(crate) fn back_ahead(&self, pool: &Pool, count: u64) {
        let used = self.word_at(pool.marks + USED).load(SeqCst);
        let end = used.saturating_add(count * pool.granule).min(pool.len);
        let backed = self.word_at(pool.marks + BACKED);
        if end <= backed.load(Acquire) {
            return;
        }
        if pool.marks == M_STRIPED {
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
        for (n, mask) in words_of(at / pool.granule, count) {
            self.bits(pool, n).fetch_and(!mask, Release);
        }
        if self.used(pool) / pool.granule <= WINDOW * 64 {
            self.word_at(pool.marks + CURSOR).fetch_min(at / pool.granule / 64, Relaxed);
        }
        self.count_free(pool, count);
    }

    /// Whether a granule is taken.
    pub(crate) fn is_taken(&self, pool: &Pool, n: u64) -> bool {
        self.bits(pool, n / 64).load(Relaxed) >> (n % 64) & 1 == 1
    }

    /// How many granules are taken.
    pub(crate) fn taken(&self, pool: &Pool) -> u64 {
        let words = (self.used(pool) / pool.granule).div_ceil(64);
        (0..words).map(|n| u64::from(self.bits(pool, n).load(Relaxed).count_ones())).sum()
    }

    /// How far the pool was ever used and may be read, in bytes.
    pub(crate) fn used(&self, pool: &Pool) -> u64 {
        // The mark moves before the pages below it are backed.
        let backed = self.word_at(pool.marks + BACKED).load(Acquire);
        self.word_at(pool.marks + USED).load(Acquire).min(backed).min(pool.len)
    }

    /// Searches below the mark.
    fn take_returned(&self, pool: &Pool, count: u64, window: u64) -> Option<u64> {
        let free = self.word_at(pool.marks + SPARE);
        if (free.load(Relaxed) as i64) < count as i64 {
            return None;
        }
        let granules = self.used(pool) / pool.granule;
        let words = granules.div_ceil(64);
        let cursor = self.word_at(pool.marks + CURSOR);
        let start = match cursor.load(Relaxed) {
            start if start < words => start,
            _ => 0,
        };
        let end = words.min(start.saturating_add(window));
        let mut found = self.search(pool, count, start..end, granules);
        if words > window {
            cursor.store(found.map_or(end, |n| n / 64), Relaxed);
        } else {
            let full = (start..end).take_while(|&n| self.bits(pool, n).load(Relaxed) == u64::MAX);
            let first = start + full.count() as u64;
            if first > start {
                // If something comes back before that word at this very instant, it
                // may be passed over until a search fails.
                let _ = cursor.compare_exchange(start, first, Relaxed, Relaxed);
            }
            if found.is_none() && start > 0 {
                cursor.store(0, Relaxed);
                found = self.search(pool, count, 0..start, granules);
            }
        }
        if found.is_some() {
            free.fetch_sub(count, Relaxed);
        }
        found
    }

    /// The first free run in some words of bits, claimed.
    fn search(
        &self,
        pool: &Pool,
        count: u64,
        words: std::ops::Range<u64>,
        granules: u64,
    ) -> Option<u64> {
        // How many granules are free right before where we are.
        let mut run = 0;
        let mut n = words.start;
        while n < words.end {
            let taken = self.bits(pool, n).load(Relaxed);
            let mut bit = 0;
            let mut found = None;
            while bit < 64 && found.is_none() {
                let rest = taken >> bit;
                let free = u64::from(rest.trailing_zeros()).min(64 - bit);
                run += free;
                bit += free;
                if run >= count {
                    found = Some(n * 64 + bit - run);
                } else if bit < 64 {
                    bit += u64::from((taken >> bit).trailing_ones());
                    run = 0;
                }
            }
            let Some(first) = found else {
                n += 1;
                continue;
            };
            if first + count > granules {
                return None;
            }
            if self.claim(pool, first, count) {
                return Some(first);
            }
            // Another thread was faster: search this word again.
            run = 0;
        }
        None
    }

    /// Sets the bits of a run, or none of them.
    fn claim(&self, pool: &Pool, first: u64, count: u64) -> bool {
        for (n, mask) in words_of(first, count) {
            let before = self.bits(pool, n).fetch_or(mask, AcqRel);
            if before & mask != 0 {
                self.bits(pool, n).fetch_and(!(mask & !before), Release);
                for (n, mask) in words_of(first, count).take_while(|&(earlier, _)| earlier < n) {
                    self.bits(pool, n).fetch_and(!mask, Release);
                }
                return false;
            }
        }
        true
    }

    /// Moves the mark by `count` granules and backs their pages.
    fn extend(&self, pool: &Pool, count: u64) -> Option<u64> {
        let bytes = count.checked_mul(pool.granule)?;
        let fits = |n: u64| n.checked_add(bytes).filter(|&end| end <= pool.len);
        let used = self.word_at(pool.marks + USED);
        let at = used.fetch_update(SeqCst, SeqCst, fits).ok()?;
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
            M_STRIPED => planes::back(self, end),
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

    fn count_free(&self, pool: &Pool, count: u64) {
        self.word_at(pool.marks + SPARE).fetch_add(count, Relaxed);
    }

    fn bits(&self, pool: &Pool, n: u64) -> &'static AtomicU64 {
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
    use crate::{Config, Region};

    fn memory() -> &'static Memory {
        &Region::anonymous(Config::with_len(1 << 20)).unwrap().memory
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

    #[test]
    fn runs_do_not_overlap_and_come_back() {
        let memory = memory();
        let pool = memory.sections.arena;
        let mut owner = vec![0_u32; (pool.len / 8) as usize];
        let mut held: Vec<(u64, u64, u32)> = Vec::new();
        let mut random = 1_u64;
        for n in 1..times(20_000) as u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if random >> 63 == 0 && held.len() < 100 {
                let count = (random >> 40) % 150 + 1;
                let at = memory.take(&pool, count).unwrap();
                for granule in at / 8..at / 8 + count {
                    assert_eq!(std::mem::replace(&mut owner[granule as usize], n), 0);
                }
                held.push((at, count, n));
            } else if !held.is_empty() {
                let (at, count, n) = held.swap_remove((random >> 33) as usize % held.len());
                for granule in at / 8..at / 8 + count {
                    assert_eq!(std::mem::take(&mut owner[granule as usize]), n);
                }
                memory.give_back(&pool, at, count);
            }
        }
        let taken: u64 = held.iter().map(|(_, count, _)| count).sum();
        assert_eq!(memory.taken(&pool), taken);
        // At most 100 runs of at most 150: twice that would be careless.
        assert!(memory.used(&pool) <= 2 * 100 * 150 * 8, "{}", memory.used(&pool));
    }

    #[test]
    fn a_full_pool_says_so_and_goes_on_when_something_comes_back() {
        // Under Miri, one that is full soon.
        let memory = memory();
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
        let memory = memory();
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
    }
}
