//! The page. Every text that goes into it is escaped by the template; only the charts, which
//! [`talea_view::chart`] draws, go in as they are.

use maud::{Markup, PreEscaped, html};
use talea_statistics::figures::{NONE, count, counted, whole, whole_or_none};

use super::pairs::{self, Pair};
use super::table::{Column, briefly, columns, counted_scrapes, unsampled, untimed};
use super::thresholds::thresholds;
use super::{analysis, case, prometheus, provenance, rounds, throughput};
use crate::compare::Judgement;
use crate::study::{CaseResult, Study};
use talea_view::document::{document, figure, wide_table};

pub(crate) fn page(study: &Study, judgements: &[Judgement]) -> String {
    let body = html! {
        (opening(study, judgements))
        (conclusions(study))
        section {
            h2 { "All cases" }
            (table(&study.cases))
            @for words in study.cases.iter().filter_map(counted_scrapes) { p.note { (words) } }
            @for words in study.cases.iter().filter_map(untimed) { p.note { (words) } }
            @for words in study.cases.iter().filter_map(unsampled) { p.note { (words) } }
            (legend())
        }
        (all_pairs(&pairs::of(&study.cases)))
        (against_clients(&study.cases))
        (prometheus::section(&study.cases))
        (rounds::section(&study.cases))
        @for result in &study.cases { (case::section(result)) }
        (provenance::section(study))
    };
    let Study { scenario, subject, begun, .. } = study;
    document(&format!("{scenario} against {subject}: {}, {begun}", case_list(study)), &body)
}

