//! Claims about cells that a series gets when it first needs them.

use std::sync::Barrier;
use std::thread;

use crate::support::region::{self, region, sweep};
use talea_region::{
    Cells, Family, FamilyError, FamilySpec, MadeSegment, Number, Region, SegmentView, Snapshot,
    Storage, Uncounted, Usage,
};

const STORAGES: [Storage; 3] = [Storage::Single, Storage::Striped, Storage::Stripes];

/// A family with 8 segments.
fn family(region: &'static Region, storage: Storage) -> Family {
    family_with(region, storage, 8)
}

fn family_with(region: &'static Region, storage: Storage, segments: u16) -> Family {
    let spec = FamilySpec { storage, cells: 2, segments, ..FamilySpec::default() };
    region::family(region, &format!("{storage:?}"), spec)
}

/// Counts in a cell of a segment, which is made if it does not exist.
fn count(cells: &Cells, n: usize, cell: usize) {
    let segments = cells.segments().unwrap();
    let segment = segments.make(n, 5, n as u16 + 100).unwrap();
    segments.cell(segment, cell).unwrap().count(cells.last(), 10);
}

/// A segment: its number, its `what`, its cells.
type Shown = (u16, u16, Vec<u64>);

/// Of the only series of each family: its last cell, and its segments.
fn shown(snapshot: &Snapshot) -> Vec<(u64, Vec<Shown>)> {
    let series = snapshot.families().iter().flat_map(|family| snapshot.series(family));
    let shown = series.map(|s| {
        let segments = s.segments().map(|SegmentView { n, tag, values }| (n, tag, values.to_vec()));
        (*s.values.last().unwrap(), segments.collect())
    });
    shown.collect()
}

/// How much of the pools is taken that cells lie in.
fn taken(usage: &Usage) -> [u64; 4] {
    usage.cells().map(|part| part.taken)
}

#[test]
fn a_segment_is_there_once_it_is_made_and_nothing_of_others() {
    let region = region(2 << 20);
    let plain = region::family(region, "plain", FamilySpec::default());
    assert!(plain.permanent_series(b"").unwrap().segments().is_none());
    for storage in STORAGES {
        let cells = family(region, storage).permanent_series(b"").unwrap();
        let segments = cells.segments().unwrap();
        assert_eq!((segments.len(), segments.made().count()), (8, 0));
        assert!(segments.get(3).is_none());
        count(&cells, 3, 1);
        count(&cells, 3, 4);
        count(&cells, 0, 9);
        assert_eq!((segments.made().count(), segments.get(3).unwrap().tag()), (2, 103));
        assert!(segments.get(8).is_none() && segments.make(8, 1, 0).is_none());
        let expected = (30, vec![(0, 100, vec![0, 0, 0, 0, 1]), (3, 103, vec![0, 1, 0, 0, 1])]);
        assert_eq!(shown(&region.snapshot()).last(), Some(&expected), "{storage:?}");
    }
}

#[test]
fn of_many_segments_those_that_are_there_take_memory_and_all_of_it_comes_back() {
    // So many in place, then blocks; of how many there are, rounded up to whole blocks.
    for (many, near, all) in [(65, 37, 37 + 2 * 16), (100, 17, 17 + 6 * 16)] {
        let region = region(2 << 20);
        for storage in STORAGES {
            let case = format!("{storage:?}, {many} segments");
            let family = family_with(region, storage, many);
            let before = taken(&region.usage());
            let series = family.series(b"a").unwrap();
            let segments = series.segments().unwrap();
            // Beside the words of the table: four of the extension, and the series' own two cells.
            let own = match storage {
                Storage::Stripes => 4 * 8,
                Storage::Single => 2,
                _ => 0,
            };
            let words = near + (all - near) / 16 + 4 + own;
            assert_eq!(taken(&region.usage())[0] - before[0], 8 * words as u64, "{case}");
            assert_eq!(segments.len(), all, "{case}");
            let last = usize::from(many) - 1;
            let made = [0, near - 1, near, near + 1, last - 1, last];
            for &n in made.iter().rev() {
                assert!(segments.get(n).is_none(), "{case}: {n}");
                count(&series, n, 2);
                assert_eq!(segments.get(n).unwrap().tag(), n as u16 + 100, "{case}");
                // Another thread that looks for it finds it.
                let others = family.series(b"a").unwrap();
                assert_eq!(others.segments().unwrap().get(n).unwrap().tag(), n as u16 + 100);
                // An addition finds it at once if it is in place.
                let usual = segments.mostly(n as u16 + 100).usual(n).is_some();
                assert_eq!(usual, n < near && storage != Storage::Stripes, "{case}: {n}");
            }
            assert!(segments.get(near + 2).is_none() && segments.get(near + 16).is_none());
            assert!(segments.get(all).is_none() && segments.make(all, 1, 0).is_none());
            assert!(segments.get(usize::MAX).is_none());
            let found: Vec<usize> = segments.made().map(|(n, _)| n).collect();
            assert_eq!(found, made, "{case}");
            let made = made.iter().map(|&n| (n as u16, n as u16 + 100, vec![0, 0, 1, 0, 0]));
            let expected = (10 * 6, made.collect::<Vec<_>>());
            assert_eq!(shown(&region.snapshot()).last(), Some(&expected), "{case}");
            drop(series);
            assert!(family.remove(b"a"));
            sweep(region, 3);
            assert_eq!(taken(&region.usage()), before, "{case}");
        }
    }
}

