//! Claims about reading a region from outside, and about files that lie.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::support::assert_says;
use crate::support::process::{Process, arguments, wait_for_input};
use crate::support::region::{self, family, sweep};
use crate::support::tmpfs::{Shm, open, open_copy, put};
use talea_region::{Config, FamilySpec, Number, Reader, Region, SeriesView, Snapshot, Storage};

fn spec(definition: &[u8]) -> FamilySpec<'_> {
    FamilySpec { definition, limit: 1 << 30, ..FamilySpec::default() }
}

/// Adds to families of every storage and number.
fn fill(region: &'static Region, series: u64) {
    for (name, storage, number, cells) in [
        ("striped", Storage::Striped, Number::Integer, 5),
        ("single", Storage::Single, Number::Integer, 1),
        ("owned", Storage::Owned, Number::Integer, 1),
        ("float", Storage::Striped, Number::Float, 1),
        ("segments", Storage::Striped, Number::FloatLast, 2),
        ("single segments", Storage::Single, Number::FloatLast, 2),
    ] {
        let segments = if number == Number::FloatLast { 5 } else { 0 };
        let spec = FamilySpec { storage, number, cells, segments, ..spec(b"what it is") };
        let family = family(region, name, spec);
        for n in 0..series {
            let cells = family.series(format!("n=\"{n}\"").as_bytes()).unwrap();
            match number {
                Number::Integer => (0..cells.len()).for_each(|i| cells.at(i).add(n + i as u64)),
                Number::Float => cells.at(0).add_float(0.5 * n as f64),
                Number::FloatLast => {
                    cells.at(0).count_float(cells.last(), -0.5 * n as f64);
                    let segments = cells.segments().unwrap();
                    let segment = segments.make(n as usize % 5, 3, 1000 + n as u16 % 5).unwrap();
                    segments.cell(segment, 1).unwrap().count_float(cells.last(), 1.5);
                }
            }
        }
    }
}

type Shown = Vec<(Vec<u8>, Vec<u8>, Vec<(Vec<u8>, Vec<u64>)>)>;

fn shown(snapshot: &Snapshot) -> Shown {
    let families = snapshot.families().iter();
    let shown = families.map(|f| {
        let series = snapshot.series(f).map(|s| (s.text.to_vec(), values(&s)));
        (f.name.clone(), f.definition.clone(), series.collect())
    });
    shown.collect()
}

fn values(series: &SeriesView<'_>) -> Vec<u64> {
    let mut values = series.values.to_vec();
    for segment in series.segments() {
        values.extend([segment.n, segment.tag].map(u64::from));
        values.extend(segment.values);
    }
    values
}

#[test]
fn from_outside_a_region_looks_as_it_does_from_inside() {
    let shm = Shm::new("outside");
    let region = Region::open(shm.file(), Config::with_len(8 << 20)).unwrap().region;
    let reader = Reader::open(shm.file()).unwrap();
    assert_eq!(shown(&reader.snapshot().unwrap()), shown(&region.snapshot()));
    for series in [1, 30, 300] {
        fill(region, series);
        let inside = shown(&region.snapshot());
        assert_eq!(inside.len(), 6);
        assert!(inside[4].2.iter().all(|(_, values)| values.len() >= 2 + 5));
        assert_eq!(inside[1].2.len() as u64, series);
        assert_eq!(shown(&reader.snapshot().unwrap()), inside);
    }
}

