//! Claims about files that were damaged, or made to do damage: a process that attaches to one or
//! reads it stays alive and takes no more memory and time than the file warrants.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::support::cpu_time::cpu_time;
use crate::support::tmpfs::Shm;
use talea_region::{
    AddPath, Cells, Config, Family, FamilySpec, MIN_LEN, Number, Reader, Region, Storage,
};

/// Where the CPU table stands.
const CPU_TABLE: std::ops::Range<u64> = 4096..20_480;
/// Where the number of slots stands that were ever taken.
const SLOTS_TAKEN: u64 = mark(9) + 8;

fn spec(name: &str, cells: u16) -> FamilySpec<'_> {
    FamilySpec {
        name: name.as_bytes(),
        definition: b"what it is",
        kind: 1,
        storage: Storage::Striped,
        number: Number::Integer,
        cells,
        limit: 1 << 20,
        ..FamilySpec::default()
    }
}

/// A region that was used, and that no process uses any more, as its file shows.
fn used(shm: &Shm, len: u64, cells: u16) -> std::fs::File {
    let original = shm.path().join("original.talea");
    let region =
        Region::open(&original, Config { planes: 2, ..Config::with_len(len) }).unwrap().region;
    region.family(spec("used", cells)).unwrap().family.series(b"").unwrap().at(0).add(1);
    std::fs::copy(&original, shm.file()).unwrap();
    std::fs::OpenOptions::new().read(true).write(true).open(shm.file()).unwrap()
}

fn put(file: &std::fs::File, at: u64, word: u64) {
    file.write_all_at(&word.to_le_bytes(), at).unwrap();
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn attaches_and_adds_when_asked() {
    if let Some(path) = std::env::var_os("TALEA_TEST_DAMAGED") {
        let region = Region::open(path, Config::with_len(1 << 20)).unwrap().region;
        let family = region.family(spec("used", 1)).unwrap().family;
        // Existing series are found; the marks decide whether there is room for more.
        let there = family.series(b"").unwrap().at(0);
        let new = family.series(b"new").map(|cells| cells.at(0)).ok();
        let before = there.get();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for cell in [Some(there), new].into_iter().flatten() {
                        (0..100).for_each(|_| cell.add(1));
                    }
                });
            }
        });
        assert_eq!(there.get(), before + 400);
        assert!(new.is_none_or(|new| new.get() == 400), "{}", new.unwrap().get());
    }
}

/// Runs a thread on each CPU that this process may have, one after the other.
fn on_each_cpu(work: impl Fn() + Sync) {
    // SAFETY: a set of CPUs is plain bits, for which zero is a valid value; both sets live through
    // the calls, which are about the calling thread.
    let allowed = unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&allowed), &mut allowed), 0);
        allowed
    };
    // SAFETY: the number is less than the set has.
    let is_allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &allowed) };
    for cpu in (0..libc::CPU_SETSIZE as usize).filter(is_allowed) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: as above.
                unsafe {
                    let mut one: libc::cpu_set_t = std::mem::zeroed();
                    libc::CPU_SET(cpu, &mut one);
                    assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &one), 0);
                }
                work();
            });
        });
    }
}

