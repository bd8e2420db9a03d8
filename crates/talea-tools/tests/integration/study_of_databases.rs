//! The cases on SQLite and on PostgreSQL, by the study's own scrapes and by a real Prometheus.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{TALEA, json_file, stderr, stdout};

/// `TALEA_STUDY_CASES=A,B,C,D,E` runs those of the reference.
fn cases() -> String {
    std::env::var("TALEA_STUDY_CASES").unwrap_or_else(|_| "A,60x5,4x3s".to_owned())
}

/// Runs the study, behind another command where one is given.
fn studied(before: Option<&Path>) -> Value {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(before.unwrap_or(Path::new(TALEA)));
    match before {
        Some(_) => command.arg(TALEA),
        None => command.env("TMPDIR", out.path()),
    };
    let output = command
        .args(["study", "--with-prometheus", "--cases", &cases(), "--out"])
        .arg(out.path().join("report"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let left: Vec<_> = fs::read_dir(out.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(left, [out.path().join("report")], "Prometheus' folder is gone, and that of SQLite");
    json_file(&out.path().join("report/report.json"))
}

fn counts_agree_exactly(report: &Value) {
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
        for exact in
            ["tasks_created", "peak_additional_tasks", "peak_ready_tasks", "peak_pool_pending"]
        {
            assert!(sampled[exact].is_u64(), "{exact}: {sampled}");
            assert_eq!(sampled[exact], scraped[exact], "{exact}");
        }
        let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
        let mean = number(sampled, "mean_response_ms") / number(scraped, "mean_response_ms");
        assert!((mean - 1.0).abs() < 1e-6, "of the same sums: {mean}");
        // The clients' time has what lies between them and the server's handler too.
        assert!(number(client, "mean_ms") > number(sampled, "mean_response_ms"), "{client}");
        // A busy machine scrapes late, which shifts rates; their tolerance has tests of its own.
        let differences = case["differences"].as_array().unwrap().iter();
        for words in differences.clone() {
            assert!(words.as_str().unwrap().contains(" a second, at most: "), "{case}");
        }
        // In a case that is longer than its windows every query of the appendix finds something.
        let queries = case["queries"].as_array().unwrap();
        assert_eq!(queries.len(), 7);
        if number(client, "seconds") >= 3.0 {
            assert!(queries.iter().all(|query| query["found"].is_f64()), "{queries:?}");
        }
        assert_eq!(queries[1]["query"], "sum(rate(http_requests_total[2s]))");
        assert!(sampled["pool_max"].as_u64().unwrap() > 0, "it reports its pool: {sampled}");
    }
}

#[test]
fn on_sqlite_all_agree() {
    counts_agree_exactly(&studied(None));
}

#[test]
fn on_postgresql_all_agree() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    counts_agree_exactly(&studied(Some(&script)));
}
