//! The parts of the output that experiments share: tables for people, a file for programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use talea_statistics::mean;

use crate::measurement::CALM;
use crate::statistics::Estimate;
use crate::turns::Rounds;
use crate::verdict::Verdict;

pub(crate) fn print_others(found: &Rounds) {
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

pub(crate) fn verdicts(about: &str, verdicts: &[Verdict]) -> Table {
    let mut table = table(&[about, "found", "95 %", "at most", ""]);
    for verdict in verdicts {
        table.add_row([
            verdict.budget.clone(),
            format!("{:+.3}", verdict.found.value),
            interval(&verdict.found),
            verdict.limit.map_or_else(String::new, |limit| format!("{limit:.3}")),
            verdict.words().to_owned(),
        ]);
    }
    table
}

/// A line of JSON for each.
pub(crate) fn lines<T: Serialize>(all: impl IntoIterator<Item = T>) -> Result<String> {
    let lines = all.into_iter().map(|one| serde_json::to_string(&one));
    Ok(lines.collect::<Result<Vec<_>, _>>()?.join(",\n"))
}

/// Writes a file of such lines by section. Each row has a line, so that files can be compared by
/// eye.
pub(crate) fn write_sections(path: &Path, sections: &[(&str, String)]) -> Result<()> {
    let context = || format!("writing {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    let sections: Vec<_> =
        sections.iter().map(|(name, lines)| format!("\"{name}\": [\n{lines}\n]")).collect();
    fs::write(path, format!("{{\n{}\n}}\n", sections.join(",\n"))).with_context(context)?;
    eprintln!("written to {}", path.display());
    Ok(())
}

pub(crate) fn interval(estimate: &Estimate) -> String {
    let known = estimate.low.zip(estimate.high);
    known.map_or_else(String::new, |(low, high)| format!("{low:.3} to {high:.3}"))
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
