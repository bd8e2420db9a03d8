//! Claims about a registry that the environment names: `Registry::from_env`.
#![cfg(all(target_os = "linux", not(miri)))]

mod stage;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stage::processes::{Shm, again};
use talea::{Counter, Opts, Registry};

/// What this process is told to do: add so much, say what it counts then, and wait for the end
/// of its input.
const ADD: &str = "TALEA_TEST_ADD";

/// Not a claim of its own: what the other tests start as a process.
#[test]
fn adds_and_says_its_count_when_told() {
    let Ok(n) = std::env::var(ADD) else { return };
    let registry = match Registry::from_env() {
        Ok(registry) => registry,
        Err(error) => return println!("\nrefused {error}"),
    };
    let orders: Counter = registry.register(Opts::new("orders", "Orders.")).unwrap();
    orders.add(n.parse().unwrap());
    println!("\ncounted {}", orders.get());
    let _ = std::io::stdin().lines().next();
    println!("\ncounted {}", orders.get());
}

/// A process that added, and what it says.
struct Adder {
    child: Child,
    said: Box<dyn Iterator<Item = String>>,
}

impl Adder {
    fn start(n: u64, region: Option<&Path>) -> Self {
        let mut command: Command = again("adds_and_says_its_count_when_told");
        command.env(ADD, n.to_string()).env_remove("TALEA_REGION");
        if let Some(region) = region {
            command.env("TALEA_REGION", region);
        }
        let (input, output) = (Stdio::piped(), Stdio::piped());
        let mut child = command.stdin(input).stdout(output).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said =
            lines.filter(|line| line.starts_with("counted ") || line.starts_with("refused "));
        Self { child, said: Box::new(said) }
    }

    fn said(&mut self) -> String {
        self.said.next().unwrap()
    }

    fn says_again(&mut self) -> String {
        writeln!(self.child.stdin.as_ref().unwrap()).unwrap();
        self.said()
    }
}

impl Drop for Adder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    for (region, found) in [
        (folder.as_path(), "directory"),
        (&folder.join("missing/shop.talea"), "No such file"),
        (Path::new("/proc/shop.talea"), "not on tmpfs"),
    ] {
        let said = Adder::start(1, Some(region)).said();
        let path = region.display().to_string();
        for part in ["refused", "TALEA_REGION", &path, found, "/dev/shm", "leave it out"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