/// The body of a process that a test starts, not a claim of its own. It adds on each CPU; the test
/// damages the CPU table meanwhile.
#[test]
fn adds_while_its_cpu_table_is_damaged_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_LIVING") else { return };
    let wrong: u64 = std::env::var("TALEA_TEST_WORD").unwrap().parse().unwrap();
    let late = std::env::var("TALEA_TEST_LATE").is_ok();
    let config = Config { planes: 2, ..Config::with_len(1 << 20) };
    let region = Region::open(&path, config).unwrap().region;
    let family = region.family(spec("used", 2)).unwrap().family;
    let cells = family.permanent_series(b"").unwrap();
    let (integer, other) = (cells.at(0), cells.at(1));
    let floats = FamilySpec { number: Number::Float, ..spec("floats", 1) };
    let float = region.family(floats).unwrap().family.permanent_series(b"").unwrap().at(0);
    let add = || {
        on_each_cpu(|| {
            (0..100).for_each(|_| {
                integer.add(1);
                integer.count(other, 3);
                float.add_float(0.5);
                other.count_float(float, 0.25);
            });
        });
    };
    // A process that comes to a CPU before the damage has its own copy of the table; one that
    // comes after it meets the damage.
    if !late {
        add();
    }
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    CPU_TABLE.step_by(8).for_each(|at| put(&file, at, wrong));
    let before = (integer.get(), other.get(), float.get_float());
    add();
    let after = (integer.get(), other.get(), float.get_float());
    let cpus = (after.0 - before.0) / 200;
    assert!(cpus > 0);
    let expected = (before.0 + 200 * cpus, before.1 + 400 * cpus, before.2 + 75.0 * cpus as f64);
    assert_eq!(after, expected, "an add was lost");
    if !late {
        assert_eq!(integer.get(), 400 * cpus, "what was added before the damage is gone");
    }
}

#[test]
fn planes_that_the_table_lost_are_seen_from_outside_again() {
    let shm = Shm::new("table-restored");
    let config = Config { planes: 2, ..Config::with_len(1 << 20) };
    let region = Region::open(shm.file(), config).unwrap().region;
    let cell = region.family(spec("used", 1)).unwrap().family.permanent_series(b"").unwrap().at(0);
    on_each_cpu(|| (0..100).for_each(|_| cell.add(1)));
    let outside = || {
        let snapshot = Reader::open(shm.file()).unwrap().snapshot().unwrap();
        let family = &snapshot.families()[0];
        snapshot.series(family).map(|series| series.values[0]).sum::<u64>()
    };
    let all = outside();
    assert_eq!((all, cell.get()), (all, all));
    let file = std::fs::OpenOptions::new().write(true).open(shm.file()).unwrap();
    let plane = (1_u64 << 18) / 4;
    for wrong in [0, 1 << 46, 2 * plane, 3 * plane] {
        CPU_TABLE.step_by(8).for_each(|at| put(&file, at, wrong));
        // The count of planes in use, too.
        put(&file, mark(6), 0);
        assert_eq!(cell.get(), all, "in this process nothing is missing");
        region.snapshot();
        assert_eq!(outside(), all, "{wrong:#x}");
    }
}

