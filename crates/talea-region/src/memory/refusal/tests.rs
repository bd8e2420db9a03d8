use super::*;
use crate::lookup::register::FamilySpec;
use crate::memory::mapping::refused_calls;
use crate::testing::{cell, family};
use crate::values::Storage;

#[test]
fn label_sets_on_a_full_tmpfs_cost_no_system_calls() {
    let (region, family) = family(FamilySpec::default());
    let make = |n: u64| family.series(format!("n=\"{n:050}\"").as_bytes()).is_ok();
    refused_calls(|calls| {
        // Memory that is backed already is used up first.
        let before = (0..1_000_000).take_while(|&n| make(n)).count() as u64;
        let began = boot_nanos();
        assert!((0..10_000).all(|n| !make(before + n)));
        assert!(calls() <= most_calls(began), "{} calls", calls());
        // Once the pause is over, the system is asked again.
        let asked = calls();
        region.memory.refusal.until.store(1, Relaxed);
        assert!(!make(before) && calls() > asked);
        region.memory.refusal.until.store(1, Relaxed);
    });
    assert!(make(7_000_000), "there is memory again");
    assert_eq!(region.memory.refusal.until.load(Relaxed), 0);
}

#[test]
fn adds_on_a_cpu_that_gets_no_plane_on_a_full_tmpfs_cost_no_system_calls() {
    let (_, cell) = cell(FamilySpec { storage: Storage::Striped, ..FamilySpec::default() });
    refused_calls(|calls| {
        let began = boot_nanos();
        (0..10_000).for_each(|_| cell.add(1));
        assert!(calls() <= most_calls(began), "{} calls", calls());
    });
    assert_eq!(cell.get(), 10_000);
}

/// The calls of some pauses, which are as many as the machine took time.
fn most_calls(began: u64) -> u64 {
    8 * (2 + (boot_nanos() - began) / PAUSE)
}
