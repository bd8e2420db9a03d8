//! A region: opened once, used until the process ends.

use std::fmt;
#[cfg(all(target_os = "linux", not(loom)))]
use std::sync::OnceLock;
#[cfg(not(loom))]
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::{AtomicU64 as OwnWord, Ordering::Relaxed};

#[cfg(all(target_os = "linux", not(loom)))]
use crate::files::beside::Beside;
use crate::layout::*;
use crate::memory::Memory;
use crate::memory::path::{self, AddPath};
use crate::series::hold_counts::Holds;
use crate::usage::{self, Usage};

/// A mapped region. It is never unmapped, so handles into it are `'static`.
pub struct Region {
    pub(crate) memory: Memory,
    /// The seed of its hashes.
    pub(crate) seed: u64,
    created: u64,
    pub(crate) holds: Holds,
    /// The second, by the wall clock, in which this process last asked whether a sweep is due.
    pub(crate) sweep_asked: OwnWord,
    /// Where it is, if it is beside the path that was asked for.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub(crate) beside: OnceLock<Beside>,
    /// The region that this process opened before this one.
    #[cfg(not(loom))]
    pub(crate) opened_before: AtomicPtr<Self>,
}

/// Shows the size of the region and not its contents, since handles show their region.
impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.memory.sections.end();
        f.debug_struct("Region").field("len", &len).finish_non_exhaustive()
    }
}

impl Region {
    /// The region in this memory, whose header is filled in.
    pub(crate) fn new(memory: Memory) -> Self {
        let get = |at| memory.map.word(at).map_or(0, |word| word.load(Relaxed));
        Self {
            seed: get(H_HASH_SEED),
            created: get(H_CREATED),
            memory,
            holds: Holds::default(),
            sweep_asked: OwnWord::default(),
            #[cfg(all(target_os = "linux", not(loom)))]
            beside: OnceLock::new(),
            #[cfg(not(loom))]
            opened_before: AtomicPtr::default(),
        }
    }

    /// When the region was created, in nanoseconds since 1970.
    pub fn created_unix_nanos(&self) -> u64 {
        self.created
    }

    /// Ends this process's use of the region: other processes take it for one that has ended, and its
    /// descriptors are closed. Handles that are left do no harm: what they record goes nowhere that anybody looks. The
    /// addresses stay taken. With `clears`, the pages go as well; so no other process may share them.
    ///
    /// No handle may be left of values that each process has its own of, unless the region is cleared: another
    /// process may take the place of this one.
    pub fn close(&self, clears: bool) {
        let len = self.memory.sections.end();
        self.memory.map.backing().close(clears.then_some(len));
    }

    /// Bytes that single cells can have at most. Cost: none.
    pub fn room_for_single_cells(&self) -> u64 {
        self.memory.sections.singles.len
    }

    /// How much of the region is in use.
    pub fn usage(&self) -> Usage {
        usage::of(&self.memory)
    }

    /// The path of this process's striped adds.
    pub fn add_path() -> AddPath {
        path::current()
    }

    /// Chooses the path of this process's striped adds, for tests and benchmarks. Where restartable
    /// sequences are not available, `Restartable` is as `Atomic`.
    pub fn choose_add_path(to: AddPath) {
        path::choose(to);
    }
}
