//! `talea study`: the real program against the real items API.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{TALEA, assert_ends, interrupt, json_file, talea, until};

#[test]
fn the_service_counts_as_many_requests_as_are_sent() {
    let out = tempfile::tempdir().unwrap();
    let study = ["study", "--cases", "3x4,10x2", "--out", out.path().to_str().unwrap()];
    assert_ends(&talea(study), 0, &[]);

    let report = json_file(&out.path().join("report.json"));
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for (case, (clients, requests)) in cases.iter().zip([(3, 60), (10, 100)]) {
        let (client, server) = (&case["client"], &case["server"]);
        assert_eq!(client["requests_sent"], requests);
        assert_eq!(server["requests_received"], requests);
        assert_eq!(client["failed"], 0);
        assert!(case["disagreement"].is_null());
        for (number, least) in [
            // One task a connection at least.
            ("peak_additional_tasks", clients),
            ("tasks_created", clients),
            ("peak_memory_bytes", 1_000_001),
        ] {
            assert!(server[number].as_u64() >= Some(least), "{number}: {case}");
        }
        for number in ["mean_response_ms", "cpu_seconds"] {
            assert!(server[number].as_f64() > Some(0.0), "{number}: {case}");
        }
        let series = &server["series"];
        let length = series["seconds"].as_array().unwrap().len();
        assert!(length >= 2);
        for column in ["requests_received", "rate_2s", "mean_response_ms_2s", "memory_bytes"] {
            assert_eq!(series[column].as_array().unwrap().len(), length, "{column}");
        }
        // The most requests in flight are known if a sample that was taken meanwhile met one.
        let is_sampled = length > 2;
        assert_eq!(server["unsampled"], !is_sampled);
        let in_flight = series["in_flight"].as_array().unwrap();
        assert_eq!(in_flight.len(), if is_sampled { length } else { 0 });
        let most = in_flight.iter().map(|count| count.as_f64().unwrap() as u64).max();
        let peak = server["peak_in_flight"].as_u64();
        assert_eq!(peak, most.filter(|most| *most > 0), "{case}");
        let heat = client["times"]["heat"]["counts"].as_array().unwrap();
        let bands = heat.iter().flat_map(|slice| slice.as_array().unwrap());
        assert_eq!(bands.map(|count| count.as_u64().unwrap()).sum::<u64>(), requests);
    }
}

#[test]
fn a_prometheus_that_is_not_there_is_named() {
    let out = tempfile::tempdir().unwrap();
    for (argument, message) in [
        ("--with-prometheus=/nowhere/prometheus", "apt-get install prometheus"),
        ("--prometheus=http://127.0.0.1:9/", "http://127.0.0.1:9/"),
    ] {
        let out = out.path().to_str().unwrap();
        let output = talea(["study", "--cases", "1x1", argument, "--out", out]);
        assert_ends(&output, 2, &[message]);
    }
}

#[test]
fn ctrl_c_ends_the_prometheus_and_the_variant_that_run() {
    let folder = tempfile::tempdir().unwrap();
    let begins = folder.path().join("out/begins");
    let mut study = Command::new(TALEA)
        .args(["study", "--cases", "2x50s", "--with-prometheus", "--ab", "V=1", "V=2", "--out"])
        .arg(folder.path().join("out"))
        .arg("--before-case")
        .arg(format!("touch {}", begins.display()))
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Each process of this study has its folder in the command line or the environment.
    let mark = folder.path().display().to_string();
    let ours = || {
        let has = |pid: &Path, file: &str| {
            let text = fs::read(pid.join(file)).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(&mark)
        };
        let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let mut alive =
            all.filter(|pid| has(pid, "environ") && fs::read_link(pid.join("exe")).is_ok());
        alive.by_ref().count()
    };
    let lines = BufReader::new(study.stderr.take().unwrap()).lines().map(Result::unwrap);
    until("the case begins", || begins.exists());
    assert!(ours() >= 3, "the study, the service and a Prometheus");
    interrupt(&study);
    let stderr = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(study.wait().unwrap().code(), Some(130), "{stderr}");
    assert!(stderr.contains("stopped in 2x50s after"), "{stderr}");
    assert_eq!(ours(), 0);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(left, [folder.path().join("out")], "its folders are gone");
    for n in ["1", "2"] {
        assert_eq!(fs::read_dir(folder.path().join("out").join(n)).unwrap().count(), 0);
    }
}
