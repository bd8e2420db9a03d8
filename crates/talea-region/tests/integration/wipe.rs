//! Claims about series that count from 0 again, and families that end.

use std::thread;

use crate::support::region::{self, family, series, shown, sweep, values};
use talea_region::{Combine, Config, Family, FamilySpec, Number, Region, Storage};

fn region() -> &'static Region {
    region::region(2 << 20)
}

/// A region, and a family in it.
fn with_family() -> (&'static Region, Family) {
    let region = region();
    (region, family(region, "f", FamilySpec::default()))
}

#[test]
fn a_wiped_series_counts_from_zero_in_every_storage() {
    let region = region();
    let storages = [Storage::Single, Storage::Striped, Storage::Stripes];
    for (n, storage) in storages.into_iter().enumerate() {
        for number in [Number::Integer, Number::Float] {
            let name = format!("{n}{number:?}");
            let spec = FamilySpec { storage, number, cells: 2, ..FamilySpec::default() };
            let cells = family(region, &name, spec).permanent_series(b"").unwrap();
            let add = |n: u64| match number {
                Number::Integer => (0..2).for_each(|i| cells.at(i).add(n)),
                _ => (0..2).for_each(|i| cells.at(i).add_float(n as f64)),
            };
            let shown = || {
                let snapshot = region.snapshot();
                let of_snapshot = series(&snapshot, &name)[0].values.to_vec();
                let word = |i| match number {
                    Number::Integer => cells.at(i).get(),
                    _ => cells.at(i).get_float().to_bits(),
                };
                assert_eq!(of_snapshot, [word(0), word(1)], "a handle shows what a reader does");
                match number {
                    Number::Integer => of_snapshot[1],
                    _ => f64::from_bits(of_snapshot[1]) as u64,
                }
            };
            add(7);
            assert_eq!(shown(), 7);
            for _ in 0..2 {
                assert!(region.wipe(|found| found == name.as_bytes()));
                assert_eq!(shown(), 0, "{name}");
                add(5);
                assert_eq!(shown(), 5, "{name}");
            }
        }
    }
}

#[test]
fn a_wiped_float_keeps_the_digits_of_later_additions() {
    let region = region();
    for storage in [Storage::Single, Storage::Stripes] {
        let name = format!("{storage:?}");
        let number = Number::FloatLast;
        let spec = FamilySpec { storage, number, cells: 2, ..FamilySpec::default() };
        let cells = family(region, &name, spec).permanent_series(b"").unwrap();
        for large in [1e15, 22.1] {
            cells.at(0).add(1);
            cells.at(1).add_float(large);
            assert!(region.wipe(|found| found == name.as_bytes()));
            cells.at(0).add(2);
            cells.at(1).add_float(0.11);
            cells.at(1).add_float(0.03);
            let snapshot = region.snapshot();
            let shown = series(&snapshot, &name)[0].values.to_vec();
            assert_eq!(shown, [2, 0.14_f64.to_bits()], "{name}");
            assert!(region.wipe(|found| found == name.as_bytes()));
        }
    }
}

#[test]
fn set_values_are_wiped_to_zero_and_values_in_flight_stay() {
    let region = region();
    let latest = FamilySpec { combine: Combine::Latest, ..FamilySpec::default() };
    let set = family(region, "set", latest).permanent_series(b"").unwrap().at(0);
    let owned = FamilySpec { storage: Storage::Owned, ..FamilySpec::default() };
    let held = family(region, "held", owned).series(b"a").unwrap().keep().unwrap().at(0);
    set.set(9);
    held.add(3);
    assert!(region.wipe(|_| true));
    assert_eq!((values(region, "set"), set.get()), (vec![0], 0));
    assert_eq!((values(region, "held"), held.get()), (vec![3], 3));
    set.set(4);
    assert_eq!(values(region, "set"), [4]);
}

#[test]
fn series_go_and_a_kept_one_stays_at_zero() {
    let (region, f) = with_family();
    f.series(b"gone").unwrap().at(0).add(2);
    let kept = f.series(b"kept").unwrap().keep().unwrap().at(0);
    kept.add(3);
    f.wipe();
    assert_eq!(values(region, "f"), [0]);
    f.wipe();
    assert_eq!(values(region, "f"), [0], "a second time too");
    f.series(b"gone").unwrap().at(0).add(1);
    kept.add(1);
    assert_eq!(shown(region, "f"), ["gone=1", "kept=1"]);

    assert!(f.remove(b"kept"));
    assert_eq!(values(region, "f"), [1]);
    kept.add(5);
    assert_eq!(kept.get(), 5, "a kept series that was removed counts from 0 too");
    assert_eq!(shown(region, "f"), ["gone=1", "kept=5"]);
}

