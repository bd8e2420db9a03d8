//! Claims about children made by `fork`, as a pre-forking server makes them.
#![allow(unsafe_code)]

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use crate::support::calls::{fork, kill, kill_child};
use crate::support::process::{Process, arguments};
use crate::support::region::{family, open, region, sweep, total};
use crate::support::tmpfs::Shm;
use crate::support::until;
use talea_region::{Cell, ClosedInChildren, FamilySpec, Incarnation, Reader, Region, Storage};

fn cell(region: &'static Region, name: &str, storage: Storage) -> Cell {
    let spec = FamilySpec { storage, limit: 10, ..FamilySpec::default() };
    family(region, name, spec).series(b"").unwrap().at(0)
}

/// Waits until a process that is not our child no longer counts as living: its end is not reported.
fn wait_for_end(region: &'static Region, name: &str) {
    until("the process no longer counts as living", || total(region, name) == 0);
}

#[test]
fn children_add_to_their_parents_cells_and_hold_what_is_their_own() {
    let region = region(1 << 20);
    let (striped, single, held) = (
        cell(region, "striped", Storage::Striped),
        cell(region, "single", Storage::Single),
        cell(region, "held", Storage::Owned),
    );
    held.add(1);
    let work = move || {
        for _ in 0..1000 {
            striped.add(1);
            single.add(1);
        }
        held.add(10);
    };
    let children = [fork(work), fork(work), fork(work)];
    assert_eq!(held.get(), 1, "a parent does not hold what its children do");
    assert_eq!(total(region, "held"), 31);
    kill_child(children[0]);
    assert_eq!(total(region, "held"), 21, "what a dead child held leaves with it");
    kill_child(children[1]);
    // A child that comes later begins with nothing in the slot of a dead one.
    let late = fork(move || held.add(100));
    assert_eq!(total(region, "held"), 111);
    kill_child(late);
    kill_child(children[2]);
    assert_eq!(total(region, "held"), 1);
    assert_eq!(total(region, "striped"), 3000, "what was counted stays");
    assert_eq!(total(region, "single"), 3000);
}

#[test]
fn values_in_flight_of_a_parent_end_with_it_while_its_child_lives_on() {
    let region = region(1 << 20);
    let held = cell(region, "held", Storage::Owned);
    let pid = cell(region, "grandchild", Storage::Single);
    // The child makes a grandchild and is killed; the grandchild lives on.
    let child = fork(|| {
        held.add(5);
        let grandchild = fork(|| held.add(70));
        pid.set(grandchild as u64);
    });
    assert_eq!(total(region, "held"), 75);
    kill_child(child);
    assert_eq!(total(region, "held"), 70);
    kill(pid.get() as libc::pid_t);
    wait_for_end(region, "held");
}

#[test]
fn a_child_uses_the_families_of_its_parent() {
    let region = region(1 << 20);
    cell(region, "defined", Storage::Single);
    let answer = cell(region, "answer", Storage::Single);
    let child = fork(|| {
        let (name, definition) = (b"defined", b"otherwise");
        let other = FamilySpec { name, definition, limit: 10, ..FamilySpec::default() };
        answer.set(u64::from(region.family(other).is_err()) + 1);
    });
    kill_child(child);
    assert_eq!(answer.get(), 2, "the child may not define it otherwise");
}

/// Opens a region, holds something in flight, is in the middle of a look-up, and makes a worker in the
/// way that its argument says. Both then wait.
#[test]
#[ignore = "a process that a test starts"]
fn plays_a_master() {
    let Some([path, way]) = arguments() else { return };
    let region = open(&path);
    let held = cell(region, "held", Storage::Owned);
    held.add(5);
    let family = family(region, "looked up", FamilySpec::default());
    let _guard = family.series(b"").unwrap();
    let mut foreign = Vec::new();
    match way.as_str() {
        // SAFETY: calls with integers only; the threads of this process do not depend on its ids.
        "drops privileges" => unsafe {
            assert_eq!(libc::syscall(libc::SYS_setgid, 65534), 0);
            assert_eq!(libc::syscall(libc::SYS_setuid, 65534), 0);
        },
        "closes descriptors" => {
            // SAFETY: nothing of this process but the region uses these descriptors.
            unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
            let log = Path::new(&path).with_extension("log");
            foreign.extend((0..20).map(|_| std::fs::File::create(&log).unwrap()));
        }
        _ => {}
    }
    let worker = fork(|| {
        if way == "exits" {
            // SAFETY: a call without arguments.
            unsafe { libc::setsid() };
        }
        held.add(70);
        // New cells, which need new pages.
        for n in 0..200_u32 {
            if let Ok(series) = family.series(&n.to_le_bytes()) {
                series.at(0).add(1);
            }
        }
    });
    println!("\nworker {worker}");
    if way == "exits" {
        // As a program does that becomes a daemon.
        std::process::exit(0);
    }
    loop {
        std::thread::park();
    }
}

/// A master that ends in the given way once its worker runs; the worker lives on as an orphan.
struct Orphan {
    master: Process,
    worker: libc::pid_t,
}

impl Orphan {
    fn of(shm: &Shm, way: &str) -> Self {
        let mut master = Process::start(&mut again!("plays_a_master", shm.file(), way));
        let worker = master.wait_for("worker ").parse().unwrap();
        Self { master, worker }
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        self.master.kill();
        kill(self.worker);
    }
}

