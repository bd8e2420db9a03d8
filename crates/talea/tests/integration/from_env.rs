//! Claims about a registry that the environment names: `Registry::from_env`.
#![cfg(all(target_os = "linux", not(miri)))]

use std::fs::{DirEntry, read_dir, read_to_string};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::metrics::register;
use crate::support::process::Worker;
use crate::support::tmpfs::Shm;
use talea::{Counter, Registry};

/// The order to this process: add so much, print the count then, and wait for the end
/// of its input.
const ADD: &str = "TALEA_TEST_ADD";

/// Not a claim of its own: other tests start it as a process.
#[test]
fn adds_and_prints_its_count_when_ordered() {
    let Ok(n) = std::env::var(ADD) else { return };
    let registry = match Registry::from_env() {
        Ok(registry) => registry,
        Err(error) => return println!("\nrefused {error}"),
    };
    let orders: Counter = register(&registry, "orders");
    orders.add(n.parse().unwrap());
    println!("\ncounted {}", orders.get());
    let _ = std::io::stdin().lines().next();
    println!("\ncounted {}", orders.get());
}

/// A process that added, and prints its count.
struct Adder(Worker);

impl Adder {
    fn start(n: u64, region: Option<&Path>) -> Self {
        Self::start_for_group(n, region, None)
    }

    fn start_for_group(n: u64, region: Option<&Path>, group: Option<&str>) -> Self {
        let mut command: Command = again!("adds_and_prints_its_count_when_ordered");
        command.env(ADD, n.to_string());
        Self::run(command, region, group)
    }

    fn run(mut command: Command, region: Option<&Path>, group: Option<&str>) -> Self {
        command.env_remove("TALEA_REGION").env_remove("TALEA_REGION_GROUP");
        if let Some(region) = region {
            command.env("TALEA_REGION", region);
        }
        if let Some(group) = group {
            command.env("TALEA_REGION_GROUP", group);
        }
        Self(Worker::start(&mut command))
    }

    fn said(&mut self) -> String {
        self.0.answer(|line| {
            Some(line).filter(|line: &String| {
                line.starts_with("counted ") || line.starts_with("refused ")
            })
        })
    }

    fn says_again(&mut self) -> String {
        self.0.send("");
        self.said()
    }
}

#[test]
fn two_processes_add_to_the_same_counter_and_a_restart_goes_on() {
    let shm = Shm::new("from-env");
    let file = shm.file();
    let mut first = Adder::start(3, Some(&file));
    assert_eq!(first.said(), "counted 3");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let mut second = Adder::start(40, Some(&file));
    assert_eq!(second.said(), "counted 43");
    assert_eq!(first.says_again(), "counted 43");
    // Both are killed.
    drop((first, second));
    assert_eq!(Adder::start(500, Some(&file)).said(), "counted 543");
    let outside = Registry::open(&file).unwrap();
    assert_eq!(outside.snapshot().value("orders_total", &[]), Some(543.0));
}

#[test]
fn values_that_are_read_are_read_again_though_nobody_takes_a_snapshot() {
    let shm = Shm::new("from-env-fresh");
    let mut process = Adder::start(3, Some(&shm.file()));
    assert_eq!(process.said(), "counted 3");
    let threads = format!("/proc/{}/task", process.0.id());
    let name = |thread: io::Result<DirEntry>| read_to_string(thread.ok()?.path().join("comm")).ok();
    // A thread takes its name after it began. (`Registry::refresh_every` has an example that reads.)
    while !read_dir(&threads).unwrap().filter_map(name).any(|name| name == "talea-refresh\n") {
        std::thread::yield_now();
    }
}

#[test]
fn a_variable_that_is_unset_or_empty_is_memory_of_ones_own() {
    for region in [None, Some(Path::new(""))] {
        let mut first = Adder::start(3, region);
        assert_eq!(first.said(), "counted 3");
        assert_eq!(Adder::start(40, region).said(), "counted 40");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_that_says_what_to_do() {
    let shm = Shm::new("from-env-refused");
    let folder = shm.file().parent().unwrap().to_owned();
    std::fs::write(shm.file(), "our notes").unwrap();
    for (region, found, remedy) in [
        (folder.as_path(), "directory", "expected a regular file"),
        (&folder.join("missing/shop.talea"), "No such file", "make the directory first"),
        (Path::new("/proc/shop.talea"), "not on tmpfs", "use a path under /dev/shm"),
        (&shm.file(), "something else", "use another path, or remove the file"),
    ] {
        let said = Adder::start(1, Some(region)).said();
        let path = region.display().to_string();
        let without = "leave the variable out";
        for part in ["refused", "TALEA_REGION", &path, found, remedy, without] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn a_group_may_read_a_new_file_where_it_is_named_by_name_or_number() {
    let shm = Shm::new("from-env-group");
    let file = shm.file();
    // The group of the user that runs the tests, who is in it.
    let own = file.parent().unwrap().metadata().unwrap().gid();
    let groups = std::fs::read_to_string("/etc/group").unwrap();
    let mut lines = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let name = lines.find(|line| line.get(2) == Some(&own.to_string().as_str()));
    let name = name.map(|line| line[0].to_owned());
    if name.is_none() {
        eprintln!("not checked where group {own} has no name: a group by its name");
    }
    for group in [Some(own.to_string()), name].into_iter().flatten() {
        let mut adder = Adder::start_for_group(3, Some(&file), Some(&group));
        assert_eq!(adder.said(), "counted 3", "{group}");
        let found = file.metadata().unwrap();
        assert_eq!((found.mode() & 0o7777, found.gid()), (0o640, own), "{group}");
        std::fs::remove_file(&file).unwrap();
    }
    // Empty is none.
    assert_eq!(Adder::start_for_group(3, Some(&file), Some("")).said(), "counted 3");
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
    // A file that exists keeps its mode, and is used.
    let again = Adder::start_for_group(4, Some(&file), Some(&own.to_string())).said();
    assert_eq!(again, "counted 7");
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn a_group_that_cannot_be_used_is_an_error_that_names_it_and_makes_no_file() {
    let shm = Shm::new("from-env-no-group");
    let file = shm.file();
    for (group, parts) in [
        ("no such group", ["knows no such group", "getent group"]),
        ("-1", ["knows no such group", "getent group"]),
        // The one number that no group can have.
        ("4294967295", ["cannot give", "add its user to it"]),
    ] {
        let said = Adder::start_for_group(1, Some(&file), Some(group)).said();
        let quoted = format!("{group:?}");
        for part in parts.iter().chain(&["refused", "TALEA_REGION_GROUP", "leave it out", &quoted])
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!file.exists(), "{group}");
    }
    // Memory has no file, and the group nothing to say.
    let memory = Adder::start_for_group(3, None, Some("no such group")).said();
    assert_eq!(memory, "counted 3");
}
