//! A postmortem as a page of its own, in the frame and the style of the reports.

use maud::{Markup, PreEscaped, Render, html};
use talea_statistics::figures::{NONE, counted, plain, whole};

use super::record::{Endpoint, Second};
use super::text::{cells_of_endpoint, cells_of_second, how, value};
use super::{Postmortem, Record, Remains};
use crate::live::words::{clock, date, level};
use talea_view::chart::Chart;
use talea_view::document::{data_table, document, figure};

pub(super) fn page(all: &Postmortem) -> String {
    let name = all.record.as_ref().map(|record| record.region.as_str());
    let name = name.or(all.region.as_ref().map(|region| region.source.as_str())).unwrap_or("?");
    let body = html! {
        header {
            p.eyebrow { "Talea postmortem" }
            h1 { (name) }
            (verdict(all.record.as_ref()))
        }
        @match &all.record {
            Some(record) => { (charts(record)) (endpoints(record)) (seconds(record)) }
            None => p.note {
                "No agent recorded a history second by second. " code { "talea serve --history FILE" }
                " does."
            },
        }
        @if let Some(region) = &all.region { (remains(region)) }
    };
    document(&format!("Postmortem: {name}"), &body)
}

fn verdict(record: Option<&Record>) -> Markup {
    let Some(record) = record else { return html! {} };
    html! {
        @match record.died_unix_millis {
            Some(died) => p.verdict.bad {
                span.mark aria-hidden="true" { "!" }
                span { b { "A process was found dead at " (date(died)) (how(record)) "." } (in_flight(record)) }
            },
            None => p.verdict.good {
                span.mark aria-hidden="true" { "✓" }
                span { b { "No process died while the agent watched." } }
            },
        }
    }
}

/// The requests in flight, and where most of them were.
fn in_flight(record: &Record) -> Markup {
    let of = |endpoint: &Endpoint| endpoint.in_flight.unwrap_or(0.0);
    let total: f64 = record.endpoints.iter().map(of).sum();
    let most = record.endpoints.iter().max_by(|one, other| of(one).total_cmp(&of(other)));
    html! {
        @match most.filter(|endpoint| of(endpoint) > 0.0) {
            Some(most) => {
                " " (counted(total as u64, "request")) " in flight when it was last seen alive, most of them at "
                code { (most.name) } " (" (level(most.in_flight)) ")."
            }
            None => " Nothing was in flight when it was last seen alive.",
        }
    }
}

fn charts(record: &Record) -> Markup {
    const MIB: f64 = 1_048_576.0;
    html! {
        section {
            h2 { "The last seconds" }
            div.grid {
                (over_time(record, "Requests", "a second", |second| {
                    (second.seconds > 0.0).then(|| second.requests as f64 / second.seconds)
                }))
                (over_time(record, "Errors", "a second", |second| {
                    Some(second.errors? * second.requests as f64 / second.seconds.max(0.001))
                }))
                (over_time(record, "p99", "ms", |it| it.times.p99_ms?.estimate().map(|it| it.0)))
                (over_time(record, "In flight", "requests", |second| second.in_flight))
                (over_time(record, "Processor", "cores", |second| second.cpu_cores))
                (over_time(record, "Memory", "MiB", |second| Some(second.memory_bytes? / MIB)))
            }
        }
    }
}

fn seconds(record: &Record) -> Markup {
    let headings =
        ["time", "requests", "errors", "p50", "p99", "in flight", "CPU, cores", "memory", "tasks"];
    let rows = html! {
        @for second in &record.seconds { (row(&clock(second.unix_millis), cells_of_second(second))) }
    };
    html! {
        section {
            h2 { "Second by second" }
            p.note { "Of UTC. The last line has what was counted after the reading before." }
            (data_table(&headings, &rows))
        }
    }
}

fn row(heading: &str, cells: impl IntoIterator<Item = impl Render>) -> Markup {
    html! { tr { th scope="row" { (heading) } @for cell in cells { td { (cell) } } } }
}

/// A chart over the seconds; none where a number is not known.
fn over_time(
    record: &Record,
    title: &str,
    unit: &str,
    number: impl Fn(&Second) -> Option<f64>,
) -> Markup {
    let begin = record.seconds.first().map_or(0, |second| second.unix_millis);
    let seconds: Vec<f64> =
        record.seconds.iter().map(|second| (second.unix_millis - begin) as f64 / 1e3).collect();
    let values: Vec<Option<f64>> = record.seconds.iter().map(number).collect();
    let most = values.iter().flatten().copied().reduce(f64::max);
    if values.iter().flatten().count() < 2 || seconds.last() <= Some(&0.0) {
        return html! {};
    }
    let label =
        format!("{title}, {unit}, over {} s", plain(seconds.last().copied().unwrap_or(0.0)));
    let chart = Chart::new(&seconds, values, label);
    let peak = html! { "peak " (most.map_or_else(|| NONE.to_owned(), plain)) };
    figure(title, unit, Some(&peak), &PreEscaped(chart.to_svg()))
}

fn endpoints(record: &Record) -> Markup {
    let rows = html! {
        @for endpoint in &record.endpoints { (row(&endpoint.name, cells_of_endpoint(endpoint))) }
    };
    html! {
        section {
            h2 { "By endpoint" }
            p.note { "All of these seconds together; in flight when a process was last seen alive." }
            (data_table(&["endpoint", "requests", "errors", "p50", "p90", "p99", "in flight"], &rows))
        }
    }
}

fn remains(region: &Remains) -> Markup {
    let endpoints = html! {
        @for total in &region.endpoints { (row(&total.name, [whole(total.requests)])) }
    };
    let processes = html! {
        @for process in &region.processes {
            tr {
                th scope="row" { (process.pid) }
                td { (if process.alive { "lives" } else { "is gone" }) }
                td { (date(i64::try_from(process.started_unix_millis).unwrap_or(0))) }
            }
        }
    };
    let exemplars = html! {
        @for one in &region.exemplars {
            @let labels = html! { @for (name, label) in &one.labels { code { (name) "=" (label) } " " } };
            (row(&clock(one.unix_millis), [html! { (one.series) }, html! { (value(one)) }, labels]))
        }
    };
    html! {
        section {
            h2 { "What the region holds" }
            p.note { code { (region.source) } ": all requests that were ever counted, to the last one." }
            div.tables {
                (data_table(&["endpoint", "requests"], &endpoints))
                (data_table(&["process", "state", "started"], &processes))
            }
            @if !region.exemplars.is_empty() {
                h2 { "The latest exemplars" }
                (data_table(&["time", "series", "value", "labels"], &exemplars))
            }
        }
    }
}