#[test]
fn a_removed_series_is_shown_again_once_it_is_kept_again() {
    let region = region();
    for (name, lasts) in [("kept", false), ("lasting", true)] {
        let f = family(region, name, FamilySpec::default());
        let old = f.series(b"a").unwrap().keep().unwrap().at(0);
        old.add(3);
        assert!(f.remove(b"a"));
        assert_eq!(values(region, name), [], "{name}: nobody counts in it");
        let new = match lasts {
            true => f.permanent_series(b"a").unwrap(),
            false => f.series(b"a").unwrap().keep().unwrap(),
        };
        assert_eq!(values(region, name), [0], "{name}");
        new.at(0).add(2);
        assert_eq!(values(region, name), [2], "{name}");
    }
}

#[test]
fn a_removed_series_that_is_kept_stays_hidden_when_its_family_is_wiped() {
    let (region, f) = with_family();
    let kept = f.series(b"a").unwrap().keep().unwrap().at(0);
    kept.add(3);
    assert!(f.remove(b"a"));
    f.wipe();
    assert_eq!(values(region, "f"), []);
    kept.add(1);
    assert_eq!(values(region, "f"), [1]);
}

#[test]
fn only_the_wanted_series_go() {
    let (region, f) = with_family();
    let other = family(region, "other", FamilySpec::default());
    for n in 0..300_u64 {
        f.series(format!("{n}").as_bytes()).unwrap().at(0).add(n + 1);
        other.series(format!("{n}").as_bytes()).unwrap().at(0).add(n + 1);
    }
    assert_eq!(f.remove_where(|text| text.ends_with(b"7")), 30);
    assert_eq!(f.remove_where(|text| text.ends_with(b"7")), 0);
    assert_eq!((values(region, "f").len(), values(region, "other").len()), (270, 300));
}

#[test]
fn while_others_add_a_wiped_total_neither_underflows_nor_loses_what_comes_after() {
    const EACH: u64 = if cfg!(miri) { 50 } else { 100_000 };
    let region = region();
    for storage in [Storage::Single, Storage::Striped] {
        let f =
            family(region, &format!("{storage:?}"), FamilySpec { storage, ..Default::default() });
        let cell = f.permanent_series(b"").unwrap().at(0);
        thread::scope(|scope| {
            let adders = [0, 1].map(|_| scope.spawn(|| (0..EACH).for_each(|_| cell.add(1))));
            while adders.iter().any(|adder| !adder.is_finished()) {
                f.wipe();
                assert!(cell.get() <= 2 * EACH);
                assert!(values(region, &format!("{storage:?}"))[0] <= 2 * EACH);
            }
        });
        f.wipe();
        cell.add(11);
        assert_eq!(cell.get(), 11);
    }
}

#[test]
fn an_ended_family_is_shown_no_more_and_its_name_is_free() {
    let (region, old) = with_family();
    let kept = old.permanent_series(b"").unwrap().at(0);
    kept.add(3);
    let related = |name: &str| {
        let mut found = Vec::new();
        region.each_related(name.as_bytes(), |name, kind, is_own| {
            found.push((name.to_vec(), kind, is_own));
        });
        found
    };
    for name in ["f", "f_total", "f_sum_total", "f_created_bucket_count_info"] {
        assert_eq!(related(name), [(b"f".to_vec(), 0, true)], "{name}");
    }
    for name in ["", "_total", "ff", "f_totals", "total"] {
        assert_eq!(related(name), [], "{name}");
    }
    assert!(region.end_families(b"f"));
    assert!(!region.end_families(b"f"));
    assert_eq!(related("f"), []);
    kept.add(1);
    assert_eq!(region.snapshot().families().len(), 0);

    let other = FamilySpec { definition: b"another", ..FamilySpec::default() };
    let new = family(region, "f", other);
    new.permanent_series(b"").unwrap().at(0).add(8);
    assert_eq!(values(region, "f"), [8]);
    region.end_families(b"f");

    // As it was: its old handles count for it again, once it is there.
    kept.add(9);
    family(region, "f", FamilySpec::default());
    kept.add(2);
    assert_eq!((values(region, "f"), kept.get()), (vec![2], 2));
}

