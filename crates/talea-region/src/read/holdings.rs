//! The cells that series hold: their values and their extensions. Cells that are handed out beyond
//! that were leaked.

use crate::layout::*;
use crate::memory::runs::CellRun;
use crate::memory::table;
use crate::series::exemplars::entry_lens;
use crate::series::extension::{bases_len, extension_len};
use crate::series::family::FamilyHead;
use crate::series::pins::FAR;
use crate::series::record::{self, FREE, Head};
use crate::series::segment::{MadeSegment, Segment};
use crate::source::{CELLS, HEAD, MORE, PINS, Record, Source};

/// Bytes of cells that series hold, of all pools, including series that can no longer be found.
pub(crate) fn cells_of_series(source: &impl Source, records: u64) -> u64 {
    let from = source.sections().records.at;
    let taken = source.records(from, records).into_iter().flatten();
    let taken = taken.filter(|one| record::state(one[HEAD]) != FREE);
    taken.fold(0, |all: u64, one| all.saturating_add(WORD * words_of(source, &one)))
}

/// Words that a series holds.
fn words_of(source: &impl Source, record: &Record) -> u64 {
    let s = source.sections();
    let pins = pins_of(source, record[PINS]);
    let Some(run) = CellRun::unpack(record[CELLS]) else { return pins };
    let family = Head::unpack(record[HEAD]).family;
    let word = |at| source.word(s.families + u64::from(family) * FAMILY_LEN + at);
    let segments =
        FamilyHead::unpack(word(FAMILY_HEAD)).map_or(0, |(_, head)| u64::from(head.segments));
    let exemplars = run.count + u64::from(MadeSegment::unpack(word(FAMILY_MADE)).cells);
    let extension = extension(source, record[MORE], run.count, segments, exemplars);
    pins.saturating_add(run.granules()).saturating_add(extension)
}

fn pins_of(source: &impl Source, at: u64) -> u64 {
    let Some(&[.., far]) = source.singles(at, PINS_LEN / WORD).as_deref() else { return 0 };
    let far = if source.sections().lies_in_singles(far, FAR) { FAR } else { 0 };
    PINS_LEN / WORD + far
}

/// Words of the extension of a series with at most this number of exemplars.
fn extension(source: &impl Source, at: u64, cells: u64, segments: u64, exemplars: u64) -> u64 {
    let len = extension_len(cells, segments);
    let Some(words) = source.singles(at, len) else { return 0 };
    let exemplars = exemplars_of(source, words[EXTENSION_EXEMPLARS as usize], exemplars);
    let segments = match words[EXTENSION_REST as usize..] {
        [_, bases, ..] if segments > 0 => {
            let table = at + (EXTENSION_REST + DIRECTORY_TABLE) * WORD;
            segments_of(source, table, bases, cells, segments)
        }
        _ => 0,
    };
    len.saturating_add(exemplars).saturating_add(segments)
}

fn exemplars_of(source: &impl Source, table: u64, most: u64) -> u64 {
    let Some(entries) = source.singles(table, most * 2) else { return 0 };
    let all = entries.iter().zip(entry_lens().into_iter().cycle()).filter(|(at, _)| **at != 0);
    all.fold(entries.len() as u64, |all, (_, words)| all.saturating_add(words))
}

/// Words of the segments that a table names, and of their bases.
fn segments_of(source: &impl Source, table: u64, bases: u64, cells: u64, segments: u64) -> u64 {
    let len = bases_len(cells, segments);
    let has_bases = source.sections().lies_in_singles(bases, len);
    let of_segments = bases.saturating_add(cells.saturating_mul(WORD));
    let mut words = table::words_of_blocks(source, table, segments);
    if has_bases {
        words += len + table::words_of_blocks(source, of_segments, segments);
    }
    let mut entries = Vec::new();
    let _ = table::entries(source, table, segments, &mut entries);
    for (n, entry) in entries {
        let Some((run, _)) = Segment::unpack(entry) else { continue };
        let has_base = has_bases && table::entry(source, of_segments, segments, n) != 0;
        let base = if has_base { run.count } else { 0 };
        words = words.saturating_add(run.granules()).saturating_add(base);
    }
    words
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::lookup::register::FamilySpec;
    use crate::region::Region;
    use crate::values::Storage;

    /// Bytes of cells that are handed out and that no series holds.
    fn lost(region: &'static Region) -> u64 {
        let usage = region.usage();
        let taken: u64 = usage.cells().iter().map(|part| part.taken).sum();
        let records = usage.records.reached / usage.record_len;
        taken - cells_of_series(&region.memory, records)
    }

    #[test]
    fn all_cells_that_are_handed_out_are_held_by_series_or_lost() {
        let region = Region::anonymous(Config::with_len(4 << 20)).unwrap();
        for (n, storage) in [Storage::Single, Storage::Striped, Storage::Owned].iter().enumerate() {
            for segments in [0, 3, 100] {
                let name = [n as u8, segments as u8];
                // Owned cells have no segments.
                let segments = if *storage == Storage::Owned { 0 } else { segments };
                let spec = FamilySpec {
                    name: &name,
                    storage: *storage,
                    cells: 4,
                    segments,
                    made_segment: MadeSegment { n: 2, cells: if segments > 0 { 5 } else { 0 } },
                    limit: 100,
                    ..FamilySpec::default()
                };
                let family = region.family(spec).unwrap().family;
                for text in [b"one".as_slice(), b"two"] {
                    let cells = family.series(text).unwrap().keep().unwrap();
                    cells.at(1).add(3);
                    if *storage == Storage::Single {
                        cells.at(2).set_exemplar(2, 0.5, b"trace_id=\"a\"").unwrap();
                    }
                    if segments > 0 {
                        let segments = cells.segments().unwrap();
                        for n in [1, segments.len() - 1] {
                            let made = segments.make(n, 7, 10).unwrap();
                            segments.cell(made, 2).unwrap().add(5);
                        }
                    }
                }
                assert!(family.series(b"gone").is_ok() && family.remove(b"gone"));
            }
        }
        assert_eq!(lost(region), 0);
        region.wipe(|_| true);
        assert_eq!(lost(region), 0);
        region.memory.take_cells(Storage::Single, 3).unwrap();
        region.memory.take_cells(Storage::Striped, 2).unwrap();
        assert_eq!(lost(region), 5 * WORD);
    }
}
