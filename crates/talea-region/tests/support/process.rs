//! This test binary, started again to run one test in a process of its own.

use std::process::Command;

/// Starts a test of a module in a process of its own: see `again!`. If the binary is
/// built for another processor, `TALEA_TEST_RUNNER` names the program that runs it.
pub(crate) fn again(module: &str, test: &str) -> Command {
    // The first part of a module's path is the binary.
    let test = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    };
    let this = std::env::current_exe().unwrap();
    let runner = std::env::var("TALEA_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(words).arg(this);
            command
        }
        None => Command::new(this),
    };
    command.args(["--exact", &test, "--nocapture"]);
    command
}
