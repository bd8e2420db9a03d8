//! Claims about writers that die or stop at any instant. `TALEA_KILLS` sets how
//! many are killed; 50 by default.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use crate::support::process::arguments;
use crate::support::region::{self, sweep};
use crate::support::tmpfs::Shm;
use talea_region::{Config, Family, FamilySpec, Region, Storage};

const WRITERS: usize = 4;
/// Rounds between two new series.
const EVERY: u64 = 256;
/// Series of its own that a writer makes at most.
const BORN: u64 = 16;
/// Rounds between two wipings.
const WIPES: u64 = 32;
/// Bytes of a series' exemplar: the extension, the table, a place.
const EXEMPLAR: u64 = 8 * (2 + 2 + 4 + 5 + 25);
/// Series of its own that a writer has at a time, and then removes.
const PASSING: u64 = 20;

fn open(path: &Path) -> &'static Region {
    let opened =
        Region::open(path, Config { series: 60_000, ..Config::with_len(32 << 20) }).unwrap();
    assert_eq!(opened.notice, None);
    opened.region
}

fn family(region: &'static Region, name: &str, storage: Storage, cells: u16) -> Family {
    region::family(region, name, FamilySpec { storage, cells, ..FamilySpec::default() })
}

/// Each round adds once to each kind of cell, makes a series with an exemplar and removes an earlier
/// one, wipes now and then, and acknowledges with one byte.
#[test]
#[ignore = "a process that a test starts"]
fn writes_until_killed_when_asked() {
    let Some([path]) = arguments() else { return };
    let region = open(path.as_ref());
    let striped = family(region, "striped", Storage::Striped, 1).series(b"").unwrap().at(0);
    let single = family(region, "single", Storage::Single, 1).series(b"").unwrap().at(0);
    let born = family(region, "born", Storage::Single, 3);
    let raced = family(region, "raced", Storage::Striped, 1);
    let passing = family(region, "passing", Storage::Single, 2);
    let wiped = family(region, "wiped", Storage::Striped, 1);
    let wiped_cell = wiped.permanent_series(b"").unwrap().at(0);
    let mut out = std::io::stdout().lock();
    // Only the acknowledgements follow this mark.
    out.write_all(b"\n!").unwrap();
    out.flush().unwrap();
    for n in 0u64.. {
        striped.add(1);
        single.add(1);
        let name = |n: u64| format!("pid=\"{}\",n=\"{n}\"", std::process::id());
        let text = name(n);
        let passed = passing.series(text.as_bytes()).unwrap();
        passed.at(1).add(n + 1);
        // Series of killed processes stay in these families.
        if n % 8 == 0 {
            passed.at(1).set_exemplar(1, n as f64, text.as_bytes()).unwrap();
        }
        drop(passed);
        wiped_cell.add(1);
        if n % WIPES == 0 {
            assert!(wiped.wipe());
        }
        if n >= PASSING {
            assert!(passing.remove(name(n - PASSING).as_bytes()));
        }
        if n % EVERY == 0 {
            if n < BORN * EVERY {
                born.series(text.as_bytes()).unwrap().at(2).add(1);
            }
            // All writers meet new labels at about the same time.
            raced.series(format!("n=\"{}\"", n / EVERY).as_bytes()).unwrap().at(0).add(1);
        }
        out.write_all(b".").unwrap();
        out.flush().unwrap();
    }
}

struct Writer {
    child: Child,
    output: ChildStdout,
    said: Vec<u8>,
}

impl Writer {
    fn start(path: &Path) -> Self {
        let mut command = again!("writes_until_killed_when_asked", path);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        Self { child, output, said: Vec::new() }
    }

    /// The number of bytes of its output before its acknowledgements.
    fn begun(&self) -> Option<usize> {
        Some(self.said.windows(2).position(|w| w == b"\n!")? + 2)
    }

    /// Waits until it has begun to write.
    fn wait(&mut self) {
        let mut part = [0; 4096];
        while self.begun().is_none() {
            let read = self.output.read(&mut part).unwrap();
            assert!(read > 0, "a writer ended by itself");
            self.said.extend_from_slice(&part[..read]);
        }
    }

    /// Kills it and returns how many rounds it acknowledged.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.output.read_to_end(&mut self.said).unwrap();
        self.begun().map_or(0, |at| self.said[at..].len() as u64)
    }

    fn signal(&self, signal: libc::c_int) {
        #[allow(unsafe_code)]
        // SAFETY: a call with integers; the process is ours and not waited for.
        let status = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(status, 0);
    }
}

fn check_between(what: &str, found: u64, acknowledged: u64, slack: u64) {
    assert!(
        (acknowledged..=acknowledged + slack).contains(&found),
        "{what}: {found}, where {acknowledged} were acknowledged and at most {slack} not"
    );
}