#[test]
fn a_segment_stays_as_it_was_made_and_sizes_that_do_not_fit_are_refused() {
    let cells = family(region(1 << 20), Storage::Striped).permanent_series(b"").unwrap();
    let segments = cells.segments().unwrap();
    assert_eq!(segments.make(1, 5, 7).unwrap().tag(), 7);
    assert_eq!(segments.make(1, 9, 8).unwrap().tag(), 7);
    assert!(segments.make(2, 0, 0).is_none());
    assert!(segments.make(2, 4096, 0).is_none());
    assert!(segments.make(2, 4, 4096).is_none());
    assert!(segments.make(2, 4095, 4095).is_some());
}

#[test]
fn a_made_segment_is_there_from_the_start_as_single_cells_and_goes_with_its_series() {
    let region = region(2 << 20);
    for storage in STORAGES {
        let name = format!("{storage:?}");
        let spec = FamilySpec { storage, cells: 2, segments: 65, ..FamilySpec::default() };
        // In place, or in a block.
        let n = if storage == Storage::Single { 50 } else { 36 };
        let of = |cells| FamilySpec { made_segment: MadeSegment { n, cells }, ..spec };
        let family = region::family(region, &name, of(3));
        let series = family.permanent_series(b"").unwrap();
        let segments = series.segments().unwrap();
        let made = segments.get(n.into()).unwrap();
        assert!(segments.usual(n.into()).is_none(), "{name}: it has a tag of its own");
        let cell = |n| segments.cell(made, n).unwrap();
        let shown = || shown(&region.snapshot()).pop().unwrap();
        for round in 0..3 {
            assert!((0..=round).all(|_| cell(2).count(series.last(), 10)));
            assert_eq!(cell(2).words(9).len(), 1, "{name}");
            // Numbers of exemplars go on after the series' own cells.
            cell(2).set_exemplar(4, 0.5, b"a").unwrap();
            assert!(cell(2).set_exemplar(5, 0.5, b"a").is_err(), "{name}");
            let one = (n, made.tag(), vec![0, 0, round + 1]);
            assert_eq!(shown(), (10 * (round + 1), vec![one]), "{name}");
            assert!(family.wipe());
            assert_eq!(shown(), (0, vec![(n, made.tag(), vec![0; 3])]), "{name}");
        }
        let before = taken(&region.usage());
        let other = family.series(b"a").unwrap();
        let segments = other.segments().unwrap();
        segments
            .cell(segments.get(n.into()).unwrap(), 1)
            .unwrap()
            .set_exemplar(3, 0.5, b"a")
            .unwrap();
        drop(other);
        assert!(family.remove(b"a"));
        sweep(region, 3);
        assert_eq!(taken(&region.usage()), before, "{name}");
        // Another length is another definition, and one that no entry can name is refused.
        let refused = |cells| region.family(FamilySpec { name: name.as_bytes(), ..of(cells) });
        assert_eq!(refused(4).unwrap_err(), FamilyError::Conflict);
        assert_eq!(refused(4096).unwrap_err(), FamilyError::TooLong);
    }
}

#[test]
fn a_usual_segment_counts_in_its_cells() {
    let region = region(2 << 20);
    for storage in STORAGES {
        let cells = family(region, storage).permanent_series(b"").unwrap();
        let segments = cells.segments().unwrap();
        let counts = |n, what, cell| match segments.mostly(what).usual(n) {
            Some(segment) => match segments.count(segment, cell, 10) {
                Ok(()) => true,
                Err(Uncounted::Rest(rest)) => segments.count_rest(10, rest),
                Err(Uncounted::All) => false,
            },
            None => false,
        };
        for what in [0, 103] {
            assert!(!counts(3, what, 1), "{storage:?}: it is not there");
        }
        count(&cells, 3, 1);
        // Segments in stripes are found one by one.
        let is_usual = storage != Storage::Stripes;
        assert_eq!((counts(3, 103, 1), counts(3, 103, 4)), (is_usual, is_usual), "{storage:?}");
        for (n, what) in [(3, 102), (3, 103 | 1 << 12), (3, u16::MAX), (4, 103), (8, 103)] {
            assert!(!counts(n, what, 1), "{storage:?}: segment {n} of {what}");
        }
        let expected = match is_usual {
            true => (30, vec![(3, 103, vec![0, 2, 0, 0, 1])]),
            false => (10, vec![(3, 103, vec![0, 1, 0, 0, 0])]),
        };
        assert_eq!(shown(&region.snapshot()).last(), Some(&expected), "{storage:?}");
    }
}

