//! The output: tables for people, a file for programs.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use talea_statistics::mean;

use super::variants::{PLAIN, VARIANTS};
use crate::load_report::PERCENTILES;
use crate::measurement::Measurement;
use crate::report::{self, interval, lines, print_others, table, write_sections};
use crate::statistics::Estimate;
use crate::turns::Rounds;
use crate::verdict::Verdict;

pub(super) struct Results {
    pub(super) setup: &'static str,
    pub(super) rounds: u32,
    pub(super) seconds: u32,
    pub(super) found: Rounds,
}

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

fn rows(results: &Results) -> impl Iterator<Item = Row> {
    VARIANTS.iter().enumerate().map(|(n, (variant, _))| {
        let found = &results.found;
        let mean_of = |figure: fn(&Measurement) -> f64| mean(&found.of(n, figure));
        let ratio = |figure: fn(&Measurement) -> f64| {
            Estimate::of_ratios(&found.of(n, figure), &found.of(PLAIN, figure))
        };
        let user: fn(&Measurement) -> f64 = |found| found.server.user;
        Row {
            setup: results.setup,
            variant,
            rounds: results.rounds,
            seconds: results.seconds,
            requests_per_second: mean_of(|found| found.load.per_second),
            requests_to_plain: ratio(|found| found.load.per_second),
            latency: std::array::from_fn(|place| {
                (PERCENTILES[place], mean(&found.latency(n, place)))
            }),
            user: mean_of(user),
            user_more_than_plain: Estimate::of_differences(
                &found.of(n, user),
                &found.of(PLAIN, user),
            ),
            user_to_plain: ratio(user),
            system: mean_of(|found| found.server.system),
            system_to_plain: ratio(|found| found.server.system),
            others: mean_of(|found| found.others),
        }
    })
}

pub(super) fn print(results: &Results) {
    println!("{}, {} × {} s", results.setup, results.rounds, results.seconds);
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
    for row in rows(results) {
        let requests = row.requests_to_plain;
        let mut cells = vec![
            row.variant.to_owned(),
            format!("{:.0}", row.requests_per_second),
            format!("{:.3}", requests.value),
            interval(&requests),
        ];
        if row.variant == VARIANTS[PLAIN].0 {
            // The base.
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
        if row.variant == VARIANTS[PLAIN].0 {
            [2, 3, 4, 6, 7].into_iter().for_each(|place| cells[place].clear());
        }
        cpu.add_row(cells);
    }
    println!("{load}\n\n{cpu}");
    println!(
        "Requests and latency are those that wrk reports; CPU time is the server's, for one request."
    );
    print_others(&results.found);
}

pub(super) fn print_verdicts(verdicts: &[Verdict]) {
    let table = report::verdicts("budget, user µs a request", verdicts);
    println!("{table}\nQuantiles may differ by as much as (a) may differ from itself.\n");
}

pub(super) fn write(path: &Path, all: &[Results], verdicts: &[Verdict]) -> Result<()> {
    let rows = lines(all.iter().flat_map(rows))?;
    write_sections(path, &[("rows", rows), ("budgets", lines(verdicts)?)])
}
