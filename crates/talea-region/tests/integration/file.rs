//! Claims about regions in files, with real processes.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::assert_says;
use crate::support::process::{Process, arguments, by_shell, output_of, wait_for_input};
use crate::support::region::{config, family, opened as open, total};
use crate::support::tmpfs::{self, Shm};
use talea_region::{Config, FamilySpec, OpenError, Region, Storage};

fn spec() -> FamilySpec<'static> {
    FamilySpec { storage: Storage::Striped, limit: 10, ..FamilySpec::default() }
}

fn count(path: impl AsRef<Path>, adds: u64) -> &'static Region {
    let region = open(path).region;
    count_in(region, adds);
    region
}

fn count_in(region: &'static Region, adds: u64) {
    let cell = family(region, "shared", spec()).series(b"").unwrap().at(0);
    (0..adds).for_each(|_| cell.add(1));
}

fn counted(region: &'static Region) -> u64 {
    total(region, "shared")
}

/// A process that counts and ends.
fn writer(path: &Path, adds: u64) -> Process {
    Process::start(&mut again!("writes_when_asked", path, adds.to_string()))
}

/// Counts once in a family with this definition; true if another living process defines it
/// otherwise.
fn count_as(region: &'static Region, definition: &str) -> bool {
    let (name, definition) = (b"versioned", definition.as_bytes());
    let spec = FamilySpec { name, definition, ..spec() };
    let registered = region.family(spec).unwrap();
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

#[test]
#[ignore = "a process that a test starts"]
fn counts_as_asked_and_ends_with_its_input() {
    let Some([path, definition]) = arguments() else { return };
    println!("\nconflict: {}", count_as(open(path).region, &definition));
    wait_for_input();
}

/// A process that has counted in the family with this definition, and whether it was warned.
fn version(path: &Path, definition: &str) -> (Process, bool) {
    let mut command = again!("counts_as_asked_and_ends_with_its_input", path, definition);
    let mut process = Process::start(&mut command);
    let conflict = process.wait_for("conflict: ");
    (process, conflict == "true")
}

#[test]
fn a_restart_with_another_definition_retires_the_old_one() {
    let shm = Shm::new("retired");
    // It only keeps the file alive and looks.
    let region = open(shm.file()).region;
    // After a rollback the counts that were seen do not come back.
    for (definition, counted) in [("one", 1), ("one", 2), ("two", 1), ("one", 1)] {
        let (mut child, conflict) = version(&shm.file(), definition);
        assert!(!conflict);
        assert_eq!(versions(region), [(definition.to_owned(), counted)]);
        child.kill();
        assert_eq!(versions(region), [(definition.to_owned(), counted)], "the dead are shown");
    }
}

#[test]
fn while_old_and_new_live_each_counts_in_its_own_family_and_is_warned() {
    let shm = Shm::new("rolling");
    let region = open(shm.file()).region;
    let (mut old, conflict) = version(&shm.file(), "old");
    assert!(!conflict);
    let (_new, conflict) = version(&shm.file(), "new");
    assert!(conflict, "the newcomer learns of it");
    assert_eq!(versions(region), [("old".to_owned(), 1), ("new".to_owned(), 1)]);
    old.kill();
    let (_newer, conflict) = version(&shm.file(), "new");
    assert!(!conflict, "the old version is gone");
    assert_eq!(versions(region), [("new".to_owned(), 2)]);
}

#[test]
#[ignore = "a process that a test starts"]
fn writes_when_asked() {
    if let Some([path, adds]) = arguments() {
        count(path, adds.parse().unwrap());
    }
}

#[test]
fn unrelated_processes_share_one_region_and_it_outlives_them() {
    let shm = Shm::new("share");
    [(); 4].map(|()| writer(&shm.file(), 100_000)).into_iter().for_each(Process::end);
    assert_eq!(counted(count(shm.file(), 1)), 400_001);
    assert_eq!(fs::metadata(shm.file()).unwrap().permissions().mode() & 0o777, 0o600);
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
        assert_eq!(shm.names(), ["shop.talea"]);
    }
    // As a sibling it is passed over.
    fs::rename(shm.file(), shm.sibling(1)).unwrap();
    let _used = count(shm.file(), 1);
    tmpfs::open(shm.file()).write_all_at(b"X", 8).unwrap();
    let opened = open(shm.file());
    assert_eq!(opened.path, shm.path().join("shop.talea.2"));
    assert!(opened.notice.unwrap().contains("is no region"));
}

#[test]
fn processes_that_start_at_once_over_a_damaged_file_end_in_one_region() {
    for round in 0..20 {
        let shm = Shm::new(&format!("herd-{round}"));
        tmpfs::write(shm.file(), [&b"TALEAREG"[..], &[7; (1 << 20) - 8]].concat());
        [(); 8].map(|()| writer(&shm.file(), 1_000)).into_iter().for_each(Process::end);
        assert_eq!(counted(open(shm.file()).region), 8_000);
        assert_eq!(shm.names().len(), 2, "the region, and what was moved aside once");
    }
}

