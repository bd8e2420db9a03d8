//! Claims about values that processes own, and how they are combined.

use crate::support::process::{Process, arguments, wait_for_input};
use crate::support::region::{family, open, region};
use crate::support::tmpfs::Shm;
use talea_region::{Cell, Combine, FamilySpec, Number, Region, Storage};

const ALL: [Combine; 4] = [Combine::Sum, Combine::Max, Combine::Min, Combine::Each];

/// The cell of a family that combines so.
fn cell(region: &'static Region, combine: Combine, number: Number) -> Cell {
    let spec = FamilySpec { storage: Storage::Owned, number, combine, ..FamilySpec::default() };
    let family = family(region, &format!("{combine:?}{number:?}"), spec);
    family.permanent_series(b"l=\"1\"").unwrap().at(0)
}

/// The texts and values that are shown of it.
fn shown(region: &'static Region, combine: Combine, number: Number) -> Vec<(String, u64)> {
    let name = format!("{combine:?}{number:?}");
    let mut snapshot = region.snapshot();
    snapshot.name_owners(|text, owner| text.extend(format!(" of {}", owner.pid).bytes()));
    let family = snapshot.families().iter().find(|f| f.name == name.as_bytes()).unwrap();
    let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    snapshot.series(family).map(|series| (text(series.text), series.values[0])).collect()
}

fn integers(region: &'static Region, combine: Combine) -> Vec<i64> {
    shown(region, combine, Number::Integer).iter().map(|(_, value)| *value as i64).collect()
}

#[test]
#[ignore = "a process that a test starts"]
fn sets_when_asked() {
    let Some([path, value]) = arguments() else { return };
    let region = open(path);
    for combine in ALL {
        let integer = cell(region, combine, Number::Integer);
        assert_eq!(integer.get(), 0, "nothing is left of a process that had the slot before");
        integer.set(value.parse::<i64>().unwrap() as u64);
        cell(region, combine, Number::Float).set_float(value.parse().unwrap());
    }
    println!("\nset");
    wait_for_input();
}

fn process(shm: &Shm, value: &str) -> Process {
    Process::start_until("set", &mut again!("sets_when_asked", shm.file(), value))
}

#[test]
fn the_living_are_combined_and_the_dead_leave_with_what_they_held() {
    let shm = Shm::new("owners");
    let region = open(shm.file());
    for combine in ALL {
        cell(region, combine, Number::Integer);
        cell(region, combine, Number::Float);
    }
    assert_eq!(ALL.map(|combine| integers(region, combine)), [vec![0], vec![], vec![], vec![]]);

    let (one, other) = (process(&shm, "-5"), process(&shm, "7"));
    assert_eq!(ALL[..3].iter().map(|&c| integers(region, c)[0]).collect::<Vec<_>>(), [2, 7, -5]);
    let floats = ALL[..3].iter().map(|&c| f64::from_bits(shown(region, c, Number::Float)[0].1));
    assert_eq!(floats.collect::<Vec<_>>(), [2.0, 7.0, -5.0]);
    let mut each = shown(region, Combine::Each, Number::Integer);
    each.sort();
    let name = |process: &Process| format!("l=\"1\" of {}", process.id());
    let mut expected = vec![(name(&one), -5_i64 as u64), (name(&other), 7)];
    expected.sort();
    assert_eq!(each, expected);

    drop(other);
    assert_eq!(ALL.map(|combine| integers(region, combine)), [[-5]; 4]);
    drop(process(&shm, "9"));
    drop(one);
    assert_eq!(ALL.map(|combine| integers(region, combine)), [vec![0], vec![], vec![], vec![]]);
}

#[test]
fn any_value_can_be_set_and_counts_as_set() {
    let region = region(1 << 20);
    let cell_of = |number| ALL.map(|combine| cell(region, combine, number));
    for value in [0, -1, 1, i64::MAX, i64::MIN + 1] {
        cell_of(Number::Integer).iter().for_each(|cell| cell.set(value as u64));
        assert_eq!(ALL.map(|combine| integers(region, combine)), [[value]; 4]);
        assert!(cell_of(Number::Integer).iter().all(|cell| cell.get() as i64 == value));
    }
    let [_, max, ..] = cell_of(Number::Integer);
    max.set(i64::MIN as u64);
    assert_eq!(max.get() as i64, i64::MIN + 1, "the one integer that cannot be kept");
    for value in [0.0, -1.5, f64::MAX, f64::MIN, f64::NEG_INFINITY, f64::MIN_POSITIVE] {
        cell_of(Number::Float).iter().for_each(|cell| cell.set_float(value));
        for combine in ALL {
            let found = shown(region, combine, Number::Float)[0].1;
            assert_eq!(f64::from_bits(found), value, "{combine:?}");
        }
    }
    let [_, max, ..] = cell_of(Number::Float);
    max.set_float(-0.0);
    assert_eq!(f64::from_bits(max.get()).abs(), 0.0);
}

#[test]
fn adding_begins_at_zero() {
    let region = region(1 << 20);
    for combine in ALL {
        let cell = cell(region, combine, Number::Integer);
        cell.add(3);
        assert_eq!(cell.add_and_get(-5_i64 as u64) as i64, -2);
        cell.update(|value| (value as i64 == -2).then_some(9));
        assert_eq!(integers(region, combine), [9], "{combine:?}");
    }
    let cell = cell(region, Combine::Min, Number::Float);
    cell.add_float(-0.5);
    assert_eq!(cell.get_float(), -0.5);
}
