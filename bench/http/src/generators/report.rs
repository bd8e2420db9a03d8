//! The output: tables for people, a file for programs.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::memory::Memory;
use super::round::Found;
use super::turns::{ALL, Course, WRK};
use crate::budget::Verdict;
use crate::report::{self, interval, lines, say_others, table};
use crate::statistics::{Estimate, median};

/// A generator with so many connections: medians over the rounds. CPU times are in microseconds.
#[derive(Debug, Serialize)]
struct Row {
    generator: &'static str,
    connections: u64,
    rounds: u32,
    seconds: u32,
    requests_per_second: f64,
    user: f64,
    system: f64,
    cpu: f64,
    cpu_to_wrk: Estimate,
    /// Bytes that it had at most.
    memory: f64,
    /// The share of the cores' time that other programs had.
    others: f64,
}

fn rows(course: &Course) -> impl Iterator<Item = Row> {
    ALL.iter().enumerate().map(|(n, subject)| {
        let median = |figure: fn(&Found) -> f64| median(&course.of(n, figure));
        Row {
            generator: subject.name,
            connections: course.connections,
            rounds: course.rounds,
            seconds: course.seconds,
            requests_per_second: median(|found| found.per_second),
            user: median(|found| found.user),
            system: median(|found| found.system),
            cpu: median(Found::cpu),
            cpu_to_wrk: course.to_wrk(n, Found::cpu),
            memory: median(|found| found.memory as f64),
            others: median(|found| found.others),
        }
    })
}

/// Prints what was found with so many connections.
pub(super) fn print(course: &Course) {
    println!("{} connections, {} × {} s", course.connections, course.rounds, course.seconds);
    let mut table =
        table(&["generator", "requests/s", "user µs", "system µs", "CPU µs", "to wrk", "95 %"]);
    for (n, row) in rows(course).enumerate() {
        let ratio = row.cpu_to_wrk;
        let (to_wrk, range) = match n {
            // It is itself.
            WRK => Default::default(),
            _ => (format!("{:.3}", ratio.value), interval(&ratio)),
        };
        table.add_row([
            row.generator.to_owned(),
            format!("{:.0}", row.requests_per_second),
            format!("{:.3}", row.user),
            format!("{:.3}", row.system),
            format!("{:.3}", row.cpu),
            to_wrk,
            range,
        ]);
    }
    println!("{table}");
    println!("CPU time is the generator's, for one request. Each request was received once.");
    let others: Vec<_> = (0..ALL.len()).flat_map(|n| course.of(n, |found| found.others)).collect();
    say_others(&others);
}

/// Prints the budgets.
pub(super) fn print_verdicts(verdicts: &[Verdict]) {
    println!("{}\n", report::verdicts("budget, CPU time a request", verdicts));
}

/// Prints what connections cost in memory.
pub(super) fn print_memory(memory: &Memory) {
    let [few, many] = memory.0[0].connections.map(|connections| format!("{connections} open, MB"));
    let mut table = table(&["generator", &few, &many, "a connection, bytes"]);
    for row in &memory.0 {
        let [few, many] = row.peak.map(|bytes| format!("{:.1}", bytes as f64 / 1e6));
        table.add_row([row.generator.to_owned(), few, many, format!("{:.0}", row.a_connection)]);
    }
    println!("{table}");
}

/// Writes all of it, a row a line, so that two files can be compared by eye.
pub(super) fn write(
    path: &Path,
    courses: &[Course],
    verdicts: &[Verdict],
    memory: Option<&Memory>,
) -> Result<()> {
    report::write_sections(
        path,
        &[
            ("rows", lines(courses.iter().flat_map(rows))?),
            ("budgets", lines(verdicts)?),
            ("memory", lines(memory.iter().flat_map(|memory| &memory.0))?),
        ],
    )
}
