//! Claims about files that were damaged, or made to do damage: a process that attaches to one or
//! reads it stays alive and takes no more memory and time than the file warrants.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::support::calls::{cpu_time, move_to};
use crate::support::process::{arguments, output_of};
use crate::support::region::{family, open};
use crate::support::tmpfs::{self, Shm, open_copy, put, word};
use talea_region::{
    AddPath, Cell, Cells, Config, Family, FamilySpec, MIN_LEN, Number, Reader, Region, Storage,
};

const CPU_TABLE: std::ops::Range<u64> = 4096..20_480;
/// Where the number of slots stands that were ever taken.
const SLOTS_TAKEN: u64 = mark(10) + 8;
/// Where the number of planes stands that are in use.
const PLANES: u64 = mark(7);

fn spec(cells: u16) -> FamilySpec<'static> {
    FamilySpec { storage: Storage::Striped, cells, limit: 1 << 20, ..FamilySpec::default() }
}

fn open_with(path: impl AsRef<Path>, planes: u64, len: u64) -> &'static Region {
    Region::open(path, Config { planes, ..Config::with_len(len) }).unwrap().region
}

/// A striped cell.
fn cell(region: &'static Region) -> Cell {
    family(region, "used", spec(1)).permanent_series(b"").unwrap().at(0)
}

/// A region that was used, and that no process uses any more, as its file shows.
fn used(shm: &Shm, len: u64, cells: u16) -> File {
    let original = shm.path().join("original.talea");
    let region = open_with(&original, 2, len);
    family(region, "used", spec(cells)).series(b"").unwrap().at(0).add(1);
    open_copy(original, shm.file())
}

/// Writes a word to all entries of the CPU table.
fn fill_cpu_table(file: &File, word: u64) {
    CPU_TABLE.step_by(8).for_each(|at| put(file, at, word));
}

#[test]
#[ignore = "a process that a test starts"]
fn attaches_and_adds_when_asked() {
    let Some([path]) = arguments() else { return };
    let family = family(open(path), "used", spec(1));
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

/// Runs a thread on each CPU that this process may have, one after the other.
fn on_each_cpu(work: impl Fn() + Sync) {
    let all = 0..libc::CPU_SETSIZE as usize;
    let allowed = std::thread::spawn(|| all.filter(|&cpu| move_to(cpu, 0)).collect::<Vec<_>>());
    for cpu in allowed.join().unwrap() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(move_to(cpu, 0));
                work();
            });
        });
    }
}

#[test]
#[ignore = "a process that a test starts"]
fn adds_while_its_cpu_table_is_damaged_when_asked() {
    let Some([path, wrong, when]) = arguments() else { return };
    let (wrong, late) = (wrong.parse().unwrap(), when == "late");
    let region = open_with(&path, 2, 1 << 20);
    let cells = family(region, "used", spec(2)).permanent_series(b"").unwrap();
    let (integer, other) = (cells.at(0), cells.at(1));
    let floats = family(region, "floats", FamilySpec { number: Number::Float, ..spec(1) });
    let float = floats.permanent_series(b"").unwrap().at(0);
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
    fill_cpu_table(&tmpfs::open(&path), wrong);
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
    let region = open_with(shm.file(), 2, 1 << 20);
    let cell = cell(region);
    on_each_cpu(|| (0..100).for_each(|_| cell.add(1)));
    let outside = || {
        let snapshot = Reader::open(shm.file()).unwrap().snapshot().unwrap();
        let family = &snapshot.families()[0];
        snapshot.series(family).map(|series| series.values[0]).sum::<u64>()
    };
    let all = outside();
    assert_eq!((all, cell.get()), (all, all));
    let file = tmpfs::open(shm.file());
    let plane = (1_u64 << 18) / 4;
    for wrong in [0, 1 << 46, 2 * plane, 3 * plane] {
        fill_cpu_table(&file, wrong);
        // The count of planes in use, too.
        put(&file, PLANES, 0);
        assert_eq!(cell.get(), all, "in this process nothing is missing");
        region.snapshot();
        assert_eq!(outside(), all, "{wrong:#x}");
    }
}

