//! The output: tables for people, a file for programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use talea_statistics::{Ratio, mean, median};

use crate::comparison::{self, BUDGET, Comparison, TALEA};
use crate::lateness::{self, Lateness};
use crate::measurement::{CALM, Measurement};
use crate::memory::MemoryRow;
use crate::turns::Rounds;

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
    cpu_to_wrk: Option<Ratio>,
    /// Bytes that it had at most.
    memory: f64,
    /// The share of the cores' time that other programs had.
    others: f64,
}

fn rows(comparison: &Comparison) -> impl Iterator<Item = Row> {
    comparison.generators.iter().enumerate().map(|(n, &(generator, _))| {
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

pub(crate) fn print(comparison: &Comparison) {
    let Comparison { load, rounds, found, .. } = comparison;
    println!("{} connections, {rounds} × {} s", load.connections, load.seconds);
    let mut table =
        table(&["generator", "requests/s", "user µs", "system µs", "CPU µs", "to wrk", "95 %"]);
    for row in rows(comparison) {
        let to_wrk = row.cpu_to_wrk.map_or_else(String::new, |ratio| format!("{:.3}", ratio.ratio));
        let interval = row.cpu_to_wrk.and_then(|ratio| ratio.interval);
        table.add_row([
            row.generator.to_owned(),
            format!("{:.0}", row.requests_per_second),
            format!("{:.3}", row.user),
            format!("{:.3}", row.system),
            format!("{:.3}", row.cpu),
            to_wrk,
            interval.map_or_else(String::new, |(low, high)| format!("{low:.3} to {high:.3}")),
        ]);
    }
    println!("{table}");
    println!("CPU time is the generator's, for one request. Each request was received once.");
    if let Some(ratio) = comparison.to_wrk(TALEA) {
        println!("The budget is {BUDGET} times wrk's CPU time: {}.", comparison::verdict(ratio));
    }
    print_others(found);
}

pub(crate) fn print_memory(memory: &[MemoryRow]) {
    let Some(first) = memory.first() else { return };
    let [few, many] = first.connections.map(|connections| format!("{connections} open, MB"));
    let mut table = table(&["generator", &few, &many, "a connection, bytes"]);
    for row in memory {
        let [few, many] = row.peak.map(|bytes| format!("{:.1}", bytes as f64 / 1e6));
        table.add_row([row.generator.to_owned(), few, many, format!("{:.0}", row.a_connection)]);
    }
    println!("{table}");
}

pub(crate) fn print_lateness(all: &[Lateness]) {
    let mut table = table(&["arrivals a second", "late p50, µs", "p99"]);
    for Lateness { rate, p50, p99 } in all {
        table.add_row([rate.to_string(), format!("{p50:.0}"), format!("{p99:.0}")]);
    }
    println!("{table}");
    println!("The budget is {} µs at p99 where a core is idle.", lateness::BUDGET);
}

/// Writes the file. Each row has a line, so that files can be compared by eye.
pub(crate) fn write(
    path: &Path,
    all: &[Comparison],
    memory: &[MemoryRow],
    lateness: &[Lateness],
) -> Result<()> {
    let context = || format!("writing {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    let (rows, memory) = (lines(all.iter().flat_map(rows))?, lines(memory)?);
    let lateness = lines(lateness)?;
    let text = format!(
        "{{\n\"rows\": [\n{rows}\n],\n\"memory\": [\n{memory}\n],\n\"lateness\": [\n{lateness}\n]\n}}\n"
    );
    fs::write(path, text).with_context(context)?;
    eprintln!("written to {}", path.display());
    Ok(())
}

fn print_others(found: &Rounds) {
    let others = found.of_all(|found| found.others);
    let (share, most) = (mean(&others), others.iter().copied().fold(0.0, f64::max));
    println!(
        "Other programs had {:.1} % of the cores, {:.1} % at most.",
        share * 100.0,
        most * 100.0
    );
    if share > CALM {
        println!("That is much: do not publish these figures.");
    }
    println!();
}

/// A line of JSON for each.
fn lines<T: Serialize>(all: impl IntoIterator<Item = T>) -> Result<String> {
    let lines = all.into_iter().map(|one| serde_json::to_string(&one));
    Ok(lines.collect::<Result<Vec<_>, _>>()?.join(",\n"))
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
