//! Claims about series that processes keep: their children keep them too, and a series that only
//! dead processes kept is free.
#![allow(unsafe_code)]

use std::path::Path;

use crate::support::calls::kill;
use crate::support::process::{Process, arguments};
use crate::support::region::{self, family, sweep};
use crate::support::tmpfs::Shm;
use crate::support::until;
use talea_region::{Family, FamilySpec, Region};

fn open(path: impl AsRef<Path>) -> (&'static Region, Family) {
    let region = region::open(path);
    (region, family(region, "f", FamilySpec { idle_minutes: 1, ..FamilySpec::default() }))
}

fn value(region: &'static Region) -> Option<u64> {
    let snapshot = region.snapshot();
    let mut series = snapshot.series(&snapshot.families()[0]);
    series.find(|series| series.text == b"kept").map(|series| series.values[0])
}

/// Keeps a series, forks if asked to, and adds to it whenever a line comes; the child goes on when the
/// parent is dead.
#[test]
#[ignore = "a process that a test starts"]
fn keeps_when_asked() {
    let Some([path, request]) = arguments() else { return };
    let (_, family) = open(path);
    let kept = family.series(b"kept").unwrap().keep().unwrap().at(0);
    kept.add(1);
    if request == "has a permanent one" {
        family.permanent_series(b"lasting").unwrap().at(0).add(1);
    }
    // SAFETY: the child goes on with this thread alone; no other thread of this test holds a lock
    // that it needs.
    if request == "forks" && unsafe { libc::fork() } > 0 {
        loop {
            std::thread::park();
        }
    }
    println!("\nkept {}", std::process::id());
    for line in std::io::stdin().lines() {
        line.unwrap();
        kept.add(1);
        println!("\nadded");
    }
    // A child has no test to return to.
    std::process::exit(0);
}

struct Keeper {
    process: Process,
    /// The id of the process that keeps the series: a child of that process, if it forks.
    pid: libc::pid_t,
}

impl Keeper {
    /// Starts one with a further request.
    fn start(path: &Path, request: &str) -> Self {
        let mut process = Process::start(&mut again!("keeps_when_asked", path, request));
        let pid = process.wait_for("kept ").parse().unwrap();
        Self { process, pid }
    }

    fn add(&mut self) {
        self.process.write_line();
        self.process.wait_for("added");
    }
}

#[test]
fn a_kept_series_stays_until_the_process_dies_also_if_its_slot_is_taken_anew() {
    for taken_anew in [false, true] {
        let shm = Shm::new("keeps");
        let (region, _) = open(shm.file());
        let mut keeper = Keeper::start(&shm.file(), "");
        sweep(region, 4);
        keeper.add();
        sweep(region, 4);
        assert_eq!(value(region), Some(2));
        keeper.process.kill();
        // In the same slot: the first that is free.
        let reader = if taken_anew { open(shm.file()).0 } else { region };
        sweep(region, 4);
        assert_eq!(value(reader), None, "taken anew: {taken_anew}");
        let usage = region.usage();
        assert_eq!((usage.records.taken, usage.single_cells.taken), (0, 0), "{taken_anew}");
    }
}

#[test]
fn a_child_made_by_fork_keeps_what_its_parent_kept() {
    let shm = Shm::new("forks");
    let (region, family) = open(shm.file());
    let mut keeper = Keeper::start(&shm.file(), "forks");
    // The parent is gone; the child alone keeps the series.
    keeper.process.kill();
    sweep(region, 4);
    for n in 0..200_u64 {
        family.series(&n.to_le_bytes()).unwrap();
    }
    keeper.add();
    assert_eq!(value(region), Some(2));
    kill(keeper.pid);
    // Its death is not reported: it is not our child.
    until("all records are free", || {
        sweep(region, 4);
        region.usage().records.taken == 0
    });
    assert_eq!(value(region), None);
}

#[test]
fn series_of_a_retired_family_go_even_lasting_ones() {
    let shm = Shm::new("retired");
    let region = region::open(shm.file());
    let mut keeper = Keeper::start(&shm.file(), "has a permanent one");
    let spec = FamilySpec { name: b"f", definition: b"another", ..FamilySpec::default() };
    assert!(region.family(spec).unwrap().conflict);
    sweep(region, 4);
    assert_eq!(region.usage().records.taken, 2 * region.usage().record_len);
    keeper.process.kill();
    assert!(!region.family(spec).unwrap().conflict);
    sweep(region, 4);
    assert_eq!(region.usage().records.taken, 0);
    assert_eq!(region.usage().single_cells.taken, 0);
}
