//! Failures at the start, and their messages.

use crate::client::send;
use crate::postgres::Postgres;
use crate::service::{Service, full, program, program_after};
use rusqlite::Connection;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

/// Runs a program that must fail at the start, with one line about it.
fn failure(command: &mut Command) -> String {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let ended = command.env("TMPDIR", temporary.path()).output().expect("the program");
    let stderr = String::from_utf8(ended.stderr).expect("text");
    assert!(!ended.status.success(), "{stderr}");
    assert!(ended.stdout.is_empty(), "{:?}", ended.stdout);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("items-api: "), "{stderr}");
    let left = fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(left, 0, "it left something behind");
    stderr
}

fn program_with(option: &str, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_items-api"));
    let other = if option == "--listen" { "--metrics-listen" } else { "--listen" };
    command.args([option, address, other, "127.0.0.1:0"]).env_remove("DATABASE_URL");
    command
}

#[test]
fn an_address_that_cannot_be_had_is_named_once_with_its_option() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().unwrap();
    for option in ["--listen", "--metrics-listen"] {
        for (address, name, words) in [
            (&*taken.to_string(), &*taken.port().to_string(), ["taken", &format!("{option} ")]),
            ("192.0.2.1:4000", "192.0.2.1:4000", ["cannot listen on", option]),
        ] {
            let stderr = failure(&mut program_with(option, address));
            assert_eq!(stderr.matches(name).count(), 1, "{stderr}");
            assert!(words.iter().all(|word| stderr.contains(word)), "{words:?}: {stderr}");
        }
    }
}

#[test]
fn a_failure_ends_with_status_1_even_if_standard_error_is_full() {
    let status = program_with("--listen", "192.0.2.1:4000").stderr(full()).status();
    assert_eq!(status.expect("the program").code(), Some(1));
}

#[test]
fn an_address_that_is_none_is_named() {
    let ended = program_with("--listen", "nowhere").output().expect("the program");
    let stderr = String::from_utf8(ended.stderr).expect("text");
    assert!(!ended.status.success());
    assert!(stderr.contains("nowhere") && stderr.contains("--listen"), "{stderr}");
}

#[test]
fn a_database_that_cannot_be_used_is_named_with_the_reason_and_without_the_password() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().unwrap();
    let empty = Postgres::shared().new_database();
    let (before, after) = (empty.find("items:").unwrap(), empty.find('@').unwrap());
    for (url, pool, words) in [
        (
            "sqlite:/no/such/folder/items.db",
            "1",
            &["/no/such/folder/items.db", "unable to open"][..],
        ),
        ("mysql://me:secret@localhost/items", "1", &["has mysql", "sqlite:PATH", "postgres://"]),
        ("items.db", "1", &["no scheme", "sqlite:PATH", "postgres://"]),
        // The first attempt says so; if it were repeated, a time limit would be the reason.
        (
            &format!("postgres://me:secret@{free}/shop"),
            "1",
            &["shop at 127.0.0.1", &free.port().to_string(), "Connection refused", "DATABASE_URL"],
        ),
        (
            &format!("{}items:secret{}", &empty[..before], &empty[after..]),
            "1",
            &["password authentication failed"],
        ),
        (&empty, "2000", &["2000 connections", "--pool"]),
    ] {
        let stderr = failure(program().env("DATABASE_URL", url).args(["--pool", pool]));
        for word in words {
            assert!(stderr.contains(word), "{url}: {word} is not in {stderr}");
        }
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}

#[test]
fn a_file_that_is_no_items_database_is_named_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (letter, later) = (folder.path().join("letter.txt"), folder.path().join("later.db"));
    let text = "Dear reader, this is not a database. ".repeat(100);
    fs::write(&letter, &text).unwrap();
    let tables = Connection::open(&later).unwrap();
    tables.execute_batch("CREATE TABLE items (id TEXT); PRAGMA user_version = 7").unwrap();
    for (path, words) in [(&letter, ["not a database", ""]), (&later, ["version 7", "knows 1"])] {
        let stderr = failure(program().env("DATABASE_URL", format!("sqlite:{}", path.display())));
        assert!(stderr.contains(path.to_str().unwrap()), "{stderr}");
        assert!(words.iter().all(|word| stderr.contains(word)), "{words:?}: {stderr}");
    }
    assert_eq!(fs::read_to_string(&letter).unwrap(), text);
    let version = tables.pragma_query_value(None, "user_version", |row| row.get(0));
    assert_eq!(version, Ok(7));
}

#[test]
fn each_cause_is_said_once() {
    let urls =
        ["sqlite:x?colour=red", "sqlite:/no/such/folder/x.db", "postgres://me@host:port/items"];
    let mut all: Vec<String> =
        urls.iter().map(|url| failure(program().env("DATABASE_URL", url))).collect();
    all.push(failure(program().env("TALEA_REGION", "/no/such/folder/shop.talea")));
    // With one descriptor more each time it comes further, until there is none for a region.
    let said = (6..64).map(|descriptors| {
        let output = program_after(&format!("ulimit -n {descriptors}")).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    });
    all.extend(said.into_iter().find(|said| said.contains("cannot make a region in memory")));
    assert_eq!(all.len(), urls.len() + 2);
    for said in all {
        let parts: Vec<&str> = said.trim_end().split(": ").collect();
        let twice = (1..parts.len()).find(|&n| parts[..n].contains(&parts[n]));
        assert_eq!(twice.map(|n| parts[n]), None, "{said}");
    }
}

#[test]
fn a_named_database_is_made_and_keeps_its_items() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items.db");
    let server = Postgres::shared().new_database();
    for (url, id) in [
        (format!("sqlite:{}", path.display()), 1),
        (format!("sqlite://{}", path.display()), 2),
        (server.replacen("postgres:", "postgresql:", 1), 1),
        (server, 2),
    ] {
        let mut service =
            Service::with(|program| program.env("DATABASE_URL", &url).args(["--pool", "1"]));
        assert_eq!(service.create(), id, "{url}");
        let list = service.send("GET /api/items").json();
        assert_eq!(list["data"].as_array().unwrap().len() as i64, id, "{url}");
        service.end();
    }
}

#[test]
fn an_empty_database_url_is_a_temporary_database_which_is_removed() {
    let mut service = Service::with(|program| program.env("DATABASE_URL", ""));
    assert_eq!(service.create(), 1);
    assert_eq!(service.temporary_files(), 1);
    service.end();
    assert_eq!(service.temporary_files(), 0);
}

#[test]
fn the_limit_of_descriptors_is_raised_where_it_may() {
    let service = Service::run(program_after("ulimit -S -n 64"));
    assert!(service.value("process_max_fds", &[]) > 64.0);
}

#[test]
fn the_metrics_have_a_port_of_their_own() {
    let service = Service::start();
    assert_eq!(send(service.metrics, "GET /api/items", None).status, 404);
    assert_eq!(send(service.metrics, "GET /metrics", None).status, 200);
}