#[test]
fn many_threads_that_make_the_same_segment_all_count_in_it() {
    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 200 };
    let region = region(16 << 20);
    for storage in STORAGES {
        let family = family(region, storage);
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 0..ROUNDS {
                        let series = family.series(format!("n=\"{round}\"").as_bytes()).unwrap();
                        start.wait();
                        (0..8).for_each(|n| count(&series, n, 2));
                    }
                });
            }
        });
        let made = (0..8).map(|n| (n, n + 100, vec![0, 0, THREADS as u64, 0, 0]));
        let expected = (8 * 10 * THREADS as u64, made.collect::<Vec<_>>());
        let snapshot = region.snapshot();
        let all = shown(&snapshot);
        assert!(all[all.len() - ROUNDS..].iter().all(|found| *found == expected), "{storage:?}");
    }
}

#[test]
fn segments_go_with_their_series_and_come_back_empty() {
    let region = region(2 << 20);
    for storage in STORAGES {
        let family = family(region, storage);
        let before = taken(&region.usage());
        for round in 0..50 {
            let series = family.series(b"a").unwrap();
            assert_eq!(series.segments().unwrap().made().count(), 0, "{storage:?} {round}");
            (0..8).for_each(|n| count(&series, n, 0));
            drop(series);
            if round % 3 == 0 {
                let looked = family.series(b"a").unwrap();
                let kept = looked.keep();
                assert!(kept.is_ok() && family.wipe(), "what it held is noted");
                break;
            }
            assert!(family.remove(b"a"));
            sweep(region, 3);
            assert_eq!(taken(&region.usage()), before, "{storage:?} {round}");
        }
    }
}

#[test]
fn segments_count_from_zero_when_they_are_wiped() {
    // Of many, those beyond the first ones are found in blocks.
    for (segments, [one, two, three]) in [(8, [1, 2, 5]), (65, [3, 37, 64]), (100, [3, 40, 99])] {
        let region = region(2 << 20);
        for storage in STORAGES {
            let case = format!("{storage:?}, {segments} segments");
            let family = family_with(region, storage, segments);
            let cells = family.permanent_series(b"").unwrap();
            let shown = || shown(&region.snapshot()).pop().unwrap();
            count(&cells, one, 3);
            for again in 0..3 {
                assert!(family.wipe());
                let empty = shown();
                assert!(empty.1.iter().all(|(.., cells)| *cells == [0; 5]), "{case}: {empty:?}");
                assert_eq!((empty.0, cells.last().get()), (0, 0), "{case}");
                (0..=again).for_each(|_| count(&cells, one, 3));
                count(&cells, two, 0);
                count(&cells, three, 1);
                let segment = |n: usize, cells| (n as u16, n as u16 + 100, cells);
                let expected = vec![
                    segment(one, vec![0, 0, 0, again + 1, 0]),
                    segment(two, vec![1, 0, 0, 0, 0]),
                    segment(three, vec![0, 1, 0, 0, 0]),
                ];
                assert_eq!(shown(), (10 * (again + 3), expected), "{case}");
                assert_eq!(cells.last().get(), 10 * (again + 3), "{case}");
            }
        }
    }
}

#[test]
fn a_sum_of_floats_may_go_down_and_is_wiped_like_that() {
    let region = region(2 << 20);
    let number = Number::FloatLast;
    let spec = FamilySpec { number, cells: 2, segments: 1, ..FamilySpec::default() };
    let family = region::family(region, "f", spec);
    let cells = family.permanent_series(b"").unwrap();
    let shown = || {
        let snapshot = region.snapshot();
        let series = snapshot.series(&snapshot.families()[0]).next().unwrap();
        (series.values[0], f64::from_bits(series.values[1]))
    };
    for _ in 0..3 {
        cells.at(0).count_float(cells.last(), -2.5);
        cells.at(0).count_float(cells.last(), 1.0);
        assert_eq!(shown(), (2, -1.5));
        assert!(family.wipe());
        assert_eq!(shown(), (0, 0.0));
    }
}

#[test]
fn where_the_planes_are_full_a_segment_has_its_cells_elsewhere_and_then_none() {
    let region = region(512 << 10);
    let family = family(region, Storage::Striped);
    let mut made = 0;
    for n in 0.. {
        let Ok(series) = family.series(format!("n=\"{n}\"").as_bytes()) else { break };
        let segments = series.segments().unwrap();
        for place in 0..8 {
            // Where there is no room for the cells that it asks for, there may be for fewer.
            let Some(segment) = segments.make(place, 400, 0).or(segments.make(place, 1, 0)) else {
                assert!(segments.get(place).is_none());
                continue;
            };
            segments.cell(segment, 399).unwrap().count(series.last(), 1);
            made += 1;
        }
    }
    let counted: u64 = shown(&region.snapshot()).iter().map(|(sum, _)| sum).sum();
    assert!(counted == made && made > 20, "{counted} of {made}");
    let segments: u64 = shown(&region.snapshot())
        .iter()
        .flat_map(|(_, segments)| segments.iter().flat_map(|(.., cells)| cells))
        .sum();
    assert_eq!(segments, made);
}
