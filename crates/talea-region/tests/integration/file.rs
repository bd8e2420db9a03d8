//! Claims about regions in files, with real processes.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::BufRead;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::process::start_until;
use crate::support::tmpfs::Shm;
use talea_region::{Config, FamilySpec, OpenError, Region, Storage};

fn config() -> Config {
    Config::with_len(1 << 20)
}

fn count(path: &std::path::Path, adds: u64) -> &'static Region {
    let region = Region::open(path, config()).unwrap().region;
    count_in(region, adds);
    region
}

fn count_in(region: &'static Region, adds: u64) {
    let family = region
        .family(FamilySpec {
            name: b"shared",
            storage: Storage::Striped,
            limit: 10,
            ..FamilySpec::default()
        })
        .unwrap();
    let cell = family.family.series(b"").unwrap().at(0);
    (0..adds).for_each(|_| cell.add(1));
}

fn total(region: &'static Region) -> u64 {
    let snapshot = region.snapshot();
    snapshot.families().iter().flat_map(|f| snapshot.series(f)).map(|s| s.values[0]).sum()
}

/// This very test binary, started again as a writer.
fn writer(path: &std::path::Path, adds: u64) -> Command {
    let mut command = again!("writes_when_asked");
    command
        .env("TALEA_TEST_FILE", path)
        .env("TALEA_TEST_ADDS", adds.to_string())
        .stdout(Stdio::null());
    command
}

