//! A region: opened once, used until the process ends.

use crate::clock::{boot_nanos, unix_nanos};
use crate::error::OpenError;
use crate::layout::*;
use crate::mapping::{Mapping, longest_file};
use crate::primitive::AtomicU64;
use crate::refusal::Refusal;
use crate::restartable;
use crate::segments::Span;
#[cfg(all(target_os = "linux", not(loom)))]
use crate::siblings::Beside;
use crate::slots::{self, OwnSlot};
use crate::snapshot::{self, FamilyCopy, Snapshot};
use crate::source::{RECORD_WORDS, Record, Source};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64 as OwnWord,
    Ordering::{Acquire, Relaxed, Release},
};

/// What a region is created with. Attaching to an existing file takes the
/// file's own limits.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes of memory that the region may come to use; 512 KiB to 1 TiB, in
    /// whole pages. Pages are taken as they are needed. Default: 64 MiB, or, where that is less,
    /// an eighth of the cgroup's memory limit, or the longest file that the process may make
    /// (`ulimit -f`).
    pub len: u64,
    /// Series that the region can hold. Default: one for each 512 bytes. The
    /// index of 12 to 24 bytes a series is backed from the start.
    pub series: u64,
    /// CPUs that get a plane of their own; the others share two atomic planes.
    /// Default: the CPUs of the machine, as far as each plane has a page. 1 to 1,024.
    pub planes: u64,
    /// The group, by its number, that may read a new file ([`Region::open`]): it has mode
    /// 0640 then, and 0600 where there is none. For an agent of another user; who makes the
    /// file must be in the group. A region in memory has no use for it. Default: none.
    pub group: Option<u32>,
    /// A user, by its number, whose file is attached to as those of this process's own effective
    /// user and of root are ([`Region::open`]). That user can end this process at any time, by
    /// cutting the file. Default: none.
    pub owner: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        let limits = [cgroup_limit().map(|limit| limit / 8), longest_file()];
        let len = limits.into_iter().flatten().fold(64 << 20, u64::min);
        Self::with_len((len / PAGE * PAGE).max(MIN_LEN))
    }
}

impl Config {
    /// The defaults for a region of `len` bytes.
    pub fn with_len(len: u64) -> Self {
        Self::with_cpus(len, cpus())
    }

    fn with_cpus(len: u64, cpus: u64) -> Self {
        // They have a quarter of the region, in whole pages.
        let room = (len / 4 / PAGE).saturating_sub(ATOMIC_PLANES).max(1);
        Self { len, series: len / 512, planes: cpus.min(room), group: None, owner: None }
    }

    /// The same for a new file that the group with this number may read too: see
    /// [`group`](Self::group).
    #[must_use]
    pub fn read_by_group(self, group: u32) -> Self {
        Self { group: Some(group), ..self }
    }

    /// The same where the file of this user is trusted too: see [`owner`](Self::owner).
    #[must_use]
    pub fn owned_by(self, user: u32) -> Self {
        Self { owner: Some(user), ..self }
    }

    pub(crate) fn limits(self) -> Limits {
        Limits {
            len: self.len,
            series: self.series,
            planes: self.planes.saturating_add(ATOMIC_PLANES),
        }
    }
}

/// A mapped region. It is never unmapped, so handles into it are `'static`.
pub struct Region {
    pub(crate) map: Mapping,
    pub(crate) s: Sections,
    pub(crate) seed: u64,
    pub(crate) adds: Adds,
    created: u64,
    pub(crate) own: OwnSlot,
    /// Where it is, if it is beside the path that was asked for.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub(crate) beside: OnceLock<Beside>,
    pub(crate) refusal: Refusal,
    /// The second, by the wall clock, in which this process last asked whether a sweep is due.
    pub(crate) sweep_asked: OwnWord,
    /// The CPU ids below which this process's copy of the CPU table has entries.
    pub(crate) cpus_known: OwnWord,
}

/// What nearly every add looks at. One line of the cache: where others use that much between
/// two adds, it is the lines that have to be fetched again which take time.
#[repr(align(64))]
pub(crate) struct Adds {
    /// This process's own copy of the CPU table, which nobody else can write to.
    table: &'static [AtomicU64],
    /// The pools that most segments lie in.
    pub(crate) striped: Span,
    pub(crate) singles: Span,
}

