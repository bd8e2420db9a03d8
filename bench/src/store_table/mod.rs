//! The table that the storage engines of PHP's Prometheus client are compared by:
//! what it takes to make, tell, show and wipe many metrics beside much else in the
//! same store. Of the libraries here only Talea has such a store.
//!
//! As there, each metric has one series and is found by its name each time. There are
//! four types; in place of a summary here is what is in flight. What else is in the
//! store are series of other families. Each line of the table is measured in a
//! process of its own.

mod store;

use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use crate::harness::median;
use crate::measure::Cost;
use crate::report::Row;

/// How the command line and the results call it.
pub(crate) const NAME: &str = "store-table";

pub(crate) const NOTE: &str = "In milliseconds: the whole operation, for so many families of each \
    of four types, with a series each, beside so many series of others. The ratios are of the \
    most of others to the fewest.";

pub(crate) const OPERATIONS: [&str; 4] = ["create", "increment", "collect", "wipe"];

/// Of each operation.
pub(crate) type Costs = [Cost; OPERATIONS.len()];

/// Families of each type.
const OWN: [u64; 3] = [50, 500, 2500];
/// Series of others.
const OTHERS: [u64; 3] = [1000, 100_000, 1_000_000];

/// A line of the table.
pub(crate) struct Line {
    pub(crate) beside: Beside,
    pub(crate) costs: Costs,
}

/// How much of ours is beside how much of others, written `OWN/OTHERS`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beside {
    pub(crate) own: u64,
    pub(crate) others: u64,
}

impl FromStr for Beside {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("{text:?} is no line of the table; OWN/OTHERS was expected");
        let (own, others) = text.split_once('/').ok_or_else(fail)?;
        let number = |text: &str| text.parse().map_err(|_| fail());
        Ok(Self { own: number(own)?, others: number(others)? })
    }
}

/// Measures all lines. Progress goes to standard error.
pub(crate) fn run(rounds: u32) -> Result<Vec<Line>> {
    let all = OWN.into_iter().flat_map(|own| OTHERS.map(|others| Beside { own, others }));
    let mut found: Vec<_> = all.map(|beside| (beside, Vec::new())).collect();
    for round in 1..=rounds {
        eprintln!("{NAME}, round {round} of {rounds}");
        for (beside, costs) in &mut found {
            costs.push(measure_apart(*beside)?);
        }
    }
    let line = |(beside, costs): &(_, Vec<_>)| Line { beside: *beside, costs: medians(costs) };
    Ok(found.iter().map(line).collect())
}

fn medians(costs: &[Costs]) -> Costs {
    std::array::from_fn(|n| {
        let of = |part: fn(&Cost) -> f64| median(costs.iter().map(|costs| part(&costs[n])));
        Cost { ns: of(|c| c.ns), allocs: of(|c| c.allocs), bytes: of(|c| c.bytes) }
    })
}

/// The lines as the results have them.
pub(crate) fn rows(lines: &[Line]) -> Vec<Row> {
    let row = |line: &Line, n: usize| Row {
        bench: format!("{NAME}/{}/{}/{}", OPERATIONS[n], line.beside.own, line.beside.others),
        threads: 1,
        subject: "talea".to_owned(),
        ns: Some(line.costs[n].ns),
        allocs_per_op: Some(line.costs[n].allocs),
        bytes_per_op: Some(line.costs[n].bytes),
        ratio_to_talea: None,
        instructions: None,
        latencies: None,
        more: None,
        takes: None,
    };
    let rows = |n| lines.iter().map(move |line| row(line, n));
    (0..OPERATIONS.len()).flat_map(rows).collect()
}

/// What each operation takes beside the most of others, to beside the fewest; for each
/// number of our families.
pub(crate) fn ratios(lines: &[Line]) -> Vec<(u64, [f64; OPERATIONS.len()])> {
    let of_one = |lines: &[Line]| {
        let (fewest, most) = (lines.first()?, lines.last()?);
        let ratio = |n: usize| most.costs[n].ns / fewest.costs[n].ns;
        Some((most.beside.own, std::array::from_fn(ratio)))
    };
    lines.chunk_by(|one, next| one.beside.own == next.beside.own).filter_map(of_one).collect()
}

/// Measures a line in a new process of this program.
fn measure_apart(beside: Beside) -> Result<Costs> {
    let program = std::env::current_exe().context("finding this program")?;
    let output = Command::new(&program)
        .args(["--store-table", &format!("{}/{}", beside.own, beside.others)])
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", program.display()))?;
    ensure!(output.status.success(), "{NAME}: {beside:?}: {}", output.status);
    serde_json::from_slice(&output.stdout).context("reading what the new process says")
}

/// Measures a line and prints it: what the new process does.
pub(crate) fn answer(beside: Beside) -> Result<()> {
    println!("{}", serde_json::to_string(&store::measure(beside)?)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(own: u64, others: u64, ns: f64) -> Line {
        let cost = Cost { ns, allocs: 0.0, bytes: 0.0 };
        Line { beside: Beside { own, others }, costs: [cost; OPERATIONS.len()] }
    }

    #[test]
    fn each_number_of_families_has_its_own_ratio() {
        let lines =
            [line(50, 1000, 2.0), line(50, 10_000, 9.0), line(50, 100_000, 3.0), line(500, 1, 4.0)];
        assert_eq!(ratios(&lines), [(50, [1.5; 4]), (500, [1.0; 4])]);
    }

    #[test]
    fn a_line_says_what_it_is_beside() {
        assert_eq!("50/1000".parse(), Ok(Beside { own: 50, others: 1000 }));
        assert!("50".parse::<Beside>().is_err() && "50/x".parse::<Beside>().is_err());
        let rows = rows(&[line(50, 1000, 2.0)]);
        assert_eq!(rows[2].bench, "store-table/collect/50/1000");
    }

    #[test]
    fn a_line_is_measured_and_checked() {
        let costs = store::measure(Beside { own: 3, others: 10 });
        assert!(costs.is_ok_and(|costs| costs.iter().all(|cost| cost.ns > 0.0)));
    }
}
