//! Claims about many processes that begin at once.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::tmpfs::Shm;
use talea_region::{Config, FamilySpec, Region, Storage};

const PROCESSES: u64 = 64;
const FAMILIES: u64 = 100;
const SERIES: u64 = 20;

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn registers_everything_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_CROWD") else { return };
    let region = Region::open(path, Config::with_len(16 << 20)).unwrap().region;
    print!("\n!");
    std::io::stdout().flush().unwrap();
    // All begin when the last has opened the region.
    std::io::stdin().read_exact(&mut [0]).unwrap();
    for family in 0..FAMILIES {
        let storage = if family % 2 == 0 { Storage::Striped } else { Storage::Single };
        let name = format!("family_{family}");
        let spec = FamilySpec {
            name: name.as_bytes(),
            definition: b"the same for all",
            storage,
            cells: 2,
            limit: SERIES,
            ..FamilySpec::default()
        };
        let registered = region.family(spec).unwrap();
        assert!(!registered.conflict);
        for series in 0..SERIES {
            let text = format!("n=\"{series}\"");
            registered.family.series(text.as_bytes()).unwrap().at(1).add(1);
        }
    }
}

#[test]
fn sixty_four_processes_that_register_the_same_at_once_make_one_of_each() {
    let shm = Shm::new("crowd");
    let region = Region::open(shm.file(), Config::with_len(16 << 20)).unwrap().region;
    let mut crowd: Vec<_> = (0..PROCESSES)
        .map(|_| {
            again!("registers_everything_when_asked")
                .env("TALEA_TEST_CROWD", shm.file())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for process in &mut crowd {
        let output = process.stdout.as_mut().unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"\n!") {
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            said.push(byte[0]);
        }
    }
    for process in &mut crowd {
        process.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }
    for mut process in crowd {
        let mut rest = Vec::new();
        process.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        assert!(process.wait().unwrap().success(), "{}", String::from_utf8_lossy(&rest));
    }
    let snapshot = region.snapshot();
    assert_eq!(snapshot.families().len() as u64, FAMILIES);
    for family in snapshot.families() {
        assert_eq!(snapshot.series(family).len() as u64, SERIES);
        assert!(snapshot.series(family).all(|series| series.values == [0, PROCESSES]));
        assert_eq!(family.dropped, 0);
    }
    // A process that loses a race gives back its memory. A sweep frees a record whose place was
    // taken again before its head was free.
    region.sweep();
    let usage = region.usage();
    assert_eq!(usage.records.taken / usage.record_len, FAMILIES * SERIES);
}
