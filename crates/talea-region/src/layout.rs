//! The layout of a region.
//!
//! ```text
//!   0            ┌──────────────────────────────────────────────┐
//!                │ header: identity and limits, then the marks  │  4 KiB
//!                │ and the owners of lent planes                │
//!   CPU_TABLE    ├──────────────────────────────────────────────┤
//!                │ CPU table: CPU id → its planes               │  2,048 words
//!   SLOTS        ├──────────────────────────────────────────────┤
//!                │ process slots                                │  128 B each     
//!   families     ├──────────────────────────────────────────────┤
//!                │ family table                                 │  256 B a family
//!   records      ├──────────────────────────────────────────────┤
//!                │ series table                                 │  64 B a series
//!   index        ├──────────────────────────────────────────────┤
//!                │ hash index: the heads of chains of records   │  8 B a bucket
//!   owned        ├──────────────────────────────────────────────┤
//!                │ owned blocks, one a process slot, and one    │
//!                │ for processes that found no slot             │
//!   guards       ├──────────────────────────────────────────────┤
//!                │ guard words: who looks a series up right now │  a line a thread
//!   groups       ├──────────────────────────────────────────────┤
//!                │ whose series are in each 64 records          │  a word each
//!                ├──────────────────────────────────────────────┤
//!                │ what is taken in each pool, a bit a granule, │
//!                │ and a tree of free runs above the bits       │
//!   arena        ├──────────────────────────────────────────────┤
//!                │ label arena: names, definitions, label text  │
//!   singles      ├──────────────────────────────────────────────┤
//!                │ single cells                                 │
//!   planes       ├──────────────────────────────────────────────┤
//!                │ plane 0 (shared)                             │
//!                │ …                                            │  a quarter of
//!                │ plane n−1 (each of one CPU)                  │  the region
//!                │ lent planes (each of one thread)             │
//!                │ each: striped cells, then lazy ones          │  half, half
//!   len          └──────────────────────────────────────────────┘
//! ```
//!
//! Every offset is a multiple of 8 and every access is one 64-bit word. The
//! sections start on page bounds. Their offsets follow from four numbers in
//! the header ([`Limits`]), so a reader computes them and believes no offset
//! that the file states.
//!
//! Two times are nanoseconds of the boot clock, which cannot be set, because ages are computed from
//! them: when the last sweep began, and when a process took its slot. All others are nanoseconds
//! since 1970 by the wall clock, and are only shown.

/// `TALEAREG`, read as a little-endian word.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TALEAREG");

/// The version of the layout. It increases when the meaning of any word changes.
pub const LAYOUT_VERSION: u64 = 14;

pub(crate) const WORD: u64 = 8;

/// A size, which is smaller under the model checker: it keeps a history of every word.
pub(crate) const fn size(usual: u64, under_loom: u64) -> u64 {
    if cfg!(loom) { under_loom } else { usual }
}

pub(crate) const PAGE: u64 = size(4096, 512);
pub(crate) const LINE: u64 = size(64, 32);
/// CPUs with ids at or above this share plane 0.
pub(crate) const CPUS: u64 = size(1024, 2);
/// The most processes that can have a slot, and the number of a process without one. How many slots a
/// region has depends on its length, see [`Sections::slots`].
pub(crate) const SLOT_COUNT: u64 = size(1024, 2);
/// The least number of slots of a region.
pub(crate) const NEAR_SLOTS: u64 = size(256, 1);
const MIN_GUARDS: u64 = 4 * LINE;
const MIN_OWNED: u64 = size(512, 128);
const MIN_FAMILIES: u64 = size(64, 2);

// The header: identity and limits, written once.
pub(crate) const H_MAGIC: u64 = 0;
/// Written last, with release: a reader that sees it sees the rest of the header.
pub(crate) const H_VERSION: u64 = H_MAGIC + WORD;
pub(crate) const H_LEN: u64 = H_VERSION + WORD;
pub(crate) const H_SERIES_MAX: u64 = H_LEN + WORD;
pub(crate) const H_PLANES: u64 = H_SERIES_MAX + WORD;
pub(crate) const H_BOOT_ID: u64 = H_PLANES + WORD; // two words
pub(crate) const H_CREATED: u64 = H_BOOT_ID + 2 * WORD;
pub(crate) const H_HASH_SEED: u64 = H_CREATED + WORD;
pub(crate) const H_LENT: u64 = H_HASH_SEED + WORD;

