//! The output: tables for people, a file for programs.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use talea_statistics::median;

use super::comparison::{Comparison, GENERATORS, WRK};
use super::memory::MemoryRow;
use crate::measurement::Measurement;
use crate::report::{self, interval, lines, print_others, table};
use crate::statistics::Estimate;
use crate::verdict::Verdict;

/// A generator with a number of connections: medians over the rounds. CPU times are in
/// microseconds.
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

fn rows(comparison: &Comparison) -> impl Iterator<Item = Row> {
    GENERATORS.iter().enumerate().map(|(n, &(generator, _))| {
        let median =
            |figure: fn(&Measurement) -> f64| median(comparison.found.of(n, figure).into_iter());
        Row {
            generator,
            connections: comparison.load.connections,
            rounds: comparison.rounds,
            seconds: comparison.load.seconds,
            requests_per_second: median(|found| found.load.per_second),
            user: median(|found| found.generator.user),
            system: median(|found| found.generator.system),
            cpu: median(|found| found.generator.both),
            cpu_to_wrk: comparison.to_wrk(n),
            memory: median(|found| found.load.memory as f64),
            others: median(|found| found.others),
        }
    })
}

pub(super) fn print(comparison: &Comparison) {
    let Comparison { load, rounds, found } = comparison;
    println!("{} connections, {rounds} × {} s", load.connections, load.seconds);
    let mut table =
        table(&["generator", "requests/s", "user µs", "system µs", "CPU µs", "to wrk", "95 %"]);
    for (n, row) in rows(comparison).enumerate() {
        let ratio = row.cpu_to_wrk;
        let (to_wrk, range) = match n {
            // The base.
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
    print_others(found);
}

pub(super) fn print_verdicts(verdicts: &[Verdict]) {
    println!("{}\n", report::verdicts("budget, CPU time a request", verdicts));
}

pub(super) fn print_memory(memory: &[MemoryRow]) {
    let Some(first) = memory.first() else { return };
    let [few, many] = first.connections.map(|connections| format!("{connections} open, MB"));
    let mut table = table(&["generator", &few, &many, "a connection, bytes"]);
    for row in memory {
        let [few, many] = row.peak.map(|bytes| format!("{:.1}", bytes as f64 / 1e6));
        table.add_row([row.generator.to_owned(), few, many, format!("{:.0}", row.a_connection)]);
    }
    println!("{table}");
}

pub(super) fn write(
    path: &Path,
    all: &[Comparison],
    verdicts: &[Verdict],
    memory: &[MemoryRow],
) -> Result<()> {
    let rows = lines(all.iter().flat_map(rows))?;
    let sections = [("rows", rows), ("budgets", lines(verdicts)?), ("memory", lines(memory)?)];
    report::write_sections(path, &sections)
}