#[test]
fn a_killed_writer_loses_nothing_and_leaves_nothing_torn() {
    let kills: u64 = std::env::var("TALEA_KILLS").map_or(50, |n| n.parse().unwrap());
    let shm = Shm::new("killed");
    let path = shm.file();
    let region = open(&path);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::start(&path)).collect();
    let mut rounds = Vec::new();
    // A small generator with a fixed seed: which instants are hit depends on the
    // machine anyway.
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for kill in 0..kills {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros(2_000 + (random >> 40) % 8_000));
        let victim = kill as usize % WRITERS;
        // Every other one may die while it starts.
        if kill % 2 == 0 {
            writers[victim].wait();
            std::thread::sleep(Duration::from_micros((random >> 40) % 4_000));
        }
        rounds.push(std::mem::replace(&mut writers[victim], Writer::start(&path)).kill());
        region.snapshot();
    }
    rounds.extend(writers.into_iter().map(Writer::kill));
    let died = rounds.len() as u64;
    let acknowledged = |of: fn(u64) -> u64| rounds.iter().map(|&n| of(n)).sum::<u64>();
    let all = acknowledged(|n| n);
    // An emulated processor starts them slowly.
    let least = if std::env::var_os("TALEA_TEST_RUNNER").is_some() { 1 } else { 10 };
    assert!(all > least * kills, "the writers came to write: {all} rounds");

    let snapshot = region.snapshot();
    let mut names = HashSet::new();
    for family in snapshot.families() {
        let name = String::from_utf8(family.name.clone()).unwrap();
        let mut texts = HashSet::new();
        let mut sum = 0;
        for series in snapshot.series(family) {
            assert!(texts.insert(series.text.to_vec()), "{name}: a series is there twice");
            sum += series.values.iter().sum::<u64>();
            if name == "born" {
                assert!(series.values[2] <= 1 && series.values[..2] == [0, 0], "{series:?}");
            }
            if name == "passing" {
                // Its cells are its own: they hold the value in its text, or nothing yet.
                let text = String::from_utf8(series.text.to_vec()).unwrap();
                let n: u64 = text.split('"').nth(3).unwrap().parse().unwrap();
                assert!([[0, 0], [0, n + 1]].contains(&[series.values[0], series.values[1]]));
                for exemplar in series.exemplars {
                    assert_eq!((exemplar.n, exemplar.value), (1, n as f64));
                    assert_eq!(exemplar.text, text.as_bytes());
                }
            }
        }
        match name.as_str() {
            "striped" | "single" => check_between(&name, sum, all, died),
            "raced" => check_between(&name, sum, acknowledged(|n| n.div_ceil(EVERY)), died),
            "born" => {
                check_between(&name, sum, acknowledged(|n| n.div_ceil(EVERY).min(BORN)), died);
            }
            "passing" => {
                let most = died * (PASSING + 1);
                assert!(texts.len() as u64 <= most, "{} series pass", texts.len());
            }
            // At most the additions since the last wipe.
            "wiped" => assert!(sum <= all + died, "{sum} of {all}"),
            other => panic!("a family {other:?}"),
        }
        names.insert(name);
    }
    assert_eq!(names.len(), 6);

    // Records that killed processes owned are reclaimed, or published where they were already in the
    // index: such a series is in no snapshot before. Only a text or a run of cells that a process was
    // taking or giving back at the instant of its death is lost.
    sweep(region, 3);
    let snapshot = region.snapshot();
    let families = snapshot.families().iter();
    let living: Vec<_> = families.flat_map(|family| snapshot.series(family)).collect();
    let usage = region.usage();
    let lost = usage.records.taken / usage.record_len - living.len() as u64;
    let texts = living.iter().map(|series| series.text.len().next_multiple_of(8) as u64);
    let names = snapshot.families().iter().map(|f| f.name.len().next_multiple_of(8) as u64);
    let lost_text = usage.text.taken - texts.sum::<u64>() - names.sum::<u64>();
    let cells = living.iter().map(|series| series.values.len() as u64 * 8).sum::<u64>();
    println!(
        "{died} writers died after {all} rounds: lost {lost} records, {lost_text} bytes of text, \
         {} living series with {cells} bytes of cells in {} single and {} striped",
        living.len(),
        usage.single_cells.taken,
        usage.striped_cells.taken
    );
    assert!(lost == 0 && lost_text <= 64 * died, "{usage:?}");
    let exemplars = living.iter().filter(|series| series.text.starts_with(b"pid")).count() as u64;
    // A series that was wiped has its base.
    let beside = exemplars * EXEMPLAR + 24;
    let most = cells + beside + (24 + EXEMPLAR) * died;
    let taken: u64 = usage.cells().iter().map(|part| part.taken).sum();
    assert!(taken <= most, "{usage:?}");
}

#[test]
fn a_stopped_writer_blocks_nobody() {
    let shm = Shm::new("stopped");
    let path = shm.file();
    let region = open(&path);
    let raced = family(region, "raced", Storage::Striped, 1);
    for round in 0..20_u64 {
        let writer = Writer::start(&path);
        std::thread::sleep(Duration::from_micros(3_000 + round * 331));
        writer.signal(libc::SIGSTOP);
        // It may be stopped while it makes any of these.
        for n in 0..2_000 {
            raced.series(format!("n=\"{n}\"").as_bytes()).unwrap().at(0).add(1);
        }
        region.snapshot();
        writer.signal(libc::SIGCONT);
        writer.kill();
    }
    let snapshot = region.snapshot();
    let raced = snapshot.families().iter().find(|f| f.name == b"raced").unwrap();
    let mine = snapshot.series(raced).filter(|s| s.values[0] >= 20).count();
    assert_eq!(mine, 2_000);
}
