//! Failures at the start, and their messages.

use crate::client::send;
use crate::postgres::Postgres;
use crate::service::{Service, program, program_after};
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

/// Runs a program that must fail at the start, with one line about it.
pub(crate) fn failure(command: &mut Command) -> String {
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

#[test]
fn a_taken_port_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().unwrap().to_string();
    for option in ["--listen", "--metrics-listen"] {
        let mut command = program_with(option, &address);
        let stderr = failure(&mut command);
        assert!(stderr.contains(&taken.local_addr().unwrap().port().to_string()), "{stderr}");
        assert!(stderr.contains("taken"), "{stderr}");
        assert!(stderr.contains(&format!("{option} ")), "{stderr}");
    }
}

fn program_with(option: &str, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_items-api"));
    let other = if option == "--listen" { "--metrics-listen" } else { "--listen" };
    command.args([option, address, other, "127.0.0.1:0"]).env_remove("DATABASE_URL");
    command
}

#[test]
fn an_address_of_another_machine_is_named() {
    for option in ["--listen", "--metrics-listen"] {
        let stderr = failure(&mut program_with(option, "192.0.2.1:4000"));
        assert_eq!(stderr.matches("192.0.2.1:4000").count(), 1, "{stderr}");
        assert!(stderr.contains(option), "{stderr}");
    }
}

#[test]
fn an_address_that_is_none_is_named() {
    let ended = program_with("--listen", "nowhere").output().expect("the program");
    let stderr = String::from_utf8(ended.stderr).expect("text");
    assert!(!ended.status.success());
    assert!(stderr.contains("nowhere") && stderr.contains("--listen"), "{stderr}");
}

#[test]
fn a_database_in_a_folder_that_is_not_there_is_named() {
    let stderr = failure(program().env("DATABASE_URL", "sqlite:/no/such/folder/items.db"));
    assert!(stderr.contains("/no/such/folder/items.db"), "{stderr}");
    assert!(stderr.contains("unable to open"), "{stderr}");
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("letter.txt");
    let letter = "Dear reader, this is not a database. ".repeat(100);
    fs::write(&path, &letter).unwrap();
    let stderr = failure(program().env("DATABASE_URL", format!("sqlite:{}", path.display())));
    assert!(stderr.contains(path.to_str().unwrap()), "{stderr}");
    assert!(stderr.contains("not a database"), "{stderr}");
    assert_eq!(fs::read_to_string(&path).unwrap(), letter);
}

#[test]
fn a_database_of_another_kind_is_refused_by_name() {
    for url in ["mysql://me:secret@localhost/items", "items.db"] {
        let stderr = failure(program().env("DATABASE_URL", url));
        assert!(stderr.contains("sqlite:") && stderr.contains("postgres://"), "{stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}

#[test]
fn each_cause_is_said_once() {
    let urls =
        ["sqlite:x?colour=red", "sqlite:/no/such/folder/x.db", "postgres://me@host:port/items"];
    let mut all: Vec<String> =
        urls.iter().map(|url| failure(program().env("DATABASE_URL", url))).collect();
    all.push(failure(program().env("TALEA_REGION", "/no/such/folder/shop.talea")));
    // With one descriptor more each time it comes further, until there is none for a region.
    let with = |descriptors| program_after(&format!("ulimit -n {descriptors}")).output().unwrap();
    let said = (6..64).map(|descriptors| String::from_utf8(with(descriptors).stderr).unwrap());
    all.extend(said.into_iter().find(|said| said.contains("cannot make a region in memory")));
    assert_eq!(all.len(), urls.len() + 2);
    for said in all {
        let parts: Vec<&str> = said.trim_end().split(": ").collect();
        let twice = (1..parts.len()).find(|&n| parts[..n].contains(&parts[n]));
        assert_eq!(twice.map(|n| parts[n]), None, "{said}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named_at_once_and_without_the_password() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().unwrap();
    let url = format!("postgres://me:secret@{free}/shop");
    let stderr = failure(program().env("DATABASE_URL", url));
    // The first attempt says so; if it were repeated, a time limit would be the reason.
    for part in
        ["shop at 127.0.0.1", &free.port().to_string(), "Connection refused", "DATABASE_URL"]
    {
        assert!(stderr.contains(part), "{stderr}");
    }
    assert!(!stderr.contains("secret"), "{stderr}");
}

#[test]
fn a_wrong_password_is_reported_without_it() {
    let url = Postgres::shared().new_database();
    let (user, rest) = (url.find("items:").unwrap(), url.find('@').unwrap());
    let url = format!("{}items:sesame{}", &url[..user], &url[rest..]);
    let stderr = failure(program().env("DATABASE_URL", url));
    assert!(stderr.contains("password authentication failed"), "{stderr}");
    assert!(!stderr.contains("sesame"), "{stderr}");
}

#[test]
fn more_connections_than_the_server_has_are_refused_with_what_to_do() {
    let url = Postgres::shared().new_database();
    let stderr = failure(program().env("DATABASE_URL", url).args(["--pool", "2000"]));
    assert!(stderr.contains("2000 connections") && stderr.contains("--pool"), "{stderr}");
}

#[test]
fn a_server_keeps_its_items() {
    let url = Postgres::shared().new_database();
    let mut ids = Vec::new();
    for url in [url.clone(), url.replacen("postgres:", "postgresql:", 1)] {
        let mut command = program();
        command.env("DATABASE_URL", url).args(["--pool", "1"]);
        let mut service = Service::run(command);
        ids.push(service.create());
        service.signal(rustix::process::Signal::TERM);
        assert_eq!(service.wait(Duration::from_secs(5)).0.code(), Some(0));
    }
    assert_eq!(ids, [1, 2]);
}

#[test]
fn a_named_database_is_made_and_keeps_its_items() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items.db");
    let mut ids = Vec::new();
    for slashes in ["", "//"] {
        let mut command = program();
        command.env("DATABASE_URL", format!("sqlite:{slashes}{}", path.display()));
        let mut service = Service::run(command);
        ids.push(service.create());
        let list = service.send("GET /api/items").json();
        assert_eq!(list["data"].as_array().unwrap().len(), ids.len());
        service.signal(rustix::process::Signal::TERM);
        assert!(service.wait(Duration::from_secs(5)).0.success());
    }
    assert_eq!(ids, [1, 2]);
}

#[test]
fn an_empty_database_url_is_no_database_url() {
    let mut command = program();
    command.env("DATABASE_URL", "");
    let service = Service::run(command);
    assert_eq!(service.create(), 1);
    assert_eq!(fs::read_dir(service.temporary.path()).unwrap().count(), 1);
}

#[test]
fn the_limit_of_descriptors_is_raised_where_it_may() {
    let service = Service::run(program_after("ulimit -S -n 64"));
    let scraped = service.scrape();
    let limit = scraped.iter().find(|sample| sample.name == "process_max_fds").unwrap();
    assert!(limit.value > 64.0, "{limit:?}");
}

#[test]
fn the_metrics_have_a_port_of_their_own() {
    let service = Service::start();
    assert_eq!(service.send("GET /metrics").status, 404);
    assert_eq!(send(service.metrics, "GET /api/items", None).status, 404);
    assert_eq!(send(service.metrics, "GET /metrics", None).status, 200);
}
