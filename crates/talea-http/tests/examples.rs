//! The examples do what they say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An example that runs until it is dropped, and what it printed: where it serves.
struct Example {
    process: Child,
    service: String,
    metrics: String,
}

impl Example {
    fn start(name: &str) -> Self {
        // Beside the folder of this test's own program.
        let mut path: PathBuf = std::env::current_exe().unwrap();
        path.pop();
        path.pop();
        path.push("examples");
        path.push(name);
        let mut process =
            Command::new(&path).args(["0", "0"]).stdout(Stdio::piped()).spawn().unwrap_or_else(
                |error| panic!("{}: {error}; `cargo build --examples` makes it", path.display()),
            );
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        Self { service: line(), metrics: line(), process }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn is_metered(name: &str) {
    let example = Example::start(name);
    for _ in 0..3 {
        let answer = get(&example.service);
        assert!(answer.ends_with("Hello, you!\n"), "{answer}");
    }
    assert!(get(&example.service.replace("hello", "nowhere")).contains("404"));
    let metrics = get(&example.metrics);
    for line in [
        r#"http_requests_total{method="GET",route="/hello/{name}",status="2xx"} 3"#,
        r#"http_requests_total{method="_OTHER",route="_unmatched",status="4xx"} 1"#,
        r#"http_request_outcomes_total{method="GET",route="/hello/{name}",outcome="complete"} 3"#,
        r#"http_requests_in_flight{method="GET",route="/hello/{name}"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[test]
fn a_new_service_on_axum_is_metered() {
    is_metered("axum_new");
}

#[test]
fn a_service_on_axum_that_exists_is_metered() {
    is_metered("axum_existing");
}

#[test]
fn a_service_on_hyper_is_metered() {
    is_metered("hyper");
}
