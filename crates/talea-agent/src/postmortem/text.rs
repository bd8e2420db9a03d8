//! A postmortem for people.

use std::fmt::Write;
use std::iter;

use talea_statistics::figures::{NONE, bytes, in_unit, measured_or_none, plain, whole};

use super::record::{Endpoint, Second};
use super::region::Reference;
use super::{Postmortem, Record, Remains};
use crate::live::words::{clock, date, level, share, time};
use talea_view::printable;
use talea_view::screen;

pub(super) fn text(all: &Postmortem) -> String {
    let mut out = String::new();
    match &all.record {
        Some(record) => push_record(&mut out, record),
        None => {
            out.push_str("No history: no agent recorded one. `talea serve --history FILE` does.\n")
        }
    }
    if let Some(region) = &all.region {
        push_region(&mut out, region);
    }
    out
}

fn push_record(out: &mut String, record: &Record) {
    let name = printable(&record.region);
    let _ = match record.died_unix_millis {
        Some(died) => {
            writeln!(out, "{name}: a process was found dead at {}.\n", date(died) + &how(record))
        }
        None => writeln!(out, "{name}: no process died while the agent watched.\n"),
    };
    let headings =
        ["time", "requests", "errors", "p50", "p99", "in flight", "CPU", "memory", "tasks"];
    let mut table = screen::table(&headings, |column| column > 0);
    for second in &record.seconds {
        let time = clock(second.unix_millis);
        table.add_row(iter::once(time).chain(cells_of_second(second)));
    }
    let _ = writeln!(
        out,
        "{table}\n\nBy endpoint, all of these seconds together; in flight when a process was last seen alive:"
    );
    let headings = ["endpoint", "requests", "errors", "p50", "p90", "p99", "in flight"];
    let mut table = screen::table(&headings, |column| column > 0);
    for endpoint in &record.endpoints {
        let name = printable(&endpoint.name);
        table.add_row(iter::once(name).chain(cells_of_endpoint(endpoint)));
    }
    let _ = writeln!(out, "{table}");
}

/// How it ended, behind when it did: `: was killed by SIGSEGV`.
pub(super) fn how(record: &Record) -> String {
    match record.reasons.join("; ") {
        reasons if reasons.is_empty() => String::new(),
        reasons => format!(": {}", printable(&reasons)),
    }
}

fn push_region(out: &mut String, region: &Remains) {
    let _ = writeln!(
        out,
        "\n{}: what the region holds, to the last request:",
        printable(&region.source)
    );
    let mut table = screen::table(&["endpoint", "requests"], |column| column > 0);
    for total in &region.endpoints {
        table.add_row([printable(&total.name), whole(total.requests)]);
    }
    let _ = writeln!(out, "{table}");
    for process in &region.processes {
        let started = i64::try_from(process.started_unix_millis).unwrap_or(0);
        let state = if process.alive { "lives" } else { "is gone" };
        let _ = writeln!(out, "process {} {state}; it started at {}", process.pid, date(started));
    }
    if region.exemplars.is_empty() {
        return;
    }
    out.push_str("\nThe latest exemplars:\n");
    let mut table = screen::table(&["time", "series", "value", "labels"], |column| column == 2);
    for one in &region.exemplars {
        let labels: Vec<String> =
            one.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table.add_row([
            clock(one.unix_millis),
            printable(&one.series),
            value(one),
            printable(&labels.join(" ")),
        ]);
    }
    let _ = writeln!(out, "{table}");
}

/// The numbers of a second, behind its time.
pub(super) fn cells_of_second(second: &Second) -> [String; 8] {
    [
        whole(second.requests),
        share(second.errors),
        time(second.times.p50_ms),
        time(second.times.p99_ms),
        level(second.in_flight),
        measured_or_none(second.cpu_cores),
        second.memory_bytes.map_or_else(|| NONE.to_owned(), |it| bytes(it as u64)),
        second.tasks.map_or_else(|| NONE.to_owned(), plain),
    ]
}

/// The numbers of an endpoint, behind its name.
pub(super) fn cells_of_endpoint(endpoint: &Endpoint) -> [String; 6] {
    [
        whole(endpoint.requests),
        share(endpoint.errors),
        time(endpoint.times.p50_ms),
        time(endpoint.times.p90_ms),
        time(endpoint.times.p99_ms),
        level(endpoint.in_flight),
    ]
}

pub(super) fn value(one: &Reference) -> String {
    in_unit(one.value, one.family.ends_with("_seconds").then_some("seconds"))
}
