//! New regions.

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::processes;
use crate::clock::{boot_id, boot_nanos, unix_nanos};
use crate::config::Config;
use crate::error::OpenError;
use crate::layout::*;
use crate::memory::Memory;
use crate::memory::mapping::Mapping;
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
        let map = Mapping::anonymous(limits.len).map_err(|source| OpenError::System {
            doing: "make a region in memory",
            path: None,
            source,
        })?;
        Self::initialise(map, s, limits, None)
    }

    /// Fills in the header of a new mapping, of a file in a directory or of memory. The version is
    /// written last.
    pub(crate) fn initialise(
        map: Mapping,
        s: Sections,
        limits: Limits,
        directory: Option<&Path>,
    ) -> Result<&'static Self, OpenError> {
        let doing = match directory {
            Some(_) => "back the tables of a region in",
            None => "back the tables of a region",
        };
        let path = || directory.map(Path::to_owned);
        let no_memory = |source| OpenError::System { doing, path: path(), source };
        // The header, the slots, the index, the groups and the bits are read without asking;
        // the rest is backed as it is handed out.
        map.back(0, SLOTS + NEAR_SLOTS * SLOT_LEN).map_err(no_memory)?;
        map.back(s.index, s.index_len * WORD).map_err(no_memory)?;
        map.back(s.groups, s.groups_len()).map_err(no_memory)?;
        for (at, len) in s.parts_of(SLOT_COUNT) {
            map.back(at, len).map_err(no_memory)?;
        }
        let put = |at, value| {
            map.word(at).into_iter().for_each(|word| word.store(value, Relaxed));
        };
        put(H_MAGIC, MAGIC);
        put(H_LEN, limits.len);
        put(H_SERIES_MAX, limits.series);
        put(H_PLANES, limits.planes);
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