/// Handles show their region: by its size, and without what it holds.
impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.s.plane(self.s.plane_count);
        f.debug_struct("Region").field("len", &len).finish_non_exhaustive()
    }
}

impl Region {
    /// A region in memory of its own: on Linux a memfd that children made by
    /// `fork` share and that others open through `/proc/PID/fd`.
    ///
    /// # Errors
    ///
    /// Limits that do not fit each other; no memory for the index.
    pub fn anonymous(config: Config) -> Result<&'static Self, OpenError> {
        let limits = config.limits();
        let s = Sections::new(limits).map_err(OpenError::Limits)?;
        let map = Mapping::anonymous(limits.len).map_err(|source| OpenError::System {
            doing: "make a region in memory",
            path: None,
            source,
        })?;
        Self::initialise(map, s, limits)
    }

    /// Fills in a fresh mapping; the version goes last.
    pub(crate) fn initialise(
        map: Mapping,
        s: Sections,
        limits: Limits,
    ) -> Result<&'static Self, OpenError> {
        let no_memory =
            |source| OpenError::System { doing: "back the tables of a region", path: None, source };
        // The header, the slots, the index, the groups and the bits are read without asking;
        // the rest is backed as it is handed out.
        map.back(0, s.families).map_err(no_memory)?;
        map.back(s.index, s.index_len * WORD).map_err(no_memory)?;
        map.back(s.groups, s.groups_len()).map_err(no_memory)?;
        for (at, len) in s.parts_of(SLOT_COUNT) {
            map.back(at, len).map_err(no_memory)?;
        }
        let put = |at, value| {
            if let Some(word) = map.word(at) {
                word.store(value, Relaxed);
            }
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
        put(M_PLANES, ATOMIC_PLANES);
        put(M_SWEPT_AT, boot_nanos());
        // So that no stamp is 0.
        put(M_EPOCH, 1);
        if let Some(version) = map.word(H_VERSION) {
            version.store(LAYOUT_VERSION, Release);
        }
        Ok(Self::leak(map, s))
    }

    /// Checks a header that somebody else wrote, given what reads its words and
    /// the length of the file.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub(crate) fn validate(word: impl Fn(u64) -> u64, len: u64) -> Result<Sections, String> {
        // The version is read before what it vouches for.
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
        let limits =
            Limits { len: word(H_LEN), series: word(H_SERIES_MAX), planes: word(H_PLANES) };
        if limits.len != len {
            return Err(format!("its header states {} bytes, its file has {len}", limits.len));
        }
        Sections::new(limits).map_err(|fault| format!("its header states {fault}"))
    }

    /// Checks how much is said to be in use, and which CPUs are said to have which planes, given
    /// what reads a region's words. Those who use them later look again.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub(crate) fn check_marks(word: impl Fn(u64) -> u64, s: &Sections) -> Result<(), String> {
        for pool in [s.records, s.arena, s.singles, s.striped, s.owned] {
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
        if !(ATOMIC_PLANES..=s.plane_count).contains(&planes) {
            return Err(format!("{planes} planes are in use of {}", s.plane_count));
        }
        let own = ATOMIC_PLANES * s.striped.len..s.plane_count * s.striped.len;
        let entries = (0..CPUS).map(|cpu| word(CPU_TABLE + cpu * WORD));
        match entries
            .into_iter()
            .find(|entry| *entry != 0 && (!own.contains(entry) || entry % s.striped.len != 0))
        {
            Some(entry) => Err(format!("a CPU's plane lies {entry} bytes behind the first")),
            None => Ok(()),
        }
    }

    pub(crate) fn leak(map: Mapping, s: Sections) -> &'static Self {
        restartable::detect();
        let get = |at| map.word(at).map_or(0, |word| word.load(Relaxed));
        let (seed, created) = (get(H_HASH_SEED), get(H_CREATED));
        let table = Vec::leak((0..CPUS).map(|_| AtomicU64::new(0)).collect());
        let [striped, singles] = [&s.striped, &s.singles].map(|pool| Span::of(&map, pool));
        let region: &'static Self = Box::leak(Box::new(Self {
            map,
            s,
            seed,
            adds: Adds { table, striped, singles },
            created,
            own: OwnSlot::default(),
            #[cfg(all(target_os = "linux", not(loom)))]
            beside: OnceLock::new(),
            refusal: Refusal::default(),
            sweep_asked: OwnWord::default(),
            cpus_known: OwnWord::default(),
        }));
        slots::join(region);
        region
    }

    /// When the region was created, in nanoseconds since 1970.
    pub fn created_unix_nanos(&self) -> u64 {
        self.created
    }

    /// Copies all values out. Cost: the living series and the planes in use;
    /// how many processes wrote, or died, does not matter.
    pub fn snapshot(&'static self) -> Snapshot {
        self.snapshot_of(&|_| true)
    }

    /// Copies those families out that are wanted; they know nothing of their series then. Cost: their series, and a word
    /// for each 64 others.
    pub fn snapshot_of(&'static self, wants: &dyn Fn(&FamilyCopy) -> bool) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(&mut snapshot, wants);
        snapshot
    }

    /// The same into a snapshot that was taken before, whose memory is used again.
    pub fn snapshot_into(&'static self, out: &mut Snapshot, wants: &dyn Fn(&FamilyCopy) -> bool) {
        // Nothing that is being copied is used for something else meanwhile.
        let _guard = self.enter();
        if self.mark(M_AHEAD).load(Acquire) > 0 {
            self.back_segments_ahead();
        }
        self.restore_cpu_table();
        // What is mapped is there.
        let _ = snapshot::take(self, wants, out);
    }

    /// Bytes that single cells can have at most. Cost: none.
    pub fn room_for_single_cells(&self) -> u64 {
        self.s.singles.len
    }

    /// How much of the region is in use.
    pub fn usage(&self) -> Usage {
        let s = &self.s;
        let part = |pool: &Pool| Part {
            taken: self.taken(pool) * pool.granule,
            reached: self.used(pool),
            room: pool.len,
        };
        Usage {
            records: part(&s.records),
            text: part(&s.arena),
            single_cells: part(&s.singles),
            striped_cells: part(&s.striped),
            owned_cells: part(&s.owned),
            record_len: RECORD_LEN,
        }
    }

    /// CPU id to the distance of its plane from plane 0; 0 if it has none that this process knows
    /// of. It has [`CPUS`] words, in memory of this process: see `planes.rs`.
    #[inline]
    pub(crate) fn cpu_table(&self) -> &'static [AtomicU64] {
        self.adds.table
    }

    /// A word of the header or of a table whose place follows from the sections.
    #[inline]
    pub(crate) fn mark(&self, at: u64) -> &'static AtomicU64 {
        match self.map.word(at) {
            Some(word) => word,
            // Sections lie inside the mapping; a word that nobody reads stands
            // in, so that a mistake here cannot bring a service down.
            None => {
                debug_assert!(false, "offset {at} is outside the region");
                nowhere()
            }
        }
    }

    /// The word `delta` bytes after another word of this region.
    #[inline]
    pub(crate) fn word_after(
        &self,
        word: &'static AtomicU64,
        delta: u64,
    ) -> Option<&'static AtomicU64> {
        self.map.word(self.map.offset_of(word)? + delta)
    }

    /// Sends every add of this process through the atomic planes, as where the
    /// kernel offers no restartable sequences. For tests and benchmarks.
    pub fn disable_restartable_sequences() {
        restartable::disable();
    }

    /// Undoes [`disable_restartable_sequences`](Self::disable_restartable_sequences).
    pub fn enable_restartable_sequences() {
        restartable::detect();
    }

    /// Whether striped adds of this process go through restartable sequences.
    pub fn has_restartable_sequences() -> bool {
        restartable::enabled()
    }
}

