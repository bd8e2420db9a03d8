//! Counts of callgrind, valgrind's profiler.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::http_layer::case::KEEPING_BLOCKS;

/// The instructions of the calls of a run of `talea-operations`, of which `count` of `of` do the
/// operation. The start is left out: it calibrates a clock, for a time that varies.
pub(super) fn collected(program: &Path, operation: &str, count: u64, of: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*Calls::make*")
        .arg(program)
        .args([operation, &count.to_string(), &of.to_string()])
        .envs([KEEPING_BLOCKS])
        .output()
        .context("starting valgrind")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind: {}: {stderr}", output.status);
    let figure = stderr.lines().find_map(|line| line.split_once("Collected :"));
    let figure = figure.and_then(|(_, figure)| figure.trim().parse().ok());
    figure.context("valgrind does not say how many instructions it collected")
}