#[test]
fn a_damaged_file_that_is_in_use_is_left_alone() {
    let shm = Shm::new("used");
    let region = count(shm.file(), 7);
    tmpfs::open(shm.file()).write_all_at(b"X", 8).unwrap();
    let opened = open(shm.file());
    assert_eq!(opened.path, shm.sibling(1));
    assert!(opened.notice.unwrap().contains("in use"));
    assert_eq!(counted(region), 7, "the one who uses it goes on");
}

#[test]
fn a_file_on_disk_is_refused_with_the_reason() {
    let error = Region::open("/proc/shop.talea", config()).unwrap_err();
    assert!(matches!(error, OpenError::NotTmpfs(_)), "{error}");
    assert_says(
        Region::open("/dev/shm/no/such/shop.talea", config()).unwrap_err(),
        &["/dev/shm/no/such"],
    );
}

#[test]
fn a_fresh_region_takes_little_more_than_its_index() {
    let shm = Shm::new("fresh");
    Region::open(shm.file(), Config::with_len(64 << 20)).unwrap();
    let taken = fs::metadata(shm.file()).unwrap().blocks() * 512;
    // 2 MiB of index, a bit for each eight bytes of cells and text, and trees of a seventh of that.
    assert!((2 << 20..=2_950_000).contains(&taken), "{taken} bytes");
}

#[test]
#[ignore = "a process that a test starts"]
fn opens_within_a_limit_when_asked() {
    let Some([path, longer]) = arguments() else { return };
    let long = Config::with_len(64 << 20);
    let opened = Region::open(&path, long).map(|opened| opened.region);
    for refused in [opened, Region::anonymous(long)] {
        assert_says(
            refused.unwrap_err(),
            &["67108864 bytes", "ulimit -f", "RLIMIT_FSIZE", "fewer bytes"],
        );
    }
    assert!(!Path::new(&path).exists(), "nothing half made is left");
    // The default is less.
    assert!(Config::default().len < 64 << 20);
    fill(Region::open(&path, Config::default()).unwrap().region);
    fill(Region::anonymous(Config::default()).unwrap());
    // An existing file may be longer, since it is not extended.
    fill(Region::open(longer, Config::default()).unwrap().region);
    println!("\nwithin the limit");
}

/// Takes all cells that there are.
fn fill(region: &'static Region) {
    let family = family(region, "f", FamilySpec { cells: 4_000, ..FamilySpec::default() });
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
    let inside = again!("opens_within_a_limit_when_asked", shm.file(), longer);
    // In units of 512 or 1,024 bytes, as the shell has it.
    let said = output_of(&mut by_shell("ulimit -f 4096", &inside));
    assert!(said.contains("within the limit"), "{said}");
}

#[test]
fn limits_that_do_not_fit_matter_only_to_a_new_region() {
    let shm = Shm::new("limits");
    let tiny = Config::with_len(10);
    let is_refused = || matches!(Region::open(shm.file(), tiny), Err(OpenError::Limits(_)));
    assert!(is_refused() && !shm.file().exists());
    tmpfs::write(shm.file(), b"");
    assert!(is_refused() && shm.file().exists(), "nothing is moved aside for it");
    count(shm.file(), 1);
    assert_eq!(counted(Region::open(shm.file(), tiny).unwrap().region), 1);
}

#[test]
fn an_unusable_file_that_is_locked_does_not_delay_the_start() {
    let shm = Shm::new("held-up");
    tmpfs::write(shm.file(), b"");
    let mut flock = Command::new("flock");
    flock.arg(shm.file()).args(["sh", "-c", "echo held; read line; true"]);
    let holder = Process::start_until("held", &mut flock);
    let opened = open(shm.file());
    assert_eq!(opened.path, shm.sibling(1));
    assert!(opened.notice.unwrap().contains("0 bytes"));
    holder.end();
    // Once it is let go, it is moved aside as any other.
    let opened = open(shm.file());
    assert_eq!(opened.path, shm.file());
    assert!(opened.notice.unwrap().contains("moved to"));
}

/// Makes of the region at a path one of another layout.
fn make_another_layout(path: &Path) {
    tmpfs::put(&tmpfs::open(path), 8, 99);
}

/// A slot of a region that is held, as by a process that lives, of whatever layout.
struct Holder(File);

fn hold(path: &Path) -> Holder {
    let holder = Holder(tmpfs::open(path));
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
    writer(&shm.file(), 1).end();
    make_another_layout(&shm.file());
    hold(&shm.file())
}

