//! The cost of metering a request in process, and whether it grows with the layers around the
//! handler: the manner of Caddy's own benchmark, because of which Caddy meters routes and no
//! longer each handler.
//!
//! `case.rs` lists the cases, `service.rs` is the service, `call.rs` calls it, `subjects/` meter
//! it, `turns.rs` lets them take turns within a process, `budget.rs` has the budgets. Each case
//! is measured in a new process in each round: where a process lies in memory is luck.

mod budget;
mod call;
pub(crate) mod case;
mod service;
mod subjects;
mod turns;

use anyhow::{Context, Result};

use self::case::{CASES, Case, KEEPING_BLOCKS};
use self::subjects::CLOCK;
use self::turns::SubjectCost;
use crate::measure::Cost;
use crate::process;
use crate::row::{Overhead, Row};
use talea_statistics::median;

pub(crate) use self::budget::judge;
pub(crate) use self::case::NAME;

pub(crate) const NOTE: &str = "One request and its response, in process, with so many layers \
    around the handler; its body lies in memory, or is streamed in 4 frames. `more` is beyond \
    `nothing`: the median difference of neighbours, the rounds' lowest to highest, the same in \
    `two-clock-reads`, and allocations. The difference of `nothing` from itself is chance; \
    `talea-unmetered` is Talea's router, which shares layers, and records nothing. \
    `talea-per-layer` records each request once for each layer, `talea-existing` once.";

pub(crate) fn run(rounds: u32) -> Result<Vec<Row>> {
    let mut rounds_of = CASES.map(|case| (case, Vec::new()));
    for round in 1..=rounds {
        eprintln!("{NAME}, round {round} of {rounds}");
        for (case, found) in &mut rounds_of {
            let mut program = process::this_program()?;
            program.args(["--http-layer", &case.name()]).envs([KEEPING_BLOCKS]);
            found.push(process::ask(&mut program)?);
        }
    }
    Ok(rounds_of.iter().flat_map(|(case, found)| rows(case, found)).collect())
}

/// Measures a case in this process, and prints the result.
pub(crate) fn answer(name: &str) -> Result<()> {
    let case = CASES.into_iter().find(|case| case.name() == name);
    process::answer(&turns::measure(case.with_context(|| format!("there is no case {name:?}"))?)?)
}

/// A case as the results have it. Each round has the same subjects in the same order.
fn rows(case: &Case, rounds: &[Vec<SubjectCost>]) -> Vec<Row> {
    let row = |(n, first): (usize, &SubjectCost)| {
        let cost = Cost::median(rounds.iter().map(|round| round[n].cost));
        let row = Row::of_cost(format!("{NAME}/{}", case.name()), &first.subject, cost);
        Row { more: more(rounds, n), ..row }
    };
    rounds.first().into_iter().flatten().enumerate().map(row).collect()
}

fn more(rounds: &[Vec<SubjectCost>], n: usize) -> Option<Overhead> {
    // A round's difference, and its two readings of the clock.
    let pairs = rounds
        .iter()
        .map(|round| {
            let clock = round.iter().find(|found| found.subject == CLOCK)?;
            Some((round[n].more?, clock.cost.ns))
        })
        .collect::<Option<Vec<_>>>()?;
    let ns = || pairs.iter().map(|(more, _)| more.ns);
    Some(Overhead {
        ns: median(ns()),
        lowest: ns().fold(f64::INFINITY, f64::min),
        highest: ns().fold(f64::NEG_INFINITY, f64::max),
        clock_reads: median(pairs.iter().map(|(more, clock)| more.ns / clock)),
        allocs: median(pairs.iter().map(|(more, _)| more.allocs)),
    })
}

#[cfg(test)]
mod tests {
    use super::case::Answer;
    use super::*;

    #[test]
    fn each_subject_does_all_requests_and_has_a_row() {
        let case = Case { layers: 2, answer: Answer::Streamed };
        let found = turns::measure(case).unwrap();
        let rows = rows(&case, &[found]);
        assert_eq!(rows.len(), subjects::ALL.len());
        for row in rows {
            assert_eq!(row.more.is_some(), row.subject != CLOCK, "{}", row.subject);
        }
    }
}