fn all_pairs(pairs: &[Pair<'_>]) -> Markup {
    html! {
        @if !pairs.is_empty() {
            section {
                h2 { "The same requests, differently distributed" }
                p.note {
                    "Each pair makes the same number of requests, once by many clients \
                     with few iterations and once by few clients with many."
                }
                div.pairs { @for pair in pairs { (pair_table(pair)) } }
            }
        }
    }
}

fn opening(study: &Study, judgements: &[Judgement]) -> Markup {
    let total: u64 = study.cases.iter().map(|result| result.client.requests_sent).sum();
    let compared =
        study.cases.iter().all(|result| result.server_values().requests_received.is_some());
    let wrong: Vec<String> = study.cases.iter().flat_map(briefly).collect();
    html! {
        header {
            p.eyebrow { "Talea load study" }
            h1 { (study.scenario) " against " code { (study.subject) } }
            p.note {
                (study.begun) ", " (study.machine.cpu_model) ", " (counted(study.machine.cores, "core")) ", "
                (study.machine.os)
            }
            p.lead {
                "In each case clients run " b { (study.scenario) } ": " (study.steps.join(", "))
                @if study.started {
                    ", against a service in a process of its own (" code { (study.subject) } "). "
                } @else {
                    ", against " code { (study.subject) } ". "
                }
                @if study.cases.iter().any(|case| case.iterations.is_some()) {
                    b { "N" } " clients run it " b { "M" } " times each, and each waits for its \
                        response before it sends the next request: " b { "T = N · M · " (study.steps.len()) }
                    " requests. "
                }
                @if study.emptied { "The database is emptied before each case. " }
                "The server's numbers are read from its own metrics, the clients' numbers from the \
                 clients; neither is reckoned from the other."
            }
            @if wrong.is_empty() {
                p.verdict.good {
                    span.mark aria-hidden="true" { "✓" }
                    span {
                        @if compared {
                            b { (counted(total, "request")) " sent and received, and no request \
                                failed." }
                            " Clients and server agree in every case. "
                            (scrapes(study))
                        } @else {
                            b { (counted(total, "request")) " sent, and no request failed." }
                            " The service has no metrics that show what it received."
                        }
                    }
                }
            } @else {
                div.verdict.bad {
                    span.mark aria-hidden="true" { "!" }
                    div {
                        @for line in &wrong { p { (line) } }
                        @if study.scrapes > 0 { p { (scrapes(study)) } }
                    }
                }
            }
            (thresholds(judgements))
        }
    }
}

fn scrapes(study: &Study) -> String {
    let scrapes = counted(study.scrapes, "scrape");
    let counted = study.cases.iter().filter_map(|case| case.server.as_ref()?.scrapes_counted);
    match counted.sum::<u64>() {
        0 => format!("{scrapes} of the metrics are not counted as requests."),
        counted => format!(
            "{scrapes} of the metrics: {} received, since the service counts them.",
            count(counted, "is among the requests", "are among the requests")
        ),
    }
}

fn table(results: &[CaseResult]) -> Markup {
    // Metrics that the service does not report are left out.
    let (columns, _) = columns(results);
    let groups: Vec<&[&Column]> = columns.chunk_by(|one, other| one.group == other.group).collect();
    let numbers = || groups.iter().skip(1);
    let headings = html! {
        tr.groups {
            th rowspan="2" scope="col" { "Case" }
            @for group in numbers() {
                th colspan=(group.len()) scope="colgroup" { span { (group[0].group) } }
            }
        }
        tr {
            @for group in numbers() {
                @for (n, column) in group.iter().enumerate() {
                    th.first[n == 0] scope="col" { (column.title) }
                }
            }
        }
    };
    let rows = html! {
        @for result in results {
            tr {
                th scope="row" { a href=(format!("#{}", case::anchor(result))) { (result.id) } }
                @for group in numbers() {
                    @for (n, column) in group.iter().enumerate() {
                        td.first[n == 0].wrong[(column.is_wrong)(result)] { ((column.of)(result)) }
                    }
                }
            }
        }
    };
    wide_table("All cases", "cases", &headings, &rows)
}

/// The conclusions from the numbers; nothing if there are none.
fn conclusions(study: &Study) -> Markup {
    let sentences = analysis::sentences(study);
    html! {
        @if !sentences.is_empty() {
            section {
                h2 { "The numbers in words" }
                div.card.words { @for sentence in &sentences { p { (sentence) } } }
            }
        }
    }
}

/// Throughput and response time against the number of clients.
fn against_clients(cases: &[CaseResult]) -> Markup {
    let cases = throughput::by_clients(cases);
    let chart = |title, unit, is_logarithmic, value: fn(&CaseResult) -> Option<f64>| {
        let label = format!("{title} against the number of clients.");
        let chart = throughput::chart(&cases, &label, is_logarithmic, value)?;
        Some(figure(title, unit, None, &PreEscaped(chart)))
    };
    let by_number = "ms at the clients, by their number; both logarithmic";
    let charts = [
        chart("Requests a second", "mean of a case, by its clients", false, |it| {
            it.client.mean_rate
        }),
        chart("Median response time", by_number, true, |case| case.client.p50_ms),
        chart("p99 response time", by_number, true, |case| case.client.p99_ms),
    ];
    html! {
        @if charts.iter().any(Option::is_some) {
            section {
                h2 { "Against the number of clients" }
                div.grid { @for chart in charts.iter().flatten() { (chart) } }
                @if cases.iter().any(|case| case.client.requests_censored > 0) {
                    p.note {
                        "In some cases requests timed out or were cut off: a response time that lies among them is a \
                         lower bound, and its point may be too low."
                    }
                }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        p.note {
            "The numbers at the server come from its own metrics: " b { "mean" } " and " b { "p99" }
            " from its histogram of response times, the " b { "peak" } " rate from the best full 2 s, \
             or the whole case if that is shorter. The clients' " b { "mean" } " rate is sent ÷ time. "
            "Tasks are those that serve connections; their peaks are high-water marks that the "
            "server keeps, not the largest sample. A task is " i { "ready" } " when it was woken and has not been polled yet. "
            (NONE) " marks less than two samples."
        }
    }
}

fn pair_table(pair: &Pair<'_>) -> Markup {
    let Pair { many, few } = pair;
    let rows = pair.rows();
    html! {
        div.card {
            table.pair {
                thead {
                    tr {
                        th scope="col" { (counted(many.client.requests_sent, "request")) }
                        @for result in [many, few] {
                            th scope="col" {
                                (result.id)
                                span.sizes { (whole(result.clients)) " × " (whole_or_none(result.iterations)) }
                            }
                        }
                        th scope="col" { (many.id) " ÷ " (few.id) }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { (row.name) }
                            td { (row.many) }
                            td { (row.few) }
                            td.ratio { (row.times) }
                        }
                    }
                }
            }
            @if let Some(words) = pair.in_words() { p.note { (words) } }
        }
    }
}

fn case_list(study: &Study) -> String {
    let ids: Vec<&str> = study.cases.iter().map(|result| result.id.as_str()).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_begins_with_its_service_its_time_and_its_machine() {
        let mut study = Study {
            subject: "shop <b>".to_owned(),
            scenario: "crud".to_owned(),
            begun: "2026-11-28T08:35:17Z".to_owned(),
            ..Study::default()
        };
        (study.machine.cpu_model, study.machine.cores) = ("EPYC".to_owned(), 2);
        let page = page(&study, &[]);
        let opening = page.split_once("</header>").unwrap().0;
        for words in
            ["crud against <code>shop &lt;b&gt;</code>", "2026-11-28T08:35:17Z, EPYC, 2 cores"]
        {
            assert!(opening.contains(words), "{words}: {opening}");
        }
        assert!(page.contains("<title>crud against shop &lt;b&gt;: "), "{opening}");
    }
}
