//! The source of a region's words for readers: a mapped region, or a copy of one that another
//! process maps.

use std::io;
use std::ops::Range;

use crate::layout::*;
use crate::memory::path::AddPath;

/// Where a snapshot's words come from.
pub(crate) trait Source {
    fn sections(&self) -> &Sections;

    /// `count` words from an offset on; `None` where they are not there.
    fn words(&self, at: u64, count: u64) -> Option<impl Iterator<Item = u64>>;

    fn lives(&self, slot: u64) -> bool;

    /// Whether a record is unchanged since the snapshot began, so that the text and cells read for
    /// it are its own.
    fn stands(&self, record: u64) -> bool;

    /// From 1 to `N` words from an offset on, and the last of them again as often as it
    /// takes: with a fixed length they are copied faster. `None` where they are not there.
    #[inline]
    fn block<const N: usize>(&self, at: u64, count: u64) -> Option<[u64; N]> {
        let mut words = self.words(at, count)?;
        let mut last = words.next()?;
        Some(std::array::from_fn(|n| {
            if n > 0 {
                last = words.next().unwrap_or(last);
            }
            last
        }))
    }

    /// A series record's words; 0 where they are not there.
    #[inline(always)]
    fn record(&self, at: u64) -> Record {
        self.block(at, RECORD_WORDS as u64).unwrap_or([0; RECORD_WORDS])
    }

    fn records(&self, at: u64, count: u64) -> Option<impl Iterator<Item = Record>> {
        Some((0..count).map(move |n| self.record(at + n * RECORD_LEN)))
    }

    /// The distances from plane 0 of the planes that the source itself knows of, whatever the CPU
    /// table says; 0 for none.
    fn own_planes(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }

    /// Whether plane 0 has copies of the lazy cells.
    fn has_lazy_copies(&self) -> bool {
        self.word(M_PLANE_0) == COMPLETE
    }

    /// The seed of the region's hashes.
    fn seed(&self) -> u64 {
        self.word(H_HASH_SEED)
    }

    /// One word; 0 where it is not there.
    fn word(&self, at: u64) -> u64 {
        self.words(at, 1).and_then(|mut words| words.next()).unwrap_or(0)
    }

    fn slot_word(&self, slot: u64, at: u64) -> u64 {
        self.word(SLOTS + slot * SLOT_LEN + at)
    }

    /// This number of single cells, if they can lie there.
    fn singles(&self, at: u64, count: u64) -> Option<Vec<u64>> {
        let can_be = self.sections().lies_in_singles(at, count);
        can_be.then(|| self.words(at, count).map(Iterator::collect)).flatten()
    }

    /// How far a pool was ever used and may be read, in bytes. The mark moves before the pages behind
    /// it are backed.
    fn used_of(&self, pool: &Pool) -> u64 {
        let backed = self.word(pool.marks + BACKED);
        self.word(pool.marks + USED).min(backed).min(pool.len)
    }

    /// The number of families that were ever made.
    fn families_used(&self) -> u64 {
        let backed = self.word(M_FAMILIES + BACKED);
        (self.word(M_FAMILIES).min(backed) / FAMILY_LEN).min(self.sections().family_max)
    }
}

/// A source that has all of a region but its series, and these a window at a time.
pub(crate) trait Windows {
    type Of: Source;

    fn source(&self) -> &Self::Of;

    /// Loads the series of these records, with the texts and cells that they name, in place of
    /// those before.
    fn turn_to(&mut self, records: Range<u64>) -> io::Result<()>;

    /// Loads the table of families in place of the one before.
    fn read_families_again(&mut self) -> io::Result<()>;
}

/// A source that has all of its series.
impl<S: Source> Windows for &S {
    type Of = S;

    fn source(&self) -> &S {
        self
    }

    fn turn_to(&mut self, _: Range<u64>) -> io::Result<()> {
        Ok(())
    }

