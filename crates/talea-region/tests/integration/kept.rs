//! Claims about series that processes keep: their children keep them too, and a series that only
//! dead processes kept is free.
#![allow(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::tmpfs::Shm;
use talea_region::{Config, Family, FamilySpec, Region};

fn open(path: &Path) -> (&'static Region, Family) {
    let region = Region::open(path, Config::with_len(2 << 20)).unwrap().region;
    let spec = FamilySpec { name: b"f", idle_minutes: 1, ..FamilySpec::default() };
    (region, region.family(spec).unwrap().family)
}

fn value(region: &'static Region) -> Option<u64> {
    let snapshot = region.snapshot();
    let mut series = snapshot.series(&snapshot.families()[0]);
    series.find(|series| series.text == b"kept").map(|series| series.values[0])
}

/// The body of a process that a test starts, not a claim of its own. It keeps a
/// series, forks if asked to, and adds to it whenever a line comes; the child goes
/// on when the parent is dead.
#[test]
fn keeps_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_KEPT") else { return };
    let (_, family) = open(path.as_ref());
    let kept = family.series(b"kept").unwrap().keep().unwrap().at(0);
    kept.add(1);
    if std::env::var_os("TALEA_TEST_LASTS").is_some() {
        family.permanent_series(b"lasting").unwrap().at(0).add(1);
    }
    // SAFETY: the child goes on with this thread alone; no other thread of this test holds a lock
    // that it needs.
    if std::env::var_os("TALEA_TEST_FORKS").is_some() && unsafe { libc::fork() } > 0 {
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
    process: Child,
    lines: std::process::ChildStdin,
    said: BufReader<std::process::ChildStdout>,
    pid: u32,
}

impl Keeper {
    fn start(path: &Path) -> Self {
        Self::start_with(path, "TALEA_TEST_NOTHING")
    }

    /// Starts one with a further request.
    fn start_with(path: &Path, request: &str) -> Self {
        let mut command = again!("keeps_when_asked");
        command.env("TALEA_TEST_KEPT", path).env(request, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let lines = process.stdin.take().unwrap();
        let mut keeper = Self { process, lines, said, pid: 0 };
        keeper.pid = keeper.wait_for("kept ").parse().unwrap();
        keeper
    }

    /// The rest of the next line that begins so.
    fn wait_for(&mut self, begin: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended by itself");
            if let Some(rest) = line.trim().strip_prefix(begin) {
                return rest.to_owned();
            }
        }
    }

    fn add(&mut self) {
        self.lines.write_all(b"\n").unwrap();
        self.wait_for("added");
    }
}

fn kill(pid: u32) {
    // SAFETY: a call with integers; the process is one that this test started.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
}

fn sweep(region: &'static Region) {
    (0..4).for_each(|_| region.sweep());
}

#[test]
fn a_kept_series_stays_until_the_process_dies() {
    let shm = Shm::new("keeps");
    let (region, _) = open(&shm.file());
    let mut keeper = Keeper::start(&shm.file());
    sweep(region);
    keeper.add();
    sweep(region);
    assert_eq!(value(region), Some(2));
    kill(keeper.pid);
    keeper.process.wait().unwrap();
    sweep(region);
    assert_eq!(value(region), None);
    assert_eq!(region.usage().records.taken, 0);
    assert_eq!(region.usage().single_cells.taken, 0);
}

#[test]
fn a_child_made_by_fork_keeps_what_its_parent_kept() {
    let shm = Shm::new("forks");
    let (region, family) = open(&shm.file());
    let mut keeper = Keeper::start_with(&shm.file(), "TALEA_TEST_FORKS");
    // The parent is gone; the child alone keeps the series.
    kill(keeper.process.id());
    keeper.process.wait().unwrap();
    sweep(region);
    for n in 0..200_u64 {
        family.series(&n.to_le_bytes()).unwrap();
    }
    keeper.add();
    assert_eq!(value(region), Some(2));
    kill(keeper.pid);
    // Its death is not reported: it is not our child.
    let end = Instant::now() + Duration::from_secs(10);
    while region.usage().records.taken > 0 && Instant::now() < end {
        sweep(region);
    }
    assert_eq!(value(region), None);
    assert_eq!(region.usage().records.taken, 0);
}

#[test]
fn a_slot_that_is_taken_anew_keeps_nothing_of_its_last_owner() {
    let shm = Shm::new("anew");
    let (region, _) = open(&shm.file());
    let mut keeper = Keeper::start(&shm.file());
    kill(keeper.pid);
    keeper.process.wait().unwrap();
    // In the same slot: the first that is free.
    let (again, _) = open(&shm.file());
    sweep(region);
    assert_eq!(value(again), None);
}

#[test]
fn series_of_a_retired_family_go_even_lasting_ones() {
    let shm = Shm::new("retired");
    let region = Region::open(shm.file(), Config::with_len(2 << 20)).unwrap().region;
    let mut keeper = Keeper::start_with(&shm.file(), "TALEA_TEST_LASTS");
    let spec = FamilySpec { name: b"f", definition: b"another", ..FamilySpec::default() };
    assert!(region.family(spec).unwrap().conflict);
    sweep(region);
    assert_eq!(region.usage().records.taken, 2 * region.usage().record_len);
    kill(keeper.pid);
    keeper.process.wait().unwrap();
    assert!(!region.family(spec).unwrap().conflict);
    sweep(region);
    assert_eq!(region.usage().records.taken, 0);
    assert_eq!(region.usage().single_cells.taken, 0);
}
