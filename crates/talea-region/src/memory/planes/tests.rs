use std::os::unix::fs::MetadataExt;

use super::*;
use crate::lookup::register::FamilySpec;
use crate::memory::mapping::refused_calls;
use crate::region::Region;
use crate::series::cell::{Cell, Cells};
use crate::testing::{family, region};
use crate::values::Storage;

/// A series, and a cell of one of its segments.
fn segment() -> (&'static Region, Cells, Cell) {
    let spec = FamilySpec { cells: 2, segments: 2, ..FamilySpec::default() };
    let (region, family) = family(FamilySpec { storage: Storage::Striped, ..spec });
    let series = family.permanent_series(b"").unwrap();
    let segments = series.segments().unwrap();
    (region, series, segments.cell(segments.make(0, 4, 0).unwrap(), 2).unwrap())
}

fn state(region: &Region) -> u64 {
    region.memory.word_at(M_PLANE_0).load(Relaxed)
}

#[test]
fn a_count_is_refused_while_there_is_no_memory_for_it_and_adds_nothing() {
    let (region, series, cell) = segment();
    refused_calls(|_| {
        for _ in 0..3 {
            assert!(!cell.count(series.last(), 5));
            assert!(!cell.count_float(series.last(), 5.0));
        }
        assert_eq!((cell.get(), series.last().get()), (0, 0));
        assert!(cell.words(1).is_empty(), "and other languages get no word for it");
        // A cell of the series itself takes it.
        assert!(series.at(0).count(series.last(), 5));
    });
    // A killed process may have left it so.
    assert_eq!(state(region), FILLING);
    region.memory.refusal.forget();
    assert!(cell.count(series.last(), 5));
    assert_eq!((cell.get(), series.at(0).get(), series.last().get()), (1, 1, 10));
}

#[test]
fn plane_0_has_copies_of_segments_once_a_thread_adds_there_and_for_those_to_come() {
    let (region, series, cell) = segment();
    let segments = series.segments().unwrap();
    let memory = &region.memory;
    let in_plane_0 = || source::planes_of(memory, memory.sections.lazy.at).any(|at| at == 0);
    assert!(cell.count(series.last(), 1) && !in_plane_0(), "a CPU's plane has it");
    assert!(complete(memory) && in_plane_0());
    let len = (memory.sections.lazy.len / WORD).min(4_000) as usize;
    let later = segments.cell(segments.make(1, len, 0).unwrap(), len - 1).unwrap();
    for (cell, n) in [(cell, 3), (later, 7)] {
        let before = cell.get();
        copy_at(memory, cell.word(), 0).fetch_add(n, Relaxed);
        assert_eq!(cell.get(), before + n);
    }
    let found = region.snapshot();
    let found = found.series(&found.families()[0]).next().unwrap();
    let counts = found.segments().map(|one| one.values.iter().sum()).collect::<Vec<u64>>();
    assert_eq!(counts, [4, 7]);
    // A damaged state does not hide them, and the next snapshot restores it.
    memory.word_at(M_PLANE_0).store(PARTIAL, Relaxed);
    assert_eq!(later.get(), 7);
    region.snapshot();
    assert_eq!(state(region), COMPLETE);
}

#[test]
fn a_state_that_falsely_says_complete_becomes_true() {
    let (region, _, _) = segment();
    let memory = &region.memory;
    let blocks = || memory.map.backing().file().metadata().unwrap().blocks();
    let before = blocks();
    memory.word_at(M_PLANE_0).store(COMPLETE, Relaxed);
    region.snapshot();
    let lazy = end_of(memory, &memory.sections.lazy);
    assert_eq!(blocks() - before, lazy / 512);
}

#[test]
fn series_that_find_the_first_part_full_get_lazy_cells_that_refuse_nothing() {
    let (region, _, _) = segment();
    let spec = FamilySpec { name: b"more", limit: u64::MAX, ..FamilySpec::default() };
    let spec = FamilySpec { storage: Storage::Striped, cells: 100, ..spec };
    let family = region.family(spec).unwrap().family;
    let memory = &region.memory;
    let texts = (0..).map(|n: u32| n.to_string());
    let mut made = texts.map_while(|text| family.permanent_series(text.as_bytes()).ok());
    let series = made.find(|cells| memory.is_lazy(cells.last().word())).unwrap();
    assert_eq!(state(region), COMPLETE);
    refused_calls(|_| (0..10).for_each(|_| series.last().add(3)));
    assert_eq!(series.last().get(), 30);
}

#[test]
#[cfg(debug_assertions)]
fn places_that_this_process_got_wrong_are_bugs_that_tests_see() {
    let (region, other) = (region(), region());
    let own = region.memory.word_at(0);
    let wrong: [&(dyn Fn() + std::panic::RefUnwindSafe); 3] = [
        &|| _ = region.memory.word_at(region.memory.map.len()),
        &|| _ = region.memory.word_after(own, region.memory.map.len()),
        &|| _ = other.memory.word_after(own, WORD),
    ];
    for (n, wrong) in wrong.iter().enumerate() {
        assert!(std::panic::catch_unwind(wrong).is_err(), "{n}");
    }
}
