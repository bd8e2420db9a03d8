//! Handles that were made before, by key.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{PoisonError, RwLock};

use metrics::Key;

/// Remembers a bounded number of handles.
pub(crate) struct Cache<H> {
    parts: [RwLock<Part<H>>; PARTS],
}

// A key's hash is made with it and does not change.
#[allow(clippy::mutable_key_type)]
type Part<H> = HashMap<Key, H, BuildHasherDefault<Given>>;

/// So that threads that meet new keys seldom meet each other.
const PARTS: usize = 16;

const PART_LEN: usize = 512;

impl<H: Clone> Cache<H> {
    pub(crate) fn new() -> Self {
        Self { parts: std::array::from_fn(|_| RwLock::default()) }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<H> {
        self.part(key).read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// A full cache is cleared: handles in use come back, and handles of invented names do not stay.
    pub(crate) fn put(&self, key: &Key, handle: H) {
        let mut part = self.part(key).write().unwrap_or_else(PoisonError::into_inner);
        if part.len() >= PART_LEN {
            part.clear();
        }
        part.insert(key.to_retained(), handle);
    }

    fn part(&self, key: &Key) -> &RwLock<Part<H>> {
        // The lowest and the highest bits choose the place within a part.
        &self.parts[(key.get_hash() >> 32) as usize % PARTS]
    }
}

/// The hash that a key brings along. Keys of one hash are as slow as a part is long.
#[derive(Default)]
struct Given(u64);

impl Hasher for Given {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_of_handles_is_bounded_and_those_in_use_come_back() {
        let cache = Cache::new();
        let used = Key::from_name("used");
        for n in 0..100_000 {
            cache.put(&Key::from_name(n.to_string()), n);
            if cache.get(&used).is_none() {
                cache.put(&used, -1);
            }
            assert_eq!(cache.get(&used), Some(-1));
        }
        let len: usize = cache.parts.iter().map(|part| part.read().unwrap().len()).sum();
        assert!((PARTS..=PARTS * PART_LEN).contains(&len), "{len}");
    }
}
