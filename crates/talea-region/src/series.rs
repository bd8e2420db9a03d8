//! Series: one combination of label values, and the cells that it owns.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::cells::{Cells, Copies, Storage};
use crate::error::Overflow;
use crate::families::{BUILDING, Family, PUBLISHED};
use crate::hash::hash;
use crate::index::Record;
use crate::layout::*;
use crate::planes::take_striped;
use crate::region::{Region, unix_nanos};

impl Family {
    /// The cells of the series with this label text, made if it is new. The
    /// text is the region's key and is copied as it is into every scrape.
    ///
    /// Cost: one hash and one comparison of the text where the series exists;
    /// nothing is allocated in the process. Any number of threads and processes
    /// may ask at once and get the same cells.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where the series is new and there is no room for it; the
    /// family counts it as dropped.
    #[inline]
    pub fn series(&self, text: &[u8]) -> Result<Cells, Overflow> {
        let hash = hash(self.region.seed, u64::from(self.id), text);
        match self.region.find(Record::Series, hash, |id| self.is(id, text)) {
            Ok(id) => self.cells(id).ok_or(Overflow::Full),
            Err(_) => self.make(hash, text, true),
        }
    }

    /// A series that the family's limit does not count: where what overflows
    /// goes.
    ///
    /// # Errors
    ///
    /// [`Overflow`] where the region itself has no room.
    pub fn series_beyond_limit(&self, text: &[u8]) -> Result<Cells, Overflow> {
        self.make(hash(self.region.seed, u64::from(self.id), text), text, false)
    }

    /// How often a new series was refused.
    pub fn dropped(&self) -> u64 {
        self.word(FAMILY_DROPPED).load(Relaxed)
    }

    #[cold]
    fn make(&self, hash: u64, text: &[u8], counted: bool) -> Result<Cells, Overflow> {
        let made = self.try_make(hash, text, counted);
        if made.is_err() {
            self.word(FAMILY_DROPPED).fetch_add(1, Relaxed);
        }
        made
    }

    fn try_make(&self, hash: u64, text: &[u8], counted: bool) -> Result<Cells, Overflow> {
        let is = |id| self.is(id, text);
        let region = self.region;
        // Series are counted after they are published. So whoever sees the limit
        // reached and looks then, finds what was made before: of many that bring
        // the last label text at once, none is refused. Many that bring different
        // ones may go beyond the limit, by one each.
        let full = counted
            && self.word(FAMILY_SERIES).load(Acquire) >= self.word(FAMILY_LIMIT).load(Relaxed);
        let vacancy = match region.find(Record::Series, hash, is) {
            Ok(id) => return self.cells(id).ok_or(Overflow::Full),
            Err(_) if full => return Err(Overflow::Limit),
            Err(_) if text.len() as u64 > Span::MAX_LEN => return Err(Overflow::TooLong),
            Err(vacancy) => vacancy,
        };
        let draft = self.build(text).ok_or(Overflow::Full)?;
        let winner = region.publish(vacancy, Record::Series, hash, draft.id, is);
        if winner != Some(draft.id) {
            self.discard(draft);
        } else if counted {
            self.word(FAMILY_SERIES).fetch_add(1, Release);
        }
        winner.and_then(|id| self.cells(id)).ok_or(Overflow::Full)
    }

    /// A record that nobody else can see yet. Where something is missing for it,
    /// what was taken already goes back.
    fn build(&self, text: &[u8]) -> Option<Draft> {
        let region = self.region;
        let span = region.store_text(text)?;
        let Some((cells, storage)) = self.take_cells() else {
            region.drop_text(span);
            return None;
        };
        let limit = region.s.series_max * SERIES_LEN;
        let Some(at) = region.take(M_SERIES, region.s.series, limit, SERIES_LEN) else {
            self.drop_cells(cells, storage);
            region.drop_text(span);
            return None;
        };
        let id = (at / SERIES_LEN) as u32;
        let put = |at, value| region.series_word(id, at).store(value, Relaxed);
        put(SERIES_TEXT, span.pack());
        put(SERIES_CELLS, cells);
        put(SERIES_CREATED, unix_nanos());
        let head = SeriesHead { storage, family: self.id, cells: self.head.cells };
        put(SERIES_HEAD, head.pack(BUILDING));
        Some(Draft { id, span, cells, storage })
    }

