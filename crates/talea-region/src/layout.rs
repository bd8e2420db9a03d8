//! Where everything lies in a region.
//!
//! ```text
//!   0            ┌──────────────────────────────────────────────┐
//!                │ header: identity and limits, then the marks  │  4 KiB
//!   CPU_TABLE    ├──────────────────────────────────────────────┤
//!                │ CPU table: CPU id → its plane                │  1,024 words
//!   slots        ├──────────────────────────────────────────────┤
//!                │ process slots                                │  256 × 128 B
//!   families     ├──────────────────────────────────────────────┤
//!                │ family table                                 │  128 B a family
//!   series       ├──────────────────────────────────────────────┤
//!                │ series table                                 │  32 B a series
//!   index        ├──────────────────────────────────────────────┤
//!                │ hash index: name or label text → record      │  8 B a place
//!   owned        ├──────────────────────────────────────────────┤
//!                │ owned blocks, one a process slot, and one    │
//!                │ for processes that found no slot             │
//!   arena        ├──────────────────────────────────────────────┤
//!                │ label arena: names, definitions, label text  │
//!   singles      ├──────────────────────────────────────────────┤
//!                │ single cells                                 │
//!   planes       ├──────────────────────────────────────────────┤
//!                │ plane 0 (atomic)                             │
//!                │ …                                            │  a quarter of
//!                │ plane n−1 (each of one CPU)                  │  the region
//!   len          └──────────────────────────────────────────────┘
//! ```
//!
//! Every offset is a multiple of 8 and every access is one 64-bit word. The
//! sections start on page bounds. Their offsets follow from three numbers in
//! the header ([`Limits`]), so a reader computes them and believes no offset
//! that the file states.

/// `TALEAREG`, read as a little-endian word.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TALEAREG");

/// The layout that this code reads and writes. Any change of what a word means
/// raises it.
pub const LAYOUT_VERSION: u64 = 1;

pub(crate) const WORD: u64 = 8;
pub(crate) const PAGE: u64 = 4096;
const LINE: u64 = 64;

// The header: identity and limits, written once.
pub(crate) const H_MAGIC: u64 = 0;
/// Written last, with release: whoever reads it sees the rest of the header.
pub(crate) const H_VERSION: u64 = H_MAGIC + WORD;
pub(crate) const H_LEN: u64 = H_VERSION + WORD;
pub(crate) const H_SERIES_MAX: u64 = H_LEN + WORD;
pub(crate) const H_PLANES: u64 = H_SERIES_MAX + WORD;
pub(crate) const H_BOOT_ID: u64 = H_PLANES + WORD; // two words
pub(crate) const H_CREATED: u64 = H_BOOT_ID + 2 * WORD;
pub(crate) const H_HASH_SEED: u64 = H_CREATED + WORD;

// The marks: words that move while the region is in use, a cache line each.
const H_MARKS: u64 = 1024;
pub(crate) const M_FAMILIES: u64 = H_MARKS;
pub(crate) const M_SERIES: u64 = M_FAMILIES + LINE;
pub(crate) const M_ARENA: u64 = M_SERIES + LINE;
pub(crate) const M_SINGLES: u64 = M_ARENA + LINE;
pub(crate) const M_STRIPED: u64 = M_SINGLES + LINE;
pub(crate) const M_OWNED: u64 = M_STRIPED + LINE;
pub(crate) const M_PLANES: u64 = M_OWNED + LINE;
/// How far each section's pages are known to be backed, in bytes. It stands
/// beside the mark of what is used, in the same line.
pub(crate) const BACKED: u64 = WORD;
const _: () = assert!(M_PLANES + LINE <= PAGE);

// The CPU table.
pub(crate) const CPU_TABLE: u64 = PAGE;
/// CPU ids at or above this share the atomic planes.
pub(crate) const CPUS: u64 = 1024;

