//! How much of a region is in use.

use crate::layout::*;
use crate::source::Source;

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
    /// Striped cells of which the shared plane has a copy only once a thread must add there: the cells of
    /// segments.
    pub lazy_cells: Part,
    /// Owned cells, in each process's block.
    pub owned_cells: Part,
    /// Bytes of a record.
    pub record_len: u64,
}

impl Usage {
    /// The parts that cells lie in.
    pub fn cells(&self) -> [Part; 4] {
        [self.single_cells, self.striped_cells, self.lazy_cells, self.owned_cells]
    }
}

/// How much of a part of a region is in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Bytes that are handed out.
    pub taken: u64,
    /// How far it ever reached; so much memory it has.
    pub reached: u64,
    /// How far it can reach.
    pub room: u64,
}

/// Words of the bits of a pool, up to where it was ever used.
pub(crate) fn words_of_bits(source: &impl Source, pool: &Pool) -> u64 {
    (source.used_of(pool) / pool.granule).div_ceil(64)
}

/// How much is in use, by a source's bits.
pub(crate) fn of(source: &impl Source) -> Usage {
    let s = source.sections();
    let part = |pool: &Pool| {
        let reached = source.used_of(pool);
        let bits = source.words(pool.bits, words_of_bits(source, pool)).into_iter().flatten();
        let granules: u64 = bits.map(|word| u64::from(word.count_ones())).sum();
        Part { taken: (granules * pool.granule).min(reached), reached, room: pool.len }
    };
    Usage {
        records: part(&s.records),
        text: part(&s.arena),
        single_cells: part(&s.singles),
        striped_cells: part(&s.striped),
        lazy_cells: part(&s.lazy),
        owned_cells: part(&s.owned),
        record_len: RECORD_LEN,
    }
}