#[test]
fn from_outside_a_region_is_as_full_as_it_is_from_inside() {
    let shm = Shm::new("full");
    let region = Region::open(shm.file(), Config::with_len(8 << 20)).unwrap().region;
    fill(region, 30);
    family(region, "gone", spec(b"longer than it was")).series(b"n=\"1\"").unwrap();
    assert!(region.end_families(b"gone"));
    let reader = Reader::open(shm.file()).unwrap();
    assert_eq!(reader.created_unix_nanos(), region.created_unix_nanos());
    let (overview, snapshot) = reader.look().unwrap();
    assert_eq!(overview.usage, region.usage());
    assert_eq!(shown(&snapshot), shown(&region.snapshot()));
    assert_eq!((overview.len, overview.series_max), (8 << 20, (8 << 20) / 512));
    assert_eq!(overview.created_unix_nanos, region.created_unix_nanos());
    assert_eq!((overview.families, overview.families_ended, overview.families_retired), (7, 1, 0));
    assert_eq!((overview.text_without_owner, overview.cells_without_owner), (0, 0));
    let [this] = overview.processes[..] else { panic!("{overview:?}") };
    assert_eq!((this.slot, this.pid, this.taken), (0, std::process::id().into(), 1));
    assert!(this.is_alive && this.started_unix_nanos >= overview.created_unix_nanos);
    let uses: Vec<_> = overview.family_uses.iter().map(|one| (one.series, one.processes)).collect();
    assert_eq!(uses, [(30, 1); 6]);
    let storages = [Storage::Striped, Storage::Single, Storage::Owned];
    for (family, of_it) in snapshot.families().iter().zip(&overview.family_uses) {
        assert_eq!(family.number(), of_it.number);
    }
    assert!(overview.family_uses.iter().zip(storages).all(|(one, storage)| one.storage == storage));
    assert!(overview.family_uses.iter().all(|one| one.limit == 1 << 30));
}

#[test]
fn impossible_marks_are_an_error_for_a_reader() {
    let shm = Shm::new("marks");
    let path = shm.file();
    fill(region::open(&path), 3);
    let copy = shm.path().join("copy.talea");
    let look = |at: u64, word: u64| {
        put(&open_copy(&path, &copy), at, word);
        Reader::open(&copy).unwrap().look()
    };
    // Families, records, the arena, all kinds of cells, planes; the state of plane 0, a CPU's plane.
    let parts = ["table", "part", "part", "part", "part", "part", "part", "planes"];
    let others = [(1024 + 7 * 64 + 16, "plane 0 is in state"), (4096, "CPU's plane")];
    let marks = (1024..).step_by(64).zip(parts).chain(others);
    for (at, part) in marks {
        for word in [u64::MAX, 1 << 50 | 1] {
            let error = look(at, word).unwrap_err().to_string();
            assert!(error.contains(part) || error.contains("claims"), "{at}: {error}");
        }
    }
    let (overview, _) = look(0, u64::from_le_bytes(*b"TALEAREG")).unwrap();
    assert!(overview.processes.iter().all(|process| !process.is_alive), "{overview:?}");
}

#[test]
#[ignore = "a process that a test starts"]
fn fills_memory_and_waits_when_asked() {
    let Some([_]) = arguments() else { return };
    fill(Region::anonymous(Config::with_len(8 << 20)).unwrap(), 10);
    println!("\nfilled");
    wait_for_input();
}

#[test]
fn the_memory_of_a_process_is_read_also_after_its_death() {
    let mut command = again!("fills_memory_and_waits_when_asked");
    let mut process = Process::start_until("filled", &mut command);
    let reader = Reader::of_process(process.id()).unwrap();
    let living = shown(&reader.snapshot().unwrap());
    assert_eq!(living[0].2[3].1, [3, 4, 5, 6, 7]);
    assert_eq!(living[2].2[3].1, [3], "owned");
    process.kill();
    let dead = shown(&reader.snapshot().unwrap());
    assert_eq!((&dead[0], &dead[1], &dead[3]), (&living[0], &living[1], &living[3]));
    assert_eq!(dead[2].2[3].1, [0], "what it held is gone");
    assert_says(Reader::of_process(process.id()).unwrap_err(), &["descriptors"]);
}

