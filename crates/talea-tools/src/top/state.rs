//! The state of `talea top`: the view, the choices of its user, the data.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use talea_agent::change::Change;
use talea_agent::live::words::{level, rate, share, time};
use talea_agent::live::{Row, Table};
use talea_view::families::Between;
use talea_view::printable;

/// A column that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Endpoint,
    Rate,
    Errors,
    P50,
    P90,
    P99,
    InFlight,
}

impl Column {
    pub(super) const ALL: [Self; 7] =
        [Self::Endpoint, Self::Rate, Self::Errors, Self::P50, Self::P90, Self::P99, Self::InFlight];

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Endpoint => "ENDPOINT",
            Self::Rate => "REQ/S",
            Self::Errors => "ERRORS",
            Self::P50 => "P50",
            Self::P90 => "P90",
            Self::P99 => "P99",
            Self::InFlight => "INFL",
        }
    }

    pub(super) fn text(self, row: &Row) -> String {
        match self {
            Self::Endpoint => printable(&row.name),
            Self::Rate => rate(row.rate),
            Self::Errors => share(row.errors),
            Self::P50 => time(row.times.p50_ms),
            Self::P90 => time(row.times.p90_ms),
            Self::P99 => time(row.times.p99_ms),
            Self::InFlight => level(row.in_flight),
        }
    }

    /// The column so many places further, round and round.
    fn moved(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }

    fn compare(self, one: &Row, other: &Row) -> Ordering {
        let bound = |of: Option<Between>| of.map_or(-1.0, |it| it.high.unwrap_or(f64::INFINITY));
        let number = |of: Option<f64>| of.unwrap_or(-1.0);
        match self {
            Self::Endpoint => other.name.cmp(&one.name),
            Self::Rate => one.rate.total_cmp(&other.rate),
            Self::Errors => number(one.errors).total_cmp(&number(other.errors)),
            Self::P50 => bound(one.times.p50_ms).total_cmp(&bound(other.times.p50_ms)),
            Self::P90 => bound(one.times.p90_ms).total_cmp(&bound(other.times.p90_ms)),
            Self::P99 => bound(one.times.p99_ms).total_cmp(&bound(other.times.p99_ms)),
            Self::InFlight => number(one.in_flight).total_cmp(&number(other.in_flight)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum View {
    Endpoints,
    Endpoint(String),
    Help,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) source: String,
    pub(super) every: Duration,
    /// The data on the screen: the latest, unless that is paused.
    pub(super) table: Table,
    /// The endpoints that are otherwise than usual.
    pub(super) changes: Vec<Change>,
    latest: (Table, Vec<Change>),
    pub(super) is_paused: bool,
    /// Since when the source cannot be read, and why.
    pub(super) trouble: Option<(Instant, String)>,
    pub(super) view: View,
    pub(super) sorted_by: Column,
    /// Whether the least comes first; of names, the last.
    pub(super) is_reversed: bool,
    /// The text that endpoints are filtered by, in lower case.
    pub(super) filter: String,
    pub(super) is_typing: bool,
    /// The endpoint that the cursor is at; it stays there as rows change their places.
    selected: Option<String>,
    /// How many rows the screen has, and which of them is the first.
    pub(super) height: usize,
    pub(super) first: usize,
}

impl State {
    pub(super) fn new(source: String, every: Duration) -> Self {
        Self {
            source,
            every,
            table: Table::default(),
            changes: Vec::new(),
            latest: Default::default(),
            is_paused: false,
            trouble: None,
            view: View::Endpoints,
            sorted_by: Column::Rate,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            selected: None,
            height: 1,
            first: 0,
        }
    }

    /// Shows a table, at once or when the pause ends.
    pub(super) fn show(&mut self, table: Table, changes: Vec<Change>) {
        self.latest = (table, changes);
        if !self.is_paused {
            self.show_latest();
        }
    }

    pub(super) fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        self.show_latest();
    }

    fn show_latest(&mut self) {
        (self.table, self.changes) = self.latest.clone();
    }

    /// What changed of an endpoint.
    pub(super) fn changes_of<'a>(&'a self, endpoint: &'a str) -> impl Iterator<Item = &'a Change> {
        self.changes.iter().filter(move |change| change.endpoint == endpoint)
    }

    pub(super) fn sort_by_next(&mut self, by: usize) {
        self.sorted_by = self.sorted_by.moved(by);
    }

    pub(super) fn sort_by_previous(&mut self) {
        self.sort_by_next(Column::ALL.len() - 1);
    }

    /// The rows that pass the filter, in the order that was chosen, but for those that changed, which are first.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self
            .table
            .rows
            .iter()
            .filter(|row| row.name.to_lowercase().contains(&self.filter))
            .collect();
        rows.sort_by(|one, other| {
            let order = self.sorted_by.compare(other, one);
            let order = if self.is_reversed { order.reverse() } else { order };
            order.then_with(|| one.name.cmp(&other.name))
        });
        // The most urgent change first; `Quantity` is in that order.
        rows.sort_by_key(|row| match self.changes_of(&row.name).map(|it| it.quantity).min() {
            Some(quantity) => (0, Some(quantity)),
            None => (1, None),
        });
        rows
    }

    /// The place of the cursor among these rows: at the first if its endpoint is not there.
    pub(super) fn cursor(&self, rows: &[&Row]) -> usize {
        rows.iter().position(|row| self.selected.as_deref() == Some(&row.name)).unwrap_or(0)
    }

    /// Moves the cursor by so many rows, as far as there are any.
    pub(super) fn move_by(&mut self, by: isize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let to = self.cursor(&rows).saturating_add_signed(by).min(last);
        self.selected = rows.get(to).map(|row| row.name.clone());
    }

    pub(super) fn at_cursor(&self) -> Option<String> {
        let rows = self.rows();
        rows.get(self.cursor(&rows)).map(|row| row.name.clone())
    }
}
