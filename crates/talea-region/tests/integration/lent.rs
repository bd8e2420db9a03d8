//! Claims about planes that one thread of a process borrows, and writes by plain stores.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering::Relaxed;

use crate::support::calls::{fork, kill_child};
use crate::support::process::arguments;
use crate::support::region::{family, total};
use crate::support::tmpfs::{self, Shm};
use talea_region::{Cell, Config, FamilySpec, LentPlane, Number, Reader, Region, Storage};

const PLANES: u64 = 3;

fn config() -> Config {
    Config::with_len(2 << 20).lending(PLANES)
}

fn region() -> &'static Region {
    Region::anonymous(config()).unwrap()
}

fn open(path: &Path) -> &'static Region {
    Region::open(path, config()).unwrap().region
}

fn cell(region: &'static Region, name: &str) -> Cell {
    let spec = FamilySpec { storage: Storage::Striped, ..FamilySpec::default() };
    family(region, name, spec).permanent_series(b"").unwrap().at(0)
}

/// Adds as JavaScript does: a load and a store.
fn add_plainly(plane: &LentPlane, cell: Cell, n: u64) {
    let word = &plane.words()[plane.index_of(cell).unwrap()];
    word.store(word.load(Relaxed) + n, Relaxed);
}

#[test]
fn what_a_borrower_adds_is_in_every_sum_and_stays_when_the_plane_is_given_back() {
    let shm = Shm::new("lent");
    let path = shm.file();
    let region = open(&path);
    let cell = cell(region, "lent");
    cell.add(1);
    let plane = region.lend_plane().unwrap();
    add_plainly(&plane, cell, 20);
    cell.add(300);
    let reader = Reader::open(&path).unwrap();
    let outside = || {
        let snapshot = reader.snapshot().unwrap();
        let family = snapshot.families().iter().find(|family| family.name == b"lent").unwrap();
        snapshot.series(family).map(|series| series.values[0]).sum::<u64>()
    };
    assert_eq!([cell.get(), total(region, "lent"), outside()], [321; 3]);
    drop(plane);
    assert_eq!([cell.get(), total(region, "lent"), outside()], [321; 3]);
    let again = region.lend_plane().unwrap();
    add_plainly(&again, cell, 4000);
    assert_eq!([cell.get(), total(region, "lent"), outside()], [4321; 3]);
}

#[test]
fn each_plane_has_one_borrower_and_the_next_one_gets_what_is_left() {
    let region = region();
    let mut lent: Vec<LentPlane> = std::iter::from_fn(|| region.lend_plane()).collect();
    assert_eq!(lent.len() as u64, PLANES);
    let first_words: Vec<_> = lent.iter().map(|plane| plane.words().as_ptr()).collect();
    let given_back = lent.remove(1);
    drop(given_back);
    assert_eq!(region.lend_plane().unwrap().words().as_ptr(), first_words[1]);
}

#[test]
fn a_region_without_planes_to_lend_lends_none() {
    let region = Region::anonymous(Config::with_len(2 << 20)).unwrap();
    assert!(region.lend_plane().is_none());
}

#[test]
fn a_cell_that_is_in_no_plane_or_of_another_region_has_no_index() {
    let region = region();
    let plane = region.lend_plane().unwrap();
    let single = family(region, "single", FamilySpec::default()).permanent_series(b"").unwrap();
    assert_eq!(plane.index_of(single.at(0)), None);
    assert_eq!(plane.index_of(cell(self::region(), "other")), None);
    assert!(plane.index_of(cell(region, "own")).is_some());
}

#[test]
fn cells_that_are_made_while_a_plane_is_lent_are_backed_there() {
    let region = region();
    let plane = region.lend_plane().unwrap();
    let spec = FamilySpec { storage: Storage::Striped, cells: 9, ..FamilySpec::default() };
    let many = family(region, "many", spec);
    let mut made = 0;
    for n in 0..2_000 {
        let cells = many.series(format!("n=\"{n}\"").as_bytes()).unwrap();
        if plane.index_of(cells.at(0)).is_some() {
            (0..9).for_each(|cell| add_plainly(&plane, cells.at(cell), 1));
            made += 1;
        }
    }
    assert!(made > 100, "{made}");
    assert_eq!(total(region, "many"), made);
}

#[test]
fn a_wiped_or_reclaimed_series_counts_from_0_in_a_lent_plane() {
    let region = region();
    let plane = region.lend_plane().unwrap();
    let spec = FamilySpec { storage: Storage::Striped, ..FamilySpec::default() };
    let passing = family(region, "passing", spec);
    add_plainly(&plane, passing.series(b"a=\"1\"").unwrap().at(0), 5);
    assert!(passing.remove(b"a=\"1\""));
    // Its cells are used again.
    crate::support::region::sweep(region, 3);
    for n in 0..200 {
        passing.series(format!("b=\"{n}\"").as_bytes()).unwrap();
    }
    assert_eq!(total(region, "passing"), 0);
    let kept = cell(region, "kept");
    add_plainly(&plane, kept, 7);
    assert!(family(region, "kept", spec).wipe());
    assert_eq!(kept.get(), 0);
    add_plainly(&plane, kept, 1);
    assert_eq!([kept.get(), total(region, "kept")], [1; 2]);
}

