//! Claims about `contrib/study`: that its files are what they say, fit each other, and that
//! the items API starts as they start it. Containers are not run.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value as Yaml;
use stage::{assert_promtool, built, contrib, get, repository};

fn folder() -> PathBuf {
    repository("contrib/study")
}

fn yaml(file: &str) -> Yaml {
    let text = contrib(&format!("study/{file}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn service(name: &str) -> Yaml {
    let found = yaml("compose.yaml")["services"][name].clone();
    assert!(found.is_object(), "there is no {name}");
    found
}

fn words(list: &Yaml) -> Vec<String> {
    let list = list.as_array().expect("a list");
    list.iter().map(|word| word.as_str().expect("words").to_owned()).collect()
}

/// The value of `option` in a command.
fn after<'a>(command: &'a [String], option: &str) -> &'a str {
    let at = command.iter().position(|word| word == option);
    let at = at.unwrap_or_else(|| panic!("no {option} in {command:?}"));
    &command[at + 1]
}

#[test]
fn each_service_that_is_waited_for_says_when_it_is_healthy() {
    let services = yaml("compose.yaml")["services"].clone();
    let services = services.as_object().unwrap();
    let names: Vec<_> = services.keys().collect();
    assert_eq!(names, ["database", "prometheus", "server"]);
    for (name, service) in services {
        assert!(!words(&service["healthcheck"]["test"]).is_empty(), "{name:?}");
        for (other, how) in service["depends_on"].as_object().into_iter().flatten() {
            assert!(services.contains_key(other), "{name:?} waits for {other:?}");
            assert_eq!(how["condition"], "service_healthy", "{name:?} waits for {other:?}");
        }
    }
    assert!(service("server")["depends_on"]["database"].is_object());
    assert!(service("prometheus")["depends_on"]["server"].is_object());
}

#[test]
fn each_volume_is_declared_or_is_a_file_here() {
    let compose = yaml("compose.yaml");
    for name in ["database", "prometheus"] {
        for volume in words(&service(name)["volumes"]) {
            let (source, _) = volume.split_once(':').unwrap();
            let declared = compose["volumes"].as_object().unwrap().contains_key(source);
            assert!(declared || folder().join(source).is_file(), "{volume}");
        }
    }
    let build = &service("server")["build"];
    let context = folder().join(build["context"].as_str().unwrap());
    assert!(context.join("Cargo.lock").is_file());
    let containerfile = context.join(build["dockerfile"].as_str().unwrap());
    assert_eq!(
        containerfile.canonicalize().unwrap(),
        folder().join("Containerfile").canonicalize().unwrap()
    );
}

#[test]
fn ports_are_those_that_the_server_listens_at() {
    let server = service("server");
    let command = words(&server["command"]);
    let ports = ["--listen", "--metrics-listen"].map(|option| {
        let address: SocketAddr = after(&command, option).parse().unwrap();
        assert!(address.ip().is_unspecified(), "{address} is not seen from outside");
        address.port()
    });
    assert_eq!(ports, [5000, 4050]);
    let published = ports.map(|port| format!("127.0.0.1:{port}:{port}"));
    assert_eq!(words(&server["ports"]), published);
    assert_eq!(words(&service("prometheus")["ports"]), ["127.0.0.1:9090:9090"]);
    let check = words(&server["healthcheck"]["test"]).concat();
    assert!(ports.iter().all(|port| check.contains(&format!("/127.0.0.1/{port}"))), "{check}");

    let target = &yaml("prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"][0];
    assert_eq!(target.as_str(), Some("server:4050"));

    let readme = contrib("study/README.md");
    for url in [
        "--url http://127.0.0.1:5000/api/items",
        "--metrics-url http://127.0.0.1:4050/metrics",
        "--prometheus http://127.0.0.1:9090",
    ] {
        assert!(readme.contains(url), "the README has no {url}");
    }
}

#[test]
fn the_server_gets_the_url_of_the_database() {
    let given = service("server")["environment"]["DATABASE_URL"].clone();
    let environment = service("database")["environment"].clone();
    let [user, password, database] = ["USER", "PASSWORD", "DB"]
        .map(|name| environment[format!("POSTGRES_{name}").as_str()].as_str().unwrap().to_owned());
    let url = format!("postgres://{user}:{password}@database:5432/{database}");
    assert_eq!(given.as_str(), Some(url.as_str()));
}

