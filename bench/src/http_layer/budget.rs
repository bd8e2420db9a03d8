//! The budgets of metering a request.

use super::case::NAME;
use super::subjects::{EXISTING, TALEA, UNMETERED};
use crate::row::Row;
use crate::verdict::Verdict;

pub(crate) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let more = |case: &str, subject: &str| {
        let bench = format!("{NAME}/{case}");
        let row = rows.iter().find(|row| row.bench == bench && row.subject == subject);
        row.and_then(|row| row.more.as_ref())
    };
    let talea = ["1", "5", "20", "1-streamed"].map(|case| more(case, TALEA));
    let unmetered = ["1", "5", "20"].map(|case| more(case, UNMETERED));
    let existing = ["1", "5"].map(|case| more(case, EXISTING));
    let (
        [Some(one), Some(five), Some(twenty), Some(streamed)],
        [Some(of_one), Some(of_five), Some(of_twenty)],
        [Some(existing), Some(existing_five)],
    ) = (talea, unmetered, existing)
    else {
        return Vec::new();
    };
    let verdict = |budget, found, limit| Verdict { budget, found, limit };
    // Beyond the same router: its shared layers, which make it faster, do not count here.
    let alone = twenty.clock_reads - of_twenty.clock_reads;
    let pairs = [(one, of_one), (five, of_five), (twenty, of_twenty)];
    let in_memory = pairs.map(|(metered, of)| metered.allocs.max(metered.allocs - of.allocs));
    let growth = (twenty.ns - of_twenty.ns) / (one.ns - of_one.ns);
    vec![
        verdict("1 layer, in two-clock-reads", one.clock_reads, 5.0),
        verdict("5 layers", five.clock_reads, 5.0),
        verdict("20 layers", twenty.clock_reads, 5.0),
        verdict("20 layers, beyond talea-unmetered", alone, 5.0),
        verdict("ns of that, to 1 layer's", growth, 1.5),
        verdict("allocations", in_memory.into_iter().fold(f64::MIN, f64::max), 0.0),
        verdict("allocations, streamed", streamed.allocs, 1.0),
        verdict("existing router, 1 layer", existing.clock_reads, 6.0),
        verdict("existing router, 5 layers", existing_five.clock_reads, 6.0),
        verdict("its allocations", existing.allocs.max(existing_five.allocs), 0.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Overhead;

    fn row(case: &str, subject: &str, ns: f64, allocs: f64) -> Row {
        let more = Overhead { ns, lowest: ns, highest: ns, clock_reads: ns / 20.0, allocs };
        Row { more: Some(more), ..Row::new(format!("{NAME}/{case}"), subject) }
    }

    #[test]
    fn each_budget_is_judged_by_its_own_case() {
        let missed = |rows: &[Row]| {
            judge(rows)
                .iter()
                .enumerate()
                .filter_map(|(n, verdict)| (!verdict.is_met()).then_some(n))
                .collect::<Vec<_>>()
        };
        let talea = |case, ns, allocs| row(case, TALEA, ns, allocs);
        let unmetered = |case, ns, allocs| row(case, UNMETERED, ns, allocs);
        let existing = |case, ns, allocs| row(case, EXISTING, ns, allocs);
        let rows = [
            talea("1", 80.0, 0.0),
            talea("5", 90.0, -3.0),
            talea("20", -900.0, -20.0),
            talea("1-streamed", 150.0, 1.0),
            unmetered("1", 0.0, 0.0),
            unmetered("5", -10.0, -3.0),
            unmetered("20", -1000.0, -20.0),
            existing("1", 110.0, 0.0),
            existing("5", 110.0, 0.0),
        ];
        assert_eq!(missed(&rows), [0; 0]);
        let changed = |place: usize, changed: Row| {
            let mut rows = rows.clone();
            rows[place] = changed;
            missed(&rows)
        };
        assert_eq!(changed(0, talea("1", 101.0, 0.0)), [0]);
        assert_eq!(changed(1, talea("5", 101.0, -3.0)), [1]);
        assert_eq!(changed(2, talea("20", 101.0, -20.0)), [2, 3, 4]);
        assert_eq!(changed(2, talea("20", -875.0, -20.0)), [3, 4]);
        assert_eq!(changed(6, unmetered("20", -1001.0, -20.0)), [3]);
        assert_eq!(changed(4, unmetered("1", 20.0, 0.0)), [4]);
        assert_eq!(changed(2, talea("20", -900.0, 1.0)), [5]);
        assert_eq!(changed(2, talea("20", -900.0, -19.0)), [5], "one more than unmetered");
        assert_eq!(changed(1, talea("5", 90.0, -2.0)), [5]);
        assert_eq!(changed(0, talea("1", 80.0, 1.0)), [5]);
        assert_eq!(changed(3, talea("1-streamed", 150.0, 2.0)), [6]);
        assert_eq!(changed(7, existing("1", 121.0, 0.0)), [7]);
        assert_eq!(changed(8, existing("5", 121.0, 0.0)), [8]);
        assert_eq!(changed(7, existing("1", 110.0, 1.0)), [9]);
        assert_eq!(changed(8, existing("5", 110.0, 1.0)), [9]);
        assert!(judge(&rows[1..]).is_empty());
        assert!(judge(&rows[..8]).is_empty());
    }
}
