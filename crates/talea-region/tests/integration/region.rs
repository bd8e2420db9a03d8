//! Claims about a region in one process.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;

use crate::support::region::{family, region, total};
use talea_region::{
    AddPath, Cells, Config, FamilyError, FamilySpec, Number, Overflow, Region, Snapshot, Storage,
};

/// Sizes of tests: Miri runs code a thousand times slower.
const fn sized(native: u64, miri: u64) -> u64 {
    if cfg!(miri) { miri } else { native }
}

fn small() -> &'static Region {
    region(1 << 20)
}

/// A family of striped cells.
fn spec() -> FamilySpec<'static> {
    FamilySpec { kind: 1, storage: Storage::Striped, limit: 2000, ..FamilySpec::default() }
}

#[test]
fn every_add_of_every_thread_counts_in_each_storage() {
    const EACH: u64 = sized(200_000, 20);
    for storage in [Storage::Single, Storage::Striped] {
        let region = small();
        let [integer, float] =
            [("integers", Number::Integer), ("floats", Number::Float)].map(|(name, number)| {
                let family = family(region, name, FamilySpec { storage, number, ..spec() });
                family.series(b"").unwrap().at(0)
            });
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        integer.add(1);
                        float.add_float(0.5);
                    }
                });
            }
        });
        assert_eq!(integer.get(), 8 * EACH);
        assert_eq!(float.get_float(), 4.0 * EACH as f64);
        assert_eq!(total(region, "integers"), 8 * EACH);
    }
}

#[test]
fn restartable_and_atomic_adds_meet_on_one_series_and_none_is_lost() {
    const EACH: u64 = sized(500_000, 100);
    let region = Region::anonymous(Config { planes: 1, ..Config::with_len(1 << 20) }).unwrap();
    let cell = family(region, "both", spec()).series(b"").unwrap().at(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(|_| cell.add(1)));
        }
        scope.spawn(|| {
            let paths = [AddPath::Atomic, AddPath::Restartable].into_iter().cycle();
            for path in paths.take(sized(50, 5) as usize) {
                Region::choose_add_path(path);
                thread::sleep(std::time::Duration::from_millis(1));
            }
        });
    });
    assert_eq!(cell.get(), 4 * EACH);
}

#[test]
fn threads_that_bring_the_same_label_texts_get_the_same_cells() {
    const THREADS: usize = sized(8, 3) as usize;
    const TEXTS: usize = sized(500, 10) as usize;
    let region = small();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                let spec = FamilySpec { storage: Storage::Single, ..spec() };
                let family = family(region, "shared", spec);
                for n in 0..TEXTS {
                    family.series(format!("n=\"{n}\"").as_bytes()).unwrap().at(0).add(1);
                }
            });
        }
    });
    let snapshot = region.snapshot();
    let [family] = snapshot.families() else { panic!("one family, not {snapshot:?}") };
    let texts: HashSet<_> = snapshot.series(family).map(|s| s.text.to_vec()).collect();
    assert_eq!(snapshot.series(family).len(), TEXTS);
    assert_eq!(texts.len(), TEXTS);
    assert!(snapshot.series(family).all(|s| s.values == [THREADS as u64]));
}

#[test]
fn a_taken_name_is_refused_to_another_definition() {
    let region = small();
    let taken = FamilySpec { name: b"taken", ..spec() };
    region.family(taken).unwrap();
    for (other, expected) in [
        (taken, None),
        (FamilySpec { kind: 2, ..taken }, Some(FamilyError::Conflict)),
        (FamilySpec { definition: b"other", ..taken }, Some(FamilyError::Conflict)),
        (FamilySpec { cells: 2, ..taken }, Some(FamilyError::Conflict)),
        (FamilySpec { storage: Storage::Single, ..taken }, Some(FamilyError::Conflict)),
        (FamilySpec { number: Number::Float, ..taken }, Some(FamilyError::Conflict)),
        (FamilySpec { cells: 0, ..taken }, Some(FamilyError::TooLong)),
    ] {
        assert_eq!(region.family(other).err(), expected, "{other:?}");
    }
}

#[test]
fn a_family_at_its_limit_refuses_new_series_and_keeps_the_old() {
    let region = small();
    let family = family(region, "limited", FamilySpec { limit: 3, ..spec() });
    for text in ["a", "b", "c", "a", "b"] {
        family.series(text.as_bytes()).unwrap().at(0).add(1);
    }
    assert_eq!(family.series(b"d").unwrap_err(), Overflow::Limit);
    assert_eq!(family.dropped(), 1);
    family.series_beyond_limit(b"overflow").unwrap().at(0).add(1);
    assert_eq!(total(region, "limited"), 6);
}

