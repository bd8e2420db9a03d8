//! Claims about many processes that begin at once.

use crate::support::process::{Process, arguments, wait_for_input};
use crate::support::region::records;
use crate::support::tmpfs::Shm;
use talea_region::{Config, FamilySpec, Region, Storage};

const PROCESSES: u64 = 64;
const FAMILIES: u64 = 100;
const SERIES: u64 = 20;

fn open(path: impl AsRef<std::path::Path>) -> &'static Region {
    Region::open(path, Config::with_len(16 << 20)).unwrap().region
}

#[test]
#[ignore = "a process that a test starts"]
fn registers_everything_when_asked() {
    let Some([path]) = arguments() else { return };
    let region = open(path);
    println!("\nopened");
    // All begin when the last has opened the region.
    wait_for_input();
    for n in 0..FAMILIES {
        let storage = if n % 2 == 0 { Storage::Striped } else { Storage::Single };
        let name = format!("family_{n}");
        let definition = b"the same for all";
        let spec =
            FamilySpec { definition, storage, cells: 2, limit: SERIES, ..FamilySpec::default() };
        let registered = region.family(FamilySpec { name: name.as_bytes(), ..spec }).unwrap();
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
    let region = open(shm.file());
    let start = |_| Process::start(&mut again!("registers_everything_when_asked", shm.file()));
    let mut crowd: Vec<Process> = (0..PROCESSES).map(start).collect();
    for process in &mut crowd {
        process.wait_for("opened");
    }
    crowd.iter_mut().for_each(Process::write_line);
    crowd.into_iter().for_each(Process::end);
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
    assert_eq!(records(region), FAMILIES * SERIES);
}
