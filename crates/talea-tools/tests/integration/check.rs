//! `talea check`: the real program on files, standard input and URLs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{TALEA, assert_ends, counting_server, piped, stderr, stdout, talea};

const CLEAN: &str = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n";
const CLEAN_OPENMETRICS: &str = "# TYPE a counter\n# HELP a A.\na_total 1\n# EOF\n";
const ADVISED: &str = "# TYPE a gauge\na 1\n";
const BROKEN: &str = "# HELP a A.\n# TYPE a gauge\na{b=\"é\",c=1} 1\na 1\na 2\n";

fn check(text: &str, more: &[&str]) -> Output {
    piped(Command::new(TALEA).arg("check").args(more), text.as_bytes())
}

#[test]
fn the_exit_status_reports_the_findings() {
    for (text, more, status) in [
        (CLEAN, &[][..], 0),
        (CLEAN, &["-"], 0),
        (CLEAN, &["--strict"], 0),
        (CLEAN_OPENMETRICS, &[], 0),
        (CLEAN_OPENMETRICS, &["--format", "openmetrics"], 0),
        (CLEAN, &["--format", "openmetrics"], 1),
        (ADVISED, &[], 0),
        (ADVISED, &["--strict"], 1),
        (BROKEN, &[], 1),
        // Nothing to check, so nothing was checked.
        ("", &[], 1),
        ("\n \n", &[], 1),
        ("", &["--format", "text"], 1),
        ("", &["--format", "openmetrics"], 1),
        ("# EOF\n", &[], 0),
        // OpenMetrics that was cut off.
        ("# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1\n", &[], 1),
        ("# TYPE a info\na_info{b=\"1\"} 1\n", &[], 1),
    ] {
        let output = check(text, more);
        assert_eq!(output.status.code(), Some(status), "{more:?} {text}: {output:?}");
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn an_empty_text_is_reported_as_such() {
    for (more, begins) in [
        (&[][..], "-:1:1: violation: the text is empty; name a file or a URL"),
        (&["--format", "openmetrics"], "-:1:1: violation: the text ends without # EOF"),
    ] {
        let said = stdout(&check("", more));
        assert!(said.starts_with(begins), "{said}");
    }
}

#[test]
fn each_finding_has_its_place_and_what_to_write_instead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.txt");
    fs::write(&path, BROKEN).unwrap();
    let output = talea(["check".as_ref(), path.as_os_str()]);
    let path = path.display();
    assert_eq!(
        stdout(&output),
        format!(
            "{path}:3:11: violation: found \"1}} 1\"; expected a value in quotes\n\
             {path}:5:1: violation: the series a stands in line 4 already; write each series once\n\
             {path}: 2 violations, 0 pieces of advice in 5 lines of Prometheus text 0.0.4\n"
        )
    );
}

#[test]
fn a_page_cannot_control_the_terminal_of_a_person_who_checks_it() {
    let page = "# TYPE a gauge\na{b=\"\u{1B}[31m\u{202E}\"} 1\na{b=\"\u{1B}[31m\u{202E}\"} 1\n";
    let shown = stdout(&check(page, &[]));
    assert!(shown.contains(r#"a{b="\u{1b}[31m\u{202e}"} stands in line 2"#), "{shown}");
    assert!(!shown.contains(['\u{1B}', '\u{202E}']), "{shown}");
}

#[test]
fn findings_are_also_for_programs() {
    let output = check(&format!("{ADVISED}a 2\n"), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let findings: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(findings.len(), 2);
    let advice = (&findings[0]["severity"], &findings[0]["rule"]);
    assert_eq!(advice, (&json!("advice"), &json!("help")));
    assert_eq!(
        findings[1],
        json!({
            "path": "-", "line": 3, "column": 1, "severity": "violation", "rule": "series-twice",
            "found": "the series a stands in line 2 already", "instead": "write each series once",
        })
    );
    assert_eq!(stdout(&check(CLEAN, &["--json"])), "");
}

#[test]
fn an_unreadable_source_is_reported_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.txt");
    fs::write(&path, b"a 1\nb\xFF 2\n").unwrap();
    let gzip = folder.path().join("metrics.txt.gz");
    fs::write(&gzip, b"\x1F\x8B\x08\0\0\0\0\0").unwrap();
    for (source, message) in [
        ("/nowhere/metrics.txt", "/nowhere/metrics.txt"),
        (path.to_str().unwrap(), "line 2 is not UTF-8"),
        (gzip.to_str().unwrap(), "compressed with gzip"),
        ("ftp://localhost/metrics", "expected http or https"),
        ("http://127.0.0.1:1/metrics", "cannot be reached"),
    ] {
        assert_ends(&check("", &[source]), 2, &[message]);
    }
}

/// Serves one answer, and gives its URL and the head of the request.
fn served(
    status: &str,
    content_type: Option<&str>,
    body: &str,
) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics?all=1", listener.local_addr().unwrap());
    let content_type = content_type.map_or(String::new(), |t| format!("content-type: {t}\r\n"));
    let answer =
        format!("HTTP/1.1 {status}\r\n{content_type}content-length: {}\r\n\r\n{body}", body.len());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
        head
    });
    (url, server)
}