// Process slots.
pub(crate) const SLOTS: u64 = CPU_TABLE + CPUS * WORD;
pub(crate) const SLOT_COUNT: u64 = 256;
pub(crate) const SLOT_LEN: u64 = 2 * LINE;
pub(crate) const SLOT_PID: u64 = 0;
pub(crate) const SLOT_STARTED: u64 = SLOT_PID + WORD;

// A family record.
pub(crate) const FAMILY_LEN: u64 = 2 * LINE;
/// `state:8 | kind:8 | storage:8 | number:8 | cells:32`, state in the low bits.
pub(crate) const FAMILY_HEAD: u64 = 0;
/// Where the name lies: see [`Span`].
pub(crate) const FAMILY_NAME: u64 = FAMILY_HEAD + WORD;
/// Where the definition lies.
pub(crate) const FAMILY_DEFINITION: u64 = FAMILY_NAME + WORD;
pub(crate) const FAMILY_CREATED: u64 = FAMILY_DEFINITION + WORD;
/// Series that live in this family, the overflow series not among them.
pub(crate) const FAMILY_SERIES: u64 = FAMILY_CREATED + WORD;
pub(crate) const FAMILY_LIMIT: u64 = FAMILY_SERIES + WORD;
/// How often a new series was refused.
pub(crate) const FAMILY_DROPPED: u64 = FAMILY_LIMIT + WORD;
/// Who registered it: a bit for each process slot, four words.
pub(crate) const FAMILY_USERS: u64 = FAMILY_DROPPED + WORD;
/// Not 0 once a process without a slot registered it.
pub(crate) const FAMILY_ALWAYS_USED: u64 = FAMILY_USERS + SLOT_COUNT / 64 * WORD;
const _: () = assert!(FAMILY_ALWAYS_USED + WORD <= FAMILY_LEN);

// A series record.
pub(crate) const SERIES_LEN: u64 = 32;
/// `state:8 | storage:8 | cells:16 | family:32`, state in the low bits.
pub(crate) const SERIES_HEAD: u64 = 0;
/// Where the label text lies: see [`Span`].
pub(crate) const SERIES_TEXT: u64 = SERIES_HEAD + WORD;
/// The byte offset of the first cell in the region: of a striped one, of its
/// copy in plane 0; of an owned one, of its copy in block 0.
pub(crate) const SERIES_CELLS: u64 = SERIES_TEXT + WORD;
pub(crate) const SERIES_CREATED: u64 = SERIES_CELLS + WORD;
const _: () = assert!(SERIES_CREATED + WORD == SERIES_LEN);

/// Planes that any thread may add to, with atomic adds. They come first.
pub(crate) const ATOMIC_PLANES: u64 = 2;

/// The smallest region.
pub const MIN_LEN: u64 = 512 * 1024;
/// The largest region: what forty bits can address.
pub const MAX_LEN: u64 = 1 << 40;

/// The three numbers that a region's whole layout follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) len: u64,
    pub(crate) series: u64,
    pub(crate) planes: u64,
}

/// The byte offsets of the sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections {
    pub(crate) families: u64,
    pub(crate) family_max: u64,
    pub(crate) series: u64,
    pub(crate) series_max: u64,
    pub(crate) index: u64,
    /// Places in the index: a power of two, at least 1.5 times the records.
    pub(crate) index_len: u64,
    pub(crate) owned: u64,
    /// Bytes of one owned block.
    pub(crate) owned_len: u64,
    pub(crate) arena: u64,
    pub(crate) arena_len: u64,
    pub(crate) singles: u64,
    pub(crate) singles_len: u64,
    pub(crate) planes: u64,
    pub(crate) plane_len: u64,
    pub(crate) plane_count: u64,
}

