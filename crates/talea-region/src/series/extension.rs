//! The extension of a series, which only some series have: a run of single cells with the offset of
//! the series' exemplars, the time of its last wipe, and the directory of its segments. It is made
//! when it is first needed, or with the series if its family has segments.
//!
//! The base of each cell, its value when the series was last wiped, is kept in the same run. If the
//! series has segments, the bases have a run of their own, which a wipe makes: such a series has
//! many cells, and most are never wiped.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::segment;
use crate::layout::*;
use crate::memory::runs::CellRun;
use crate::memory::table::{Table, table_len};
use crate::primitive::{Word, Words};
use crate::series::record::Series;

#[derive(Clone, Copy)]
pub(crate) struct Extension {
    /// The offset of the table of exemplars, or 0.
    pub(crate) exemplars: Word,
    /// When the series was last wiped, in nanoseconds since 1970, or 0.
    pub(crate) wiped: Word,
    pub(crate) rest: Rest,
}

#[derive(Clone, Copy)]
pub(crate) enum Rest {
    /// The base of each of its cells.
    Base(Words),
    Directory(Directory),
}

#[derive(Clone, Copy)]
pub(crate) struct Directory {
    pub(crate) level: Word,
    /// Where the bases are, or 0.
    pub(crate) bases: Word,
    pub(crate) table: Table,
    /// Segments that the series may have.
    segments: u64,
}

/// The bases of a series with segments.
#[derive(Clone, Copy)]
pub(crate) struct Bases {
    pub(crate) of_cells: Words,
    /// The offset, or 0, of the bases of each segment.
    pub(crate) of_segments: Table,
}

/// Its words, for a series with these numbers of cells and segments.
pub(crate) fn extension_len(cells: u64, segments: u64) -> u64 {
    EXTENSION_REST + if segments == 0 { cells } else { DIRECTORY_TABLE + table_len(segments) }
}

/// Words of the bases, for these numbers of cells and segments.
pub(crate) fn bases_len(cells: u64, segments: u64) -> u64 {
    cells + table_len(segments)
}

impl Series<'_> {
    #[inline]
    pub(crate) fn extension(self) -> Option<Extension> {
        let at = self.word(SERIES_EXTENSION).load(Acquire);
        let (cells, segments) = self.sizes_of()?;
        self.extension_at(at, cells, segments)
    }

    /// As the method before, and makes it if it does not exist; `None` if there is no room.
    pub(crate) fn extension_or_new(self) -> Option<Extension> {
        let (cells, segments) = self.sizes_of()?;
        let (word, len) = (self.word(SERIES_EXTENSION), extension_len(cells, segments));
        let at = self.region.memory.get_or_make_run(word, len)?;
        self.extension_at(at, cells, segments)
    }

    /// How many cells and segments a series has, of a record that has its cells.
    #[inline]
    fn sizes_of(self) -> Option<(u64, u64)> {
        let run = CellRun::unpack(self.word(SERIES_CELLS).load(Acquire))?;
        let (_, head) = self.region.family_head(self.family())?;
        Some((run.count, u64::from(head.segments)))
    }

    #[inline]
    fn extension_at(self, at: u64, cells: u64, segments: u64) -> Option<Extension> {
        let words = self.region.memory.singles(at, extension_len(cells, segments))?;
        let [exemplars, wiped, rest @ ..] = words else { return None };
        let rest = match (segments, rest) {
            (0, base) => Rest::Base(base),
            (_, [level, bases, table @ ..]) => {
                let table = Table::new(table, segments)?;
                Rest::Directory(Directory { level, bases, table, segments })
            }
            _ => return None,
        };
        Some(Extension { exemplars, wiped, rest })
    }

    /// The bases of a series with this number of cells, if it was ever wiped.
    pub(crate) fn bases(self, directory: &Directory, cells: u64) -> Option<Bases> {
        self.bases_at(directory.bases.load(Acquire), directory, cells)
    }

    /// As the method before, and makes it if it does not exist; `None` if there is no room.
    pub(crate) fn bases_or_new(self, directory: &Directory, cells: u64) -> Option<Bases> {
        let len = bases_len(cells, directory.segments);
        let at = self.region.memory.get_or_make_run(directory.bases, len)?;
        self.bases_at(at, directory, cells)
    }

    /// The bases of a segment with these cells, made if they do not exist.
    pub(crate) fn base_of_segment(self, bases: Table, n: usize, run: CellRun) -> Option<Words> {
        let memory = &self.region.memory;
        let base = memory.get_or_make_run(memory.table_word_or_new(bases, n)?, run.count)?;
        memory.map.words(base, run.count)
    }

    fn bases_at(self, at: u64, directory: &Directory, cells: u64) -> Option<Bases> {
        let words = self.region.memory.singles(at, bases_len(cells, directory.segments))?;
        let (of_cells, table) = words.split_at_checked(cells as usize)?;
        Some(Bases { of_cells, of_segments: Table::new(table, directory.segments)? })
    }

    /// Gives back the bases of a directory, and all of its segments.
    fn drop_directory(self, directory: &Directory, cells: u64) {
        let memory = &self.region.memory;
        let at = directory.bases.swap(0, AcqRel);
        if let Some(Bases { of_segments, .. }) = self.bases_at(at, directory, cells) {
            for (n, base) in memory.table_words(of_segments) {
                let entry = memory.table_word(directory.table, n);
                let run = entry.and_then(|entry| segment::run_of(memory, entry));
                if let (base @ 1.., Some(run)) = (base.swap(0, AcqRel), run) {
                    memory.drop_singles(base, run.count);
                }
            }
            memory.drop_blocks(of_segments);
        }
        memory.drop_singles(at, bases_len(cells, directory.segments));
        segment::drop_all(memory, directory.table);
    }

    /// Gives back the extension of a series. Its record still has its cells.
    pub(crate) fn drop_extension(self) {
        let Some((cells, segments)) = self.sizes_of() else { return };
        let at = self.word(SERIES_EXTENSION).swap(0, AcqRel);
        if let Some(more) = self.extension_at(at, cells, segments) {
            self.drop_exemplars(more.exemplars.swap(0, AcqRel));
            if let Rest::Directory(directory) = more.rest {
                self.drop_directory(&directory, cells);
            }
        }
        self.region.memory.drop_singles(at, extension_len(cells, segments));
    }

    /// The value of a cell when its series was last wiped. The cell is given by its first copy.
    pub(crate) fn base_of(self, cell: Word) -> Option<u64> {
        let Extension { wiped, rest, .. } = self.extension()?;
        if wiped.load(Acquire) == 0 {
            return None;
        }
        let (n, run) = self.place_of(cell)?;
        let base = match rest {
            Rest::Base(base) => base,
            Rest::Directory(directory) => self.bases(&directory, run.count)?.of_cells,
        };
        base.get(n).map(|word| word.load(Acquire))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_directory_takes_what_is_said_of_it() {
        assert_eq!(extension_len(5, 0), 2 + 5);
        assert_eq!(extension_len(5, 37), 2 + 2 + 37);
        assert_eq!(extension_len(5, 65), 2 + 2 + 37 + 2);
        assert_eq!(extension_len(5, 66), 2 + 2 + 17 + 4);
        assert_eq!(extension_len(5, 128), 2 + 2 + 17 + 7);
    }
}
