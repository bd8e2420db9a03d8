//! Claims about adds on CPUs that change, with and without restartable
//! sequences, and from signal handlers. `TALEA_ADDS` sets how many adds a writer
//! makes; 2,000,000 by default.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

#[path = "../support/mod.rs"]
#[macro_use]
mod support;

mod interrupted;
mod refused;
mod threads;

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::support::calls::{handle, move_to, own_thread, signal_thread};
use crate::support::process::{Process, arguments, wait_for_input};
use crate::support::region::{family, region};
use crate::support::tmpfs::Shm;
use talea_region::{Cell, Cells, Config, FamilySpec, Number, Reader, Region, Storage};

fn adds() -> u64 {
    std::env::var("TALEA_ADDS").map_or(2_000_000, |n| n.parse().unwrap())
}

fn cells(region: &'static Region, number: Number) -> Cells {
    let storage = Storage::Striped;
    let spec = FamilySpec { storage, number, cells: 2, limit: 1, ..FamilySpec::default() };
    family(region, &format!("{number:?}"), spec).permanent_series(b"").unwrap()
}

/// Cells of each number, and one of a segment.
#[derive(Clone, Copy)]
struct All {
    integer: Cells,
    float: Cells,
    both: Cells,
    spread: Cells,
    segment: Cell,
}

impl All {
    fn of(region: &'static Region) -> Self {
        let [integer, float, both] =
            [Number::Integer, Number::Float, Number::FloatLast].map(|number| cells(region, number));
        let (spread, segment) = segment(region);
        Self { integer, float, both, spread, segment }
    }

    /// A round: one add of each kind.
    fn add(&self) {
        self.integer.at(0).add(1);
        self.float.at(0).add_float(0.5);
        self.both.at(0).count_float(self.both.at(1), 0.25);
        self.integer.at(0).count(self.integer.at(1), 3);
        assert!(self.segment.count(self.spread.last(), 2));
    }

    /// The number of counts, and the amount of each.
    fn totals(&self) -> [f64; 7] {
        let Self { integer, float, both, spread, segment } = self;
        let [counts, amount] = [0, 1].map(|n| integer.at(n).get() as f64);
        let other_counts = both.at(0).get() as f64;
        let [spread_counts, spread] = [*segment, spread.last()].map(|cell| cell.get() as f64);
        let [float, sum] = [float.at(0), both.at(1)].map(Cell::get_float);
        [counts, amount, float, other_counts, sum, spread_counts, spread]
    }
}

/// A series with a segment of four cells, and the second one of these.
fn segment(region: &'static Region) -> (Cells, Cell) {
    let storage = Storage::Striped;
    let spec = FamilySpec { storage, cells: 2, segments: 3, limit: 1, ..FamilySpec::default() };
    let series = family(region, "spread", spec).permanent_series(b"").unwrap();
    let segments = series.segments().unwrap();
    let made = segments.make(1, 4, 0).unwrap();
    (series, segments.cell(made, 1).unwrap())
}

/// Moves a thread to each CPU of the machine in turn, until it is stopped.
fn bounce(thread: libc::pid_t, moves: &AtomicU64, stop: &AtomicBool) {
    let cpus = thread::available_parallelism().unwrap().get() as u64;
    while !stop.load(Relaxed) {
        move_to((moves.load(Relaxed) % cpus) as usize, thread);
        moves.fetch_add(1, Relaxed);
    }
}

/// Adds from threads that are moved from CPU to CPU all the while.
fn add_while_moved(region: &'static Region, threads: u64, each: u64) {
    let all = All::of(region);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                let this = own_thread();
                let (moves, stop) = (AtomicU64::new(0), AtomicBool::new(false));
                thread::scope(|scope| {
                    scope.spawn(|| bounce(this, &moves, &stop));
                    while moves.load(Relaxed) < 2 {
                        thread::yield_now();
                    }
                    (0..each).for_each(|_| all.add());
                    stop.store(true, Relaxed);
                });
            });
        }
    });
}

fn totals(region: &'static Region) -> [f64; 7] {
    All::of(region).totals()
}

/// The totals after so many rounds.
fn expected(rounds: u64) -> [f64; 7] {
    [2.0, 3.0, 0.5, 1.0, 0.25, 1.0, 2.0].map(|each| each * rounds as f64)
}