#[test]
fn a_process_that_the_count_of_slots_lost_is_seen_from_outside_again() {
    let shm = Shm::new("slots-restored");
    let region = Region::open(shm.file(), Config::with_len(1 << 20)).unwrap().region;
    let living = || Reader::open(shm.file()).unwrap().snapshot().unwrap().living().count();
    assert_eq!(living(), 1);
    let file = std::fs::OpenOptions::new().write(true).open(shm.file()).unwrap();
    let repairs: [fn(&'static Region); 2] = [|region| drop(region.snapshot()), Region::sweep];
    for repair in repairs {
        put(&file, SLOTS_TAKEN, 0);
        assert_eq!(living(), 0);
        repair(region);
        assert_eq!(living(), 1);
    }
}

#[test]
fn a_plane_is_never_given_to_a_second_cpu() {
    let shm = Shm::new("planes-twice");
    let config = Config { planes: 4, ..Config::with_len(1 << 20) };
    let region = Region::open(shm.file(), config).unwrap().region;
    let cell = region.family(spec("used", 1)).unwrap().family.permanent_series(b"").unwrap().at(0);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(shm.file()).unwrap();
    on_each_cpu(|| {
        // As if no plane were in use yet.
        put(&file, mark(6), 2);
        (0..100).for_each(|_| cell.add(1));
    });
    let word = |at| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    };
    let mut planes: Vec<u64> = CPU_TABLE.step_by(8).map(word).filter(|&plane| plane != 0).collect();
    let all = planes.len();
    assert!(all > 0 || Region::add_path() != AddPath::Restartable);
    planes.sort_unstable();
    planes.dedup();
    assert_eq!(planes.len(), all, "{planes:?}");
    assert_eq!(cell.get() % 100, 0);
}

/// Words that are no plane of a CPU's, or are another's.
fn wrong_planes() -> Vec<u64> {
    // A quarter of the region of 1 MiB, by two planes and the atomic ones.
    let plane = (1_u64 << 18) / 4;
    let near = [8, 4095, 4096, plane, 2 * plane, 3 * plane, 4 * plane];
    let far = [1 << 30, 1 << 46, u64::MAX / 4096 * 4096, u64::MAX, 1 << 63];
    near.into_iter().chain(near.map(u64::wrapping_neg)).chain(far).collect()
}

#[test]
fn a_word_of_the_cpu_table_that_changes_under_a_service_kills_no_process_and_loses_no_add() {
    for wrong in wrong_planes() {
        for late in [false, true] {
            let shm = Shm::new(&format!("table-living-{wrong}-{late}"));
            let mut service = again!("adds_while_its_cpu_table_is_damaged_when_asked");
            service.env("TALEA_TEST_LIVING", shm.file());
            service.env("TALEA_TEST_WORD", wrong.to_string());
            if late {
                service.env("TALEA_TEST_LATE", "1");
            }
            let done = service.output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{wrong:#x}, {late}: {}, {said}", done.status);
        }
    }
}

fn assert_that_a_service_starts_over(path: &Path, what: &str) {
    let mut service = again!("attaches_and_adds_when_asked");
    let done = service.env("TALEA_TEST_DAMAGED", path).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{what}: {}, {said}", done.status);
}

#[test]
fn a_cpu_table_that_leads_out_of_the_region_kills_nobody() {
    for wrong in [1 << 46, u64::MAX / 4096 * 4096] {
        let shm = Shm::new(&format!("table-out-{wrong}"));
        let file = used(&shm, 1 << 20, 1);
        CPU_TABLE.step_by(8).for_each(|at| put(&file, at, wrong));
        assert_that_a_service_starts_over(&shm.file(), &format!("{wrong:#x}"));
    }
}

#[test]
fn a_cpu_table_that_leads_beside_the_planes_loses_no_add() {
    for wrong in [8, 4096, 1 << 16, (1_u64 << 18).wrapping_neg(), 1_u64.wrapping_neg()] {
        let shm = Shm::new(&format!("table-beside-{wrong}"));
        let file = used(&shm, 1 << 20, 1);
        CPU_TABLE.step_by(8).for_each(|at| put(&file, at, wrong));
        assert_that_a_service_starts_over(&shm.file(), &format!("{wrong:#x}"));
    }
}

#[test]
fn a_mark_that_is_too_large_kills_no_process_that_gets_a_plane() {
    for mark in 0..8 {
        let shm = Shm::new(&format!("mark-{mark}"));
        let file = used(&shm, 1 << 20, 1);
        put(&file, 1024 + mark * 64, u64::MAX);
        // No CPU has a plane, so each takes one.
        CPU_TABLE.step_by(8).for_each(|at| put(&file, at, 0));
        assert_that_a_service_starts_over(&shm.file(), &format!("mark {mark}"));
    }
}

/// The handles of a service whose region is damaged while it runs.
struct Service {
    region: &'static Region,
    kept: Vec<(Cells, Number)>,
}

/// A family of each storage, with and without segments, integers and floats.
const KINDS: [(&str, Storage, Number, u16); 6] = [
    ("single", Storage::Single, Number::Integer, 0),
    ("striped", Storage::Striped, Number::Integer, 0),
    ("owned", Storage::Owned, Number::Integer, 0),
    ("floats", Storage::Striped, Number::Float, 0),
    ("segments", Storage::Striped, Number::FloatLast, 4),
    ("single segments", Storage::Single, Number::Integer, 4),
];

impl Service {
    fn start(path: &Path) -> Self {
        let config = Config { planes: 2, ..Config::with_len(MIN_LEN) };
        let region = Region::open(path, config).unwrap().region;
        let kept = KINDS.into_iter().map(|kind| {
            let family = Self::family(region, kind).unwrap();
            let cells = family.series(b"kept").unwrap().keep().unwrap();
            cells.at(0).set_exemplar(0.5, b"trace_id=\"a\"").unwrap();
            (cells, kind.2)
        });
        Self { region, kept: kept.collect() }
    }

    fn family(
        region: &'static Region,
        (name, storage, number, segments): (&str, Storage, Number, u16),
    ) -> Option<Family> {
        let spec = FamilySpec {
            storage,
            number,
            segments,
            limit: 20,
            idle_minutes: 1,
            accumulates: true,
            ..spec(name, 3)
        };
        Some(region.family(spec).ok()?.family)
    }

    /// The operations of writers on their handles.
    fn add(&self) {
        for (cells, number) in &self.kept {
            let (first, last) = (cells.at(0), cells.last());
            match number {
                Number::Integer => {
                    first.add(1);
                    first.count(last, 3);
                }
                Number::Float => first.add_float(0.5),
                Number::FloatLast => first.count_float(last, 0.5),
            }
            let Some(segments) = cells.segments() else { continue };
            for n in 0..segments.len() {
                match segments.usual(n) {
                    Some(segment) => _ = segments.count(segment, 2, 5),
                    None => _ = segments.make(n, 3, 0),
                }
                let cell = segments.get(n).and_then(|segment| segments.cell(segment, n));
                cell.into_iter().for_each(|cell| cell.count(first, 1));
            }
        }
    }

    /// The operations of writers on one family of the kind `n`, by look-up.
    fn look_up(&self, n: u64) -> Option<Family> {
        let family = Self::family(self.region, KINDS[n as usize % KINDS.len()])?;
        let text = format!("n=\"{}\"", n % 7);
        if let Ok(cells) = family.series(text.as_bytes()) {
            cells.at(0).add(1);
            cells.last().get();
            let _ = cells.at(0).set_exemplar(0.5, b"trace_id=\"b\"");
        }
        Some(family)
    }

    /// All operations, also the rarer ones.
    fn look_up_and_tidy(&self, n: u64) {
        let Some(family) = self.look_up(n) else { return };
        let text = format!("n=\"{}\"", n % 7);
        match n % 16 {
            0 => _ = family.remove(text.as_bytes()),
            1 => _ = family.wipe(),
            2 => self.region.sweep(),
            3 => _ = family.series(text.as_bytes()).map(|looked| looked.keep().is_ok()),
            4 => _ = self.region.snapshot(),
            5 => _ = family.permanent_series(b"lasting"),
            6 => _ = self.kept[n as usize % KINDS.len()].0.at(0).get_float(),
            _ => {}
        }
    }
}

/// Kinds of harm.
const HARMS: u64 = 8;

/// A value that is likely to do harm, for a word that holds `old`.
fn harm(kind: u64, old: u64, random: &mut u64) -> u64 {
    let mut next = || {
        *random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        *random >> 16
    };
    match kind % HARMS {
        0 => u64::MAX,
        1 => 0,
        2 => old ^ 1 << (next() % 64),
        3 => old.wrapping_add(next() % 512 * 8),
        4 => old.wrapping_sub(1),
        5 => next() % (2 * MIN_LEN) / 8 * 8,
        6 => 1 << (next() % 64),
        _ => next() << 32 ^ next(),
    }
}

/// The body of a process that a test starts, not a claim of its own. It counts and looks up in
/// three threads while every word of a part of the file is damaged, one after the other.
#[test]
fn counts_while_words_are_damaged_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_WORDS") else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (first, step) = (number("TALEA_TEST_FIRST"), number("TALEA_TEST_STEP"));
    let service = Service::start(path.as_ref());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let notes = File::create(format!("{path}.word")).unwrap();
    let mut random = first;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (service, done) = (&service, &done);
            scope.spawn(move || {
                let mut n = writer;
                while !done.load(Relaxed) {
                    service.add();
                    service.look_up_and_tidy(n);
                    n += 1;
                }
            });
        }
        let reader = Reader::open(&path).unwrap();
        for (n, word) in (first..MIN_LEN / 8).step_by(step as usize).enumerate() {
            let mut old = [0; 8];
            file.read_exact_at(&mut old, word * 8).unwrap();
            let old = u64::from_le_bytes(old);
            // A word that is not in use is damaged in one way.
            let kinds = if old == 0 { n as u64 % HARMS..n as u64 % HARMS + 1 } else { 0..HARMS };
            for kind in kinds {
                let wrong = harm(kind, old, &mut random);
                let note = format!("{:9} {old:#020x} {wrong:#020x}", word * 8);
                notes.write_all_at(note.as_bytes(), 0).unwrap();
                put(&file, word * 8, wrong);
                service.add();
                service.look_up(n as u64 + kind);
                if (n as u64 + kind) % 64 == 0 {
                    let _ = reader.snapshot();
                }
                put(&file, word * 8, old);
            }
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn a_service_survives_damage_to_any_word_of_its_file() {
    // So many processes, each of which begins with a whole region and damages every so many words
    // of the file.
    const PARTS: u64 = 16;
    for first in 0..PARTS {
        let shm = Shm::new(&format!("words-{first}"));
        let mut service = again!("counts_while_words_are_damaged_when_asked");
        service.env("TALEA_TEST_WORDS", shm.file());
        service.env("TALEA_TEST_FIRST", first.to_string());
        service.env("TALEA_TEST_STEP", PARTS.to_string());
        let done = service.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let word = std::fs::read_to_string(format!("{}.word", shm.file().display()));
        assert!(done.status.success(), "{}, at {word:?}: {said}", done.status);
    }
}

/// Repeats the words of a record over the memory behind it.
fn repeat(file: &std::fs::File, at: u64, len: u64, times: u64) {
    let mut record = vec![0; len as usize];
    file.read_exact_at(&mut record, at).unwrap();
    (1..times).for_each(|n| file.write_all_at(&record, at + n * len).unwrap());
}

/// The offset of the mark `n`, in the order of the format's description.
const fn mark(n: u64) -> u64 {
    1024 + n * 64
}

const FAMILIES: u64 = 20_480 + 256 * 128;

#[test]
fn families_that_share_one_long_text_do_not_multiply_it() {
    const LEN: u64 = 4 << 20;
    let shm = Shm::new("texts");
    let file = used(&shm, LEN, 1);
    let region = Region::open(shm.file(), Config::with_len(LEN)).unwrap().region;
    let long = vec![b'x'; LEN as usize / 8];
    region.family(FamilySpec { definition: &long, ..spec("long", 1) }).unwrap();
    let families = LEN >> 12;
    repeat(&file, FAMILIES + 256, 256, families - 1);
    put(&file, mark(0), families * 256);
    put(&file, mark(0) + 8, families * 256);
    let snapshot = Reader::open(shm.file()).unwrap().snapshot().unwrap();
    let size: usize = snapshot.families().iter().map(|f| f.name.len() + f.definition.len()).sum();
    assert!(size as u64 <= 2 * LEN, "{size} bytes of a file of {LEN}");
}

#[test]
fn series_that_are_refused_cost_no_more_than_those_that_are_taken() {
    const LEN: u64 = 8 << 20;
    let shm = Shm::new("refused");
    let file = used(&shm, LEN, 65_535);
    let bytes = {
        let mut bytes = vec![0; LEN as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    // The only series record: public, and the third of its words names 65,535 cells.
    let is_record = |words: &[u8]| words[0] == 2 && words[16..18] == [0xFF, 0xFF];
    let at = (0..LEN - 24).step_by(64).find(|&at| is_record(&bytes[at as usize..]));
    let at = at.unwrap();
    // Its text does not lie in the arena, which must be found out before its cells
    // are summed.
    put(&file, at + 8, u64::MAX);
    let series = 8192;
    repeat(&file, at, 64, series);
    put(&file, mark(1), series * 64);
    put(&file, mark(1) + 8, series * 64);
    let before = cpu_time();
    let _ = Reader::open(shm.file()).unwrap().snapshot();
    let took = cpu_time() - before;
    assert!(took < Duration::from_secs(1), "{took:?} for a file of {LEN} bytes");
}
