//! The output: a table for people, a file for programs.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use crate::base::Pair;
use crate::http_layer::{self, More};
use crate::instructions;
use crate::latencies::{self, LatencyFigures, QUANTILES};
use crate::scrape::{self, Takes};
use crate::store_table::{self, Line};
use crate::verdict::Verdict;
use crate::work::Group;

/// A line of the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) bench: String,
    pub(crate) threads: usize,
    pub(crate) subject: String,
    pub(crate) ns: Option<f64>,
    pub(crate) allocs_per_op: Option<f64>,
    pub(crate) bytes_per_op: Option<f64>,
    /// This subject's time to Talea's: above 1, Talea is faster.
    pub(crate) ratio_to_talea: Option<f64>,
    /// Where these were counted, and no time was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<f64>,
    /// Where a histogram's memory and its errors are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latencies: Option<LatencyFigures>,
    /// The cost of a request beyond one without metering, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) more: Option<More>,
    /// The resources of an agent besides time, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) takes: Option<Takes>,
}

/// The results file.
pub(crate) struct Results {
    path: PathBuf,
    rows: Vec<Row>,
}

impl Results {
    /// Begins a file, with what it says already where `keep` asks for that.
    pub(crate) fn open(path: &Path, keep: bool) -> Result<Self> {
        let rows = if keep { read(path)? } else { Vec::new() };
        Ok(Self { path: path.to_owned(), rows })
    }

    /// Adds a group's rows, in place of earlier ones of it, and writes the file.
    pub(crate) fn add(&mut self, rows: Vec<Row>) -> Result<()> {
        let new: BTreeSet<_> = rows.iter().map(|row| row.bench.clone()).collect();
        self.rows.retain(|row| !new.contains(&row.bench));
        self.rows.extend(rows);
        // A row a line, so that two files can be compared by eye.
        let lines = self.rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let context = || format!("writing {}", self.path.display());
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).with_context(context)?;
        }
        fs::write(&self.path, format!("[\n{}\n]\n", lines.join(",\n"))).with_context(context)
    }
}

fn read(path: &Path) -> Result<Vec<Row>> {
    let context = || format!("reading {}", path.display());
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).with_context(context),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(context),
    }
}

/// Prints a group.
pub(crate) fn print(group: &Group, rows: &[Row]) {
    let mut table =
        table(&["bench", "threads", "subject", "ns", "to talea", "talea to it", "allocs", "bytes"]);
    for row in rows {
        let ratio = row.ratio_to_talea;
        table.add_row([
            row.bench.clone(),
            row.threads.to_string(),
            row.subject.clone(),
            row.ns.map_or_else(String::new, figure),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            ratio.map_or_else(String::new, |ratio| format!("{:.2}", 1.0 / ratio)),
            row.allocs_per_op.map_or_else(String::new, figure),
            row.bytes_per_op.map_or_else(String::new, figure),
        ]);
    }
    right(&mut table, [1, 3, 4, 5, 6, 7]);
    println!("{table}\n{}\n", group.note);
}

/// Prints what was counted rather than timed.
pub(crate) fn print_instructions(rows: &[Row], verdicts: &[Verdict]) {
    let mut table = table(&["bench", "subject", "instructions"]);
    for row in rows {
        let count = row.instructions.map_or_else(String::new, |count| format!("{count:.0}"));
        table.add_row([row.bench.clone(), row.subject.clone(), count]);
    }
    right(&mut table, [2]);
    println!("{table}\n{}\n", instructions::NOTE);
    print_budgets("what talea does", verdicts);
}

/// Prints what a series of each histogram takes, and how far off it is.
pub(crate) fn print_latencies(rows: &[Row]) {
    let quantiles = QUANTILES.map(|q| format!("p{}", q * 100.0));
    let mut header = vec!["subject", "bytes", "sum"];
    header.extend(quantiles.iter().map(String::as_str));
    let mut table = table(&header);
    for row in rows {
        let Some(found) = &row.latencies else { continue };
        let sum = if found.has_sum { "yes" } else { "no" };
        let mut cells = vec![row.subject.clone(), figure(found.bytes), sum.to_owned()];
        cells.extend(found.errors.iter().map(|error| format!("{:.2}", error * 100.0)));
        table.add_row(cells);
    }
    right(&mut table, [1, 3, 4, 5, 6]);
    println!("{table}\n{}\n", latencies::NOTE);
}

