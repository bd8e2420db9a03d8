//! The table that compares the storage engines of PHP's Prometheus client: the time to make,
//! increment, show and wipe many metrics beside many other series in the same store. Of the
//! libraries here only Talea has such a store.
//!
//! As there, each metric has one series and is found by its name each time. There are
//! four types; an up-down counter stands for the summary. The other series are of other
//! families. Each line of the table is measured in a process of its own.

mod store;

use anyhow::Result;

use crate::measure::Cost;
use crate::process;
use crate::row::Row;

use self::store::Costs;
pub(crate) use self::store::OPERATIONS;

/// The name on the command line and in the results.
pub(crate) const NAME: &str = "store-table";

pub(crate) const NOTE: &str = "In milliseconds: the whole operation, for `own` families of each of \
    four types, with a series each, beside `others` series of other families. A ratio is that of \
    the most others to the fewest.";

/// Families of each type.
const OWN: [u64; 3] = [50, 500, 2500];
/// Series of other families.
const OTHERS: [u64; 3] = [1000, 100_000, 1_000_000];

/// A line of the table.
pub(crate) struct Line {
    pub(crate) own: u64,
    pub(crate) others: u64,
    pub(crate) costs: Costs,
}

/// Measures all lines. Progress goes to standard error.
pub(crate) fn run(rounds: u32) -> Result<Vec<Line>> {
    let all = OWN.into_iter().flat_map(|own| OTHERS.map(|others| (own, others, Vec::new())));
    let mut found: Vec<(_, _, Vec<Costs>)> = all.collect();
    for round in 1..=rounds {
        eprintln!("{NAME}, round {round} of {rounds}");
        for (own, others, rounds) in &mut found {
            let counts = [own, others].map(|count| count.to_string());
            let mut program = process::this_program()?;
            rounds.push(process::ask(program.arg("--store-table").args(counts))?);
        }
    }
    let line = |(own, others, rounds): (_, _, Vec<Costs>)| {
        let of = |n: usize| Cost::median(rounds.iter().map(|costs| costs[n]));
        Line { own, others, costs: std::array::from_fn(of) }
    };
    Ok(found.into_iter().map(line).collect())
}

/// Measures a line in this process, and prints its costs.
pub(crate) fn answer(own: u64, others: u64) -> Result<()> {
    process::answer(&store::measure(own, others)?)
}

/// The lines as the results have them.
pub(crate) fn rows(lines: &[Line]) -> Vec<Row> {
    let row = |Line { own, others, costs }: &Line, n: usize| {
        Row::of_cost(format!("{NAME}/{}/{own}/{others}", OPERATIONS[n]), "talea", costs[n])
    };
    let rows = |n| lines.iter().map(move |line| row(line, n));
    (0..OPERATIONS.len()).flat_map(rows).collect()
}

/// The time of each operation beside the most others, to that beside the fewest; by the number of
/// own families.
pub(crate) fn ratios(lines: &[Line]) -> Vec<(u64, [f64; OPERATIONS.len()])> {
    let of_one = |lines: &[Line]| {
        let (fewest, most) = (lines.first()?, lines.last()?);
        let ratio = |n: usize| most.costs[n].ns / fewest.costs[n].ns;
        Some((most.own, std::array::from_fn(ratio)))
    };
    lines.chunk_by(|one, next| one.own == next.own).filter_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(own: u64, others: u64, ns: f64) -> Line {
        let cost = Cost { ns, allocs: 0.0, bytes: 0.0, last_to_first: None };
        Line { own, others, costs: [cost; OPERATIONS.len()] }
    }

    #[test]
    fn each_number_of_families_has_its_own_ratio() {
        let lines =
            [line(50, 1000, 2.0), line(50, 10_000, 9.0), line(50, 100_000, 3.0), line(500, 1, 4.0)];
        assert_eq!(ratios(&lines), [(50, [1.5; 4]), (500, [1.0; 4])]);
    }

    #[test]
    fn a_row_is_named_by_its_operation_and_line() {
        let rows = rows(&[line(50, 1000, 2.0)]);
        assert_eq!(rows[2].bench, "store-table/collect/50/1000");
    }

    #[test]
    fn a_line_is_measured_and_checked() {
        let costs = store::measure(3, 10);
        assert!(costs.is_ok_and(|costs| costs.iter().all(|cost| cost.ns > 0.0)));
    }
}
