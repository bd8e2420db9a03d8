//! Claims about files that another user put where a service expects its region: the service starts,
//! and never maps a file that others could write to or truncate.
#![allow(unsafe_code)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::assert_says;
use crate::support::process::{
    AsUser, NOBODY, Process, arguments, line_of, output_of, wait_for_input,
};
use crate::support::region::{config, family, opened as open};
use crate::support::tmpfs::{self, Shm};
use talea_region::{FamilySpec, OpenError, Opened, Region, Storage};

/// Adds to a striped cell, through the planes.
fn add(region: &'static Region, n: u64) -> u64 {
    let spec = FamilySpec { storage: Storage::Striped, ..FamilySpec::default() };
    let cell = family(region, "f", spec).permanent_series(b"").unwrap().at(0);
    (0..n).for_each(|_| cell.add(1));
    cell.get()
}

/// A region that is made, counted in and given to a user with a mode.
fn region_of(path: &Path, user: Option<u32>, mode: u32) -> Vec<u8> {
    add(open(path).region, 3);
    // A copy, so that this process does not use it.
    let bytes = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    fs::write(path, &bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    chown(path, user, None).unwrap();
    bytes
}

/// Asserts that the service counts in a sibling, and gives the reason.
#[track_caller]
fn assert_in_sibling(opened: Opened, n: u32, parts: &[&str]) {
    assert!(opened.path.to_str().unwrap().ends_with(&format!("shop.talea.{n}")), "{opened:?}");
    let notice = opened.notice.unwrap();
    let all = ["shop.talea ", "using ", "remove it", "directory"];
    let all = if n == 1 { &all[..] } else { &all[1..] };
    assert_says(&notice, parts);
    assert_says(&notice, all);
    assert_eq!(add(opened.region, 5), 5);
}

#[test]
#[ignore = "needs root: a file of another user"]
fn as_root_a_file_of_a_stranger_is_left_alone_and_the_service_counts_in_a_sibling() {
    for mode in [0o600, 0o644, 0o666] {
        let shm = Shm::new(&format!("stranger-{mode:o}"));
        let before = region_of(&shm.file(), Some(NOBODY), mode);
        let mode = format!("mode {mode:04o}");
        assert_in_sibling(open(shm.file()), 1, &["user 65534", &mode, "expected user 0"]);
        assert!(fs::read(shm.file()).unwrap() == before, "the file was written to");
        // All processes of the service meet there.
        assert_eq!(add(open(shm.file()).region, 2), 7);
        // The file belongs to the service's user, who alone has access.
        let made = shm.sibling(1).metadata().unwrap();
        assert_eq!((made.uid(), made.mode() & 0o7777), (0, 0o600));
    }
}

#[test]
fn a_file_that_others_may_write_to_is_left_alone_for_any_owner() {
    for mode in [0o620, 0o660, 0o602, 0o666] {
        let shm = Shm::new(&format!("writable-{mode:o}"));
        let before = region_of(&shm.file(), None, mode);
        let mode = format!("{mode:04o}");
        assert_in_sibling(open(shm.file()), 1, &[&mode, "chmod go-w"]);
        assert!(fs::read(shm.file()).unwrap() == before, "the file was written to");
    }
    for mode in [0o600, 0o640, 0o644] {
        let shm = Shm::new(&format!("readable-{mode:o}"));
        region_of(&shm.file(), None, mode);
        let opened = open(shm.file());
        assert_eq!((opened.path, opened.notice), (shm.file(), None));
        assert_eq!(add(opened.region, 1), 4);
    }
}

#[test]
fn siblings_are_held_to_the_same_rule() {
    let shm = Shm::new("siblings");
    for n in 0..3 {
        let path = if n == 0 { shm.file() } else { shm.sibling(n) };
        region_of(&path, None, 0o666);
    }
    assert_in_sibling(open(shm.file()), 3, &["shop.talea.2 ", "0666"]);
    for n in 3..=100 {
        fs::write(shm.sibling(n), b"").unwrap();
        fs::set_permissions(shm.sibling(n), Permissions::from_mode(0o666)).unwrap();
    }
    let error = Region::open(shm.file(), config()).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, OpenError::Untrusted { .. }), "{said}");
    assert_says(&said, &["100 siblings", "shop.talea.100", "0666", "chmod go-w", "directory"]);
}

/// Each kind of entry that is no file, and how it is made.
type Make = fn(&Path);

const ENTRIES: [(&str, Make); 4] = [
    ("a symbolic link", |path| symlink("/dev/shm/elsewhere", path).unwrap()),
    ("a directory", |path| fs::create_dir(path).unwrap()),
    ("a FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
    ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
];

#[test]
fn an_entry_of_the_service_that_is_no_file_is_an_error() {
    for (n, (kind, make)) in ENTRIES.into_iter().enumerate() {
        let shm = Shm::new(&format!("own-kind-{n}"));
        make(&shm.file());
        let error = Region::open(shm.file(), config()).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, OpenError::Untrusted { .. }), "{said}");
        assert!(said.contains(kind) && said.contains("expected a regular file"), "{said}");
    }
}

#[test]
#[ignore = "needs root: what another user made"]
fn as_root_an_entry_of_a_stranger_that_is_no_file_is_left_alone() {
    for (n, (kind, make)) in ENTRIES.into_iter().enumerate() {
        let shm = Shm::new(&format!("stranger-kind-{n}"));
        make(&shm.file());
        lchown(shm.file(), Some(NOBODY), None).unwrap();
        assert_in_sibling(open(shm.file()), 1, &[kind, "user 65534"]);
    }
}