/// Prints what is done in a store that holds much else.
pub(crate) fn print_store_table(lines: &[Line]) {
    let mut table = table(&[&["own", "others"], &store_table::OPERATIONS[..]].concat());
    for Line { beside, costs } in lines {
        let counts = [beside.own, beside.others].map(|count| figure(count as f64));
        table.add_row(counts.into_iter().chain(costs.map(|cost| figure(cost.ns / 1e6))));
    }
    for (own, ratios) in store_table::ratios(lines) {
        let counts = [figure(own as f64), "ratio".to_owned()];
        table.add_row(counts.into_iter().chain(ratios.map(|ratio| format!("{ratio:.2}"))));
    }
    right(&mut table, [0, 1, 2, 3, 4, 5]);
    println!("{table}\n{}\n", store_table::NOTE);
}

/// Prints what a scrape from outside takes.
pub(crate) fn print_scrape(rows: &[Row], verdicts: &[Verdict]) {
    let mut times = table(&["bench", "subject", "ms", "cpu ms", "idle MB", "peak MB", "answer MB"]);
    for row in rows {
        let takes = |part: fn(&Takes) -> f64| {
            row.takes.as_ref().map_or_else(String::new, |takes| figure(part(takes) / 1e6))
        };
        times.add_row([
            row.bench.clone(),
            row.subject.clone(),
            row.ns.map_or_else(String::new, |ns| figure(ns / 1e6)),
            takes(|takes| takes.cpu_ns),
            takes(|takes| takes.idle_bytes),
            takes(|takes| takes.peak_bytes),
            takes(|takes| takes.answer_bytes),
        ]);
    }
    right(&mut times, [2, 3, 4, 5, 6]);
    println!("{times}\n{}\n", scrape::NOTE);
    print_budgets("asked of an agent", verdicts);
}

/// Prints what requests cost, by who meters them.
pub(crate) fn print_http_layer(rows: &[Row], verdicts: &[Verdict]) {
    let mut costs =
        table(&["bench", "subject", "ns", "more", "rounds", "clock reads", "allocs", "more"]);
    for row in rows {
        let more = |part: fn(&More) -> String| row.more.as_ref().map_or_else(String::new, part);
        costs.add_row([
            row.bench.clone(),
            row.subject.clone(),
            row.ns.map_or_else(String::new, figure),
            more(|more| figure(more.ns)),
            more(|more| format!("{} to {}", figure(more.lowest), figure(more.highest))),
            more(|more| format!("{:.2}", more.clock_reads)),
            row.allocs_per_op.map_or_else(String::new, figure),
            more(|more| figure(more.allocs)),
        ]);
    }
    right(&mut costs, [2, 3, 4, 5, 6, 7]);
    println!("{costs}\n{}\n", http_layer::NOTE);
    print_budgets("what talea adds", verdicts);
}

/// Prints what was found beside what is allowed at most.
fn print_budgets(of: &str, verdicts: &[Verdict]) {
    let mut budgets = table(&[of, "found", "at most", ""]);
    for verdict in verdicts {
        let Verdict { budget, found, limit } = *verdict;
        let met = if verdict.is_met() { "met" } else { "missed" };
        budgets.add_row([budget.to_owned(), figure(found), figure(limit), met.to_owned()]);
    }
    right(&mut budgets, [1, 2]);
    println!("{budgets}\n");
}

/// Prints this build beside a base.
pub(crate) fn print_pairs(pairs: &[Pair]) {
    let mut table = table(&["bench", "threads", "subject", "ns", "base ns", "now to base"]);
    for pair in pairs {
        table.add_row([
            pair.bench.clone(),
            pair.threads.to_string(),
            pair.subject.to_owned(),
            figure(pair.now_ns),
            figure(pair.base_ns),
            format!("{:.3}", pair.ratio),
        ]);
    }
    right(&mut table, [1, 3, 4, 5]);
    println!("{table}");
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

fn right<const N: usize>(table: &mut Table, columns: [usize; N]) {
    for n in columns {
        if let Some(column) = table.column_mut(n) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Three digits or so, with the thousands apart.
fn figure(x: f64) -> String {
    if x < 0.0 {
        return format!("-{}", figure(-x));
    }
    match x {
        x if x < 0.0005 => "0".to_owned(),
        x if x < 10.0 => format!("{x:.2}"),
        x if x < 100.0 => format!("{x:.1}"),
        x => {
            let digits = format!("{x:.0}");
            let mut out = String::new();
            for (n, digit) in digits.chars().enumerate() {
                if n > 0 && (digits.len() - n) % 3 == 0 {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (0.9, "0.90"),
            (12.34, "12.3"),
            (999.5, "1,000"),
            (1234567.0, "1,234,567"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(figure(x), text);
        }
    }
}