#[test]
fn threads_that_are_moved_between_cpus_lose_nothing() {
    // As many planes as CPUs, and one plane for all of them.
    for planes in [2, 1] {
        let region = Region::anonymous(Config { planes, ..Config::with_len(1 << 20) }).unwrap();
        add_while_moved(region, 4, adds() / 4);
        assert_eq!(totals(region), expected(adds() / 4 * 4));
    }
}

#[test]
#[ignore = "a process that a test starts"]
fn adds_while_moved_when_asked() {
    let Some([path]) = arguments() else { return };
    let region = match Region::open(path, Config::with_len(1 << 20)) {
        Ok(opened) => opened.region,
        Err(error) => return println!("\nerror: {error}"),
    };
    add_while_moved(region, 2, adds() / 2);
    println!("\nadded by {}", Region::add_path().name());
    wait_for_input();
}

/// A command that starts such a process.
fn mover(file: &Path) -> Command {
    again!("adds_while_moved_when_asked", file)
}

fn start(file: &Path, variables: &[(&str, &str)]) -> Process {
    Process::start(mover(file).envs(variables.iter().copied()))
}

#[test]
fn processes_of_all_paths_share_a_series_and_readers_see_the_path_of_each() {
    const NO_SEQUENCES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    // Planes for every CPU in both ways, for some, and for one.
    for planes in [8, 2, 1] {
        let shm = Shm::new("paths");
        let config = Config { planes, ..Config::with_len(1 << 20) };
        let region = Region::open(shm.file(), config).unwrap().region;
        let asked: [&[(&str, &str)]; 6] = [
            &[],
            &[NO_SEQUENCES],
            &[("TALEA_PLANES", "restartable")],
            &[NO_SEQUENCES, ("TALEA_PLANES", "restartable")],
            &[("TALEA_PLANES", "atomic")],
            &[("TALEA_PLANES", "single")],
        ];
        let mut writers = asked.map(|variables| start(&shm.file(), variables));
        let found = writers.each_mut().map(|writer| writer.wait_for("added by "));
        let usual = Region::add_path().name();
        assert_eq!(found, [usual, "atomic", usual, "atomic", "atomic", "single"]);
        let (overview, _) = Reader::open(shm.file()).unwrap().look().unwrap();
        for (writer, path) in writers.iter().zip(&found) {
            let mut slots = overview.processes.iter();
            let slot = slots.find(|slot| slot.pid == u64::from(writer.id())).unwrap();
            assert_eq!(slot.adds.name(), path);
        }
        assert_eq!(totals(region), expected(6 * (adds() / 2 * 2)), "{planes} planes");
        writers.into_iter().for_each(Process::end);
        assert_eq!(totals(region), expected(6 * (adds() / 2 * 2)), "after their end");
    }
}

#[test]
fn an_unknown_path_is_an_error_that_names_those_that_are_known() {
    let shm = Shm::new("unknown-path");
    let mut writer = start(&shm.file(), &[("TALEA_PLANES", "fast")]);
    let error = writer.wait_for("error: ");
    let expected = "TALEA_PLANES is \"fast\", where restartable, atomic or single was expected";
    assert!(error.starts_with(expected), "{error}");
    writer.end();
}

/// The cell that the handler adds to, and the number of its calls.
static TARGET: OnceLock<Cell> = OnceLock::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    if let Some(cell) = TARGET.get() {
        cell.add(1);
        HANDLED.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_signal_handler_may_add_to_what_it_interrupts() {
    let target = cells(region(1 << 20), Number::Integer).at(0);
    TARGET.set(target).unwrap();
    // SAFETY: the handler adds to cells and to an atomic, which any handler may.
    unsafe { handle(libc::SIGUSR1, handler) };
    let done = AtomicBool::new(false);
    let mut made = 0;
    thread::scope(|scope| {
        let (adder, done) = (own_thread(), &done);
        let sender = scope.spawn(move || {
            while !done.load(Relaxed) {
                // The thread lives: it waits for this one.
                signal_thread(adder, libc::SIGUSR1);
                thread::yield_now();
            }
        });
        while made < adds() || HANDLED.load(Relaxed) < 1_000 {
            target.add(1);
            made += 1;
        }
        done.store(true, Relaxed);
        sender.join().unwrap();
    });
    assert_eq!(target.get(), made + HANDLED.load(Relaxed));
}
