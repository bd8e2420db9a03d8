//! Claims about processes in namespaces of their own, as containers have them,
//! and about a tmpfs that is too small. `unshare` makes them.

use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::tmpfs::Shm;
use talea_region::{Config, Family, FamilySpec, Number, Overflow, Region, Storage};

/// This test binary in namespaces of its own; as another user than root, also in
/// a user namespace, where it may make them.
fn unshared(options: &[&str], before: &str, test: &str) -> Command {
    let inside = again!(test);
    let words = std::iter::once(inside.get_program()).chain(inside.get_args());
    let quoted: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut command = Command::new("unshare");
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !root {
        command.arg("--map-root-user");
    }
    command.args(options).args(["sh", "-c", &format!("{before} exec {}", quoted.join(" "))]);
    command
}

fn family(region: &'static Region, storage: Storage, cells: u16) -> Family {
    let number = Number::Integer;
    let limit = u64::MAX;
    let spec = FamilySpec { name: b"f", storage, number, cells, limit, ..FamilySpec::default() };
    region.family(spec).unwrap().family
}

fn total(region: &'static Region) -> u64 {
    let snapshot = region.snapshot();
    snapshot.families().iter().flat_map(|f| snapshot.series(f)).map(|s| s.values[0]).sum()
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn holds_in_its_namespace_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_PID") else { return };
    let region = Region::open(path, Config::with_len(1 << 20)).unwrap().region;
    family(region, Storage::Owned, 1).series(b"").unwrap().at(0).add(5);
    println!("\nheld as {}", std::process::id());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

fn holder(path: &Path) -> Child {
    let options = ["--pid", "--fork", "--kill-child"];
    let mut holder = unshared(&options, "", "holds_in_its_namespace_when_asked")
        .env("TALEA_TEST_PID", path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare is missing: it comes with util-linux");
    let lines = std::io::BufReader::new(holder.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).find(|line| line.starts_with("held as "));
    assert_eq!(said.as_deref(), Some("held as 1"), "it is the first process of its namespace");
    holder
}

#[test]
fn a_process_of_another_pid_namespace_lives_and_dies_as_any_other() {
    let shm = Shm::new("pid");
    let region = Region::open(shm.file(), Config::with_len(1 << 20)).unwrap().region;
    family(region, Storage::Owned, 1).series(b"").unwrap().at(0).add(1);
    for _ in 0..2 {
        // The second has the same process id as the first had.
        let (mut first, mut second) = (holder(&shm.file()), holder(&shm.file()));
        assert_eq!(total(region), 11);
        first.kill().unwrap();
        first.wait().unwrap();
        wait_for(region, 6);
        second.kill().unwrap();
        second.wait().unwrap();
        wait_for(region, 1);
    }
}

/// `unshare` dies at once, and the process in it soon after.
fn wait_for(region: &'static Region, held: u64) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while total(region) != held {
        assert!(std::time::Instant::now() < end, "{} held, not {held}", total(region));
        std::thread::yield_now();
    }
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn fills_a_small_tmpfs_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_SMALL") else { return };
    let megabytes: u64 = std::env::var("TALEA_TEST_MEGABYTES").unwrap().parse().unwrap();
    // As large as the file system, so it cannot be had whole.
    let config = Config::with_len(megabytes << 20);
    let region = Region::open(&path, config).unwrap().region;
    for (storage, cells) in [(Storage::Striped, 50), (Storage::Single, 50)] {
        let name = format!("{storage:?}");
        let spec = FamilySpec {
            name: name.as_bytes(),
            storage,
            cells,
            limit: u64::MAX,
            ..FamilySpec::default()
        };
        let family = region.family(spec).unwrap().family;
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
}

#[test]
fn a_tmpfs_that_is_full_gives_an_overflow_and_no_signal() {
    for megabytes in [1, 64] {
        let shm = Shm::new("small");
        let place = shm.path().display();
        let mount = format!("mount -t tmpfs -o size={megabytes}m none {place} &&");
        let output = unshared(&["--mount"], &mount, "fills_a_small_tmpfs_when_asked")
            .env("TALEA_TEST_SMALL", shm.file())
            .env("TALEA_TEST_MEGABYTES", megabytes.to_string())
            .output()
            .expect("unshare is missing: it comes with util-linux");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{megabytes} MB: {}\n{said}", output.status);
        assert!(said.contains(" series"), "it ran: {said}");
    }
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn counts_without_a_boot_id_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_BOOT") else { return };
    let said = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(said.is_empty(), "the boot id can be read");
    let opened = Region::open(path, Config::with_len(1 << 20)).unwrap();
    family(opened.region, Storage::Single, 1).series(b"").unwrap().at(0).add(5);
    println!("counted {} {:?}", total(opened.region), opened.notice);
}

#[test]
fn a_boot_id_that_cannot_be_read_speaks_against_no_file() {
    // One that was made where the boot id is known, and one that was not.
    for knows in [true, false] {
        let shm = Shm::new(&format!("boot-{knows}"));
        let count = || {
            let opened = Region::open(shm.file(), Config::with_len(1 << 20)).unwrap();
            family(opened.region, Storage::Single, 1).series(b"").unwrap().at(0).add(1);
            assert_eq!((&opened.path, opened.notice), (&shm.file(), None));
            total(opened.region)
        };
        if knows {
            assert_eq!(count(), 1);
        }
        let hide = "mount --bind /dev/null /proc/sys/kernel/random/boot_id &&";
        let output = unshared(&["--mount"], hide, "counts_without_a_boot_id_when_asked")
            .env("TALEA_TEST_BOOT", shm.file())
            .output()
            .expect("unshare is missing: it comes with util-linux");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let counted = if knows { 6 } else { 5 };
        assert!(said.contains(&format!("counted {counted} None")), "{said}");
        assert_eq!(count(), counted + 1);
        let files = std::fs::read_dir(shm.path()).unwrap().count();
        assert_eq!(files, 1, "nothing was moved aside");
    }
}

#[test]
fn a_region_that_its_tmpfs_cannot_begin_is_an_error() {
    let shm = Shm::new("none");
    // The index alone is larger than the file system.
    let config = Config { series: 1 << 31, ..Config::with_len(1 << 40) };
    let error = Region::open(shm.file(), config).unwrap_err().to_string();
    assert!(error.contains("cannot"), "{error}");
    assert!(!shm.file().exists(), "nothing half made is left");
}
