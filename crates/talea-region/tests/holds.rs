//! Claims about series that a process holds for some time and lets go. They are a binary of their own:
//! a child that another test forks holds what its parent holds, until it ends.
#![cfg(target_os = "linux")]

#[macro_use]
mod support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use crate::support::process::{Process, arguments};
use crate::support::region::{family, open, shown, sweep};
use crate::support::tmpfs::Shm;
use talea_region::{Cells, Combine, Family, FamilySpec, Hold, Region, Storage};

const LIMIT: u64 = 50;

fn spec() -> FamilySpec<'static> {
    FamilySpec { limit: LIMIT, idle_minutes: 1, ..FamilySpec::default() }
}

/// While a thread is preempted in a guard, nothing is reclaimed: then it waits for room.
fn hold(family: &Family, text: &str) -> (Cells, Hold) {
    let began = Instant::now();
    loop {
        let Ok(found) = family.series(text.as_bytes()) else {
            assert!(began.elapsed().as_secs() < 60, "no room for {text}");
            thread::yield_now();
            continue;
        };
        if let Some(hold) = Hold::of(found.at(0)).unwrap() {
            return (*found, hold);
        }
    }
}

/// Two that count as two processes.
fn two(shm: &Shm) -> [(&'static Region, Family); 2] {
    [(); 2].map(|()| {
        let region = open(shm.file());
        (region, family(region, "f", spec()))
    })
}

fn assert_all_free(region: &'static Region) {
    sweep(region, 4);
    let usage = region.usage();
    assert_eq!((usage.records.taken, usage.single_cells.taken), (0, 0));
}

#[test]
fn a_removed_series_that_is_held_counts_nowhere_and_its_successor_from_zero() {
    let shm = Shm::new("holds");
    let [(region, f), _] = two(&shm);
    let (old, held) = hold(&f, "a");
    old.at(0).add(5);
    assert!(held.is_current() && f.remove(b"a") && !held.is_current());
    old.at(0).add(1);
    assert!(shown(region, "f").is_empty());
    let (new, other) = hold(&f, "a");
    old.at(0).add(1);
    new.at(0).add(2);
    sweep(region, 4);
    assert_eq!(shown(region, "f"), ["a=2"]);
    drop((held, other));
    assert_all_free(region);
}

#[test]
fn a_series_that_another_process_holds_comes_back_from_zero_and_goes_with_its_last_hold() {
    for comes_back in [false, true] {
        let shm = Shm::new("holds");
        let [(region, f), (_, other)] = two(&shm);
        let (cells, held) = hold(&other, "a");
        let second = hold(&other, "a").1;
        cells.at(0).add(5);
        assert!(f.remove(b"a"));
        assert!(shown(region, "f").is_empty() && held.is_out_of_sight());
        drop(second);
        if comes_back {
            cells.at(0).add(2);
            assert_eq!(shown(region, "f"), ["a=2"]);
            drop(held);
            assert_eq!(shown(region, "f"), ["a=2"]);
            assert!(f.remove(b"a"));
        } else {
            drop(held);
        }
        assert!(shown(region, "f").is_empty());
        let (cells, held) = hold(&f, "a");
        cells.at(0).add(1);
        assert_eq!(shown(region, "f"), ["a=1"], "{comes_back}");
        drop(held);
        assert_all_free(region);
    }
}

#[test]
fn label_sets_one_after_another_take_no_place_whoever_removes_them() {
    let shm = Shm::new("holds");
    let [(region, f), (_, other)] = two(&shm);
    for n in 0..if cfg!(miri) { 100 } else { 5_000 } {
        let text = format!("n=\"{n}\"");
        let (_, by_other) = hold(&other, &text);
        let (cells, held) = hold(&f, &text);
        cells.at(0).add(1);
        match n % 3 {
            0 => {
                f.remove(text.as_bytes());
                drop((held, by_other));
            }
            1 => {
                drop(held);
                f.remove(text.as_bytes());
                drop(by_other);
            }
            _ => {
                other.remove(text.as_bytes());
                drop((by_other, held));
            }
        }
        assert_eq!(f.dropped() + other.dropped(), 0, "{n}");
        assert!(region.usage().records.taken < 40 * region.usage().record_len, "{n}");
    }
    assert_all_free(region);
}

#[test]
fn a_series_that_is_kept_beside_a_hold_stays_kept() {
    for kept_first in [true, false] {
        let shm = Shm::new("holds");
        let [(region, f), _] = two(&shm);
        let keep = || f.series(b"a").unwrap().keep().unwrap();
        let before = kept_first.then(keep);
        let held = hold(&f, "a").1;
        let kept = before.unwrap_or_else(keep);
        drop(held);
        sweep(region, 4);
        kept.at(0).add(3);
        assert_eq!(shown(region, "f"), ["a=3"], "kept first: {kept_first}");
    }
}

#[test]
fn values_that_each_process_has_are_gone_after_a_removal_whoever_removes_them() {
    for combine in [Combine::Sum, Combine::Max, Combine::Min, Combine::Each] {
        for removed_by_other in [false, true] {
            let shm = Shm::new("holds");
            let [region, other] = [(); 2].map(|()| open(shm.file()));
            let spec = FamilySpec {
                storage: Storage::Owned,
                number: talea_region::Number::Float,
                combine,
                ..spec()
            };
            let [f, g] = [region, other].map(|region| family(region, "f", spec));
            let (cells, held) = hold(&f, "a");
            let (others, by_other) = hold(&g, "a");
            cells.at(0).set_float(7.0);
            others.at(0).set_float(8.0);
            assert!(!shown(region, "f").is_empty());
            assert!(if removed_by_other { g.remove(b"a") } else { f.remove(b"a") });
            assert!(shown(region, "f").is_empty(), "{combine:?} {removed_by_other}");
            sweep(region, 2);
            assert!(shown(other, "f").is_empty(), "{combine:?} {removed_by_other}");
            drop((held, by_other));
        }
    }
}

/// Holds, lets go, removes and makes series at random.
fn wander(f: &Family, seed: u64, mut goes_on: impl FnMut() -> bool) {
    let mut random = seed | 1;
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % end
    };
    let mut held: Vec<(Cells, Hold)> = Vec::new();
    while goes_on() {
        let text = format!("passing=\"{}\"", below(8));
        match below(4) {
            0 if held.len() < 8 => held.push(hold(f, &text)),
            1 if !held.is_empty() => drop(held.swap_remove(below(held.len() as u64) as usize)),
            2 => drop(f.remove(text.as_bytes())),
            _ => held.iter().for_each(|(cells, _)| cells.at(0).add(1)),
        }
    }
}