    fn read_families_again(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A series record's words.
pub(crate) type Record = [u64; RECORD_WORDS];
pub(crate) const RECORD_WORDS: usize = (RECORD_LEN / WORD) as usize;
pub(crate) const HEAD: usize = (SERIES_HEAD / WORD) as usize;
pub(crate) const TEXT: usize = (SERIES_TEXT / WORD) as usize;
pub(crate) const CELLS: usize = (SERIES_CELLS / WORD) as usize;
pub(crate) const CREATED: usize = (SERIES_CREATED / WORD) as usize;
pub(crate) const PINS: usize = (SERIES_PINS / WORD) as usize;
pub(crate) const MORE: usize = (SERIES_EXTENSION / WORD) as usize;

/// As [`planes`], of the planes that have a copy of striped cells, by the place of these in plane 0.
pub(crate) fn planes_of(source: &impl Source, at: u64) -> impl Iterator<Item = u64> {
    let has_shared = !source.sections().is_lazy(at) || source.has_lazy_copies();
    planes(source).skip(if has_shared { 0 } else { SHARED_PLANES as usize })
}

/// How far each plane in use lies behind plane 0, in a fixed order, each once. Plane 0 is the first; the
/// lent ones are the last.
pub(crate) fn planes(source: &impl Source) -> impl Iterator<Item = u64> {
    shared_and_of_cpus(source).chain(lent_planes(source))
}

/// How far each lent plane that was ever written to lies behind plane 0.
fn lent_planes(source: &impl Source) -> impl Iterator<Item = u64> {
    let Sections { plane_len, plane_count, lent_count, .. } = *source.sections();
    let count = source.word(M_LENT).min(lent_count);
    let words = source.words(LENT_TABLE, count).into_iter().flatten();
    words.zip(plane_count..).filter(|(word, _)| *word != 0).map(move |(_, n)| n * plane_len)
}

fn shared_and_of_cpus(source: &impl Source) -> impl Iterator<Item = u64> {
    let Sections { plane_len: len, plane_count, .. } = *source.sections();
    let shared = (0..SHARED_PLANES).map(move |plane| plane * len);
    // A plane is counted before an entry names it, so the table has no more to show once as many
    // are found as were counted.
    let claimed = source.word(M_PLANES).min(plane_count);
    let mut left = claimed.saturating_sub(SHARED_PLANES);
    let mut table = source.words(CPU_TABLE, CPU_ENTRIES).into_iter().flatten();
    let mut own_entries = source.own_planes();
    // Each entry names a plane of its CPU's own, or it is not an entry.
    let own = SHARED_PLANES * len..plane_count * len;
    let mut seen = [0_u64; MOST_PLANES.div_ceil(64) as usize];
    shared.chain(std::iter::from_fn(move || {
        loop {
            let entry = if left > 0 { table.find(|&entry| entry != 0) } else { None };
            let delta = entry.or_else(|| own_entries.next())?;
            if own.contains(&delta) && delta % len == 0 && set_bit(&mut seen, delta / len) {
                left = left.saturating_sub(u64::from(delta / len < claimed));
                return Some(delta);
            }
        }
    }))
}

/// Sets a bit; false if it is set already.
fn set_bit(words: &mut [u64], n: u64) -> bool {
    let word = &mut words[(n / 64) as usize];
    let before = std::mem::replace(word, *word | 1 << (n % 64));
    before >> (n % 64) & 1 == 0
}

/// A process that has the region open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id, as it sees it itself; in two namespaces two may have the same.
    pub pid: u64,
    /// Its slot, which is its alone while it lives.
    pub slot: u64,
    /// Whether another living process had the same id when this one opened the region. It does not
    /// change while the process lives; of living processes with one id, one has none.
    pub has_namesake: bool,
}

/// A living process's block of cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// How far it lies behind block 0.
    pub(crate) delta: u64,
    pub(crate) owner: Owner,
    /// When the process took its slot, in nanoseconds of the boot clock.
    pub(crate) started: u64,
    pub(crate) adds: AddPath,
}

pub(crate) fn living(source: &impl Source) -> impl Iterator<Item = Block> {
    // A process sets no value before its slot is counted.
    let taken = source.word(M_SLOTS).min(source.sections().slots);
    let slots = (0..taken).chain([SLOT_COUNT]).filter(|&slot| {
        // The shared block is no single process's, so it counts as living.
        slot == SLOT_COUNT || source.slot_word(slot, SLOT_PID) != 0 && source.lives(slot)
    });
    slots.map(|slot| {
        // The processes that share a block have no name.
        let word = |at| match slot {
            SLOT_COUNT => 0,
            slot => source.slot_word(slot, at),
        };
        let (pid, has_namesake) = (word(SLOT_PID), word(SLOT_NAMESAKE) != 0);
        let owner = Owner { pid, slot, has_namesake };
        let started = word(SLOT_STARTED);
        let adds = AddPath::from_u64(word(SLOT_ADDS));
        Block { delta: source.sections().block(slot), owner, started, adds }
    })
}
