//! The table as text, for files, pipes and one look.

use std::fmt::Write;

use talea_statistics::figures::{measured, plain};

use super::state::Column;
use talea_agent::change::Change;
use talea_agent::live::{Row, Table};
use talea_view::{printable, screen};

/// The busiest endpoint first, all of them together last.
pub(super) fn text(table: &Table, changes: &[Change]) -> String {
    let headings = ["endpoint", "req/s", "errors", "p50", "p90", "p99", "in flight", "requests"];
    let mut shown = screen::table(&headings, |column| column > 0);
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    rows.sort_by(|one, other| other.rate.total_cmp(&one.rate).then(one.name.cmp(&other.name)));
    for row in rows.into_iter().chain([&table.total]) {
        let cells = Column::ALL.map(|column| column.text(row));
        shown.add_row(cells.into_iter().chain([plain(row.requests)]));
    }
    let seconds = measured(table.length.as_secs_f64());
    let mut text = format!("{shown}\nRates and quantiles are of the last {seconds} s.\n");
    for change in changes {
        let _ = writeln!(text, "{}: {}", printable(&change.endpoint), printable(&change.line()));
    }
    text
}
