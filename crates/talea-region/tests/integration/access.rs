//! Claims about access to a region's file: the users that may read it, the files that are refused,
//! and attaching to an existing one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::assert_says;
use crate::support::process::{
    AsUser, NOBODY, Process, arguments, by_shell, line_of, output_of, wait_for_input,
};
use crate::support::region::{config, family};
use crate::support::tmpfs::{Shm, open, open_copy, put, write};
use talea_region::{Config, FamilySpec, OpenError, Reader, Region, Standing};

/// The user and the group of the tests, taken from a file that they make.
fn own(shm: &Shm) -> (u32, u32) {
    let made = shm.path().metadata().unwrap();
    (made.uid(), made.gid())
}

fn mode_and_group(path: &Path) -> (u32, u32) {
    let found = path.metadata().unwrap();
    (found.mode() & 0o7777, found.gid())
}

/// Adds to a series, which takes part.
fn add(region: &'static Region, n: u64) -> u64 {
    let cell = family(region, "f", FamilySpec::default()).permanent_series(b"").unwrap().at(0);
    cell.add(n);
    cell.get()
}

/// Opens a file, or memory, for a group, or none.
#[test]
#[ignore = "a process that a test starts"]
fn opens_when_asked() {
    let Some([path, group]) = arguments() else { return };
    let config = Config { group: group.parse().ok(), ..config() };
    if path.is_empty() {
        add(Region::anonymous(config).unwrap(), 5);
        println!("\noutcome in memory");
    } else {
        match Region::open(path, config) {
            Ok(opened) => {
                add(opened.region, 5);
                println!("\noutcome opened {}", opened.notice.unwrap_or_default());
            }
            Err(error) => println!("\noutcome {error}"),
        }
    }
    wait_for_input();
}

fn opener(path: &Path, group: Option<u32>) -> Command {
    again!("opens_when_asked", path, group.map_or(String::new(), |group| group.to_string()))
}

fn outcome(command: &mut Command) -> String {
    line_of(&output_of(command), "outcome ").to_owned()
}

#[test]
fn a_new_file_is_read_by_whom_it_says_whatever_the_umask() {
    let shm = Shm::new("umask");
    let (_, group) = own(&shm);
    for umask in ["umask 0", "umask 077", "umask 0777"] {
        for (asked, mode) in [(None, 0o600), (Some(group), 0o640)] {
            assert_eq!(outcome(&mut by_shell(umask, &opener(&shm.file(), asked))), "opened ");
            assert_eq!(mode_and_group(&shm.file()), (mode, group), "{umask}");
            fs::remove_file(shm.file()).unwrap();
        }
    }
}

#[test]
#[ignore = "needs root: a file of another group"]
fn as_root_a_supplementary_group_gets_a_new_file() {
    let shm = Shm::new("group");
    let config = config().read_by_group(NOBODY);
    assert!(Region::open(shm.file(), config).unwrap().notice.is_none());
    assert_eq!(mode_and_group(&shm.file()), (0o640, NOBODY));
    assert_eq!(shm.file().metadata().unwrap().uid(), 0);
}

#[test]
fn a_file_that_is_there_keeps_its_group_and_its_mode_and_that_is_said() {
    let shm = Shm::new("kept-mode");
    let (_, group) = own(&shm);
    Region::open(shm.file(), config()).unwrap();
    let with_group = || Region::open(shm.file(), config().read_by_group(group)).unwrap().notice;
    assert_says(
        with_group().unwrap(),
        &["mode 0600", "mode 0640", "keeps", "chgrp and chmod", "shop.talea"],
    );
    assert_eq!(mode_and_group(&shm.file()), (0o600, group));
    // No notice without a request, and none if the file has what was requested.
    assert!(Region::open(shm.file(), config()).unwrap().notice.is_none());
    fs::set_permissions(shm.file(), Permissions::from_mode(0o640)).unwrap();
    assert!(with_group().is_none());
    assert!(Region::open(shm.file(), config()).unwrap().notice.is_none());
}

#[test]
fn a_process_outside_of_the_group_gets_advice_and_leaves_no_file() {
    let shm = Shm::new("no-member");
    let error = Region::open(shm.file(), config().read_by_group(u32::MAX)).unwrap_err();
    assert!(matches!(error, OpenError::Group { group: u32::MAX, .. }), "{error}");
    assert_eq!(shm.names().len(), 0);
}