#[test]
fn additions_through_handles_of_an_ended_family_are_gone_once_it_is_registered_again() {
    let region = region();
    // Also if the specification names the series that its limit does not count.
    for beyond_limit in [None, Some(b"over".as_slice())] {
        let name = format!("{beyond_limit:?}");
        let spec = FamilySpec { beyond_limit, ..FamilySpec::default() };
        let f = family(region, &name, spec);
        let over = f.series_beyond_limit(b"over").unwrap().at(0);
        for others in [&[][..], &[b"a", b"b"]] {
            over.add(1);
            others.iter().for_each(|text| f.series(*text).unwrap().at(0).add(1));
            assert!(region.end_families(name.as_bytes()));
            over.add(2);
            others.iter().for_each(|text| f.series(*text).unwrap().at(0).add(2));
            assert_eq!(family(region, &name, spec), f);
            assert_eq!(values(region, &name), [0], "{name} {others:?}");
            over.add(4);
            assert_eq!(values(region, &name), [4], "{name} {others:?}");
        }
    }
}

#[test]
fn permanent_series_of_an_ended_family_are_not_reused_while_a_handle_may_live() {
    let (region, f) = with_family();
    let kept = f.permanent_series(b"").unwrap().at(0);
    region.end_families(b"f");
    sweep(region, 5);
    let g = family(region, "g", FamilySpec::default());
    let others: Vec<_> =
        (0..50).map(|n| g.permanent_series(format!("{n}").as_bytes()).unwrap().at(0)).collect();
    kept.add(1);
    assert!(others.iter().all(|cell| *cell != kept && cell.get() == 0));
}

#[test]
fn wiping_again_and_again_takes_no_more_memory() {
    let region = region();
    let f = family(region, "f", FamilySpec { cells: 5, ..FamilySpec::default() });
    let lasting = f.permanent_series(b"").unwrap();
    let mut taken = Vec::new();
    for round in 0..if cfg!(miri) { 6 } else { 50 } {
        for n in 0..20 {
            f.series(format!("{n}").as_bytes()).unwrap().at(0).add(1);
        }
        lasting.at(0).add(1);
        f.wipe();
        sweep(region, 2);
        if round > 2 {
            taken.push(region.usage().single_cells.taken);
        }
    }
    assert!(taken.iter().all(|bytes| *bytes == taken[0]), "{taken:?}");
}

#[test]
fn a_full_region_goes_on_counting_what_it_cannot_wipe() {
    let region = Region::anonymous(Config { series: 4000, ..Config::with_len(1 << 20) }).unwrap();
    let f = family(region, "f", FamilySpec { cells: 100, ..FamilySpec::default() });
    let first = f.permanent_series(b"").unwrap();
    first.at(0).add(3);
    let filling: Vec<_> =
        (0..4000).map_while(|n| f.permanent_series(format!("{n}").as_bytes()).ok()).collect();
    assert!(filling.len() < 4000);
    assert!(!region.wipe(|_| true), "there is no room to note what was counted");
    first.at(0).add(1);
    assert_eq!(first.at(0).get(), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_outside_sees_the_same() {
    let shm = crate::support::tmpfs::Shm::new("wipe");
    let region = region::open(shm.file());
    let reader = talea_region::Reader::open(shm.file()).unwrap();
    for storage in [Storage::Single, Storage::Striped, Storage::Stripes] {
        let f =
            family(region, &format!("{storage:?}"), FamilySpec { storage, ..Default::default() });
        let cell = f.permanent_series(b"").unwrap().at(0);
        cell.add(9);
        f.wipe();
        cell.add(2);
    }
    let f = family(region, "kept", FamilySpec::default());
    f.series(b"").unwrap().keep().unwrap().at(0).add(1);
    f.wipe();
    let shown = |snapshot: &talea_region::Snapshot| -> Vec<Vec<u64>> {
        let families = snapshot.families().iter();
        families.map(|f| snapshot.series(f).map(|s| s.values[0]).collect()).collect()
    };
    let outside = reader.snapshot().unwrap();
    assert_eq!(shown(&outside), [vec![2], vec![2], vec![2], vec![0]]);
    assert_eq!(shown(&outside), shown(&region.snapshot()));
}