#[test]
fn what_threads_and_processes_count_in_series_that_stay_is_exact_beside_all_else() {
    const ADDS: u64 = if cfg!(miri) { 50 } else { 10_000 };
    let shm = Shm::new("holds");
    let [(region, f), (_, other)] = two(&shm);
    let stays = hold(&f, "stays").1;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let counting: Vec<_> = [&f, &f, &other, &other]
            .into_iter()
            .map(|family| {
                scope.spawn(move || {
                    for _ in 0..ADDS {
                        let (cells, _held) = hold(family, "stays");
                        cells.at(0).add(1);
                    }
                })
            })
            .collect();
        for (seed, family) in [&f, &f, &other].into_iter().enumerate() {
            let is_over = &is_over;
            scope.spawn(move || wander(family, seed as u64, || !is_over.load(Relaxed)));
        }
        // Idle series are hidden all the time.
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                region.sweep();
            }
        });
        counting.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Relaxed);
    });
    let all = shown(region, "f");
    assert!(all.contains(&format!("stays={}", 4 * ADDS)), "{all:?}");
    // Each that was removed counts again, from 0.
    for n in 0..8 {
        let text = format!("passing=\"{n}\"");
        f.remove(text.as_bytes());
        for (family, added) in [(&f, 3), (&other, 4)] {
            hold(family, &text).0.at(0).add(added);
        }
        assert!(shown(region, "f").contains(&format!("{text}=7")), "{:?}", shown(region, "f"));
        f.remove(text.as_bytes());
    }
    drop(stays);
    f.remove(b"stays");
    assert_all_free(region);
}

/// Counts in a series that stays, and wanders, until it is killed.
#[test]
#[ignore = "a process that a test starts"]
fn wanders_when_asked() {
    let Some([path, seed]) = arguments() else { return };
    let region = open(path);
    let f = family(region, "f", spec());
    println!("\nwanders");
    wander(&f, seed.parse().unwrap(), || {
        hold(&f, "stays").0.at(0).add(1);
        true
    });
}

#[test]
fn killed_processes_leave_no_holds_behind() {
    let shm = Shm::new("holds");
    let [(region, f), _] = two(&shm);
    let stays = hold(&f, "stays").1;
    for round in 0..5 {
        let mut all = [0, 1].map(|n| {
            let seed = (2 * round + n).to_string();
            Process::start(&mut again!("wanders_when_asked", &shm.file(), &seed))
        });
        all.iter_mut().for_each(|process| drop(process.wait_for("wanders")));
        let mut left = 2_000;
        wander(&f, round, || {
            left -= 1;
            left > 0
        });
        all.iter_mut().for_each(Process::kill);
    }
    for n in 0..8 {
        f.remove(format!("passing=\"{n}\"").as_bytes());
    }
    drop(stays);
    f.remove(b"stays");
    sweep(region, 4);
    // A process that is killed while it frees a series leaks one of its runs.
    let usage = region.usage();
    assert!(usage.records.taken == 0 && usage.single_cells.taken <= 10 * 48, "{usage:?}");
}
