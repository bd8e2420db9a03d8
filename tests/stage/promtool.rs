//! Prometheus' promtool, which `scripts/setup --test` installs.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The output of `promtool check metrics` for a text.
pub fn check_metrics(text: &str) -> Output {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs; scripts/setup --test installs it");
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("promtool reads all");
    drop(input);
    promtool.wait_with_output().expect("promtool ends")
}