// The marks: words that move while the region is in use, a cache line for each
// group.
const H_MARKS: u64 = if PAGE == 4096 { 1024 } else { H_LENT + WORD };
pub(crate) const M_FAMILIES: u64 = H_MARKS;
pub(crate) const M_RECORDS: u64 = M_FAMILIES + LINE;
pub(crate) const M_ARENA: u64 = M_RECORDS + LINE;
pub(crate) const M_SINGLES: u64 = M_ARENA + LINE;
pub(crate) const M_STRIPED: u64 = M_SINGLES + LINE;
pub(crate) const M_LAZY: u64 = M_STRIPED + LINE;
pub(crate) const M_OWNED: u64 = M_LAZY + LINE;
pub(crate) const M_PLANES: u64 = M_OWNED + LINE;
/// Up to where the lazy cells of every plane are backed, or about to be, for cells to come.
pub(crate) const M_AHEAD: u64 = M_PLANES + WORD;
/// Whether plane 0 has copies of the lazy cells: see `memory/planes.rs`.
pub(crate) const M_PLANE_0: u64 = M_AHEAD + WORD;
/// Plane 0 has no copy of lazy cells.
pub(crate) const PARTIAL: u64 = 0;
/// A process is about to give it copies, or was killed meanwhile; new cells get one.
pub(crate) const FILLING: u64 = 1;
/// It has a copy of all cells, and stays so.
pub(crate) const COMPLETE: u64 = 2;
/// How many lent planes are in use or were: see `series/lent.rs`.
pub(crate) const M_LENT: u64 = M_PLANE_0 + WORD;
/// The epoch: see `memory/guard.rs`. Every look-up reads it, so it stands alone.
pub(crate) const M_EPOCH: u64 = M_PLANES + LINE;
/// Records retired before this epoch can be reclaimed.
pub(crate) const M_RECLAIMABLE: u64 = M_EPOCH + LINE;
/// How many chunks of the series table were swept.
pub(crate) const M_SWEPT: u64 = M_RECLAIMABLE + WORD;
/// The chunk at which the current sweep ends.
pub(crate) const M_DUE: u64 = M_SWEPT + WORD;
/// Records that wait to be used again.
pub(crate) const M_WAITING: u64 = M_DUE + WORD;
/// When the last sweep began, in nanoseconds of the boot clock.
pub(crate) const M_SWEPT_AT: u64 = M_RECLAIMABLE + LINE;
/// Slots that were ever taken.
pub(crate) const M_SLOTS: u64 = M_SWEPT_AT + WORD;
/// Not 0 once a series was ever pinned.
pub(crate) const M_PINNED: u64 = M_SLOTS + WORD;
/// How many runs of any pool were ever given back.
pub(crate) const M_RETURNED: u64 = M_PINNED + WORD;
/// A word for each lent plane: the process that has it. See `series/lent.rs`.
pub(crate) const LENT_TABLE: u64 = M_SWEPT_AT + LINE;
pub(crate) const MOST_LENT: u64 = size(256, 2);
const _: () = assert!(LENT_TABLE + MOST_LENT * WORD <= PAGE && M_LENT < M_EPOCH);

// A pool's marks, from its own `M_…` on.
/// How far it was ever used, in bytes.
pub(crate) const USED: u64 = 0;
/// How far its pages are known to be backed, in bytes.
pub(crate) const BACKED: u64 = USED + WORD;
/// The word of its bits at which the next repair of its tree begins.
pub(crate) const REPAIRED: u64 = BACKED + WORD;
/// The top of its tree of free runs: see `memory/free_runs.rs`.
pub(crate) const TOP: u64 = REPAIRED + WORD;
const _: () = assert!(TOP + WORD <= LINE);