impl Sections {
    /// Lays out a region, or tells which limit does not fit.
    pub(crate) fn new(limits: Limits) -> Result<Self, String> {
        let Limits { len, series, planes } = limits;
        if !(MIN_LEN..=MAX_LEN).contains(&len) || len % PAGE != 0 {
            return Err(format!(
                "a length of {len} bytes, where a multiple of {PAGE} from {MIN_LEN} to {MAX_LEN} was expected"
            ));
        }
        if !(ATOMIC_PLANES + 1..=CPUS + ATOMIC_PLANES).contains(&planes) {
            return Err(format!(
                "{planes} planes, where {} to {} were expected",
                ATOMIC_PLANES + 1,
                CPUS + ATOMIC_PLANES
            ));
        }
        let family_max = (len >> 12).clamp(64, 1 << 16);
        if series == 0 || series > len / SERIES_LEN {
            return Err(format!(
                "a limit of {series} series, where 1 to {} were expected in {len} bytes",
                len / SERIES_LEN
            ));
        }
        let families = SLOTS + SLOT_COUNT * SLOT_LEN;
        let series_at = page_up(families + family_max * FAMILY_LEN);
        let index = page_up(series_at + series * SERIES_LEN);
        let index_len = ((series + family_max) * 3 / 2).next_power_of_two();
        let owned = page_up(index + index_len * WORD);
        let owned_len = (len >> 14).next_power_of_two().clamp(512, 1 << 16);
        let arena = page_up(owned + (SLOT_COUNT + 1) * owned_len);
        let plane_len = page_down(len / 4 / planes);
        let planes_at = len - plane_len * planes;
        if plane_len == 0 || arena + 2 * PAGE > planes_at {
            return Err(format!(
                "{len} bytes cannot hold the tables of {series} series and {planes} planes; ask for fewer series or more bytes"
            ));
        }
        let singles = page_up(arena + (planes_at - arena) * 3 / 4);
        Ok(Self {
            families,
            family_max,
            series: series_at,
            series_max: series,
            index,
            index_len,
            owned,
            owned_len,
            arena,
            arena_len: singles - arena,
            singles,
            singles_len: planes_at - singles,
            planes: planes_at,
            plane_len,
            plane_count: planes,
        })
    }

    /// The offset of plane `n`.
    pub(crate) fn plane(&self, n: u64) -> u64 {
        self.planes + n * self.plane_len
    }
}

/// Where some bytes lie in the arena: a word of `offset:40 | length:24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Span {
    /// The longest text that a span can name.
    pub(crate) const MAX_LEN: u64 = (1 << 24) - 1;

    pub(crate) fn pack(self) -> u64 {
        self.at << 24 | self.len
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_follow_each_other_and_fill_the_region() {
        for len in [MIN_LEN, 1 << 20, 64 << 20, 1 << 30] {
            for planes in [3, 4, 18, 130] {
                let limits = Limits { len, series: len / 512, planes };
                let Ok(s) = Sections::new(limits) else {
                    assert!(len < 64 << 20 && planes > 18, "{limits:?} does not fit");
                    continue;
                };
                let starts = [s.families, s.series, s.index, s.owned, s.arena, s.singles, s.planes];
                assert!(starts.is_sorted_by(|a, b| a < b), "{s:?}");
                assert_eq!(s.singles + s.singles_len, s.planes);
                assert_eq!(s.plane(planes), len);
                assert!(s.plane_len * planes <= len / 4);
            }
        }
    }

    #[test]
    fn limits_that_do_not_fit_are_named() {
        let fit = Limits { len: 1 << 20, series: 2048, planes: 4 };
        for (limits, word) in [
            (Limits { len: 4096, ..fit }, "length"),
            (Limits { len: (1 << 20) + 1, ..fit }, "length"),
            (Limits { series: 0, ..fit }, "series"),
            (Limits { series: u64::MAX, ..fit }, "series"),
            (Limits { planes: 2, ..fit }, "planes"),
            (Limits { planes: u64::MAX, ..fit }, "planes"),
            (Limits { series: 30_000, ..fit }, "more bytes"),
        ] {
            let told = Sections::new(limits).unwrap_err();
            assert!(told.contains(word), "{told}");
        }
    }

    #[test]
    fn a_span_survives_packing() {
        for span in [Span { at: 0, len: 0 }, Span { at: MAX_LEN - 8, len: Span::MAX_LEN }] {
            assert_eq!(Span::unpack(span.pack()), span);
        }
    }
}
