//! An inspection as tables on the screen.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use comfy_table::Table;
use talea_statistics::figures::{NONE, bytes, counted, in_unit, whole};

use super::inspection::{
    FamilyLine, Header, Inspection, PartUsage, Process, Series, SeriesValue, Usage,
};
use talea_view::printable;
use talea_view::screen::{fitted, table};

/// All of it; of an inspection that asked for a family, that family's series alone. Help texts fit the screen.
pub(super) fn tables(inspection: &Inspection, width: Option<u16>) -> String {
    let mut text = format!("{}: {}\n", printable(&inspection.source), header(&inspection.region));
    match &inspection.series {
        Some(series) => {
            let _ = writeln!(text, "\n{}", series_table(series, inspection.unit));
        }
        None => {
            let parts = [
                usage(&inspection.usage),
                processes(&inspection.processes),
                families(&inspection.families).map(|table| fitted(table, width)),
            ];
            for part in parts.into_iter().flatten() {
                let _ = writeln!(text, "\n{part}");
            }
            for line in left_out(inspection) {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

fn header(region: &Header) -> String {
    let Header { layout_version, boot_id, bytes: len, created_unix_nanos, .. } = region;
    format!(
        "a region of {}, layout {layout_version}, created {} in the boot {boot_id}",
        bytes(*len),
        time(*created_unix_nanos)
    )
}

fn usage(usage: &Usage) -> Option<Table> {
    let mut table = table(&["part", "in use", "reached", "room", "in use %"], |column| column > 0);
    let mut row = |part: &str, of: PartUsage, shown: fn(u64) -> String| {
        table.add_row([
            part.to_owned(),
            shown(of.used),
            of.reached.map_or_else(|| NONE.to_owned(), shown),
            shown(of.room),
            in_unit(100.0 * of.used as f64 / of.room as f64, None),
        ]);
    };
    row("series", usage.series, whole);
    row("families", usage.families, whole);
    row("processes", usage.processes, whole);
    row("planes of CPUs", usage.cpu_planes, whole);
    row("text", usage.text_bytes, bytes);
    row("single cells", usage.single_cell_bytes, bytes);
    row("striped cells, in each plane", usage.striped_cell_bytes, bytes);
    row("lazy cells, in each CPU's plane", usage.lazy_cell_bytes, bytes);
    row("owned cells, of each process", usage.owned_cell_bytes, bytes);
    Some(table)
}

fn processes(processes: &[Process]) -> Option<Table> {
    let mut table = table(&["slot", "pid", "state", "adds", "since"], |column| column < 2);
    for Process { slot, pid, alive, started_unix_nanos, adds, .. } in processes {
        let state = if *alive { "alive" } else { "dead" };
        table.add_row([
            slot.to_string(),
            pid.to_string(),
            state.to_owned(),
            (*adds).to_owned(),
            time(*started_unix_nanos),
        ]);
    }
    (!processes.is_empty()).then_some(table)
}

fn families(families: &[FamilyLine]) -> Option<Table> {
    let headings = ["family", "type", "unit", "storage", "series", "limit", "refused", "help"];
    let mut table = table(&headings, |column| (4..7).contains(&column));
    for family in families {
        let limit = match family.limit {
            u64::MAX => NONE.to_owned(),
            limit if family.at_limit => format!("{} reached", whole(limit)),
            limit => whole(limit),
        };
        table.add_row([
            printable(&family.name),
            family.kind.to_owned(),
            family.unit.unwrap_or(NONE).to_owned(),
            family.storage.to_owned(),
            whole(family.series),
            limit,
            whole(family.overflow),
            printable(&family.help),
        ]);
    }
    (!families.is_empty()).then_some(table)
}

/// The parts without a row, in words: empty if there are none.
fn left_out(inspection: &Inspection) -> Vec<String> {
    let Inspection { families_unreadable, families_retired, families_ended, .. } = inspection;
    let without_owner = [
        (inspection.usage.text_bytes_without_owner, "text"),
        (inspection.usage.cell_bytes_without_owner, "cells"),
    ];
    let if_any = |count: u64, words: String| (count > 0).then_some(words);
    let several = |count: &u64| match count {
        1 => "1 family".to_owned(),
        count => format!("{} families", whole(*count)),
    };
    [
        if_any(
            *families_unreadable,
            format!("{} cannot be read, and are left out.", several(families_unreadable)),
        ),
        if_any(
            *families_retired,
            format!("{} replaced by a later definition.", several(families_retired)),
        ),
        if_any(*families_ended, format!("{} ended by name.", several(families_ended))),
    ]
    .into_iter()
    .chain(without_owner.map(|(bytes, of)| {
        let words = format!(
            "{} of {of} without an owner: being allocated, or left by killed processes.",
            counted(bytes, "byte")
        );
        if_any(bytes, words)
    }))
    .flatten()
    .collect()
}

fn series_table(all: &[Series], unit: Option<&str>) -> Table {
    let has_counts = all.iter().any(|one| {
        matches!(one.value, SeriesValue::Histogram { .. } | SeriesValue::Summary { .. })
    });
    let headings: &[&str] = match has_counts {
        true => &["series", "count", "sum", "mean", "p50", "p99"],
        false => &["series", "value"],
    };
    let mut table = table(headings, |column| column > 0);
    for Series { labels, value } in all {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| printable(&format!("{name}={value:?}"))).collect();
        let labels = if labels.is_empty() { NONE.to_owned() } else { labels.join(" ") };
        table.add_row(std::iter::once(labels).chain(cells(value, unit)));
    }
    table
}

fn cells(value: &SeriesValue, unit: Option<&str>) -> Vec<String> {
    let counted = |count: u64, sum: f64, quantiles: [Option<f64>; 2]| {
        let mean = (count > 0).then(|| sum / count as f64);
        let shown = |number: Option<f64>| number.map_or(NONE.to_owned(), |it| in_unit(it, unit));
        let [p50, p99] = quantiles.map(shown);
        vec![whole(count), in_unit(sum, unit), shown(mean), p50, p99]
    };
    match *value {
        SeriesValue::Count { value } => vec![whole(value)],
        SeriesValue::Signed { value } => vec![value.to_string()],
        SeriesValue::Float { value } => vec![value.to_string()],
        SeriesValue::Histogram { count, sum, p50, p99, .. } => counted(count, sum, [p50, p99]),
        SeriesValue::Summary { count, sum, ref quantiles } => {
            let of = |wanted| quantiles.iter().find(|it| it.0 == wanted).map(|it| it.1);
            counted(count, sum, [of(0.5), of(0.99)])
        }
    }
}

/// Nanoseconds since 1970 as people read them; they reach to the year 2554.
fn time(unix_nanos: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(unix_nanos);
    humantime::format_rfc3339_seconds(time).to_string()
}