// The CPU table: the distance of a plane from plane 0, or 0, for each CPU: first of the planes for
// plain adds, then of those for atomic adds.
pub(crate) const CPU_TABLE: u64 = PAGE;
pub(crate) const CPU_ENTRIES: u64 = 2 * CPUS;

// Process slots.
pub(crate) const SLOTS: u64 = CPU_TABLE + CPU_ENTRIES * WORD;
pub(crate) const SLOT_LEN: u64 = 2 * LINE;
/// The process's id, as it sees it itself.
pub(crate) const SLOT_PID: u64 = 0;
/// When it took the slot, in nanoseconds of the boot clock.
pub(crate) const SLOT_STARTED: u64 = SLOT_PID + WORD;
/// How often it was taken. It distinguishes records of a dead owner from records of a living one.
pub(crate) const SLOT_GENERATION: u64 = SLOT_STARTED + WORD;
/// How many of its guard words are one thread's alone; see `memory/guard.rs`.
pub(crate) const SLOT_ALONE: u64 = SLOT_GENERATION + WORD;
/// Not 0 if another living process had the same id when this one took the slot: see `memory/slots.rs`.
pub(crate) const SLOT_NAMESAKE: u64 = SLOT_ALONE + WORD;
/// The path of its striped adds, as [`AddPath`](crate::AddPath) numbers them.
pub(crate) const SLOT_ADDS: u64 = SLOT_NAMESAKE + WORD;
const _: () = assert!(SLOT_ADDS + WORD <= SLOT_LEN);

// A family record.
pub(crate) const FAMILY_LEN: u64 = 4 * LINE;
/// `state:8 | kind:8 | storage:8 | number:4 | combine:4 | cells:16 | segments:16`, state
/// in the low bits.
pub(crate) const FAMILY_HEAD: u64 = 0;
/// Where the name lies: see [`Span`].
pub(crate) const FAMILY_NAME: u64 = FAMILY_HEAD + WORD;
pub(crate) const FAMILY_DEFINITION: u64 = FAMILY_NAME + WORD;
pub(crate) const FAMILY_CREATED: u64 = FAMILY_DEFINITION + WORD;
/// Series that live in this family, those beyond its limit not among them.
pub(crate) const FAMILY_SERIES: u64 = FAMILY_CREATED + WORD;
pub(crate) const FAMILY_LIMIT: u64 = FAMILY_SERIES + WORD;
/// How often a new series was refused.
pub(crate) const FAMILY_DROPPED: u64 = FAMILY_LIMIT + WORD;
/// Not 0 once a process without a slot registered it.
pub(crate) const FAMILY_ALWAYS_USED: u64 = FAMILY_DROPPED + WORD;
/// The rest of its chain in the index.
pub(crate) const FAMILY_LINK: u64 = FAMILY_ALWAYS_USED + WORD;
/// `others:1 | accumulates:1 | sweeps:32`: the number of sweeps after which an idle series is removed, 0
/// for never; whether its values say how much happened; and whether other definitions of its name stand
/// beside it.
pub(crate) const FAMILY_IDLE: u64 = FAMILY_LINK + WORD;
/// How many of its series were about to be removed: see `lookup/cache.rs`.
pub(crate) const FAMILY_REMOVALS: u64 = FAMILY_IDLE + WORD;
/// `cells:16 | n:16`: the segment that is made with each of its series, or 0.
pub(crate) const FAMILY_MADE: u64 = FAMILY_REMOVALS + WORD;
/// The processes that registered it: a bit for each process slot.
pub(crate) const FAMILY_USERS: u64 = FAMILY_MADE + WORD;
/// When the last of its users started whose slots have other owners now, in nanoseconds of the boot
/// clock.
pub(crate) const FAMILY_LAST_USED: u64 = FAMILY_USERS + SLOT_WORDS * WORD;
const _: () = assert!(FAMILY_LAST_USED + WORD <= FAMILY_LEN);

/// Words of a set of process slots.
pub(crate) const SLOT_WORDS: u64 = SLOT_COUNT.div_ceil(64);

