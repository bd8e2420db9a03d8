//! Regions in memory of this process, which are used again.
//!
//! A region is never unmapped, and has two file descriptors. A program may make a registry for each of its
//! tasks, as those that push do. So once no object leads to a region in memory any more, its families are
//! ended, and the next registry of that size gets it; or, if it cannot be used again, its descriptors are closed
//! and its pages go.
//!
//! 1. Every object that has a handle into a region has the `Region` too.
//! 2. A region that was in use during a fork is not used again: the other process has it too, and this process
//!    does not know until when.
//! 3. A family is in the region for as long as the process lives, also after its end. A region that has many,
//!    or whose parts are in use, is not used again, so that the next registry has room.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};

use talea::{Config, Error, Registry};

/// The most definitions of families in a region that is used again: a fraction of what the smallest has.
const DEFINITIONS_MAX: usize = 64;

/// The most of each part that may be in use in such a region, as a fraction.
const USED_MAX: u64 = 16;

/// Regions that no object leads to.
static UNUSED: Mutex<Vec<(Registry, PrivateRegion)>> = Mutex::new(Vec::new());

/// The properties that decide whether a region in memory is used again.
pub(crate) struct PrivateRegion {
    /// The size that was asked for.
    size: Option<u64>,
    /// Those before it came into use.
    forks: u64,
    process: u32,
    /// The families that were ever in it, by fingerprints of their definitions.
    families: Mutex<HashMap<u64, Emptied>>,
}

/// Removes all series of a family, also those that are kept; false if one is left.
pub(crate) type Emptied = Box<dyn Fn() -> bool + Send>;

impl PrivateRegion {
    /// Opens a region in memory, or takes one that is unused.
    pub(crate) fn open(size: Option<u64>) -> Result<(Registry, Self), Error> {
        let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
        let (forks, process) = (talea::forks(), std::process::id());
        // A child has those of its parent, which uses them again.
        unused.retain(|(registry, region)| {
            let is_own = region.process == process;
            if !is_own {
                registry.close(false);
            }
            is_own
        });
        if let Some(at) = unused.iter().position(|(_, region)| region.size == size) {
            let (registry, region) = unused.swap_remove(at);
            return Ok((registry, Self { forks, ..region }));
        }
        drop(unused);
        let registry = Registry::with_config(size.map_or_else(Config::default, Config::with_len))?;
        Ok((registry, Self { size, forks, process, families: Mutex::default() }))
    }

    /// Whether this process made it: one that its parent made has what all children count.
    pub(crate) fn is_of_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Notes that a family of this definition is in the region. After its end, a definition that is registered
    /// again would have the series that were kept.
    pub(crate) fn note(&self, definition: &str, emptied: impl FnOnce() -> Emptied) {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        if families.len() <= DEFINITIONS_MAX {
            families.entry(HASHER.hash_one(definition)).or_insert_with(emptied);
        }
    }

    /// No object leads to the region any more.
    pub(crate) fn give_back(self, registry: &Registry) {
        if self.is_unshared() && self.is_emptied() && has_room(registry) {
            registry.unregister_where(|_| true);
            let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
            unused.push((registry.clone(), self));
        } else {
            registry.close(self.is_unshared());
        }
    }

    fn is_emptied(&self) -> bool {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        families.len() <= DEFINITIONS_MAX && families.values().all(|emptied| emptied())
    }

    fn is_unshared(&self) -> bool {
        self.forks == talea::forks() && self.process == std::process::id()
    }
}

/// Whether little of a region is in use.
fn has_room(registry: &Registry) -> bool {
    let usage = registry.usage();
    let mut parts = [usage.records, usage.text].into_iter().chain(usage.cells());
    // A gauge of per-process values keeps them, also after the end of its family.
    parts.all(|part| part.taken <= part.room / USED_MAX) && usage.owned_cells.taken == 0
}