#[test]
#[ignore = "needs root: a user who is not in the group"]
fn as_root_a_user_outside_of_the_group_gets_advice_and_leaves_no_file() {
    let shm = Shm::new("no-member-user");
    let as_nobody = |group| outcome(&mut AsUser::new(&opener(&shm.file(), group), NOBODY).command);
    chown(shm.path(), Some(NOBODY), None).unwrap();
    let said = as_nobody(Some(0));
    assert_says(&said, &["to group 0", "not permitted", "add its user to it", "another group"]);
    assert_eq!(shm.names().len(), 0);
    // Without the group, this user may.
    assert_eq!(as_nobody(None), "opened ");
    assert_eq!(shm.file().metadata().unwrap().uid(), NOBODY);
}

/// Why a file is not read.
fn refused(path: &Path, owners: &[u32], parts: &[&str]) {
    let error = Reader::open_owned_by(path, owners).expect_err("it is read");
    assert!(matches!(error, OpenError::Untrusted { .. }), "{error:?}");
    assert_says(&error, parts);
    assert_says(&error, &[path.to_str().unwrap()]);
}

#[test]
fn only_a_file_of_an_owner_that_is_trusted_is_read() {
    let shm = Shm::new("owners");
    let (me, _) = own(&shm);
    add(Region::open(shm.file(), config()).unwrap().region, 5);
    let reader = Reader::open_owned_by(shm.file(), &[NOBODY - 1, me]).unwrap();
    assert_eq!(reader.snapshot().unwrap().families().len(), 1);
    let (mine, other) = (format!("user {me}"), me + 1);
    refused(&shm.file(), &[other], &[&mine, &format!("expected user {other}")]);
    refused(&shm.file(), &[other, other + 1], &[&format!("user {other} or {}", other + 1)]);
    refused(&shm.file(), &[], &[&mine, "no owner is allowed"]);
}

#[test]
#[ignore = "needs root: a file of another user"]
fn as_root_only_a_file_of_an_owner_that_is_trusted_is_read() {
    let shm = Shm::new("strange-owner");
    let (me, _) = own(&shm);
    add(Region::open(shm.file(), config()).unwrap().region, 5);
    chown(shm.file(), Some(NOBODY), None).unwrap();
    refused(&shm.file(), &[me], &["belongs to user 65534", &format!("expected user {me}")]);
    assert!(Reader::open_owned_by(shm.file(), &[me, NOBODY]).is_ok());
}

#[test]
fn a_file_that_others_may_write_to_is_not_read_nor_trusted_any_more() {
    let shm = Shm::new("modes");
    let (me, _) = own(&shm);
    Region::open(shm.file(), config()).unwrap();
    let careful = Reader::open_owned_by(shm.file(), &[me]).unwrap();
    let any = Reader::open(shm.file()).unwrap();
    for (mode, others) in [
        (0o600, None),
        (0o640, None),
        (0o644, None),
        (0o400, None),
        (0o660, Some("any user of its group")),
        (0o602, Some("any user could")),
        (0o666, Some("any user could")),
        (0o600, None),
    ] {
        fs::set_permissions(shm.file(), Permissions::from_mode(mode)).unwrap();
        match others {
            None => assert!(Reader::open_owned_by(shm.file(), &[me]).is_ok(), "{mode:o}"),
            Some(others) => {
                let shown = format!("mode is {mode:04o}");
                let parts = [&shown, others, "expected 0600 or 0640", "chmod go-w"];
                refused(&shm.file(), &[me], &parts);
            }
        }
        // A reader that opened it before notices.
        let expected = if others.is_none() { Standing::Same } else { Standing::Untrusted };
        assert_eq!(careful.standing(shm.file()).unwrap(), expected, "{mode:o}");
        assert_eq!(any.standing(shm.file()).unwrap(), Standing::Same, "{mode:o}");
    }
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Whether a process sleeps in a system call.
fn is_asleep(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    status.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('S'))
}

