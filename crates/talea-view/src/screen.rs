//! The output of a command: its results, its notes, its tables.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
};
use serde::Serialize;

use crate::printable;

/// Writes to standard output. No error is a reader that has seen enough, such as `head`.
pub fn write(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a result to standard output, escaped line by line.
/// Fails when it cannot be written, as to a full disk.
pub fn print(text: impl Display) -> Result<()> {
    write(lines(text).as_bytes()).context("standard output")
}

/// Prints a result to standard output as JSON.
pub fn print_json(result: &impl Serialize) -> Result<()> {
    write((serde_json::to_string_pretty(result)? + "\n").as_bytes()).context("standard output")
}

/// Prints a result to standard output, as JSON or as it is displayed.
pub fn print_as(json: bool, result: &(impl Serialize + Display)) -> Result<()> {
    if json { print_json(result) } else { print(result) }
}

/// Prints lines to standard error, escaped, unless they cannot be written: that ends no command.
pub fn note(text: impl Display) {
    let _ = io::stderr().write_all(lines(text).as_bytes());
}

fn lines(text: impl Display) -> String {
    text.to_string().split('\n').map(|line| printable(line) + "\n").collect()
}

/// The least width of a column of text.
const LEAST_TEXT: u16 = 16;

/// The table, at most so wide: the text of its last column wraps, or is left out where it has no room.
pub fn fitted(mut table: Table, width: Option<u16>) -> Table {
    let Some(width) = width else { return table };
    let widths = table.column_max_content_widths();
    // Each column has a space at both sides.
    let others = widths.iter().rev().skip(1).map(|column| column + 2).sum::<u16>() + 2;
    let room = width.saturating_sub(others);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    let last = widths.len().saturating_sub(1);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_constraint(match at == last && widths[at] > room {
            false => ColumnConstraint::ContentWidth,
            true if room < LEAST_TEXT => ColumnConstraint::Hidden,
            true => ColumnConstraint::UpperBoundary(Width::Fixed(room + 2)),
        });
    }
    table
}

/// A table with these headings, of which some columns hold numbers.
pub fn table(headings: &[&str], is_number: impl Fn(usize) -> bool) -> Table {
    let mut table = Table::new();
    table
        .load_preset(UTF8_HORIZONTAL_ONLY)
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings.iter().copied());
    for (at, column) in table.column_iter_mut().enumerate() {
        if is_number(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