// A series record: a cache line.
pub(crate) const RECORD_LEN: u64 = 64;
/// See `series/record.rs`.
pub(crate) const SERIES_HEAD: u64 = 0;
/// Where the label text lies: see [`Span`].
pub(crate) const SERIES_TEXT: u64 = SERIES_HEAD + WORD;
/// Where the cells lie: see `series/record.rs`.
pub(crate) const SERIES_CELLS: u64 = SERIES_TEXT + WORD;
pub(crate) const SERIES_CREATED: u64 = SERIES_CELLS + WORD;
/// The rest of its chain in the index.
pub(crate) const SERIES_LINK: u64 = SERIES_CREATED + WORD;
/// The processes that keep it, see `series/pins.rs`: an offset among the single cells.
pub(crate) const SERIES_PINS: u64 = SERIES_LINK + WORD;
/// Its extension, see `series/extension.rs`: an offset among the single cells.
pub(crate) const SERIES_EXTENSION: u64 = SERIES_PINS + WORD;
/// Of one that is public and kept, the sweep at which its value last changed; of one
/// that is unlinked, the epoch in which it was.
pub(crate) const SERIES_SINCE: u64 = SERIES_EXTENSION + WORD;
const _: () = assert!(SERIES_SINCE + WORD == RECORD_LEN);

// The extension of a series, in words: these, then the directory of the series' segments. A series
// without segments has the base of each of its cells instead: its value when the series was last
// wiped.
pub(crate) const EXTENSION_EXEMPLARS: u64 = 0;
pub(crate) const EXTENSION_WIPED: u64 = EXTENSION_EXEMPLARS + 1;
pub(crate) const EXTENSION_REST: u64 = EXTENSION_WIPED + 1;

// A directory of segments, in words: see `series/segments.rs`.
/// A word for the layers above.
pub(crate) const DIRECTORY_LEVEL: u64 = 0;
/// The offset, or 0, of the bases of the series: a word for each of its cells, then a table
/// (`memory/table.rs`) with the offset, or 0, of the bases of each segment.
pub(crate) const DIRECTORY_BASES: u64 = DIRECTORY_LEVEL + 1;
/// A table of where each segment's cells lie.
pub(crate) const DIRECTORY_TABLE: u64 = DIRECTORY_BASES + 1;

// A table of a word for each segment: see `memory/table.rs`.
/// A table of up to this number of words has all in place.
pub(crate) const TABLE_WHOLE: u64 = size(37, 1);
/// A larger table of up to this number of words has as many in place, and the others in blocks. These
/// are the 64 octaves of whole numbers, of which the first 36 are those of a duration up to 68 s, and a made segment.
pub(crate) const TABLE_MIDDLE: u64 = size(65, 1);
/// The words in place of a larger one.
pub(crate) const TABLE_NEAR: u64 = size(17, 1);
pub(crate) const TABLE_BLOCK: u64 = size(16, 2);

// The pins of a series: the processes that keep it.
/// The sum of its cells at the last sweep.
pub(crate) const PINS_SEEN: u64 = 0;
/// The processes that keep it: see `series/pins.rs`.
pub(crate) const PINS_BITS: u64 = PINS_SEEN + WORD;
pub(crate) const PINS_LEN: u64 = PINS_BITS + (NEAR_SLOTS.div_ceil(64) + 1) * WORD;

/// Records of a group.
pub(crate) const GROUP: u64 = 64;

/// Planes that any thread may add to, with atomic adds: plane 0.
pub(crate) const SHARED_PLANES: u64 = 1;

pub(crate) const MOST_PLANES: u64 = CPU_ENTRIES + SHARED_PLANES;

/// The smallest region.
pub const MIN_LEN: u64 = size(512 * 1024, 16 * PAGE);
/// The largest region: forty bits can address it.
pub const MAX_LEN: u64 = 1 << 40;

/// The four numbers that a region's whole layout follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) len: u64,
    pub(crate) series: u64,
    /// Plane 0 and those of CPUs.
    pub(crate) planes: u64,
    pub(crate) lent: u64,
}

