//! The cases on SQLite and on PostgreSQL, by the study's own scrapes and by a real Prometheus.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const TALEA: &str = env!("CARGO_BIN_EXE_talea");

/// `TALEA_STUDY_CASES=A,B,C,D,E` runs those of the reference.
fn cases() -> String {
    std::env::var("TALEA_STUDY_CASES").unwrap_or_else(|_| "A,60x5,4x3s".to_owned())
}

/// Runs the study, behind another command where one is given.
fn studied(before: Option<&Path>) -> Value {
    let api = Path::new(TALEA).with_file_name("items-api");
    assert!(api.is_file(), "no items-api at {}", api.display());
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(before.unwrap_or(Path::new(TALEA)));
    if before.is_some() {
        command.arg(TALEA);
    }
    let output = command
        .args(["study", "--with-prometheus", "--cases", &cases(), "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    serde_json::from_slice(&fs::read(out.path().join("report.json")).unwrap()).unwrap()
}

fn counts_agree_exactly_and_times_within_a_scrape(report: &Value) {
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), self::cases().split(',').count());
    for case in cases {
        let (client, sampled, scraped) = (&case["client"], &case["server"], &case["prometheus"]);
        let sent = &client["requests_sent"];
        assert!(sent.as_u64().unwrap() > 0 && client["failed"] == 0, "{client}");
        if !client["requests_planned"].is_null() {
            assert_eq!(sent, &client["requests_planned"]);
        }
        assert_eq!(sent, &sampled["requests_received"], "by the study's samples: {case}");
        assert_eq!(sent, &scraped["requests_received"], "by Prometheus: {case}");
        for peak in ["peak_additional_tasks", "peak_ready_tasks", "peak_pool_pending"] {
            assert_eq!(sampled[peak], scraped[peak], "{peak} is a high-water mark");
        }
        let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
        let mean = number(sampled, "mean_response_ms") / number(scraped, "mean_response_ms");
        assert!((mean - 1.0).abs() < 1e-6, "of the same sums: {mean}");
        // The clients' time has what lies between them and the server's handler too.
        assert!(number(client, "mean_ms") > number(sampled, "mean_response_ms"), "{client}");
        // A scrape's second at either end of the window of 2 s; and it may be read a second late.
        let seconds = number(client, "seconds").min(2.0);
        let (ours, theirs) = (number(sampled, "peak_rate_2s"), number(scraped, "peak_rate_2s"));
        let (least, most) = (ours * seconds / (seconds + 2.0), ours * (seconds + 1.0) / seconds);
        assert!((least..=most).contains(&theirs), "{theirs}, and {ours} by samples");
        assert_eq!(case["differences"], Value::Array(Vec::new()));
        assert!(sampled["pool_max"].as_u64().unwrap() > 0, "it reports its pool: {sampled}");
    }
}

#[test]
fn on_sqlite_all_agree() {
    counts_agree_exactly_and_times_within_a_scrape(&studied(None));
}

#[test]
fn on_postgresql_all_agree() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    counts_agree_exactly_and_times_within_a_scrape(&studied(Some(&script)));
}
