//! `talea study --ab` and `talea study compare`: the real program.

#![cfg(unix)]

mod stand_in;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use stand_in::{Reply, StandIn, as_expected};

const TALEA: &str = env!("CARGO_BIN_EXE_talea");

/// Answers after some time.
fn slow(millis: u64) -> StandIn {
    StandIn::start(move |request| {
        std::thread::sleep(Duration::from_millis(millis));
        let (status, body) = as_expected(request);
        Reply::Answer(status, body)
    })
}

fn talea(arguments: &[&str], out: Option<&Path>) -> (Output, String, String) {
    let mut command = Command::new(TALEA);
    command.arg("study").args(arguments);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output, stdout, stderr)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_slower_service_is_shown_to_be_slower() {
    let (quick, slow) = (slow(2), slow(8));
    let folder = tempfile::tempdir().unwrap();
    let (urls, slow) = ([quick.url(), slow.url()], slow.url());
    let mut arguments = vec!["--cases", "2x5", "--rounds", "4", "--ab"];
    arguments.extend(urls.iter().map(String::as_str));
    let (output, stdout, stderr) = talea(&arguments, Some(folder.path()));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stdout.contains(&format!("Case 2x5: {slow} is slower in requests a second")),
        "{stdout}"
    );

    let comparison = json(&folder.path().join("comparison.json"));
    assert_eq!((&comparison["rounds"], &comparison["paired"]), (&4.into(), &true.into()));
    let lines = comparison["others"][0]["cases"][0]["lines"].as_array().unwrap();
    let p50 = lines.iter().find(|line| line["measure"] == "p50").unwrap();
    assert_eq!(p50["verdict"], "worse");
    let ratio = p50["ratio"]["ratio"].as_f64().unwrap();
    assert!((2.0..=4.5).contains(&ratio), "8 ms are up to 4 times 2 ms: {p50}");
    assert!(fs::read_to_string(folder.path().join("comparison.html")).unwrap().contains("slower"));

    // Each variant has a report of its own, with the numbers of all rounds; they compare too.
    let reports: Vec<String> = ["1", "2"]
        .map(|n| folder.path().join(n).join("report.json").display().to_string())
        .to_vec();
    assert_eq!(json(Path::new(&reports[0]))["cases"][0]["rounds"].as_array().unwrap().len(), 4);
    let both = [reports[0].as_str(), reports[1].as_str()];
    for (condition, status) in [("p50 > 1.5x", 1), ("p50 > 9x", 0), ("rate < 0.9x", 1)] {
        let arguments = [&["compare", both[0], both[1], "--fail-if", condition], &[][..]].concat();
        let (output, stdout, stderr) = talea(&arguments, None);
        assert_eq!(output.status.code(), Some(status), "{condition}: {stdout}{stderr}");
        assert!(stdout.contains("run apart"), "{stdout}");
        assert_eq!(stderr.contains("FAILED"), status == 1, "{stderr}");
    }
}

#[test]
fn variants_are_environments_and_arguments_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--cases", "2x5", "--rounds", "2", "--ab", "ITEMS_VARIANT=1", "ITEMS_VARIANT='two words'"];
    let (output, stdout, stderr) = talea(&arguments, Some(folder.path()));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("round 1 of 2: ITEMS_VARIANT=1 items-api"), "{stderr}");
    // The first variant changes from round to round.
    let order: Vec<&str> = stderr.lines().filter(|line| line.starts_with("round ")).collect();
    assert!(order[1].contains("two words") && order[2].contains("two words"), "{order:?}");
    assert!(stdout.contains("Server CPU a request"), "{stdout}");
    for n in ["1", "2"] {
        let report = json(&folder.path().join(n).join("report.json"));
        assert_eq!(report["cases"][0]["server"]["requests_received"], 50);
    }
}

#[test]
fn variants_are_command_lines_that_serve_at_a_url() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let api = Path::new(TALEA).with_file_name("items-api");
    let variant =
        format!("{} --listen=127.0.0.1:{port} --metrics-listen=127.0.0.1:0", api.display());
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://127.0.0.1:{port}/api/items");
    let arguments = [
        "--cases",
        "2x5",
        "--rounds",
        "2",
        "--url",
        &url,
        "--ab",
        &variant,
        &format!("X=1 {variant}"),
    ];
    let (output, stdout, stderr) = talea(&arguments, Some(folder.path()));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stdout.contains("Requests a second"), "{stdout}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "both have ended");
}

#[test]
fn a_study_fails_where_its_condition_holds() {
    let folder = tempfile::tempdir().unwrap();
    let service = slow(1);
    for (condition, status, message) in [
        ("p50 > 0.1ms", 1, "FAILED: case 1x5: p50 > 0.1ms holds"),
        ("p50 > 60s", 0, "p50 > 60s is not shown"),
        ("failed > 0", 0, "failed > 0 is not shown: 0"),
        ("p99 > 1.1x", 2, "there is nothing to compare with: use --ab"),
        ("B: p99 > 1s", 2, "no such case"),
        ("p98 > 1s", 2, "expected one of rate, time"),
    ] {
        let url = service.url();
        let arguments = ["--cases", "1x5", "--url", &url, "--fail-if", condition];
        let (output, _, stderr) = talea(&arguments, Some(folder.path()));
        assert_eq!(output.status.code(), Some(status), "{condition}: {stderr}");
        assert!(stderr.contains(message), "{condition}: {stderr}");
    }
}

#[test]
fn a_file_that_is_no_report_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    fs::write(&path, "{}").unwrap();
    let path = path.display().to_string();
    let (output, _, stderr) = talea(&["compare", &path, "/nowhere.json"], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("x.json") && stderr.contains("expected the report.json"), "{stderr}");
    let (output, _, stderr) = talea(&["compare", &path], None);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
}
