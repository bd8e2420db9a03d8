//! Prometheus' promtool, which `scripts/setup --test` installs.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::files::repository;

/// Runs promtool in a folder of the repository; it must have no complaint.
pub fn assert_promtool(folder: &str, arguments: &[&str]) {
    let output = Command::new("promtool").current_dir(repository(folder)).args(arguments).output();
    let output = output.expect(INSTALLED);
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

const INSTALLED: &str = "promtool runs; scripts/setup --test installs it";

/// The output of `promtool check metrics` for a text.
pub fn check_metrics(text: &str) -> Output {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect(INSTALLED);
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("promtool reads all");
    drop(input);
    promtool.wait_with_output().expect("promtool ends")
}