/// A series that each process holds its own copy of.
fn held(region: &'static Region) -> talea_region::Cell {
    let family = region
        .family(FamilySpec {
            name: b"held",
            storage: Storage::Owned,
            limit: 10,
            ..FamilySpec::default()
        })
        .unwrap();
    family.family.series(b"").unwrap().at(0)
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn holds_until_killed_when_asked() {
    if let Ok(path) = std::env::var("TALEA_TEST_HOLD") {
        held(Region::open(path, config()).unwrap().region).add(5);
        println!("held");
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
}

#[test]
fn values_in_flight_of_a_killed_process_end_with_it() {
    let shm = Shm::new("held");
    let region = Region::open(shm.file(), config()).unwrap().region;
    held(region).add(2);
    for _ in 0..2 {
        let mut command = again!("holds_until_killed_when_asked");
        let mut holder = start_until("held", command.env("TALEA_TEST_HOLD", shm.file()));
        assert_eq!(total(region), 7, "both live");
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(total(region), 2, "one was killed; the next starts from nothing in its slot");
    }
}

/// Counts once in a family with this definition; true if another living process defines it
/// otherwise.
fn count_as(region: &'static Region, definition: &str) -> bool {
    let registered = region
        .family(FamilySpec {
            name: b"versioned",
            definition: definition.as_bytes(),
            storage: Storage::Striped,
            limit: 10,
            ..FamilySpec::default()
        })
        .unwrap();
    registered.family.series(b"").unwrap().at(0).add(1);
    registered.conflict
}

/// The definitions of the family that are shown, each with its count.
fn versions(region: &'static Region) -> Vec<(String, u64)> {
    let snapshot = region.snapshot();
    let shown = snapshot.families().iter().map(|family| {
        let definition = String::from_utf8(family.definition.clone()).unwrap();
        (definition, snapshot.series(family).map(|s| s.values[0]).sum())
    });
    shown.collect()
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn counts_as_asked_and_ends_with_its_input() {
    let Ok(path) = std::env::var("TALEA_TEST_VERSION") else { return };
    let (path, definition) = path.split_once(':').unwrap();
    let conflict = count_as(Region::open(path, config()).unwrap().region, definition);
    println!("\ncounted {conflict}");
    let _ = std::io::stdin().lines().next();
}

/// A process that has counted in the family with this definition.
fn version(path: &std::path::Path, definition: &str) -> (std::process::Child, bool) {
    let mut child = again!("counts_as_asked_and_ends_with_its_input")
        .env("TALEA_TEST_VERSION", format!("{}:{definition}", path.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).find(|line| line.starts_with("counted")).unwrap();
    (child, said == "counted true")
}

#[test]
fn a_restart_with_another_definition_retires_the_old_one() {
    let shm = Shm::new("retired");
    // It only keeps the file alive and looks.
    let region = Region::open(shm.file(), config()).unwrap().region;
    // After a rollback the counts that were seen do not come back.
    for (definition, counted) in [("one", 1), ("one", 2), ("two", 1), ("one", 1)] {
        let (mut child, conflict) = version(&shm.file(), definition);
        assert!(!conflict);
        assert_eq!(versions(region), [(definition.to_owned(), counted)]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(versions(region), [(definition.to_owned(), counted)], "the dead are shown");
    }
}

#[test]
fn while_old_and_new_live_each_counts_in_its_own_family_and_is_warned() {
    let shm = Shm::new("rolling");
    let region = Region::open(shm.file(), config()).unwrap().region;
    let (mut old, conflict) = version(&shm.file(), "old");
    assert!(!conflict);
    let (mut new, conflict) = version(&shm.file(), "new");
    assert!(conflict, "the newcomer learns of it");
    assert_eq!(versions(region), [("old".to_owned(), 1), ("new".to_owned(), 1)]);
    old.kill().unwrap();
    old.wait().unwrap();
    let (mut newer, conflict) = version(&shm.file(), "new");
    assert!(!conflict, "the old version is gone");
    assert_eq!(versions(region), [("new".to_owned(), 2)]);
    for child in [&mut new, &mut newer] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn writes_when_asked() {
    if let Ok(path) = std::env::var("TALEA_TEST_FILE") {
        count(path.as_ref(), std::env::var("TALEA_TEST_ADDS").unwrap().parse().unwrap());
    }
}

#[test]
fn unrelated_processes_share_one_region_and_it_outlives_them() {
    let shm = Shm::new("share");
    let mut writers: Vec<_> =
        (0..4).map(|_| writer(&shm.file(), 100_000).spawn().unwrap()).collect();
    assert!(writers.iter_mut().all(|writer| writer.wait().unwrap().success()));
    assert_eq!(total(count(&shm.file(), 1)), 400_001);

    assert_eq!(std::fs::metadata(shm.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_stale_or_damaged_file_is_moved_aside_and_the_service_starts() {
    let shm = Shm::new("stale");
    let original = {
        assert!(writer(&shm.file(), 1).status().unwrap().success());
        std::fs::read(shm.file()).unwrap()
    };
    let damaged = |at: usize| {
        let mut bytes = original.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("empty", vec![], "0 bytes"),
        ("short", original[..4096].to_vec(), "4096 bytes"),
        ("version", damaged(8), "its layout is version"),
        ("length", damaged(18), "its header states"),
        ("planes", damaged(39), "planes"),
        ("boot", damaged(40), "last started"),
    ];
    for (name, bytes, expected) in cases {
        // A new file: the one of the round before is in use by now.
        std::fs::remove_file(shm.file()).unwrap();
        crate::support::tmpfs::write(shm.file(), &bytes);
        let opened = Region::open(shm.file(), config()).unwrap();
        let notice = opened.notice.unwrap();
        assert!(notice.contains(expected), "{name}: {notice}");
        assert_eq!(opened.path, shm.file());
        let aside = notice.split("moved to ").nth(1).unwrap().split(';').next().unwrap();
        assert!(fs::read(aside).unwrap() == bytes, "{name}");
    }
}

#[test]
fn a_file_of_something_else_is_an_error_and_stays_as_it_is() {
    let shm = Shm::new("foreign");
    for bytes in [&b"T"[..], b"TALEA", b"# our notes\n", &[0; 1 << 20]] {
        fs::write(shm.file(), bytes).unwrap();
        let errors = [
            Region::open(shm.file(), config()).map(|_| ()).unwrap_err(),
            Region::attach(shm.file()).map(|_| ()).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, OpenError::Foreign(_)), "{error}");
            assert!(format!("{error:?}").contains("shop.talea is a file of something else"));
        }
        assert!(fs::read(shm.file()).unwrap() == bytes);
        assert_eq!(fs::read_dir(shm.path()).unwrap().count(), 1);
    }
    // As a sibling it is passed over.
    fs::rename(shm.file(), shm.path().join("shop.talea.1")).unwrap();
    let _used = count(&shm.file(), 1);
    let damage = fs::OpenOptions::new().write(true).open(shm.file()).unwrap();
    damage.write_all_at(b"X", 8).unwrap();
    let opened = Region::open(shm.file(), config()).unwrap();
    assert_eq!(opened.path, shm.path().join("shop.talea.2"));
    assert!(opened.notice.unwrap().contains("is no region"));
}

#[test]
fn processes_that_start_at_once_over_a_damaged_file_end_in_one_region() {
    for round in 0..20 {
        let shm = Shm::new(&format!("herd-{round}"));
        crate::support::tmpfs::write(shm.file(), [&b"TALEAREG"[..], &[7; (1 << 20) - 8]].concat());
        let mut herd: Vec<_> =
            (0..8).map(|_| writer(&shm.file(), 1_000).spawn().unwrap()).collect();
        assert!(herd.iter_mut().all(|writer| writer.wait().unwrap().success()));
        assert_eq!(total(Region::open(shm.file(), config()).unwrap().region), 8_000);
        let files = std::fs::read_dir(shm.path()).unwrap().count();
        assert_eq!(files, 2, "the region, and what was moved aside once");
    }
}

#[test]
fn a_damaged_file_that_is_in_use_is_left_alone() {
    let shm = Shm::new("used");
    let region = count(&shm.file(), 7);
    {
        let file = std::fs::OpenOptions::new().write(true).open(shm.file()).unwrap();
        file.write_all_at(b"X", 8).unwrap();
    }
    let opened = Region::open(shm.file(), config()).unwrap();
    assert_eq!(opened.path, shm.path().join("shop.talea.1"));
    assert!(opened.notice.unwrap().contains("in use"));
    assert_eq!(total(region), 7, "the one who uses it goes on");
}

#[test]
fn a_file_on_disk_is_refused_with_the_reason() {
    let error = Region::open("/proc/shop.talea", config()).unwrap_err();
    assert!(matches!(error, OpenError::NotTmpfs(_)), "{error}");
    let error = Region::open("/dev/shm/no/such/shop.talea", config()).unwrap_err().to_string();
    assert!(error.contains("/dev/shm/no/such"), "{error}");
}

#[test]
fn a_fresh_region_takes_little_more_than_its_index() {
    let shm = Shm::new("fresh");
    Region::open(shm.file(), Config::with_len(64 << 20)).unwrap();
    let taken = std::fs::metadata(shm.file()).unwrap().blocks() * 512;
    // 2 MiB of index, a bit for each eight bytes of cells and text, and trees of a seventh of that.
    assert!((2 << 20..=2_950_000).contains(&taken), "{taken} bytes");
}

#[test]
fn a_directory_or_a_link_in_its_place_is_refused() {
    let shm = Shm::new("kinds");
    std::fs::create_dir(shm.file()).unwrap();
    assert!(matches!(Region::open(shm.file(), config()), Err(OpenError::Untrusted { .. })));
    std::fs::remove_dir(shm.file()).unwrap();
    std::os::unix::fs::symlink(shm.path().join("elsewhere"), shm.file()).unwrap();
    assert!(matches!(Region::open(shm.file(), config()), Err(OpenError::Untrusted { .. })));
}

/// The body of a process that a test starts, not a claim of its own.
#[test]
fn opens_within_a_limit_when_asked() {
    let Ok(path) = std::env::var("TALEA_TEST_LIMITED") else { return };
    let long = Config::with_len(64 << 20);
    let opened = Region::open(&path, long).map(|opened| opened.region);
    for refused in [opened, Region::anonymous(long)] {
        let error = refused.unwrap_err().to_string();
        for part in ["67108864 bytes", "ulimit -f", "RLIMIT_FSIZE", "fewer bytes"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    assert!(!std::path::Path::new(&path).exists(), "nothing half made is left");
    // The default is less.
    assert!(Config::default().len < 64 << 20);
    let less = [Region::open(&path, Config::default()).unwrap().region];
    for region in less.into_iter().chain([Region::anonymous(Config::default()).unwrap()]) {
        fill(region);
    }
    // An existing file may be longer, since it is not extended.
    let longer = std::env::var("TALEA_TEST_LONGER").unwrap();
    fill(Region::open(longer, Config::default()).unwrap().region);
    println!("\nwithin the limit");
}

/// Takes all cells that there are.
fn fill(region: &'static Region) {
    let spec = FamilySpec { name: b"f", cells: 4_000, ..FamilySpec::default() };
    let family = region.family(spec).unwrap().family;
    let refused = (0..1_000_000_u64).find_map(|n| {
        let made = family.series(format!("n=\"{n}\"").as_bytes());
        made.map(|cells| cells.last().add(1)).err()
    });
    assert!(refused.is_some());
}

#[test]
fn a_region_beyond_the_limit_of_files_is_an_error_and_no_signal() {
    let shm = Shm::new("limited");
    let longer = shm.path().join("longer.talea");
    Region::open(&longer, Config::with_len(16 << 20)).unwrap();
    let inside = again!("opens_within_a_limit_when_asked");
    let mut limited = Command::new("sh");
    // In units of 512 or 1,024 bytes, as the shell has it.
    limited.args(["-c", "ulimit -f 4096 && exec \"$@\"", "sh"]);
    limited.arg(inside.get_program()).args(inside.get_args());
    limited.env("TALEA_TEST_LIMITED", shm.file()).env("TALEA_TEST_LONGER", longer);
    let done = limited.output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{}: {said}", done.status);
    assert!(said.contains("within the limit"), "{said}");
}

#[test]
fn an_unusable_file_that_is_locked_does_not_delay_the_start() {
    let shm = Shm::new("held-up");
    crate::support::tmpfs::write(shm.file(), b"");
    let mut holder = Command::new("flock")
        .arg(shm.file())
        .args(["sh", "-c", "echo held; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock is missing: it comes with util-linux");
    let lines = std::io::BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "held"));
    let opened = Region::open(shm.file(), config()).unwrap();
    assert_eq!(opened.path, shm.path().join("shop.talea.1"));
    assert!(opened.notice.unwrap().contains("0 bytes"));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    // Once it is let go, it is moved aside as any other.
    let opened = Region::open(shm.file(), config()).unwrap();
    assert_eq!(opened.path, shm.file());
    assert!(opened.notice.unwrap().contains("moved to"));
}

/// Makes of the region at a path one of another layout.
fn make_another_layout(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&99_u64.to_le_bytes(), 8).unwrap();
}

/// A slot of a region that is held, as by a process that lives, of whatever layout.
struct Holder(File);

fn hold(path: &Path) -> Holder {
    let holder = Holder(File::options().read(true).write(true).open(path).unwrap());
    holder.lock(libc::F_WRLCK);
    holder
}

impl Holder {
    fn lock(&self, kind: libc::c_int) {
        // SAFETY: flock is plain integers, for which zero is a valid value.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_start, lock.l_len) = (kind as _, 1 << 48, 1);
        // SAFETY: `lock` is valid for the length of the call.
        let done = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // A child of another test may have the descriptor for a moment.
        self.lock(libc::F_UNLCK);
    }
}

/// A region of another layout in which an old version of the service counts.
fn old_version(shm: &Shm) -> Holder {
    assert!(writer(&shm.file(), 1).status().unwrap().success());
    make_another_layout(&shm.file());
    hold(&shm.file())
}

fn names(shm: &Shm) -> Vec<String> {
    let names = fs::read_dir(shm.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn sibling(shm: &Shm) -> PathBuf {
    shm.path().join("shop.talea.1")
}

#[test]
fn after_a_change_of_layout_the_next_start_gives_the_sibling_its_path() {
    let shm = Shm::new("layouts");
    let old = old_version(&shm);
    let new = Region::open(shm.file(), config()).unwrap();
    assert_eq!(new.path, sibling(&shm));
    count_in(new.region, 7);
    assert_eq!(names(&shm), ["shop.talea", "shop.talea.1"]);
    drop(old);
    let later = Region::open(shm.file(), config()).unwrap();
    assert_eq!(later.path, shm.file());
    let notice = later.notice.unwrap();
    for part in ["its layout is version 99", "moved to", "stale-1", "shop.talea.1 took its place"] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    assert_eq!(names(&shm), ["shop.talea", "shop.talea.stale-1"]);
    // The processes that were in the sibling and those that come later count in one region.
    count_in(later.region, 5);
    assert_eq!((total(new.region), total(later.region)), (12, 12));
}

#[test]
fn after_a_change_of_layout_a_living_process_gives_its_region_the_path() {
    let shm = Shm::new("layouts-swept");
    let old = old_version(&shm);
    let [one, two] = [(); 2].map(|()| Region::open(shm.file(), config()).unwrap().region);
    count_in(one, 7);
    assert_eq!([one, two].map(Region::claim_path), [None, None], "the old version lives");
    drop(old);
    // It may have been restarted just now.
    assert_eq!(one.claim_path(), None);
    let old = hold(&shm.file());
    assert_eq!(one.claim_path(), None);
    drop(old);
    assert_eq!(one.claim_path(), None);
    let notice = one.claim_path().unwrap();
    assert!(notice.contains("stale-1") && notice.contains("took its place"), "{notice}");
    assert_eq!(names(&shm), ["shop.talea", "shop.talea.stale-1"]);
    assert_eq!([one, two].map(Region::claim_path), [None, None], "nothing is left to do");
    let later = Region::open(shm.file(), config()).unwrap();
    assert_eq!((later.path, later.notice), (shm.file(), None));
    assert_eq!(total(later.region), 7);
}

#[test]
fn a_path_that_was_removed_goes_to_the_sibling_too() {
    for claims in [false, true] {
        let shm = Shm::new(&format!("removed-{claims}"));
        let old = old_version(&shm);
        let new = Region::open(shm.file(), config()).unwrap().region;
        count_in(new, 7);
        fs::remove_file(shm.file()).unwrap();
        drop(old);
        if claims {
            assert_eq!(new.claim_path(), None);
            assert!(new.claim_path().is_some());
        }
        let later = Region::open(shm.file(), config()).unwrap();
        assert_eq!((later.path, total(later.region)), (shm.file(), 7));
        assert_eq!(names(&shm), ["shop.talea"]);
    }
}

#[test]
fn a_region_whose_own_file_is_gone_claims_no_path() {
    let shm = Shm::new("claims-gone");
    let old = old_version(&shm);
    let new = Region::open(shm.file(), config()).unwrap().region;
    fs::remove_file(sibling(&shm)).unwrap();
    drop(old);
    // Somebody else's by now.
    crate::support::tmpfs::write(sibling(&shm), b"another");
    assert_eq!([(); 3].map(|()| new.claim_path()), [None, None, None]);
    assert_eq!(names(&shm), ["shop.talea", "shop.talea.1"]);
}

#[test]
fn a_working_directory_that_changes_leads_no_claim_elsewhere() {
    let Ok(path) = std::env::var("TALEA_TEST_DIRECTORY") else {
        let shm = Shm::new("directory");
        let old = old_version(&shm);
        let mut child = again!("a_working_directory_that_changes_leads_no_claim_elsewhere")
            .env("TALEA_TEST_DIRECTORY", shm.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().map_while(Result::ok).any(|line| line == "opened"));
        drop(old);
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert_eq!(names(&shm), ["shop.talea", "shop.talea.stale-1"]);
        return;
    };
    std::env::set_current_dir(path).unwrap();
    let region = Region::open("shop.talea", config()).unwrap().region;
    std::env::set_current_dir("/").unwrap();
    println!("\nopened");
    let _ = std::io::stdin().lines().next();
    assert_eq!(region.claim_path(), None);
    assert!(region.claim_path().is_some());
}

#[test]
fn processes_that_start_at_once_after_a_change_of_layout_end_in_the_sibling() {
    for round in 0..20 {
        let shm = Shm::new(&format!("herd-layouts-{round}"));
        let old = old_version(&shm);
        assert!(writer(&shm.file(), 1_000).status().unwrap().success());
        let mut herd: Vec<_> =
            (0..8).map(|_| writer(&shm.file(), 1_000).spawn().unwrap()).collect();
        // Some start while it lives, others after.
        drop(old);
        assert!(herd.iter_mut().all(|writer| writer.wait().unwrap().success()));
        let opened = Region::open(shm.file(), config()).unwrap();
        assert_eq!((opened.path, total(opened.region)), (shm.file(), 9_000));
        assert_eq!(names(&shm), ["shop.talea", "shop.talea.stale-1"]);
    }
}

#[test]
fn of_regions_that_were_moved_aside_the_last_one_stays() {
    let shm = Shm::new("aside");
    let moved = || {
        let region = Region::open(shm.file(), config()).unwrap();
        region.notice.unwrap()
    };
    // A file that is no region is left to the operator.
    fs::write(shm.path().join("shop.talea.stale-1"), [7; 100]).unwrap();
    let unused = || {
        let _ = fs::remove_file(shm.file());
        assert!(writer(&shm.file(), 1).status().unwrap().success());
        make_another_layout(&shm.file());
    };
    unused();
    moved();
    let held = hold(&shm.path().join("shop.talea.stale-2"));
    unused();
    moved();
    let all = ["", ".stale-1", ".stale-2", ".stale-3"].map(|end| format!("shop.talea{end}"));
    assert_eq!(names(&shm), all, "one that is in use stays");
    drop(held);
    unused();
    let notice = moved();
    for part in ["stale-2 and ", "stale-3, which were moved there before, were removed"] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    assert_eq!(names(&shm), ["shop.talea", "shop.talea.stale-1", "shop.talea.stale-4"]);
    unused();
    moved();
    assert_eq!(names(&shm), ["shop.talea", "shop.talea.stale-1", "shop.talea.stale-2"]);
    // An inspected file is not kept mapped: its memory is freed when it is removed.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(&format!("{}.stale", shm.file().display())), "{maps}");
}