/// A part of the region that is handed out in runs of granules and taken back:
/// see `memory/pool.rs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) marks: u64,
    /// Its bits. Its tree of free runs follows them.
    pub(crate) bits: u64,
    /// Its first byte, in the first copy if it has several.
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Bytes of a granule.
    pub(crate) granule: u64,
}

impl Pool {
    pub(crate) fn words_of_bits(&self) -> u64 {
        words_of_bits(self.len, self.granule)
    }
}

/// A bit a granule, in whole words.
fn words_of_bits(len: u64, granule: u64) -> u64 {
    len.div_ceil(granule).div_ceil(64)
}

/// Words of the tree of free runs above so many words of bits, without its top: a byte for each word
/// below, level by level.
fn words_of_tree(bits: u64) -> u64 {
    let mut level = bits.div_ceil(TREE_FAN);
    let mut words = 0;
    while level > 1 {
        words += level;
        level = level.div_ceil(TREE_FAN);
    }
    words
}

/// How many words a word of a tree of free runs is about.
pub(crate) const TREE_FAN: u64 = WORD;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections {
    pub(crate) families: u64,
    pub(crate) family_max: u64,
    pub(crate) records: Pool,
    pub(crate) index: u64,
    /// Buckets of the index: a power of two, at least 1.5 times the records.
    pub(crate) index_len: u64,
    /// How many processes can have a slot.
    pub(crate) slots: u64,
    /// Block 0 of the owned cells.
    pub(crate) owned: Pool,
    pub(crate) guards: u64,
    /// Bytes of one process's guard words.
    pub(crate) guards_len: u64,
    /// A word for each group of records, see `series/groups.rs`; then the pools' bits and trees.
    pub(crate) groups: u64,
    pub(crate) arena: Pool,
    pub(crate) singles: Pool,
    /// The first part of plane 0: striped cells of which every plane has a copy.
    pub(crate) striped: Pool,
    /// The rest of plane 0: striped cells of which it has a copy once it must.
    pub(crate) lazy: Pool,
    pub(crate) plane_len: u64,
    /// Plane 0 and those of CPUs. The lent ones follow.
    pub(crate) plane_count: u64,
    pub(crate) lent_count: u64,
}