#[test]
#[ignore = "needs root: a file of another user"]
fn as_root_a_named_user_is_trusted_and_so_is_root() {
    let shm = Shm::new("named-owner");
    region_of(&shm.file(), Some(NOBODY), 0o600);
    let refused = Region::attach(shm.file()).unwrap_err();
    assert!(matches!(refused, OpenError::Untrusted { .. }), "{refused}");
    let attached = Region::attach_owned_by(shm.file(), &[0, NOBODY]).unwrap();
    assert_eq!(add(attached, 1), 4);
    let opened = Region::open(shm.file(), config().owned_by(NOBODY)).unwrap();
    assert_eq!((opened.path, opened.notice), (shm.file(), None));
    assert_eq!(add(opened.region, 1), 5);
    // A file that others may write to is not trusted.
    fs::set_permissions(shm.file(), Permissions::from_mode(0o606)).unwrap();
    assert!(Region::attach_owned_by(shm.file(), &[NOBODY]).is_err());
    let opened = Region::open(shm.file(), config().owned_by(NOBODY)).unwrap();
    assert_in_sibling(opened, 1, &["0606"]);
}

#[test]
#[ignore = "a process that a test starts"]
fn counts_in_a_file_when_asked() {
    let Some([path]) = arguments() else { return };
    let opened = open(path);
    let counted = add(opened.region, 5);
    println!("\noutcome {counted} {} {}", opened.path.display(), opened.notice.unwrap_or_default());
}

/// The output of a process of another user that opens a file.
fn outcome_as_nobody(shm: &Shm) -> String {
    let mut other = AsUser::new(&again!("counts_in_a_file_when_asked", shm.file()), NOBODY);
    line_of(&output_of(&mut other.command), "outcome ").to_owned()
}

#[test]
#[ignore = "needs root: a service of another user"]
fn as_root_a_file_that_a_service_has_no_right_to_does_not_keep_it_from_starting() {
    let shm = Shm::new("denied");
    // As /dev/shm is.
    fs::set_permissions(shm.path(), Permissions::from_mode(0o1777)).unwrap();
    add(open(shm.file()).region, 1);
    let outcome = outcome_as_nobody(&shm);
    let sibling = format!("5 {}", shm.sibling(1).display());
    assert_says(&outcome, &[&sibling[..], "Permission denied", "user 0", "mode 0600", "remove it"]);
    assert_eq!(add(open(shm.file()).region, 1), 2);

    // One that cannot be used either, and that only root may move aside.
    let shm = Shm::new("denied-moving");
    fs::set_permissions(shm.path(), Permissions::from_mode(0o1777)).unwrap();
    fs::write(shm.file(), b"").unwrap();
    fs::set_permissions(shm.file(), Permissions::from_mode(0o644)).unwrap();
    let outcome = outcome_as_nobody(&shm);
    assert!(outcome.starts_with(&format!("5 {}", shm.sibling(1).display())), "{outcome}");
}

#[test]
#[ignore = "needs root: a region that another user made"]
fn as_root_a_stranger_with_a_region_changes_nothing_in_the_service() {
    let shm = Shm::new("trap");
    fs::set_permissions(shm.path(), Permissions::from_mode(0o1777)).unwrap();
    let outcome = outcome_as_nobody(&shm);
    assert!(outcome.starts_with(&format!("5 {}", shm.file().display())), "{outcome}");
    fs::set_permissions(shm.file(), Permissions::from_mode(0o666)).unwrap();
    let region = open(shm.file()).region;
    assert_eq!(add(region, 5), 5);
    // The stranger changes its CPU table, and cuts it.
    let file = tmpfs::open(shm.file());
    (4096..20_480).step_by(8).for_each(|at| tmpfs::put(&file, at, 1 << 46));
    file.set_len(0).unwrap();
    assert_eq!(add(region, 5), 10);
}

/// Has memory that has the name of a region's, and that it can truncate.
#[test]
#[ignore = "a process that a test starts"]
fn has_memory_that_can_be_cut_when_asked() {
    let Some([_]) = arguments() else { return };
    // SAFETY: the name is a NUL-terminated literal; the other call has integers only.
    unsafe {
        let fd = libc::memfd_create(c"talea".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0 && libc::ftruncate(fd, 1 << 20) == 0);
    }
    println!("\nready");
    wait_for_input();
}

#[test]
fn memory_of_a_process_that_can_be_cut_is_not_mapped() {
    let mut command = again!("has_memory_that_can_be_cut_when_asked");
    let process = Process::start_until("ready", &mut command);
    assert_says(Region::attach_to_process(process.id()).unwrap_err(), &["can be cut"]);
}

#[test]
#[ignore = "a process that a test starts"]
fn opens_in_a_directory_that_it_may_not_change_when_asked() {
    let Some([directory]) = arguments() else { return };
    let directory = Path::new(&directory);
    let sibling = directory.join("shop.talea.1");
    add(open(&sibling).region, 3);
    fs::set_permissions(directory, Permissions::from_mode(0o555)).unwrap();
    let opened = open(directory.join("shop.talea"));
    assert_eq!((&opened.path, add(opened.region, 4)), (&sibling, 7));
    assert_eq!([(); 3].map(|()| opened.region.claim_path()), [None, None, None]);
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
    fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    assert!(opened.region.claim_path().is_some());
    println!("\nchecked");
}

#[test]
fn a_sibling_that_may_not_be_renamed_is_used_as_it_is() {
    let shm = Shm::new("fixed");
    let mut command = again!("opens_in_a_directory_that_it_may_not_change_when_asked", shm.path());
    let said = if shm.path().metadata().unwrap().uid() == 0 {
        // Root may change any directory.
        chown(shm.path(), Some(NOBODY), None).unwrap();
        output_of(&mut AsUser::new(&command, NOBODY).command)
    } else {
        output_of(&mut command)
    };
    assert!(said.contains("checked"), "{said}");
}