#[test]
fn prometheus_takes_its_configuration_and_scrapes_each_second() {
    assert_promtool("contrib/study", &["check", "config", "prometheus.yml"]);
    assert_eq!(yaml("prometheus.yml")["global"]["scrape_interval"], "1s");
    let command = words(&service("prometheus")["command"]);
    let read = command.iter().find_map(|word| word.strip_prefix("--config.file=")).unwrap();
    let mounted = format!("./prometheus.yml:{read}:ro");
    assert!(words(&service("prometheus")["volumes"]).contains(&mounted));
}

#[test]
fn the_image_is_built_by_a_rust_that_is_new_enough_and_runs_as_nobody_special() {
    let file = contrib("study/Containerfile");
    let lines = |start: &str| -> Vec<String> {
        file.lines().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
    };
    let images = lines("FROM ");
    let [build, run] = &images[..] else { panic!("{images:?}") };
    let (version, debian) = build
        .strip_prefix("rust:1.")
        .and_then(|rest| rest.strip_suffix(" AS build"))
        .and_then(|rest| rest.split_once('-'))
        .expect("rust:1.VERSION-DEBIAN AS build");
    let oldest = env!("CARGO_PKG_RUST_VERSION").split('.').nth(1).unwrap();
    assert!(version.parse::<u32>().unwrap() >= oldest.parse().unwrap(), "Rust 1.{version}");
    assert_eq!(*run, format!("debian:{debian}-slim"), "they have different C libraries");
    assert_eq!(lines("USER "), ["10001:10001"]);
    assert_eq!(lines("EXPOSE "), ["5000 4050"]);
    assert_eq!(lines("ENTRYPOINT "), [r#"["items-api"]"#]);
    let started: Vec<String> = serde_json::from_str(&lines("CMD ")[0]).unwrap();
    let command = words(&service("server")["command"]);
    for option in ["--listen", "--metrics-listen"] {
        assert_eq!(after(&started, option), after(&command, option), "{option}");
    }
}

/// The items API as `compose.yaml` has it, on a PostgreSQL of its own. Both end with this.
struct Server {
    script: Child,
    input: Option<ChildStdin>,
    items: SocketAddr,
    metrics: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let service = service("server");
        let mut command = words(&service["command"]);
        for option in ["--listen", "--metrics-listen"] {
            let at = command.iter().position(|word| word == option).unwrap();
            command[at + 1] = "127.0.0.1:0".to_owned();
        }
        let mut script = Command::new(repository("scripts/postgres"));
        // Another address of the database takes the place of that which is in the file.
        for (name, value) in service["environment"].as_object().unwrap() {
            if name != "DATABASE_URL" {
                script.env(name, value.as_str().unwrap());
            }
        }
        let mut script = script
            .arg(built("items-api"))
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/postgres runs");
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
        let mut address = |before: &str, after: &str| {
            let line = lines.next().expect("it starts; see above").unwrap();
            let address = line.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            address.unwrap_or_else(|| panic!("it said {line}")).parse().unwrap()
        };
        let items = address("items on http://", "/api/items");
        let metrics = address("metrics on http://", "/metrics");
        Self { input: script.stdin.take(), script, items, metrics }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // That of a study ends with its input, and the script with it.
        drop(self.input.take());
        let _ = self.script.wait();
    }
}

#[tokio::test]
async fn the_server_starts_as_the_file_starts_it() {
    let mut server = Server::start();
    let (status, body) = get(server.items, "/api/items").await.unwrap();
    assert_eq!((status.as_u16(), &body[..]), (200, &br#"{"data":[]}"#[..]));
    let (status, body) = get(server.metrics, "/metrics").await.unwrap();
    assert_eq!(status.as_u16(), 200);
    let text = String::from_utf8(body.to_vec()).unwrap();
    let pool = words(&service("server")["command"]);
    let pool = after(&pool, "--pool");
    let max = format!("db_client_connection_max{{pool_name=\"postgres\"}} {pool}\n");
    assert!(text.contains(&max), "{text}");

    drop(server.input.take());
    assert!(server.script.wait().unwrap().success());
}