#[test]
fn a_file_that_is_no_region_is_reported_and_not_read() {
    type Make = fn(&Path);
    let make: [(&str, Make); 7] = [
        ("No such file", |_| ()),
        ("shorter", |path| fs::write(path, b"").unwrap()),
        ("begin as a region", |path| fs::write(path, vec![7; 1 << 20]).unwrap()),
        ("a symbolic link", |path| symlink("/dev/zero", path).unwrap()),
        ("a FIFO, not a regular file", |path| {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("a directory, not a regular file", |path| fs::create_dir(path).unwrap()),
        ("a socket or a device, not a regular file", |path| {
            UnixListener::bind(path).unwrap();
        }),
    ];
    for (reason, make) in make {
        let shm = Shm::new("not");
        make(&shm.file());
        let error = Reader::open(shm.file()).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("shop.talea"), "{reason}: {error}");
    }
}

#[test]
fn a_region_that_is_cut_is_an_error() {
    let shm = Shm::new("cut");
    let path = shm.file();
    fill(region::open(&path), 10);
    // A copy: no writer survives the truncation of its file.
    let copy = shm.path().join("copy.talea");
    for claimed in [None, Some(u64::MAX)] {
        let file = open_copy(&path, &copy);
        let reader = Reader::open(&copy).unwrap();
        reader.snapshot().unwrap();
        // By the mark of series.
        claimed.into_iter().for_each(|bytes| put(&file, 1024 + 64, bytes));
        for len in [1 << 19, 8192, 4096, 10, 0] {
            file.set_len(len).unwrap();
            reader.snapshot().unwrap_err();
        }
    }
}

#[test]
fn a_file_of_holes_that_claims_to_be_full_costs_no_memory() {
    let shm = Shm::new("holes");
    let path = shm.file();
    // 16 GiB that are not there.
    Region::open(&path, Config { series: 1 << 20, ..Config::with_len(1 << 34) }).unwrap();
    let file = open(&path);
    (1024..4096).step_by(8).for_each(|mark| put(&file, mark, u64::MAX));
    assert_says(Reader::open(&path).unwrap().snapshot().unwrap_err(), &["claims"]);
}

#[test]
fn any_word_may_be_wrong_and_a_snapshot_still_ends() {
    let shm = Shm::new("mutated");
    let path = shm.file();
    fill(region::open(&path), 20);
    let original = fs::read(&path).unwrap();
    let copy = shm.path().join("copy.talea");
    let file = open_copy(&path, &copy);
    let used: Vec<u64> = (0..original.len() as u64 / 8)
        .filter(|&word| original[word as usize * 8..][..8] != [0; 8])
        .collect();
    assert!(used.len() > 300);
    let (mut read, mut looks) = (0, 0);
    for (n, word) in used.iter().cycle().take(6_000).enumerate() {
        let before = &original[*word as usize * 8..][..8];
        let old = u64::from_le_bytes(before.try_into().unwrap());
        let wrong = match n % 4 {
            0 => u64::MAX,
            1 => old ^ 1 << (n / 4 % 64),
            2 => old.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            _ => 0xFFFF_FFFF,
        };
        put(&file, word * 8, wrong);
        let reader = Reader::open(&copy).ok();
        let both = reader.and_then(|reader| Some((reader.look().ok(), reader.snapshot().ok()?)));
        if let Some((looked, snapshot)) = both {
            looks += usize::from(looked.is_some());
            if let Some((overview, also)) = looked {
                assert_eq!(shown(&also), shown(&snapshot));
                let parts = overview.usage;
                for part in [parts.records, parts.text].into_iter().chain(parts.cells()) {
                    assert!(part.taken <= part.reached && part.reached <= part.room, "{part:?}");
                }
                assert!(overview.families <= overview.families_max);
            }
            read += 1;
            let size: usize = shown(&snapshot).iter().map(|f| f.2.len()).sum();
            assert!(size <= 120, "a mutation multiplied the series");
        }
        put(&file, word * 8, old);
    }
    assert!(looks > 1_000, "most can also be looked over: {looks}");
    assert!(read > 1_000, "most mutations leave the rest readable: {read}");
}

#[test]
fn a_series_is_not_given_what_another_had_that_went_while_the_region_was_read() {
    for storage in [Storage::Striped, Storage::Single] {
        let shm = Shm::new("went");
        let region = Region::open(shm.file(), Config::with_len(4 << 20)).unwrap().region;
        let spec = FamilySpec { storage, idle_minutes: 1, ..FamilySpec::default() };
        let family = family(region, "f", spec);
        family.series(b"gone").unwrap().at(0).add(5);
        let records = region.usage().records.taken;
        let mut snapshot = Snapshot::default();
        let read = Reader::open(shm.file()).unwrap().snapshot_into(&mut snapshot, &|_| {
            // Cells, planes and families were read before.
            family.remove(b"gone");
            sweep(region, 3);
            family.series(b"other").unwrap().at(0).add(7);
            true
        });
        read.unwrap();

        assert_eq!(region.usage().records.taken, records, "the record is the same");
        let all = snapshot.families().iter().flat_map(|family| snapshot.series(family));
        let all: Vec<_> = all.map(|series| (series.text, series.values[0])).collect();
        assert_eq!(all, [(b"other".as_slice(), 7)], "{storage:?}");
    }
}
