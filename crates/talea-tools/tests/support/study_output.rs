//! A study of a service by its URL, and all that comes of it.

use std::fs;

use serde_json::Value;

use super::{json_file, stderr, stdout, talea};

/// The report of a study, its page, its table, and how it ended.
pub(crate) struct StudyOutput {
    pub(crate) report: Value,
    pub(crate) page: String,
    pub(crate) table: String,
    pub(crate) status: i32,
}

impl StudyOutput {
    /// Studies the service at a URL with metrics at another one, and asserts that there is a report.
    #[track_caller]
    pub(crate) fn of(url: &str, metrics: &str, cases: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let study = ["study", "--url", url, "--metrics-url", metrics, "--cases", cases];
        let scenario = if more.contains(&"--scenario") { &[][..] } else { &["--scenario", "crud"] };
        let study = [&study[..], scenario].concat();
        let out = ["--out", folder.path().to_str().unwrap()];
        let output = talea([&study[..], &out, more].concat());
        let page = fs::read_to_string(folder.path().join("report.html"));
        Self {
            page: page.unwrap_or_else(|_| panic!("no report: {}", stderr(&output))),
            report: json_file(&folder.path().join("report.json")),
            table: stdout(&output),
            status: output.status.code().unwrap(),
        }
    }

    /// The sum of a number over all cases.
    pub(crate) fn sum(&self, of: impl Fn(&Value) -> u64) -> u64 {
        self.report["cases"].as_array().unwrap().iter().map(of).sum()
    }
}