impl Sections {
    /// Lays out a region.
    ///
    /// # Errors
    ///
    /// A limit does not fit. The text names it.
    pub(crate) fn new(limits: Limits) -> Result<Self, String> {
        let Limits { len, series, planes, lent } = limits;
        if !(MIN_LEN..=MAX_LEN).contains(&len) || len % PAGE != 0 {
            return Err(format!(
                "a length of {len} bytes, where a multiple of {PAGE} from {MIN_LEN} to {MAX_LEN} was expected"
            ));
        }
        if !(SHARED_PLANES + 1..=MOST_PLANES).contains(&planes) {
            let least = SHARED_PLANES + 1;
            return Err(format!("{planes} planes, where {least} to {MOST_PLANES} were expected"));
        }
        if lent > MOST_LENT {
            return Err(format!("{lent} lent planes, where at most {MOST_LENT} were expected"));
        }
        let series_max = (len / RECORD_LEN).min(u64::from(u32::MAX));
        if series == 0 || series > series_max {
            return Err(format!(
                "a limit of {series} series, where 1 to {series_max} were expected in {len} bytes"
            ));
        }
        let family_max = (len >> 12).clamp(MIN_FAMILIES, 1 << 16);
        // The parts of all slots take an eighth of the region at most.
        let slots = (len >> 17).clamp(NEAR_SLOTS, SLOT_COUNT);
        let families = SLOTS + slots * SLOT_LEN;
        let records_at = page_up(families + family_max * FAMILY_LEN);
        let index = page_up(records_at + series * RECORD_LEN);
        let index_len = ((series + family_max) * 3 / 2).next_power_of_two();
        let owned_at = page_up(index + index_len * WORD);
        let owned_len = (len >> 14).next_power_of_two().clamp(MIN_OWNED, 1 << 16);
        let guards = page_up(owned_at + (slots + 1) * owned_len);
        let guards_len = (len >> 15).next_power_of_two().clamp(MIN_GUARDS, 64 * LINE);
        let groups = page_up(guards + (slots + 1) * guards_len);
        let groups_len = series.div_ceil(GROUP) * WORD;
        let plane_len = page_down(len / 4 / (planes + lent));
        let planes_at = len - plane_len * (planes + lent);
        let bits_for = |len: u64, granule: u64| {
            let bits = words_of_bits(len, granule);
            (bits + words_of_tree(bits)) * WORD
        };
        let record_bits = bits_for(series, 1);
        let owned_bits = bits_for(owned_len, WORD);
        let striped_len = page_up(plane_len / 2);
        let lazy_len = plane_len - striped_len;
        let plane_bits = bits_for(striped_len, WORD) + bits_for(lazy_len, WORD);
        let bits = groups + groups_len;
        let fixed_bits = record_bits + owned_bits + plane_bits;
        // The arena and the single cells share the rest, bits included.
        let left = planes_at.saturating_sub(page_up(bits + fixed_bits));
        let half = page_up(left.div_ceil(2));
        let arena_at = page_up(bits + fixed_bits + 2 * bits_for(half, WORD));
        if plane_len == 0 || arena_at + 2 * PAGE > planes_at {
            return Err(format!(
                "{len} bytes cannot hold the tables of {series} series and {} planes; ask for fewer series or more bytes",
                planes + lent
            ));
        }
        let singles_at = page_up(arena_at + (planes_at - arena_at) / 2);
        let mut bits_at = bits;
        let mut pool = |marks, at, len, granule| {
            let bits = bits_at;
            bits_at += bits_for(len, granule);
            Pool { marks, bits, at, len, granule }
        };
        Ok(Self {
            families,
            family_max,
            records: pool(M_RECORDS, records_at, series * RECORD_LEN, RECORD_LEN),
            index,
            index_len,
            slots,
            owned: pool(M_OWNED, owned_at, owned_len, WORD),
            guards,
            guards_len,
            groups,
            striped: pool(M_STRIPED, planes_at, striped_len, WORD),
            lazy: pool(M_LAZY, planes_at + striped_len, lazy_len, WORD),
            plane_len,
            arena: pool(M_ARENA, arena_at, singles_at - arena_at, WORD),
            singles: pool(M_SINGLES, singles_at, planes_at - singles_at, WORD),
            plane_count: planes,
            lent_count: lent,
        })
    }

    pub(crate) fn plane(&self, n: u64) -> u64 {
        self.striped.at + n * self.plane_len
    }

    /// Where the last plane ends, and with it the region.
    pub(crate) fn end(&self) -> u64 {
        self.plane(self.plane_count + self.lent_count)
    }

    /// Whether a striped cell, by its place in plane 0, is one of which that plane has a copy once it
    /// must.
    #[inline]
    pub(crate) fn is_lazy(&self, at: u64) -> bool {
        at >= self.lazy.at
    }

    /// Where a slot's own cells and guard words lie, and how long they are.
    pub(crate) fn parts_of(&self, slot: u64) -> [(u64, u64); 2] {
        let (owned, guards) = (self.owned.at + self.block(slot), self.guards_of(slot));
        [(owned, self.owned.len), (guards, self.guards_len)]
    }

    /// How far a slot's own cells lie behind block 0. Processes without a slot share the block behind
    /// those of all slots.
    #[inline]
    pub(crate) fn block(&self, slot: u64) -> u64 {
        slot.min(self.slots) * self.owned.len
    }

    #[inline]
    pub(crate) fn guards_of(&self, slot: u64) -> u64 {
        self.guards + slot.min(self.slots) * self.guards_len
    }

    /// Whether this number of single cells can lie at an offset; never at 0.
    pub(crate) fn lies_in_singles(&self, at: u64, cells: u64) -> bool {
        let Pool { at: first, len, .. } = self.singles;
        let end = cells.checked_mul(WORD).and_then(|len| at.checked_add(len));
        first <= at && end.is_some_and(|end| end <= first + len) && at % WORD == 0
    }