#[test]
fn after_a_change_of_layout_the_next_start_gives_the_sibling_its_path() {
    let shm = Shm::new("layouts");
    let old = old_version(&shm);
    let new = open(shm.file());
    assert_eq!(new.path, shm.sibling(1));
    count_in(new.region, 7);
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.1"]);
    drop(old);
    let later = open(shm.file());
    assert_eq!(later.path, shm.file());
    assert_says(
        later.notice.unwrap(),
        &["its layout is version 99", "moved to", "stale-1", "shop.talea.1 took its place"],
    );
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.stale-1"]);
    // The processes that were in the sibling and those that come later count in one region.
    count_in(later.region, 5);
    assert_eq!((counted(new.region), counted(later.region)), (12, 12));
}

#[test]
fn after_a_change_of_layout_a_living_process_gives_its_region_the_path() {
    let shm = Shm::new("layouts-swept");
    let old = old_version(&shm);
    let [one, two] = [(); 2].map(|()| open(shm.file()).region);
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
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.stale-1"]);
    assert_eq!([one, two].map(Region::claim_path), [None, None], "nothing is left to do");
    let later = open(shm.file());
    assert_eq!((later.path, later.notice), (shm.file(), None));
    assert_eq!(counted(later.region), 7);
}

#[test]
fn a_path_that_was_removed_goes_to_the_sibling_too() {
    for claims in [false, true] {
        let shm = Shm::new(&format!("removed-{claims}"));
        let old = old_version(&shm);
        let new = open(shm.file()).region;
        count_in(new, 7);
        fs::remove_file(shm.file()).unwrap();
        drop(old);
        if claims {
            assert_eq!(new.claim_path(), None);
            assert!(new.claim_path().is_some());
        }
        let later = open(shm.file());
        assert_eq!((later.path, counted(later.region)), (shm.file(), 7));
        assert_eq!(shm.names(), ["shop.talea"]);
    }
}

#[test]
fn a_region_whose_own_file_is_gone_claims_no_path() {
    let shm = Shm::new("claims-gone");
    let old = old_version(&shm);
    let new = open(shm.file()).region;
    fs::remove_file(shm.sibling(1)).unwrap();
    drop(old);
    // Somebody else's by now.
    tmpfs::write(shm.sibling(1), b"another");
    assert_eq!([(); 3].map(|()| new.claim_path()), [None, None, None]);
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.1"]);
}

#[test]
fn a_working_directory_that_changes_leads_no_claim_elsewhere() {
    let shm = Shm::new("directory");
    let old = old_version(&shm);
    let mut command = again!("changes_its_working_directory_when_asked", shm.path());
    let child = Process::start_until("opened", &mut command);
    drop(old);
    child.end();
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.stale-1"]);
}

#[test]
#[ignore = "a process that a test starts"]
fn changes_its_working_directory_when_asked() {
    let Some([path]) = arguments() else { return };
    std::env::set_current_dir(path).unwrap();
    let region = Region::open("shop.talea", config()).unwrap().region;
    std::env::set_current_dir("/").unwrap();
    println!("\nopened");
    wait_for_input();
    assert_eq!(region.claim_path(), None);
    assert!(region.claim_path().is_some());
}

#[test]
fn processes_that_start_at_once_after_a_change_of_layout_end_in_the_sibling() {
    for round in 0..20 {
        let shm = Shm::new(&format!("herd-layouts-{round}"));
        let old = old_version(&shm);
        writer(&shm.file(), 1_000).end();
        let herd = [(); 8].map(|()| writer(&shm.file(), 1_000));
        // Some start while it lives, others after.
        drop(old);
        herd.into_iter().for_each(Process::end);
        let opened = open(shm.file());
        assert_eq!((opened.path, counted(opened.region)), (shm.file(), 9_000));
        assert_eq!(shm.names(), ["shop.talea", "shop.talea.stale-1"]);
    }
}

#[test]
fn of_regions_that_were_moved_aside_the_last_one_stays() {
    let shm = Shm::new("aside");
    // A file that is no region is left to the operator.
    fs::write(shm.path().join("shop.talea.stale-1"), [7; 100]).unwrap();
    let move_another = || {
        let _ = fs::remove_file(shm.file());
        writer(&shm.file(), 1).end();
        make_another_layout(&shm.file());
        open(shm.file()).notice.unwrap()
    };
    move_another();
    let held = hold(&shm.path().join("shop.talea.stale-2"));
    move_another();
    let all = ["", ".stale-1", ".stale-2", ".stale-3"].map(|end| format!("shop.talea{end}"));
    assert_eq!(shm.names(), all, "one that is in use stays");
    drop(held);
    assert_says(
        move_another(),
        &["stale-2 and ", "stale-3, which were moved there before, were removed"],
    );
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.stale-1", "shop.talea.stale-4"]);
    move_another();
    assert_eq!(shm.names(), ["shop.talea", "shop.talea.stale-1", "shop.talea.stale-2"]);
    // An inspected file is not kept mapped: its memory is freed when it is removed.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(&format!("{}.stale", shm.file().display())), "{maps}");
}
