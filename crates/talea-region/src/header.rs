//! The header: checked before anything else of a region that another process wrote.

use crate::clock::boot_id;
use crate::layout::*;

/// Checks a header that another process wrote. `word` reads a word of it, `len` is the length of
/// the file.
pub(crate) fn validate(word: impl Fn(u64) -> u64, len: u64) -> Result<Sections, String> {
    // The version is read before the words whose meaning depends on it.
    let version = word(H_VERSION);
    if word(H_MAGIC) != MAGIC {
        return Err("it does not begin as a region does".to_owned());
    }
    if version != LAYOUT_VERSION {
        return Err(format!(
            "its layout is version {version}, where {LAYOUT_VERSION} was expected"
        ));
    }
    let made_in = [word(H_BOOT_ID), word(H_BOOT_ID + WORD)];
    // Where either is not known, nothing speaks against the file: tmpfs ends with the boot.
    if made_in != [0, 0] && boot_id().is_some_and(|boot| boot != made_in) {
        return Err("it was made before the machine was last started".to_owned());
    }
    let [len_stated, series, planes, lent] = [H_LEN, H_SERIES_MAX, H_PLANES, H_LENT].map(&word);
    let limits = Limits { len: len_stated, series, planes, lent };
    if limits.len != len {
        return Err(format!("its header states {} bytes, its file has {len}", limits.len));
    }
    Sections::new(limits).map_err(|fault| format!("its header states {fault}"))
}

/// Checks the marks that state how much is in use, and the planes that the CPU table names. Code
/// that uses these words later checks them again, since they may have changed.
pub(crate) fn check_marks(word: impl Fn(u64) -> u64, s: &Sections) -> Result<(), String> {
    for pool in [s.records, s.arena, s.singles, s.striped, s.lazy, s.owned] {
        let used = word(pool.marks + USED);
        if used > pool.len || used % pool.granule != 0 {
            return Err(format!("{used} bytes are used of a part that has {}", pool.len));
        }
    }
    let families = word(M_FAMILIES);
    if families > s.family_max * FAMILY_LEN || families % FAMILY_LEN != 0 {
        return Err(format!("{families} bytes are used of a table of {}", s.family_max));
    }
    let planes = word(M_PLANES);
    if !(SHARED_PLANES..=s.plane_count).contains(&planes) {
        return Err(format!("{planes} planes are in use of {}", s.plane_count));
    }
    let lent = word(M_LENT);
    if lent > s.lent_count {
        return Err(format!("{lent} planes were lent of {}", s.lent_count));
    }
    let plane_0 = word(M_PLANE_0);
    if plane_0 > COMPLETE {
        return Err(format!("plane 0 is in state {plane_0} of 0 to {COMPLETE}"));
    }
    let own = SHARED_PLANES * s.plane_len..s.plane_count * s.plane_len;
    let mut entries = (0..CPU_ENTRIES).map(|n| word(CPU_TABLE + n * WORD));
    entries
        .find(|entry| *entry != 0 && (!own.contains(entry) || entry % s.plane_len != 0))
        .map_or(Ok(()), |entry| Err(format!("a CPU's plane lies {entry} bytes behind the first")))
}