/// How much of a region is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Series records, those that wait to be used again among them.
    pub records: Part,
    /// Names, definitions and label text.
    pub text: Part,
    /// Single cells.
    pub single_cells: Part,
    /// Striped cells, in each plane.
    pub striped_cells: Part,
    /// Owned cells, in each process's block.
    pub owned_cells: Part,
    /// Bytes of a record.
    pub record_len: u64,
}

/// How much of a part of a region is in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What is handed out.
    pub taken: u64,
    /// How far it ever reached; so much memory it has.
    pub reached: u64,
    /// How far it can reach.
    pub room: u64,
}

impl Source for Region {
    fn sections(&self) -> &Sections {
        &self.s
    }

    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>> {
        // Acquire, since some of these words say that others may be read.
        Some(self.map.words(at, count)?.iter().map(|word| word.load(Acquire)))
    }

    #[inline(always)]
    fn block<const N: usize>(&self, at: u64, count: u64) -> Option<[u64; N]> {
        let words = self.map.words(at, count)?;
        let last = words.len().checked_sub(1)?;
        Some(std::array::from_fn(|n| words[n.min(last)].load(Acquire)))
    }

    #[inline(always)]
    fn records(&self, at: u64, count: u64) -> Option<impl Iterator<Item = Record>> {
        let words = self.map.words(at, count * RECORD_WORDS as u64)?;
        Some(
            words
                .chunks_exact(RECORD_WORDS)
                .map(|record| std::array::from_fn(|n| record[n].load(Acquire))),
        )
    }