#[test]
fn a_process_that_the_count_of_slots_lost_is_seen_from_outside_again() {
    let shm = Shm::new("slots-restored");
    let region = open(shm.file());
    let living = || Reader::open(shm.file()).unwrap().snapshot().unwrap().living().count();
    assert_eq!(living(), 1);
    let file = tmpfs::open(shm.file());
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
    let cell = cell(open_with(shm.file(), 4, 1 << 20));
    let file = tmpfs::open(shm.file());
    on_each_cpu(|| {
        // As if no plane were in use yet.
        put(&file, PLANES, 2);
        (0..100).for_each(|_| cell.add(1));
    });
    let entries = CPU_TABLE.step_by(8).map(|at| word(&file, at));
    let mut planes: Vec<u64> = entries.filter(|&plane| plane != 0).collect();
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
        for when in ["early", "late"] {
            let shm = Shm::new(&format!("table-living-{wrong}-{when}"));
            let (path, wrong) = (shm.file(), wrong.to_string());
            let test = "adds_while_its_cpu_table_is_damaged_when_asked";
            output_of(&mut again!(test, path, wrong, when));
        }
    }
}

#[test]
fn a_wrong_cpu_table_or_mark_kills_no_service_that_starts_and_loses_no_add() {
    let outside = [1 << 46, u64::MAX / 4096 * 4096];
    let beside = [8, 4096, 1 << 16, (1_u64 << 18).wrapping_neg(), 1_u64.wrapping_neg()];
    let tables = outside.into_iter().chain(beside).map(|entry| (entry, None));
    // No CPU has a plane, so each takes one.
    let marks = (0..8).map(|n| (0, Some(n)));
    for (entry, too_large) in tables.chain(marks) {
        let shm = Shm::new(&format!("table-{entry:#x}-mark-{too_large:?}"));
        let file = used(&shm, 1 << 20, 1);
        fill_cpu_table(&file, entry);
        too_large.into_iter().for_each(|n| put(&file, mark(n), u64::MAX));
        // If it fails, the name of the file is the case.
        output_of(&mut again!("attaches_and_adds_when_asked", shm.file()));
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
        let region = open_with(path, 2, MIN_LEN);
        let kept = KINDS.into_iter().map(|kind| {
            let family = Self::family(region, kind).unwrap();
            let cells = family.series(b"kept").unwrap().keep().unwrap();
            cells.at(0).set_exemplar(0, 0.5, b"trace_id=\"a\"").unwrap();
            (cells, kind.2)
        });
        Self { region, kept: kept.collect() }
    }

    fn family(
        region: &'static Region,
        (name, storage, number, segments): (&str, Storage, Number, u16),
    ) -> Option<Family> {
        let spec = FamilySpec {
            name: name.as_bytes(),
            storage,
            number,
            segments,
            limit: 20,
            idle_minutes: 1,
            accumulates: true,
            ..spec(3)
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
                Number::FloatLast => _ = first.count_float(last, 0.5),
            }
            let Some(segments) = cells.segments() else { continue };
            for n in 0..segments.len() {
                match segments.usual(n) {
                    Some(segment) => _ = segments.count(segment, 2, 5),
                    None => _ = segments.make(n, 3, 0),
                }
                let cell = segments.get(n).and_then(|segment| segments.cell(segment, n));
                cell.into_iter().for_each(|cell| _ = cell.count(first, 1));
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
            let _ = cells.at(0).set_exemplar(0, 0.5, b"trace_id=\"b\"");
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

/// Counts and looks up in three threads while every word of a part of the file is damaged, one after
/// the other.
#[test]
#[ignore = "a process that a test starts"]
fn counts_while_words_are_damaged_when_asked() {
    let Some([path, first, step]) = arguments() else { return };
    let [first, step] = [first, step].map(|number| number.parse::<u64>().unwrap());
    let service = Service::start(path.as_ref());
    let file = tmpfs::open(&path);
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
        for (n, at) in (first * 8..MIN_LEN).step_by(step as usize * 8).enumerate() {
            let old = word(&file, at);
            // A word that is not in use is damaged in one way.
            let kinds = if old == 0 { n as u64 % HARMS..n as u64 % HARMS + 1 } else { 0..HARMS };
            for kind in kinds {
                let wrong = harm(kind, old, &mut random);
                let note = format!("{at:9} {old:#020x} {wrong:#020x}");
                notes.write_all_at(note.as_bytes(), 0).unwrap();
                put(&file, at, wrong);
                service.add();
                service.look_up(n as u64 + kind);
                if (n as u64 + kind) % 64 == 0 {
                    let _ = reader.snapshot();
                }
                put(&file, at, old);
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
        let (path, first, step) = (shm.file(), first.to_string(), PARTS.to_string());
        let mut service = again!("counts_while_words_are_damaged_when_asked", path, first, step);
        let done = service.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let word = fs::read_to_string(format!("{}.word", path.display()));
        assert!(done.status.success(), "{}, at {word:?}: {said}", done.status);
    }
}

/// Repeats the words of a record over the memory behind it.
fn repeat(file: &File, at: u64, len: u64, times: u64) {
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
    let region = open_with(shm.file(), 2, LEN);
    let long = vec![b'x'; LEN as usize / 8];
    family(region, "long", FamilySpec { definition: &long, ..spec(1) });
    let families = LEN >> 12;
    repeat(&file, FAMILIES + 256, 256, families - 1);
    put(&file, mark(0), families * 256);
    put(&file, mark(0) + 8, families * 256);
    let snapshot = Reader::open(shm.file()).unwrap().snapshot().unwrap();
    let size: usize = snapshot.families().iter().map(|f| f.name.len() + f.definition.len()).sum();
    assert!(size as u64 <= 2 * LEN, "{size} bytes of a file of {LEN}");
}

#[test]
fn texts_that_overlap_are_not_read_again_and_again() {
    const LEN: u64 = 64 << 20;
    const SERIES: u64 = 12_288;
    let shm = Shm::new("overlapping");
    let original = shm.path().join("original.talea");
    let region = open_with(&original, 2, LEN);
    let family = family(region, "used", spec(1));
    (0..SERIES).for_each(|n| drop(family.series(&n.to_le_bytes()[..3]).unwrap()));
    let file = open_copy(original, shm.file());
    let bytes = fs::read(shm.file()).unwrap();
    // A public record of one cell, and the next one likewise.
    let is_record = |at: u64| {
        let record = &bytes[at as usize..];
        record[0] == 2 && record[8..11] == [3, 0, 0] && record[16..18] == [1, 0]
    };
    let first = (0..LEN - 128).step_by(64).find(|&at| is_record(at) && is_record(at + 64)).unwrap();
    assert!((0..SERIES).all(|n| is_record(first + n * 64)));
    // The arena is in use up to 8 MiB, which are 0 but for the texts above.
    const TEXT: u64 = 8 << 20;
    // SAFETY: the call has no conditions.
    assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, LEN as i64) }, 0);
    put(&file, mark(2), TEXT);
    put(&file, mark(2) + 8, TEXT);
    // In the first window one text is far from the others, so all are copied.
    put(&file, first + 8, (TEXT - 8) << 24 | 3);
    // In the others each is as long as all of it.
    (4096..SERIES).for_each(|n| put(&file, first + n * 64 + 8, TEXT));
    let before = cpu_time();
    let _ = Reader::open(shm.file()).unwrap().snapshot().unwrap();
    let took = cpu_time() - before;
    assert!(took < Duration::from_secs(1), "{took:?} for a file of {LEN} bytes");
}

#[test]
fn series_that_are_refused_cost_no_more_than_those_that_are_taken() {
    const LEN: u64 = 8 << 20;
    let shm = Shm::new("refused");
    let file = used(&shm, LEN, 65_535);
    let bytes = fs::read(shm.file()).unwrap();
    // The only series record: public, and the third of its words names 65,535 cells.
    let at = (0..LEN - 24).step_by(64).find(|&at| {
        let record = &bytes[at as usize..];
        record[0] == 2 && record[16..18] == [0xFF, 0xFF]
    });
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