#[test]
fn a_url_is_checked_as_what_it_says_it_is() {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    for (content_type, body, more, status) in [
        (Some(TEXT), CLEAN, &[][..], 0),
        (Some(OPENMETRICS), CLEAN_OPENMETRICS, &[], 0),
        // Its end is missing.
        (Some(OPENMETRICS), "# TYPE a gauge\n", &[], 1),
        // The marker is a comment there, and a_total has no type.
        (Some(TEXT), CLEAN_OPENMETRICS, &["--strict"], 1),
        (Some("text/html"), CLEAN, &[], 2),
        // Prometheus drops a scrape with one of these.
        (Some("text/plain; version=0.0.4, charset=utf-8"), CLEAN, &[], 2),
        (Some("text/plain; version=0.0.4;; charset=utf-8"), CLEAN, &[], 2),
        (Some("text/plain; version"), CLEAN, &[], 2),
        (Some("text/plain; version=\"0.0.4"), CLEAN, &[], 2),
        (Some("application/openmetrics-text; version=2.0.0"), CLEAN_OPENMETRICS, &[], 2),
        (Some("text/plain; version"), CLEAN, &["--format", "text"], 0),
        (None, CLEAN, &[], 2),
        (None, CLEAN, &["--format", "text"], 0),
    ] {
        let (url, server) = served("200 OK", content_type, body);
        let output = check("", &[&[url.as_str()], more].concat());
        assert_eq!(output.status.code(), Some(status), "{content_type:?}: {output:?}");
        let head = server.join().unwrap();
        assert!(head.starts_with("GET /metrics?all=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("text/plain;version=0.0.4"), "{head}");
    }
    let (url, _server) = served("200 OK", Some("text/plain; version"), CLEAN);
    let said = &["expected '=' after a parameter's name", "Prometheus drops", "--format"];
    assert_ends(&check("", &[&url]), 2, said);
    let (url, _server) = served("404 Not Found", Some(TEXT), "");
    assert_ends(&check("", &[&url]), 2, &["404"]);
}

#[test]
fn a_url_may_be_served_over_tls() {
    let certificate = counting_server::Certificate::new();
    let server = counting_server::Server::start(Some(&certificate), async |_| {
        let mut answer = counting_server::text("# HELP a A.\n# TYPE a gauge\na 1\n");
        let text = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4");
        answer.headers_mut().insert("content-type", text);
        answer
    });
    let url = format!("https://{}/metrics", server.address);
    let ca = certificate.pem.to_str().unwrap();
    for arguments in [&[&*url, "--ca", ca][..], &[&url, "--insecure"]] {
        assert_ends(&check("", arguments), 0, &[]);
    }
    let other = counting_server::Certificate::new();
    let output = check("", &[&url, "--ca", other.pem.to_str().unwrap()]);
    assert_ends(&output, 2, &["--insecure"]);
    assert_eq!(server.requests(), 2);
}
