//! New regions.

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::processes;
use crate::clock::{boot_id, boot_nanos, unix_nanos};
use crate::config::Config;
use crate::error::OpenError;
use crate::layout::*;
use crate::memory::Memory;
use crate::memory::mapping::{Backing, Mapping};
use crate::memory::path;
use crate::region::Region;

impl Region {
    /// A region in memory of its own: on Linux a memfd that children made by
    /// `fork` share and that others open through `/proc/PID/fd`.
    ///
    /// # Errors
    ///
    /// Limits that do not fit each other; no memory for the index; an unknown value of `TALEA_PLANES`
    /// ([`AddPath`](crate::AddPath)).
    pub fn anonymous(config: Config) -> Result<&'static Self, OpenError> {
        path::choose_by_environment()?;
        let limits = config.limits();
        let s = Sections::new(limits).map_err(OpenError::Limits)?;
        let backing = Backing::anonymous(limits.len).map_err(|source| OpenError::System {
            doing: "make a region in memory",
            path: None,
            source,
        })?;
        Self::initialise(backing, s, limits, None)
    }

    /// Maps new memory, or a new file of a directory, and fills in its header. The version is written
    /// last.
    pub(crate) fn initialise(
        backing: Backing,
        s: Sections,
        limits: Limits,
        directory: Option<&Path>,
    ) -> Result<&'static Self, OpenError> {
        let failed = |doing| {
            let path = directory.map(Path::to_owned);
            move |source| OpenError::System { doing, path, source }
        };
        let back = |at, len| {
            let doing = match directory {
                Some(_) => "back the tables of a region in",
                None => "back the tables of a region",
            };
            backing.back(at, len).map_err(failed(doing))
        };
        // The header, the slots, the index, the groups and the bits are read without asking;
        // the rest is backed as it is handed out. A region that lacks room is not mapped, since a mapping stays
        // for good.
        back(0, SLOTS + NEAR_SLOTS * SLOT_LEN)?;
        back(s.index, s.index_len * WORD)?;
        back(s.groups, s.groups_len())?;
        for (at, len) in s.parts_of(SLOT_COUNT) {
            back(at, len)?;
        }
        let doing =
            if directory.is_some() { "make a region in" } else { "make a region in memory" };
        let map = Mapping::of(backing, limits.len).map_err(failed(doing))?;
        let put = |at, value| {
            map.word(at).into_iter().for_each(|word| word.store(value, Relaxed));
        };
        put(H_MAGIC, MAGIC);
        put(H_LEN, limits.len);
        put(H_SERIES_MAX, limits.series);
        put(H_PLANES, limits.planes);
        put(H_LENT, limits.lent);
        let boot = boot_id().unwrap_or_default();
        put(H_BOOT_ID, boot[0]);
        put(H_BOOT_ID + WORD, boot[1]);
        put(H_CREATED, unix_nanos());
        put(H_HASH_SEED, random_seed());
        put(M_PLANES, SHARED_PLANES);
        put(M_SWEPT_AT, boot_nanos());
        // So that no stamp is 0.
        put(M_EPOCH, 1);
        if let Some(version) = map.word(H_VERSION) {
            version.store(LAYOUT_VERSION, Release);
        }
        Ok(Self::leak(map, s))
    }

    /// Takes part in a region whose header is filled in.
    pub(crate) fn leak(map: Mapping, sections: Sections) -> &'static Self {
        let region: &'static Self = Box::leak(Box::new(Self::new(Memory::new(map, sections))));
        processes::join(region);
        region
    }
}

/// A seed that differs from region to region; it need not be secret.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The model checker wants every run to be the same.
    if cfg!(loom) { 7 } else { RandomState::new().build_hasher().finish() }
}

#[cfg(all(test, target_os = "linux", not(loom), not(miri)))]
mod tests {
    use super::*;
    use crate::memory::mapping::refused_calls;

    #[test]
    fn a_region_that_gets_no_memory_leaves_no_mapping() {
        // No other test has a region of this length.
        let len = (1 << 20) + 37 * PAGE;
        let is_mapped = || {
            std::fs::read_to_string("/proc/self/maps").unwrap().lines().any(|line| {
                let (begin, rest) = line.split_once('-').unwrap();
                let end = rest.split_once(' ').unwrap().0;
                let [begin, end] = [begin, end].map(|at| u64::from_str_radix(at, 16).unwrap());
                end - begin == len
            })
        };
        refused_calls(|_| Region::anonymous(Config::with_len(len)).unwrap_err());
        assert!(!is_mapped());
        Region::anonymous(Config::with_len(len)).unwrap();
        assert!(is_mapped());
    }
}