    /// Cells for a series: where they lie, and how they are stored in the end.
    fn take_cells(&self) -> Option<(u64, Storage)> {
        let region = self.region;
        let bytes = u64::from(self.head.cells) * WORD;
        let wanted = match self.head.storage {
            Storage::Striped => take_striped(region, bytes).map(|at| region.s.planes + at),
            Storage::Owned => region.take_owned(bytes).map(|at| region.s.owned + at),
            Storage::Single => None,
        };
        match wanted {
            Some(at) => Some((at, self.head.storage)),
            // Where the planes or the blocks are full, one atomic cell counts as
            // well.
            None => Some((region.take_single(bytes)?, Storage::Single)),
        }
    }

    fn drop_cells(&self, cells: u64, storage: Storage) {
        let region = self.region;
        let bytes = u64::from(self.head.cells) * WORD;
        match storage {
            Storage::Striped => region.give_back(M_STRIPED, cells - region.s.planes, bytes),
            Storage::Owned => region.give_back(M_OWNED, cells - region.s.owned, bytes),
            Storage::Single => region.give_back(M_SINGLES, cells - region.s.singles, bytes),
        }
    }

    /// A draft that lost the race: what was taken last goes back first.
    fn discard(&self, draft: Draft) {
        let region = self.region;
        region.series_word(draft.id, SERIES_HEAD).store(0, Relaxed);
        region.give_back(M_SERIES, u64::from(draft.id) * SERIES_LEN, SERIES_LEN);
        self.drop_cells(draft.cells, draft.storage);
        region.drop_text(draft.span);
    }

    #[inline]
    fn is(&self, id: u32, text: &[u8]) -> bool {
        let head = self.region.series_word(id, SERIES_HEAD).load(Acquire);
        head >> 32 == u64::from(self.id)
            && self
                .region
                .text_is(Span::unpack(self.region.series_word(id, SERIES_TEXT).load(Relaxed)), text)
    }

    /// The cells of a series that was found in the index.
    #[inline]
    fn cells(&self, id: u32) -> Option<Cells> {
        let word = self.region.series_word(id, SERIES_HEAD);
        let (state, head) = SeriesHead::unpack(word.load(Acquire))?;
        if state != PUBLISHED {
            // Whoever finds it says that it is public: its maker may have died
            // before it could.
            word.store(head.pack(PUBLISHED), Release);
        }
        let first = self.region.series_word(id, SERIES_CELLS).load(Relaxed);
        let count = u64::from(self.head.cells);
        let words = self.region.map.words(first, count)?;
        let copies = match head.storage {
            Storage::Single => Copies::One,
            Storage::Striped => {
                // The other planes are found from plane 0, so there it must lie.
                let (start, end) = (self.region.s.plane(0), self.region.s.plane(1));
                let plane = start..(end + 1).saturating_sub(count * WORD);
                Copies::Planes(plane.contains(&first).then_some(self.region)?)
            }
            Storage::Owned => Copies::Blocks(self.region),
        };
        Some(Cells::new(words, copies))
    }

    fn word(&self, at: u64) -> &'static std::sync::atomic::AtomicU64 {
        self.region.family_word(self.id, at)
    }
}

struct Draft {
    id: u32,
    span: Span,
    cells: u64,
    storage: Storage,
}

/// The first word of a record, unpacked.
#[derive(Clone, Copy)]
pub(crate) struct SeriesHead {
    pub(crate) storage: Storage,
    pub(crate) cells: u32,
    pub(crate) family: u32,
}

impl SeriesHead {
    fn pack(self, state: u64) -> u64 {
        state
            | (self.storage as u64) << 8
            | u64::from(self.cells & 0xFFFF) << 16
            | u64::from(self.family) << 32
    }

    pub(crate) fn unpack(word: u64) -> Option<(u64, Self)> {
        let storage = match word >> 8 & 0xFF {
            0 => Storage::Single,
            1 => Storage::Striped,
            2 => Storage::Owned,
            _ => return None,
        };
        let head =
            Self { storage, cells: (word >> 16 & 0xFFFF) as u32, family: (word >> 32) as u32 };
        Some((word & 0xFF, head))
    }
}

impl Region {
    #[inline]
    pub(crate) fn series_word(&self, id: u32, at: u64) -> &'static std::sync::atomic::AtomicU64 {
        let id = u64::from(id).min(self.s.series_max - 1);
        self.mark(self.s.series + id * SERIES_LEN + at)
    }

    fn take_single(&self, bytes: u64) -> Option<u64> {
        Some(self.s.singles + self.take(M_SINGLES, self.s.singles, self.s.singles_len, bytes)?)
    }
}
