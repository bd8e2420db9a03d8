//! The output: tables for people, a file for programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::budget::Verdict;
use crate::experiment::Course;
use crate::round::{CALM, Found};
use crate::statistics::Estimate;
use crate::variants::{ALL, PLAIN};
use crate::wrk::PERCENTILES;

/// A variant in one setup. Latencies and CPU times are in microseconds.
#[derive(Debug, Serialize)]
struct Row {
    setup: &'static str,
    variant: &'static str,
    rounds: u32,
    seconds: u32,
    requests_per_second: f64,
    requests_to_plain: Estimate,
    latency: [(u8, f64); PERCENTILES.len()],
    user: f64,
    user_more_than_plain: Estimate,
    user_to_plain: Estimate,
    system: f64,
    system_to_plain: Estimate,
    /// The share of the cores' time that other programs had.
    others: f64,
}

fn rows(course: &Course) -> impl Iterator<Item = Row> {
    ALL.iter().enumerate().map(|(n, variant)| {
        let mean = |figure: fn(&Found) -> f64| mean(&course.of(n, figure));
        let ratio = |figure: fn(&Found) -> f64| {
            Estimate::of_ratios(&course.of(n, figure), &course.of(PLAIN, figure))
        };
        let user: fn(&Found) -> f64 = |found| found.user;
        Row {
            setup: course.setup.name,
            variant: variant.name,
            rounds: course.setup.rounds,
            seconds: course.setup.seconds,
            requests_per_second: mean(|found| found.per_second),
            requests_to_plain: ratio(|found| found.per_second),
            latency: std::array::from_fn(|place| {
                let of_rounds = course.found[n].iter().map(|found| found.latency[place]);
                (PERCENTILES[place], self::mean(&of_rounds.collect::<Vec<_>>()))
            }),
            user: mean(user),
            user_more_than_plain: Estimate::of_differences(
                &course.of(n, user),
                &course.of(PLAIN, user),
            ),
            user_to_plain: ratio(user),
            system: mean(|found| found.system),
            system_to_plain: ratio(|found| found.system),
            others: mean(|found| found.others),
        }
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Prints what a setup found.
pub(crate) fn print(course: &Course) {
    let setup = &course.setup;
    println!("{}, {} × {} s", setup.name, setup.rounds, setup.seconds);
    let mut load =
        table(&["variant", "requests/s", "to (a)", "95 %", "50 % µs", "75 %", "90 %", "99 %"]);
    let mut cpu = table(&[
        "variant",
        "user µs",
        "more than (a)",
        "95 %",
        "to (a)",
        "system µs",
        "to (a)",
        "95 %",
    ]);
    for row in rows(course) {
        let requests = row.requests_to_plain;
        let mut cells = vec![
            row.variant.to_owned(),
            format!("{:.0}", row.requests_per_second),
            format!("{:.3}", requests.value),
            interval(&requests),
        ];
        if row.variant == ALL[PLAIN].name {
            // It is itself.
            cells[2..].iter_mut().for_each(String::clear);
        }
        cells.extend(row.latency.iter().map(|(_, latency)| format!("{latency:.0}")));
        load.add_row(cells);
        let mut cells = vec![
            row.variant.to_owned(),
            format!("{:.3}", row.user),
            format!("{:+.3}", row.user_more_than_plain.value),
            interval(&row.user_more_than_plain),
            format!("{:.3}", row.user_to_plain.value),
            format!("{:.3}", row.system),
            format!("{:.3}", row.system_to_plain.value),
            interval(&row.system_to_plain),
        ];
        if row.variant == ALL[PLAIN].name {
            [2, 3, 4, 6, 7].into_iter().for_each(|place| cells[place].clear());
        }
        cpu.add_row(cells);
    }
    println!("{load}\n\n{cpu}");
    println!("Requests and latency as wrk saw them; the server's CPU time is for one request.");
    let others: Vec<_> = (0..ALL.len()).flat_map(|n| course.of(n, |found| found.others)).collect();
    say_others(&others);
}

/// Says what share of the cores other programs had, by measurement.
pub(crate) fn say_others(others: &[f64]) {
    let (share, most) = (mean(others), others.iter().copied().fold(0.0, f64::max));
    println!(
        "Other programs had {:.1} % of the cores, {:.1} % at most.",
        share * 100.0,
        most * 100.0
    );
    if share > CALM {
        println!("That is much: these figures are of a machine that was busy with other things.");
    }
    println!();
}

/// Prints the budgets.
pub(crate) fn print_verdicts(verdicts: &[Verdict]) {
    let table = self::verdicts("budget, user µs a request", verdicts);
    println!("{table}\nQuantiles may differ by as much as (a) may from itself.\n");
}

/// A table of budgets.
pub(crate) fn verdicts(about: &str, verdicts: &[Verdict]) -> Table {
    let mut table = table(&[about, "found", "95 %", "at most", ""]);
    for verdict in verdicts {
        table.add_row([
            verdict.budget.clone(),
            format!("{:+.3}", verdict.found.value),
            interval(&verdict.found),
            verdict.limit.map_or_else(String::new, |limit| format!("{limit:.3}")),
            match (verdict.met, verdict.is_sure()) {
                (Some(true), true) => "met",
                (Some(true), false) => "met, not surely",
                (Some(false), true) => "missed",
                (Some(false), false) => "missed, not surely",
                (None, _) => "one round does not say",
            }
            .to_owned(),
        ]);
    }
    table
}

/// Writes all of it, a row a line, so that two files can be compared by eye.
pub(crate) fn write(path: &Path, courses: &[Course], verdicts: &[Verdict]) -> Result<()> {
    let rows = lines(courses.iter().flat_map(rows))?;
    write_sections(path, &[("rows", rows), ("budgets", lines(verdicts)?)])
}

/// A line of JSON for each.
pub(crate) fn lines<T: Serialize>(all: impl IntoIterator<Item = T>) -> Result<String> {
    let lines = all.into_iter().map(|one| serde_json::to_string(&one));
    Ok(lines.collect::<Result<Vec<_>, _>>()?.join(",\n"))
}

/// Writes lists of such lines, by their names.
pub(crate) fn write_sections(path: &Path, sections: &[(&str, String)]) -> Result<()> {
    let context = || format!("writing {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(context)?;
    }
    let sections: Vec<_> =
        sections.iter().map(|(name, lines)| format!("\"{name}\": [\n{lines}\n]")).collect();
    fs::write(path, format!("{{\n{}\n}}\n", sections.join(",\n"))).with_context(context)
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
