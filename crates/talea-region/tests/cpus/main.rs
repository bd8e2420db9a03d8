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

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::support::tmpfs::Shm;
use talea_region::{Cell, Cells, Config, FamilySpec, Number, Reader, Region, Storage};

fn adds() -> u64 {
    std::env::var("TALEA_ADDS").map_or(2_000_000, |n| n.parse().unwrap())
}

fn cells(region: &'static Region, number: Number) -> Cells {
    let name: &[u8] = match number {
        Number::Integer => b"integers",
        Number::Float => b"floats",
        Number::FloatLast => b"both",
    };
    let storage = Storage::Striped;
    let spec = FamilySpec { name, storage, number, cells: 2, limit: 1, ..FamilySpec::default() };
    region.family(spec).unwrap().family.permanent_series(b"").unwrap()
}

/// Moves a thread to each CPU of the machine in turn, until it is stopped.
fn bounce(thread: libc::pid_t, moves: &AtomicU64, stop: &AtomicBool) {
    let cpus = thread::available_parallelism().unwrap().get() as u64;
    while !stop.load(Relaxed) {
        // SAFETY: a CPU set is plain bits, for which zero is a valid value; the
        // thread lives until this one has been joined.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET((moves.load(Relaxed) % cpus) as usize, &mut set);
            libc::sched_setaffinity(thread, size_of_val(&set), &set);
        }
        moves.fetch_add(1, Relaxed);
    }
}

/// Adds from threads that are moved from CPU to CPU all the while.
fn add_while_moved(region: &'static Region, threads: u64, each: u64) {
    let [integer, float, both] =
        [Number::Integer, Number::Float, Number::FloatLast].map(|number| cells(region, number));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                // SAFETY: asks for this thread's own number.
                let this = unsafe { libc::gettid() };
                let (moves, stop) = (AtomicU64::new(0), AtomicBool::new(false));
                thread::scope(|scope| {
                    scope.spawn(|| bounce(this, &moves, &stop));
                    while moves.load(Relaxed) < 2 {
                        thread::yield_now();
                    }
                    for _ in 0..each {
                        integer.at(0).add(1);
                        float.at(0).add_float(0.5);
                        both.at(0).count_float(both.at(1), 0.25);
                        integer.at(0).count(integer.at(1), 3);
                    }
                    stop.store(true, Relaxed);
                });
            });
        }
    });
}

/// The number of counts, and the amount of each.
fn totals(region: &'static Region) -> [f64; 5] {
    let [integer, float, both] =
        [Number::Integer, Number::Float, Number::FloatLast].map(|number| cells(region, number));
    [
        integer.at(0).get() as f64,
        integer.at(1).get() as f64,
        float.at(0).get_float(),
        both.at(0).get() as f64,
        both.at(1).get_float(),
    ]
}

/// Their values after so many rounds.
fn expected(rounds: u64) -> [f64; 5] {
    [2.0, 3.0, 0.5, 1.0, 0.25].map(|each| each * rounds as f64)
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

/// The body of a process that a test starts, not a claim of its own. It prints its path, adds, and waits
/// for the end of its input.
#[test]
fn adds_while_moved_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_MOVED") else { return };
    let region = match Region::open(path, Config::with_len(1 << 20)) {
        Ok(opened) => opened.region,
        Err(error) => return println!("\nerror: {error}"),
    };
    add_while_moved(region, 2, adds() / 2);
    println!("\nadded by {}", Region::add_path().name());
    let _ = std::io::stdin().lines().next();
}

/// A command that starts such a process.
fn mover(file: &Path) -> Command {
    let mut command = again!("adds_while_moved_when_asked");
    command.env("TALEA_TEST_MOVED", file).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Starts such a process with some variables.
fn start(file: &Path, variables: &[(&str, &str)]) -> Child {
    mover(file).envs(variables.iter().copied()).spawn().unwrap()
}

/// The line of its output that begins in this way, without the beginning.
fn line_of(child: &mut Child, beginning: &str) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut found = lines.map_while(Result::ok);
    found.find_map(|line| line.strip_prefix(beginning).map(str::to_owned)).unwrap()
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
        let found = writers.each_mut().map(|writer| line_of(writer, "added by "));
        let usual = Region::add_path().name();
        assert_eq!(found, [usual, "atomic", usual, "atomic", "atomic", "single"]);
        let (overview, _) = Reader::open(shm.file()).unwrap().look().unwrap();
        for (writer, path) in writers.iter().zip(&found) {
            let mut slots = overview.processes.iter();
            let slot = slots.find(|slot| slot.pid == u64::from(writer.id())).unwrap();
            assert_eq!(slot.adds.name(), path);
        }
        assert_eq!(totals(region), expected(6 * (adds() / 2 * 2)), "{planes} planes");
        for mut writer in writers {
            drop(writer.stdin.take());
            assert!(writer.wait().unwrap().success());
        }
        assert_eq!(totals(region), expected(6 * (adds() / 2 * 2)), "after their end");
    }
}

#[test]
fn an_unknown_path_is_an_error_that_names_those_that_are_known() {
    let shm = Shm::new("unknown-path");
    let mut writer = start(&shm.file(), &[("TALEA_PLANES", "fast")]);
    let error = line_of(&mut writer, "error: ");
    let expected = "TALEA_PLANES is \"fast\", where restartable, atomic or single was expected";
    assert!(error.starts_with(expected), "{error}");
    assert!(writer.wait().unwrap().success());
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
    let region = Region::anonymous(Config::with_len(1 << 20)).unwrap();
    let target = cells(region, Number::Integer).at(0);
    TARGET.set(target).unwrap();
    // SAFETY: the handler adds to cells and to an atomic, which any handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    let done = AtomicBool::new(false);
    let mut made = 0;
    thread::scope(|scope| {
        // SAFETY: asks for this process's and this thread's own numbers.
        let (process, adder) = unsafe { (libc::getpid(), libc::gettid()) };
        let sender = scope.spawn({
            let done = &done;
            move || {
                while !done.load(Relaxed) {
                    // SAFETY: the thread lives: it waits for this one.
                    unsafe { libc::syscall(libc::SYS_tgkill, process, adder, libc::SIGUSR1) };
                    thread::yield_now();
                }
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