#[test]
fn a_float_is_added_to_as_javascript_does() {
    let region = region();
    let spec =
        FamilySpec { storage: Storage::Striped, number: Number::Float, ..FamilySpec::default() };
    let cell = family(region, "float", spec).permanent_series(b"").unwrap().at(0);
    let plane = region.lend_plane().unwrap();
    let word = &plane.words()[plane.index_of(cell).unwrap()];
    word.store((f64::from_bits(word.load(Relaxed)) + 0.5).to_bits(), Relaxed);
    cell.add_float(2.0);
    assert_eq!(cell.get_float(), 2.5);
}

#[test]
fn a_child_leaves_its_parents_plane_alone_and_borrows_its_own() {
    let region = region();
    let plane = region.lend_plane().unwrap();
    let cell = cell(region, "forked");
    add_plainly(&plane, cell, 1);
    let child = fork(|| {
        let own = region.lend_plane().unwrap();
        assert!(own.words().as_ptr() != plane.words().as_ptr());
        add_plainly(&own, cell, 10);
        std::mem::forget(own);
        // The copy of the parent's.
        drop(unsafe_copy(&plane));
    });
    let others: Vec<LentPlane> = std::iter::from_fn(|| region.lend_plane()).collect();
    assert_eq!(others.len() as u64, PLANES - 2, "the child has one, and this process one");
    drop(others);
    kill_child(child);
    let others: Vec<LentPlane> = std::iter::from_fn(|| region.lend_plane()).collect();
    assert_eq!(others.len() as u64, PLANES - 1, "the dead child's is lent again");
    add_plainly(&plane, cell, 100);
    assert_eq!(total(region, "forked"), 111);
}

/// The value that a child has: the same bytes.
fn unsafe_copy(plane: &LentPlane) -> LentPlane {
    #[allow(unsafe_code)]
    // SAFETY: a plane is plain data; the original is forgotten with the child, which is killed.
    unsafe {
        std::ptr::read(plane)
    }
}

/// Borrows a plane, and adds 1 to a cell for each byte that it writes.
#[test]
#[ignore = "a process that a test starts"]
fn borrows_until_killed_when_asked() {
    let Some([path]) = arguments() else { return };
    let region = open(path.as_ref());
    let cell = cell(region, "killed");
    let plane = region.lend_plane().unwrap();
    let mut out = std::io::stdout().lock();
    out.write_all(b"\nborrowed\n").unwrap();
    loop {
        add_plainly(&plane, cell, 1);
        out.write_all(b".").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn a_killed_borrower_loses_nothing_and_its_plane_is_lent_again() {
    let shm = Shm::new("lent-killed");
    let path = shm.file();
    let region = open(&path);
    let cell = cell(region, "killed");
    let (mut acknowledged, mut kills) = (0, 0);
    // Many more than there are planes.
    for round in 0..10_u64 {
        let writers: Vec<_> = (0..PLANES)
            .map(|_| {
                let mut command = again!("borrows_until_killed_when_asked", &path);
                command.stdout(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for mut writer in writers {
            let mut output = BufReader::new(writer.stdout.take().unwrap());
            let mut line = String::new();
            while line != "borrowed\n" {
                line.clear();
                assert!(output.read_line(&mut line).unwrap() > 0, "a writer found no plane");
            }
            let mut said = vec![0; 1 + 97 * round as usize];
            output.read_exact(&mut said).unwrap();
            writer.kill().unwrap();
            writer.wait().unwrap();
            let mut rest = Vec::new();
            output.read_to_end(&mut rest).unwrap();
            acknowledged += (said.len() + rest.len()) as u64;
            kills += 1;
        }
        let found = cell.get();
        let range = acknowledged..=acknowledged + kills;
        assert!(range.contains(&found), "{found}, where {range:?} was expected");
        assert_eq!(found, total(region, "killed"));
    }
}

/// The count of lent planes, and the words of their owners (`layout.rs`).
const COUNT: u64 = 1496;
const OWNERS: u64 = 1728;

#[test]
fn damaged_words_of_lent_planes_crash_and_stop_nobody() {
    for damage in [0, 1, 2, 4095, 1 << 12 | 1, u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
        let shm = Shm::new("lent-damaged");
        let path = shm.file();
        let region = open(&path);
        let cell = cell(region, "damaged");
        let plane = region.lend_plane().unwrap();
        add_plainly(&plane, cell, 5);
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        for at in (0..256).map(|n| OWNERS + n * 8).chain([COUNT]) {
            tmpfs::put(&file, at, damage);
        }
        cell.add(1);
        // Words of 0 name no plane.
        assert_eq!(cell.get(), if damage == 0 { 1 } else { 6 }, "{damage:#x}");
        assert_eq!(total(region, "damaged"), cell.get(), "{damage:#x}");
        if let Some(other) = region.lend_plane() {
            add_plainly(&other, cell, 100);
        }
        drop(plane);
        // It is refused, or read.
        let _ = Reader::open(&path).map(|reader| reader.snapshot().map(drop));
        let _ = Region::open(&path, config()).map(|opened| opened.region.lend_plane());
    }
}
