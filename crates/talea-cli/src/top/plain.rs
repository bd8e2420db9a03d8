//! The table as text, for files, pipes and one look.

use talea_load::figures::{measured, plain};

use crate::live::words::{level, rate, share, time};
use crate::live::{Row, Table};
use crate::printable::printable;
use crate::screen;

/// The busiest endpoint first, all of them together last.
pub(super) fn text(table: &Table) -> String {
    let headings = ["endpoint", "req/s", "errors", "p50", "p90", "p99", "in flight", "requests"];
    let mut shown = screen::table(&headings, |column| column > 0);
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    rows.sort_by(|one, other| other.rate.total_cmp(&one.rate).then(one.name.cmp(&other.name)));
    for row in rows.into_iter().chain([&table.total]) {
        let [p50, p90, p99] = row.times.each().map(time);
        shown.add_row([
            printable(&row.name),
            rate(row.rate),
            share(row.errors),
            p50,
            p90,
            p99,
            level(row.in_flight),
            plain(row.requests),
        ]);
    }
    let seconds = measured(table.length.as_secs_f64());
    format!("{shown}\nRates and quantiles are of the last {seconds} s.\n")
}