    /// Series records that there is room for.
    pub(crate) fn series_max(&self) -> u64 {
        self.records.len / RECORD_LEN
    }

    /// Bytes of the groups and the bits.
    pub(crate) fn groups_len(&self) -> u64 {
        self.arena.at - self.groups
    }
}

/// Where some bytes lie in the arena: a word of `offset:40 | length:24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Span {
    pub(crate) const MAX_LEN: u64 = (1 << 24) - 1;

    pub(crate) fn pack(self) -> u64 {
        let packed = self.at << 24 | self.len;
        debug_assert_eq!(Self::unpack(packed), self);
        packed
    }

    pub(crate) fn unpack(word: u64) -> Self {
        Self { at: word >> 24, len: word & Self::MAX_LEN }
    }
}

pub(crate) fn page_up(n: u64) -> u64 {
    n.next_multiple_of(PAGE)
}

fn page_down(n: u64) -> u64 {
    n / PAGE * PAGE
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sections_follow_each_other_and_fill_the_region() {
        for len in [MIN_LEN, 1 << 20, 64 << 20, 1 << 30] {
            for planes in [3, 4, 18, 130] {
                let limits = Limits { len, series: len / 512, planes, lent: 2 };
                let Ok(s) = Sections::new(limits) else {
                    assert!(len < 64 << 20 && planes > 18, "{limits:?} does not fit");
                    continue;
                };
                let pools = [s.records, s.owned, s.striped, s.lazy, s.arena, s.singles];
                let tables = [s.families, s.records.at, s.index, s.owned.at, s.guards, s.groups];
                let starts = tables.into_iter().chain([s.arena.at, s.singles.at, s.striped.at]);
                assert!(starts.is_sorted_by(|a, b| a < b), "{s:?}");
                assert_eq!(s.singles.at + s.singles.len, s.striped.at);
                assert_eq!(s.plane(planes + 2), len);
                assert_eq!(s.end(), len);
                assert_eq!(s.striped.at + s.striped.len, s.lazy.at);
                assert_eq!(s.striped.len + s.lazy.len, s.plane_len);
                assert!(s.plane_len * (planes + 2) <= len / 4);
                let end_of_bits = |pool: &Pool| {
                    let bits = pool.words_of_bits();
                    pool.bits + (bits + words_of_tree(bits)) * WORD
                };
                assert!(pools.is_sorted_by(|a, b| end_of_bits(a) <= b.bits));
                assert!(end_of_bits(&pools[5]) <= s.groups + s.groups_len());
            }
        }
    }

    #[test]
    fn a_tree_has_a_byte_for_each_word_below() {
        assert_eq!([1, 8, 9, 64, 65, 512, 513].map(words_of_tree), [0, 0, 2, 8, 11, 72, 76]);
    }

    #[test]
    fn limits_that_do_not_fit_are_named() {
        let fit = Limits { len: 1 << 20, series: 2048, planes: 4, lent: 0 };
        for (limits, word) in [
            (Limits { len: 4096, ..fit }, "length"),
            (Limits { len: (1 << 20) + 1, ..fit }, "length"),
            (Limits { series: 0, ..fit }, "series"),
            (Limits { series: u64::MAX, ..fit }, "series"),
            (Limits { planes: 1, ..fit }, "planes"),
            (Limits { planes: u64::MAX, ..fit }, "planes"),
            (Limits { lent: 257, ..fit }, "lent planes"),
            (Limits { series: 12_000, ..fit }, "more bytes"),
        ] {
            let fault = Sections::new(limits).unwrap_err();
            assert!(fault.contains(word), "{fault}");
        }
    }

    #[test]
    fn a_span_survives_packing() {
        for span in [Span { at: 0, len: 0 }, Span { at: MAX_LEN - 8, len: Span::MAX_LEN }] {
            assert_eq!(Span::unpack(span.pack()), span);
        }
    }
}