#[test]
fn a_full_region_says_so_and_goes_on_counting() {
    let series = sized(20_000, 2_500);
    let config = Config { series, ..Config::with_len(sized(8 << 20, 1 << 20)) };
    let region = Region::anonymous(config).unwrap();
    let family = family(region, "many", FamilySpec { cells: 60, ..FamilySpec::default() });
    let mut kept: Vec<Cells> = Vec::new();
    let refused = (0..100_000).find_map(|n| {
        family.permanent_series(format!("series {n}").as_bytes()).map(|made| kept.push(made)).err()
    });
    assert_eq!(refused, Some(Overflow::Full));
    assert!(kept.len() as u64 > sized(1_000, 100), "{} series fit", kept.len());
    kept.iter().for_each(|cells| cells.at(59).add(1));
    assert!(kept.iter().all(|cells| cells.at(59).get() == 1 && cells.at(0).get() == 0));
}

#[test]
fn striped_series_that_do_not_fit_the_planes_count_in_single_cells() {
    let region = small();
    let family = family(region, "wide", FamilySpec { cells: 1000, ..spec() });
    // A plane of this region holds fewer than 40 runs of 1,000 cells (under Miri,
    // which has one CPU, fewer than 12).
    let runs: Vec<Cells> =
        (0..sized(40, 12)).map_while(|n| family.permanent_series(&[n as u8]).ok()).collect();
    runs.iter().for_each(|cells| (0..1000).for_each(|i| cells.at(i).add(1)));
    let snapshot = region.snapshot();
    let family = &snapshot.families()[0];
    assert_eq!(snapshot.series(family).len(), runs.len());
    assert!(snapshot.series(family).all(|s| s.values.iter().all(|&v| v == 1)));
}

#[test]
fn label_text_of_any_bytes_and_length_comes_back_as_it_was() {
    let region = region(sized(16 << 20, 1 << 20));
    let family = family(region, "texts", spec());
    let texts: Vec<Vec<u8>> = [0, 1, 7, 8, 9, 63, 64, 65, 4095, sized(65_536, 4096)]
        .map(|len| (0..len).map(|i| (i * 7 % 256) as u8).collect())
        .to_vec();
    texts.iter().for_each(|text| family.series(text).unwrap().at(0).add(1));
    let snapshot = region.snapshot();
    let seen: Vec<Vec<u8>> =
        snapshot.series(&snapshot.families()[0]).map(|s| s.text.to_vec()).collect();
    assert_eq!(seen, texts);
}

/// A text of so many bytes, with their number in it.
fn text_of(len: usize) -> Vec<u8> {
    format!("{len}-").bytes().chain((b'a'..=b'z').cycle()).take(len).collect()
}

#[test]
fn families_are_whole_and_in_order_whether_their_series_take_turns_or_come_in_a_row() {
    const EACH: usize = sized(100, 20) as usize;
    let region = region(4 << 20);
    let of = [("a", 1), ("b", 2), ("c", 1), ("d", 1)]
        .map(|(name, cells)| family(region, name, FamilySpec { cells, ..FamilySpec::default() }));
    let mut expected: [Vec<(Vec<u8>, u64)>; 4] = Default::default();
    for n in 0..5 * EACH {
        // Some texts are so long that they are not copied together with others.
        let text = text_of(if n % 70 == 69 { 20 * n } else { n });
        let to = if n < EACH { n % 4 } else { n / EACH - 1 };
        of[to].permanent_series(&text).unwrap().at(0).add(n as u64);
        expected[to].push((text, n as u64));
    }
    let mut snapshot = Snapshot::default();
    for wanted in ["abcd", "abcd", "abd", "a", "b", "c", "d"].map(str::as_bytes) {
        region.snapshot_into(&mut snapshot, &|family| wanted.contains(&family.name[0]));
        let found = snapshot.families().iter().map(|family| {
            let series = snapshot.series(family);
            (family.name[0], series.map(|s| (s.text.to_vec(), s.values[0])).collect::<Vec<_>>())
        });
        let all = (b'a'..=b'd').zip(&expected).filter(|(name, _)| wanted.contains(name));
        assert!(found.eq(all.map(|(name, series)| (name, series.clone()))), "{wanted:?}");
    }
}