    fn own_planes(&self) -> impl Iterator<Item = u64> {
        self.own_entries().iter().map(|own| own.load(Acquire))
    }

    fn stands(&self, _: u64) -> bool {
        // The snapshot is taken under a guard.
        true
    }

    fn lives(&self, slot: u64) -> bool {
        slot == self.own_slot() || self.map.backing().others_hold(slot..slot + 1).unwrap_or(true)
    }
}

#[cfg(not(loom))]
fn nowhere() -> &'static AtomicU64 {
    static NOWHERE: AtomicU64 = AtomicU64::new(0);
    &NOWHERE
}

#[cfg(loom)]
fn nowhere() -> &'static AtomicU64 {
    unreachable!("the model checker stays inside")
}

/// A seed that differs from region to region; it need not be secret.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The model checker wants every run to be the same.
    if cfg!(loom) { 7 } else { RandomState::new().build_hasher().finish() }
}

/// The machine's boot, so that a file that outlived it is known as stale. `None` if the system does
/// not say: `/proc` may show processes alone, or no descriptor may be left. Once it is known, it is
/// not asked for again.
fn boot_id() -> Option<[u64; 2]> {
    static KNOWN: OnceLock<[u64; 2]> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Some(*known);
    }
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let half = |range| digits.get(range).and_then(|half| u64::from_str_radix(half, 16).ok());
    let found = [half(0..16)?, half(16..32)?];
    Some(*KNOWN.get_or_init(|| found))
}

fn cpus() -> u64 {
    // The CPUs that may come to run us, not those that do now: a container can
    // be given others later.
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok();
    let last = possible
        .as_deref()
        .and_then(|list| list.trim().rsplit([',', '-']).next()?.parse::<u64>().ok());
    let count = match last {
        Some(last) => last + 1,
        None => std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
    };
    count.clamp(1, CPUS)
}

/// The memory limit of this process's cgroup (version 2, or 1), if any.
fn cgroup_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let v2 = own.lines().find_map(|line| line.strip_prefix("0::"));
    let v1 = own.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
    [
        v2.map(|path| format!("/sys/fs/cgroup{path}/memory.max")),
        Some("/sys/fs/cgroup/memory.max".to_owned()),
        v1.map(|path| format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes")),
        Some("/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned()),
    ]
    .into_iter()
    .flatten()
    .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok())
    .min()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_any_length_fit_on_any_number_of_cpus() {
        for len in [MIN_LEN, MIN_LEN + PAGE, 1 << 20, 2 << 20, 64 << 20, 1 << 34] {
            for cpus in (1..=CPUS).step_by(7).chain([CPUS]) {
                let config = Config::with_cpus(len, cpus);
                let laid_out = Sections::new(config.limits());
                assert!(laid_out.is_ok(), "{len} bytes, {cpus} CPUs: {laid_out:?}");
            }
        }
    }
}