fn living(shm: &Shm) -> Vec<u64> {
    let (overview, _) = Reader::open(shm.file()).unwrap().look().unwrap();
    overview.processes.iter().filter(|it| it.is_alive).map(|it| it.pid).collect()
}

#[test]
fn the_process_that_opened_a_region_is_dead_when_it_is_though_its_children_live() {
    assert_orphans_count_on(&["is killed", "exits"]);
}

#[test]
#[ignore = "needs root: a master that drops its privileges"]
fn as_root_a_master_that_dropped_its_privileges_is_dead_when_it_is() {
    assert_orphans_count_on(&["drops privileges"]);
}

fn assert_orphans_count_on(ways: &[&str]) {
    for way in ways {
        let shm = Shm::new(&way.replace(' ', "-"));
        let mut orphan = Orphan::of(&shm, way);
        orphan.master.kill();
        assert_eq!(living(&shm), [orphan.worker as u64], "a master that {way}");
        let region = open(shm.file());
        assert_eq!(total(region, "held"), 70, "a master that {way}");
        // The look-up in which it died keeps nothing from being used again.
        let family = family(region, "turnover", FamilySpec::default());
        for n in 0..30_000_u32 {
            let text = format!("a label text of some length, number {n:010}");
            let series = family.series(text.as_bytes());
            series.unwrap_or_else(|_| panic!("full at {n}: a master that {way}")).at(0).add(1);
            assert!(family.remove(text.as_bytes()));
        }
        // And the worker dies in its turn.
        drop(orphan);
        wait_for_end(region, "held");
    }
}

/// Some programs that become daemons close all descriptors, ours among them.
#[test]
fn descriptors_that_a_program_closed_are_not_used_when_they_are_another_file_s() {
    let shm = Shm::new("closed");
    let orphan = Orphan::of(&shm, "closes descriptors");
    assert_eq!(std::fs::metadata(shm.file().with_extension("log")).unwrap().len(), 0);
    drop(orphan);
}

#[test]
fn a_child_closes_the_listed_sockets_of_its_parent_and_no_other_file_of_their_number() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let _listed = ClosedInChildren::new(socket.as_fd());
    let number = socket.as_raw_fd();
    let is_socket = move || {
        let (mut kind, mut len) = (0, 4);
        let (level, option) = (libc::SOL_SOCKET, libc::SO_TYPE);
        // SAFETY: `kind` has the four bytes that `len` says.
        unsafe { libc::getsockopt(number, level, option, (&raw mut kind).cast(), &mut len) == 0 }
    };
    let region = region(1 << 20);
    let report = cell(region, "report", Storage::Single);
    let child = fork(|| {
        report.add(u64::from(!is_socket()));
        // SAFETY: calls with integers, on descriptors that nothing else in this process uses. The
        // grandchild adds to a cell and ends.
        unsafe {
            let own = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
            libc::dup2(own, number);
            let grandchild = libc::fork();
            if grandchild == 0 {
                report.add(10 * u64::from(is_socket()));
                libc::_exit(0);
            }
            libc::waitpid(grandchild, std::ptr::null_mut(), 0);
        }
    });
    assert_eq!(total(region, "report"), 11);
    assert!(is_socket(), "the parent keeps it");
    kill_child(child);
}

#[test]
fn an_incarnation_is_of_the_process_that_noted_it() {
    let region = region(4 << 20);
    let own = cell(region, "own", Storage::Owned);
    let noted = Incarnation::of(own);
    assert!(noted.is_of_this_process() && noted.enter().is_some());
    let report = cell(region, "report", Storage::Single);
    let child = fork(|| {
        let as_expected = !noted.is_of_this_process() && noted.enter().is_some();
        report.add(1 + u64::from(as_expected));
    });
    assert_eq!(total(region, "report"), 2);
    kill_child(child);
}

#[test]
fn hundreds_of_processes_at_once_leave_nothing_when_they_die() {
    const CHILDREN: u64 = 300;
    let region = region(64 << 20);
    let in_flight = cell(region, "in_flight", Storage::Owned);
    let kept = FamilySpec { limit: 10, idle_minutes: 1, ..FamilySpec::default() };
    let kept = family(region, "kept", kept);
    let spec = |definition| FamilySpec { name: b"versioned", definition, ..FamilySpec::default() };
    let children: Vec<libc::pid_t> = (0..CHILDREN)
        .map(|_| {
            fork(|| {
                // SAFETY: a call with integers only. The child ends with the test, also if it fails.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                in_flight.add(1);
                kept.series(b"a").unwrap().keep().unwrap().at(0).add(1);
                region.family(spec(b"theirs")).unwrap();
            })
        })
        .collect();
    assert_eq!(total(region, "in_flight"), CHILDREN);
    assert_eq!(region.snapshot().living().count() as u64, CHILDREN + 1);
    // The last ones have slots that not every region has.
    for &child in &children[..280] {
        kill_child(child);
    }
    assert_eq!(total(region, "in_flight"), CHILDREN - 280);
    assert!(kept.remove(b"a") && total(region, "kept") == 0, "hidden");
    let before = region.usage().single_cells.taken;
    for &child in &children[280..] {
        kill_child(child);
    }
    assert_eq!(total(region, "in_flight"), 0);
    assert!(!region.family(spec(b"ours")).unwrap().conflict, "nobody uses theirs");
    kept.remove(b"a");
    sweep(region, 4);
    // Its cell, what its removal noted, and both sets of the processes that kept it.
    assert_eq!(before - region.usage().single_cells.taken, 8 * (1 + 3 + 6 + 13));
}
