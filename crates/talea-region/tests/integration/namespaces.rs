//! Claims about processes in namespaces of their own, as containers have them,
//! and about a tmpfs that is too small. `unshare` makes them.

use std::path::Path;
use std::process::Command;

use crate::support::assert_says;
use crate::support::process::{
    Process, arguments, by_shell, line_of, output_of, started_by, wait_for_input,
};
use crate::support::region::{self, open};
use crate::support::tmpfs::Shm;
use crate::support::until;
use talea_region::{Config, FamilySpec, Overflow, Region, Storage};

/// A command in namespaces of its own; as another user than root, also in a user namespace, where it
/// may make them.
fn unshared(options: &[&str], command: &Command) -> Command {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let user: &[&str] = if root { &[] } else { &["--map-root-user"] };
    started_by("unshare", &[user, options].concat(), command)
}

fn add(region: &'static Region, storage: Storage, n: u64) {
    let spec = FamilySpec { storage, ..FamilySpec::default() };
    region::family(region, "f", spec).series(b"").unwrap().at(0).add(n);
}

fn total(region: &'static Region) -> u64 {
    region::total(region, "f")
}

#[test]
#[ignore = "a process that a test starts"]
fn holds_in_its_namespace_when_asked() {
    let Some([path]) = arguments() else { return };
    add(open(path), Storage::Owned, 5);
    println!("\nheld as {}", std::process::id());
    wait_for_input();
}

fn holder(path: &Path) -> Process {
    let command = again!("holds_in_its_namespace_when_asked", path);
    let options = ["--pid", "--fork", "--kill-child"];
    let mut holder = Process::start(&mut unshared(&options, &command));
    assert_eq!(holder.wait_for("held as "), "1", "it is the first process of its namespace");
    holder
}

#[test]
fn a_process_of_another_pid_namespace_lives_and_dies_as_any_other() {
    let shm = Shm::new("pid");
    let region = open(shm.file());
    add(region, Storage::Owned, 1);
    for _ in 0..2 {
        // The second has the same process id as the first had.
        let (mut first, mut second) = (holder(&shm.file()), holder(&shm.file()));
        assert_eq!(total(region), 11);
        first.kill();
        wait_for(region, 6);
        second.kill();
        wait_for(region, 1);
    }
}

/// `unshare` dies at once, and the process in it soon after.
fn wait_for(region: &'static Region, held: u64) {
    until(&format!("{held} are held"), || total(region) == held);
}

#[test]
#[ignore = "a process that a test starts"]
fn fills_a_small_tmpfs_when_asked() {
    let Some([path, megabytes]) = arguments() else { return };
    // As large as the file system, so it cannot be had whole.
    let config = Config::with_len(megabytes.parse::<u64>().unwrap() << 20);
    let region = Region::open(&path, config).unwrap().region;
    for storage in [Storage::Striped, Storage::Single] {
        let spec = FamilySpec { storage, cells: 50, ..FamilySpec::default() };
        let family = region::family(region, &format!("{storage:?}"), spec);
        let mut kept = Vec::new();
        let refused = (0..10_000_000_u64).find_map(|n| {
            match family.series(format!("n=\"{n:0100}\"").as_bytes()) {
                Ok(cells) => {
                    // The last cell is on the last page, if on another.
                    cells.at(49).add(1);
                    kept.push(cells);
                    None
                }
                Err(error) => Some(error),
            }
        });
        assert_eq!(refused, Some(Overflow::Full));
        assert!(kept.iter().all(|cells| cells.at(49).get() == 1));
        println!("{} series", kept.len());
    }
    let snapshot = region.snapshot();
    assert!(snapshot.families().iter().flat_map(|f| snapshot.series(f)).all(|s| s.values[49] == 1));
    // The tables of this one are larger than what is left.
    let large = Config::with_len(1 << 30);
    let parts = ["the tables of a region in", "No space left", "--shm-size"];
    assert_says(Region::open(format!("{path}-2"), large).unwrap_err(), &parts);
}

#[test]
fn a_tmpfs_that_is_full_gives_an_overflow_and_no_signal() {
    for megabytes in [1, 64] {
        let shm = Shm::new("small");
        let place = shm.path().display();
        let mount = format!("mount -t tmpfs -o size={megabytes}m none {place}");
        let size = megabytes.to_string();
        let inside = again!("fills_a_small_tmpfs_when_asked", shm.file(), size);
        let said = output_of(&mut unshared(&["--mount"], &by_shell(&mount, &inside)));
        assert!(said.contains(" series"), "it ran: {said}");
    }
}

#[test]
#[ignore = "a process that a test starts"]
fn opens_without_proc_when_asked() {
    let Some([path]) = arguments() else { return };
    let error = Region::open(path, Config::with_len(1 << 20)).unwrap_err();
    println!("\nrefused {error}");
}

#[test]
fn without_proc_a_new_region_in_a_file_is_an_error_that_says_so() {
    let shm = Shm::new("proc");
    let inside = again!("opens_without_proc_when_asked", shm.file());
    let hidden = by_shell("mount -t tmpfs none /proc", &inside);
    let said = output_of(&mut unshared(&["--mount"], &hidden));
    assert_says(&said, &["refused cannot name the region ", "/proc is not there", "mount it"]);
    assert!(!said.contains("make the directory first"), "{said}");
}

#[test]
#[ignore = "a process that a test starts"]
fn counts_without_a_boot_id_when_asked() {
    let Some([path]) = arguments() else { return };
    let said = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(said.is_empty(), "the boot id can be read");
    let opened = region::opened(path);
    add(opened.region, Storage::Single, 5);
    println!("\ncounted {} {:?}", total(opened.region), opened.notice);
}

#[test]
fn a_boot_id_that_cannot_be_read_speaks_against_no_file() {
    // One that was made where the boot id is known, and one that was not.
    for knows in [true, false] {
        let shm = Shm::new(&format!("boot-{knows}"));
        let count = || {
            let opened = region::opened(shm.file());
            add(opened.region, Storage::Single, 1);
            assert_eq!((&opened.path, opened.notice), (&shm.file(), None));
            total(opened.region)
        };
        if knows {
            assert_eq!(count(), 1);
        }
        let hide = "mount --bind /dev/null /proc/sys/kernel/random/boot_id";
        let inside = again!("counts_without_a_boot_id_when_asked", shm.file());
        let said = output_of(&mut unshared(&["--mount"], &by_shell(hide, &inside)));
        let counted = if knows { 6 } else { 5 };
        assert_eq!(line_of(&said, "counted "), format!("{counted} None"));
        assert_eq!(count(), counted + 1);
        assert_eq!(shm.names().len(), 1, "nothing was moved aside");
    }
}

#[test]
fn a_region_that_its_tmpfs_cannot_begin_is_an_error() {
    let shm = Shm::new("none");
    // The index alone is larger than the file system.
    let config = Config { series: 1 << 31, ..Config::with_len(1 << 40) };
    assert_says(Region::open(shm.file(), config).unwrap_err(), &["cannot"]);
    assert!(!shm.file().exists(), "nothing half made is left");
}
