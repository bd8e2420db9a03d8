//! What metering costs a request in process, and whether that grows with the layers
//! around the handler: as Caddy's own benchmark does it, by which its meters were moved
//! from each handler to the route.
//!
//! `service.rs` is the service, `call.rs` how it is called, `subjects/` who meters it, `turns.rs` how
//! they take turns within a process, `budget.rs` what Talea may cost. Each case is
//! measured in a new process in each round: where a process lies in memory is luck.

mod budget;
mod call;
mod service;
mod subjects;
mod turns;

use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::harness::median;
use crate::report::Row;

pub(crate) use budget::judge;
use turns::Found;

/// How the command line and the results call it.
pub(crate) const NAME: &str = "http-layer";

pub(crate) const NOTE: &str = "One request and its response, in process, with so many layers \
    around the handler; its body lies in memory, or is streamed in 4 frames. `more` is than \
    `nothing`: the median of what neighbours differ by, the rounds' lowest to highest, the same in \
    `two-clock-reads`, and allocations. What `nothing` differs from itself by is chance; \
    `talea-unmetered` is Talea's router, which shares layers, and records nothing. `talea-per-layer` \
    records each request once for each layer, `talea-existing` once.";

/// The subject that budgets are about, and the base of all ratios.
const TALEA: &str = "talea";
/// Talea's router without metering: its difference from `talea` is the cost of metering itself.
const UNMETERED: &str = "talea-unmetered";
/// axum's own router, metered from outside.
const EXISTING: &str = "talea-existing";
/// A meter around each layer, as Caddy had it.
const PER_LAYER: &str = "talea-per-layer";
const CLOCK: &str = "two-clock-reads";

/// glibc keeps 7 freed blocks of a size at hand for a thread. With 20 layers axum frees more at
/// once, and what that takes depends on all blocks that there are: one of another size makes
/// thousands of instructions more or less, by chance. So let it keep more.
pub(crate) const KEEPING_BLOCKS: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=120");

/// A case, written `LAYERS` or `LAYERS-streamed`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Case {
    /// How many layers are around the handler.
    layers: usize,
    answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    InMemory,
    Streamed,
}

/// How many layers there are.
pub(crate) const LAYERS: [usize; 3] = [1, 5, 20];

const CASES: [Case; 4] = [
    Case { layers: LAYERS[0], answer: Answer::InMemory },
    Case { layers: LAYERS[1], answer: Answer::InMemory },
    Case { layers: LAYERS[2], answer: Answer::InMemory },
    Case { layers: LAYERS[0], answer: Answer::Streamed },
];

const STREAMED: &str = "-streamed";

impl Case {
    fn name(&self) -> String {
        let streamed = if self.answer == Answer::Streamed { STREAMED } else { "" };
        format!("{}{streamed}", self.layers)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (layers, answer) = match text.strip_suffix(STREAMED) {
            Some(layers) => (layers, Answer::Streamed),
            None => (text, Answer::InMemory),
        };
        let fail = |_| format!("{text:?} is no case; LAYERS or LAYERS{STREAMED} was expected");
        Ok(Self { layers: layers.parse().map_err(fail)?, answer })
    }
}

/// The cost of a subject beyond `nothing`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct More {
    pub(crate) ns: f64,
    /// Of the rounds.
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    /// That time as a multiple of two readings of the clock.
    pub(crate) clock_reads: f64,
    pub(crate) allocs: f64,
}

/// Measures all cases. Progress goes to standard error.
pub(crate) fn run(rounds: u32) -> Result<Vec<Row>> {
    let mut rounds_of = CASES.map(|case| (case, Vec::new()));
    for round in 1..=rounds {
        eprintln!("{NAME}, round {round} of {rounds}");
        for (case, found) in &mut rounds_of {
            found.push(measure_apart(case)?);
        }
    }
    Ok(rounds_of.iter().flat_map(|(case, found)| rows(case, found)).collect())
}

/// Measures a case in a new process of this program.
fn measure_apart(case: &Case) -> Result<Vec<Found>> {
    let program = std::env::current_exe().context("finding this program")?;
    let output = Command::new(&program)
        .args(["--http-layer", &case.name()])
        .envs([KEEPING_BLOCKS])
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    ensure!(output.status.success(), "{NAME}: {case:?}: {}", output.status);
    serde_json::from_slice(&output.stdout).context("reading what the new process says")
}

/// Measures a case and prints it: what the new process does.
pub(crate) fn answer(case: Case) -> Result<()> {
    println!("{}", serde_json::to_string(&turns::measure(case)?)?);
    Ok(())
}

/// A case as the results have it. Each round has the same subjects in the same order.
fn rows(case: &Case, rounds: &[Vec<Found>]) -> Vec<Row> {
    let subjects = rounds.first().map_or(0, Vec::len);
    let row = |n: usize| {
        let each = || rounds.iter().map(move |round| &round[n]);
        Row {
            bench: format!("{NAME}/{}", case.name()),
            threads: 1,
            subject: rounds[0][n].subject.clone(),
            ns: Some(median(each().map(|found| found.cost.ns))),
            allocs_per_op: Some(median(each().map(|found| found.cost.allocs))),
            bytes_per_op: Some(median(each().map(|found| found.cost.bytes))),
            ratio_to_talea: None,
            instructions: None,
            latencies: None,
            more: more(rounds, n),
            takes: None,
        }
    };
    (0..subjects).map(row).collect()
}

fn more(rounds: &[Vec<Found>], n: usize) -> Option<More> {
    // A round's difference, and its two readings of the clock.
    let pair = |round: &Vec<Found>| {
        let clock = round.iter().find(|found| found.subject == CLOCK)?;
        Some((round[n].more?, clock.cost.ns))
    };
    let pairs = rounds.iter().map(pair).collect::<Option<Vec<_>>>()?;
    let ns = || pairs.iter().map(|(more, _)| more.ns);
    Some(More {
        ns: median(ns()),
        lowest: ns().fold(f64::INFINITY, f64::min),
        highest: ns().fold(f64::NEG_INFINITY, f64::max),
        clock_reads: median(pairs.iter().map(|(more, clock)| more.ns / clock)),
        allocs: median(pairs.iter().map(|(more, _)| more.allocs)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        for case in CASES {
            assert_eq!(case.name().parse(), Ok(case));
        }
        assert!("few".parse::<Case>().is_err());
    }

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
