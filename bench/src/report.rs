//! The output: a table for people, a file for programs.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};

use crate::base::Pair;
use crate::latencies::{self, QUANTILES};
use crate::row::{AgentCost, Overhead, Row};
use crate::verdict::Verdict;
use crate::work::Group;
use crate::{http_layer, instructions, scrape};

pub(crate) struct Results {
    path: PathBuf,
    rows: Vec<Row>,
}

impl Results {
    /// Begins a file; `keep` keeps the rows that it has.
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

pub(crate) fn print(group: &Group, rows: &[Row]) {
    let mut header =
        vec!["bench", "threads", "subject", "ns", "to talea", "talea to it", "allocs", "bytes"];
    let has_tenths = rows.iter().any(|row| row.last_to_first.is_some());
    if has_tenths {
        header.push("last/first");
    }
    print_table(
        &header,
        rows.iter().map(|row| {
            let ratio = |ratio: Option<f64>| shown(ratio, |ratio| format!("{ratio:.2}"));
            let mut cells = vec![
                row.bench.clone(),
                row.threads.to_string(),
                row.subject.clone(),
                shown(row.ns, figure),
                ratio(row.ratio_to_talea),
                ratio(row.ratio_to_talea.map(f64::recip)),
                shown(row.allocs_per_op, figure),
                shown(row.bytes_per_op, figure),
            ];
            if has_tenths {
                cells.push(ratio(row.last_to_first));
            }
            cells
        }),
        group.note,
    );
}

pub(crate) fn print_instructions(rows: &[Row], verdicts: &[Verdict]) {
    let header = ["bench", "subject", "instructions"];
    print_table(
        &header,
        rows.iter().map(|row| {
            let count = shown(row.instructions, |count| format!("{count:.0}"));
            vec![row.bench.clone(), row.subject.clone(), count]
        }),
        instructions::NOTE,
    );
    print_budgets(verdicts);
}

pub(crate) fn print_latencies(rows: &[Row]) {
    let quantiles = QUANTILES.map(|q| format!("p{}", q * 100.0));
    let mut header = vec!["subject", "bytes", "sum"];
    header.extend(quantiles.iter().map(String::as_str));
    print_table(
        &header,
        rows.iter().filter_map(|row| {
            let found = row.latencies.as_ref()?;
            let sum = if found.has_sum { "yes" } else { "no" };
            let mut cells = vec![row.subject.clone(), figure(found.bytes), sum.to_owned()];
            cells.extend(found.errors.iter().map(|error| format!("{:.2}", error * 100.0)));
            Some(cells)
        }),
        latencies::NOTE,
    );
}

pub(crate) fn print_scrape(rows: &[Row], verdicts: &[Verdict]) {
    let header = ["bench", "subject", "ms", "cpu ms", "idle MB", "peak MB", "answer MB"];
    let millionth = |x: f64| figure(x / 1e6);
    print_table(
        &header,
        rows.iter().map(|row| {
            let agent =
                |part: fn(&AgentCost) -> f64| shown(row.takes.as_ref().map(part), millionth);
            vec![
                row.bench.clone(),
                row.subject.clone(),
                shown(row.ns, millionth),
                agent(|agent| agent.cpu_ns),
                agent(|agent| agent.idle_bytes),
                agent(|agent| agent.peak_bytes),
                agent(|agent| agent.answer_bytes),
            ]
        }),
        scrape::NOTE,
    );
    print_budgets(verdicts);
}

pub(crate) fn print_http_layer(rows: &[Row], verdicts: &[Verdict]) {
    let header = ["bench", "subject", "ns", "more", "rounds", "clock reads", "allocs", "more"];
    print_table(
        &header,
        rows.iter().map(|row| {
            let more = |part: fn(&Overhead) -> String| shown(row.more.as_ref(), part);
            vec![
                row.bench.clone(),
                row.subject.clone(),
                shown(row.ns, figure),
                more(|more| figure(more.ns)),
                more(|more| format!("{} to {}", figure(more.lowest), figure(more.highest))),
                more(|more| format!("{:.2}", more.clock_reads)),
                shown(row.allocs_per_op, figure),
                more(|more| figure(more.allocs)),
            ]
        }),
        http_layer::NOTE,
    );
    print_budgets(verdicts);
}

/// Prints what was found beside the highest value that meets the budget.
fn print_budgets(verdicts: &[Verdict]) {
    print_table(
        &["budget of talea", "found", "at most", ""],
        verdicts.iter().map(|verdict| {
            let Verdict { budget, found, limit } = *verdict;
            let met = if verdict.is_met() { "met" } else { "missed" };
            vec![budget.to_owned(), figure(found), figure(limit), met.to_owned()]
        }),
        "",
    );
}

pub(crate) fn print_pairs(pairs: &[Pair]) {
    let header = ["bench", "threads", "subject", "ns", "base ns", "now to base"];
    print_table(
        &header,
        pairs.iter().map(|pair| {
            vec![
                pair.bench.clone(),
                pair.threads.to_string(),
                pair.subject.to_owned(),
                figure(pair.now_ns),
                figure(pair.base_ns),
                format!("{:.3}", pair.ratio),
            ]
        }),
        "",
    );
}

/// Prints a table and a note below it. Columns of figures are aligned right.
fn print_table(header: &[&str], lines: impl Iterator<Item = Vec<String>>, note: &str) {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header).add_rows(lines);
    for (column, name) in table.column_iter_mut().zip(header) {
        if !["bench", "subject", "budget of talea", ""].contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{}\n", format!("{table}\n{note}").trim_end());
}

/// A value as text; nothing if there is none.
fn shown<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(String::new, show)
}

/// About three digits, with commas between thousands.
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
