//! The values by a Prometheus, beside the study's own samples.

use maud::{Markup, html};
use talea_statistics::figures::{NONE, bytes, measured_or_none, plain, whole_or_none};

use crate::study::{CaseResult, Server};
use talea_view::document::wide_table;

/// Both ways side by side; nothing where no Prometheus took part.
pub(super) fn section(results: &[CaseResult]) -> Markup {
    let both = results
        .iter()
        .filter_map(|case| Some((case, case.server.as_ref()?, case.prometheus.as_ref()?)));
    let both: Vec<(&CaseResult, &Server, &Server)> = both.collect();
    let headings = html! {
        tr {
            th scope="col" { "Case" }
            @for (name, _) in NUMBERS { th.first scope="col" colspan="2" { (name) } }
        }
    };
    let rows = html! {
        @for (case, sampled, scraped) in &both {
            tr {
                th scope="row" { (case.id) }
                @for (_, number) in NUMBERS {
                    td.first { (number(sampled)) }
                    td { (number(scraped)) }
                }
            }
        }
    };
    html! {
        @if !both.is_empty() {
            section {
                h2 { "By Prometheus" }
                p.note {
                    "The first number of each pair is from the study's own samples, the second from \
                     what a Prometheus scraped, by the same reckoning."
                }
                (wide_table("Both ways side by side", "cases both", &headings, &rows))
                (differences(results))
                (queries(results))
            }
        }
    }
}

type Number = (&'static str, fn(&Server) -> String);

const NUMBERS: [Number; 8] = [
    ("Received", |server| whole_or_none(server.requests_received)),
    ("Peak req/s, 2 s", |server| measured_or_none(server.peak_rate_2s)),
    ("Mean, ms", |server| measured_or_none(server.mean_response_ms)),
    ("Tasks created", |server| whole_or_none(server.tasks_created)),
    ("Additional tasks", |server| whole_or_none(server.peak_additional_tasks)),
    ("Ready tasks", |server| whole_or_none(server.peak_ready_tasks)),
    ("CPU, s", |server| measured_or_none(server.cpu_seconds)),
    ("Memory", |server| server.peak_memory_bytes.map_or(NONE.to_owned(), bytes)),
];

fn differences(results: &[CaseResult]) -> Markup {
    let lines = results.iter().flat_map(|case| {
        case.differences.iter().map(move |words| format!("Case {}. {words}", case.id))
    });
    let lines: Vec<String> = lines.collect();
    html! {
        @if lines.is_empty() {
            p.note {
                "No difference exceeds what the second between two scrapes explains."
            }
        } @else {
            @for line in lines { p.wrong { (line) } }
        }
    }
}

fn queries(results: &[CaseResult]) -> Markup {
    let Some(most) = results.iter().map(|case| &case.queries).max_by_key(|all| all.len()) else {
        return html! {};
    };
    let headings = html! {
        tr { th scope="col" { "" } @for case in results { th.first scope="col" { (case.id) } } }
    };
    let rows = html! {
        @for (n, query) in most.iter().enumerate() {
            tr {
                th scope="row" {
                    (query.title)
                    @if !query.unit.is_empty() { ", " (query.unit) }
                    code.unit { (query.query) }
                }
                @for case in results {
                    td.first {
                        @if let Some(query) = case.queries.get(n) {
                            (query.found.map_or(NONE.to_owned(), plain))
                            span.unit { (query.sampled.map_or(NONE.to_owned(), plain)) }
                        }
                    }
                }
            }
        }
    };
    html! {
        h3 { "The queries of appendix E" }
        (wide_table("The queries of appendix E", "cases queries", &headings, &rows))
        p.note {
            "Below each figure is the figure from the study's samples. " code { "increase()" } " and "
            code { "rate()" } " extrapolate to the edges of their window; a window of 2 s sees two \
            or three scrapes; a peak between two scrapes is not seen. The time in a query is that \
            of its own case."
        }
    }
}