#[test]
fn only_regular_files_are_opened() {
    let shm = Shm::new("kinds-of-files");
    let (me, _) = own(&shm);
    let at = |name: &str| shm.path().join(name);
    Region::open(shm.file(), config()).unwrap();

    symlink(shm.file(), at("link")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    make_fifo(&at("fifo"));
    for (path, kind) in [
        (at("link"), "a symbolic link"),
        (at("folder"), "a directory"),
        (at("socket"), "a socket"),
        ("/dev/null".into(), "a device"),
        (at("fifo"), "a FIFO"),
    ] {
        refused(&path, &[me, 0], &[kind, "expected a regular file"]);
    }

    // A process that opens a FIFO to write waits for a reader: here for ever.
    let writer = Process::start(Command::new("sh").args(["-c", "echo > \"$0\""]).arg(at("fifo")));
    while !is_asleep(writer.id()) {
        std::thread::yield_now();
    }
    refused(&at("fifo"), &[me], &["a FIFO", "expected a regular file"]);
    assert!(is_asleep(writer.id()), "the FIFO was opened");

    assert_says(Reader::open_owned_by(at("missing"), &[me]).err().unwrap(), &["No such file"]);
}

#[test]
fn a_changed_file_is_noticed_before_it_is_read_again() {
    let shm = Shm::new("standing");
    let (me, _) = own(&shm);
    Region::open(shm.file(), config()).unwrap();
    // To truncate a file that this process has mapped would end it.
    let (path, moved) = (shm.path().join("copy"), shm.path().join("moved"));
    fs::copy(shm.file(), &path).unwrap();
    let reader = Reader::open_owned_by(&path, &[me]).unwrap();
    let named = path.metadata().unwrap();
    assert_eq!(reader.identity().unwrap(), (named.dev(), named.ino()));
    let standing = || reader.standing(&path).unwrap();
    assert_eq!(standing(), Standing::Same);

    fs::rename(&path, &moved).unwrap();
    assert_eq!(standing(), Standing::Gone);
    fs::copy(&moved, &path).unwrap();
    assert_eq!(standing(), Standing::Replaced);
    symlink(&moved, shm.path().join("link")).unwrap();
    assert_eq!(reader.standing(shm.path().join("link")).unwrap(), Standing::Replaced);
    fs::rename(&moved, &path).unwrap();
    assert_eq!(standing(), Standing::Same);

    let expected = 1 << 20;
    for found in [expected + 1, 4096, 0] {
        open(&path).set_len(found).unwrap();
        assert_eq!(standing(), Standing::Resized { found, expected });
    }
    assert!(reader.standing(path.join("below")).is_err(), "a file is no folder");
}

#[test]
fn a_process_that_attaches_takes_part_and_leaves_no_trace() {
    let shm = Shm::new("attach");
    let mut service = Process::start_until("outcome opened ", &mut opener(&shm.file(), None));
    let region = Region::attach(shm.file()).unwrap();
    assert_eq!(add(region, 2), 7);
    let alive = || {
        let (overview, _) = Reader::open(shm.file()).unwrap().look().unwrap();
        overview.processes.iter().filter(|process| process.is_alive).count()
    };
    assert_eq!(alive(), 2);
    service.kill();
    assert_eq!((alive(), add(region, 1)), (1, 8));
    // Nobody needs to be there.
    assert_eq!(add(Region::attach(shm.file()).unwrap(), 1), 9);
    assert_eq!(shm.names().len(), 1);
}

#[test]
fn memory_of_a_process_is_attached_to_and_one_without_is_an_error() {
    let shm = Shm::new("attach-memory");
    let mut service = Process::start_until("outcome in memory", &mut opener(Path::new(""), None));
    assert_eq!(add(Region::attach_to_process(service.id()).unwrap(), 2), 7);
    service.kill();
    assert_says(Region::attach_to_process(service.id()).unwrap_err(), &["No such file"]);

    let other = Process::start_until("outcome opened ", &mut opener(&shm.file(), None));
    assert_says(Region::attach_to_process(other.id()).unwrap_err(), &["no region in memory"]);
}

#[test]
fn a_file_that_cannot_be_attached_to_is_an_error_and_stays_as_it_is() {
    let shm = Shm::new("attach-refused");
    Region::open(shm.file(), config()).unwrap();
    let at = |name: &str| shm.path().join(name);
    for (name, place, word) in [("version", 8, 3), ("boot", 40, 1), ("marks", 1472, 1 << 40)] {
        put(&open_copy(shm.file(), at(name)), place, word);
    }
    write(at("empty"), b"");
    write(at("foreign"), vec![b'x'; 1 << 20]);
    fs::create_dir(at("folder")).unwrap();
    // To a copy: the region is written to when another test forks, since children take slots in all that is open.
    fs::copy(shm.file(), at("whole")).unwrap();
    symlink(at("whole"), at("link")).unwrap();
    make_fifo(&at("fifo"));
    let before = shm.names();
    for (name, part) in [
        ("missing", "No such file"),
        ("version", "layout is version 3"),
        ("boot", "last started"),
        ("marks", "planes are in use"),
        ("empty", "0 bytes"),
        ("foreign", "begin as a region"),
        ("folder", "directory"),
        ("link", "symbolic link"),
        ("fifo", "regular file"),
    ] {
        let bytes = at(name).is_file().then(|| fs::read(at(name)).unwrap());
        let path = at(name).to_str().unwrap().to_owned();
        assert_says(Region::attach(&path).unwrap_err(), &[part, &path]);
        assert!(bytes.is_none_or(|bytes| fs::read(at(name)).unwrap() == bytes), "{name}");
    }
    assert_eq!(shm.names(), before);
}
