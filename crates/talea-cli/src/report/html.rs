//! The page. Every text that goes into it is escaped by the template; only the charts, which
//! [`super::chart`] draws, go in as they are.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::metrics::{self, Key, Metric};
use super::pairs::{self, Pair};
use super::seen;
use super::table::in_words;
use crate::figures::{NONE, bytes, counted, measured, measured_or_none, whole, whole_or_none};
use crate::study::{Finding, Study};

/// The whole report as one HTML file.
pub fn page(study: &Study) -> String {
    let pairs = pairs::of(&study.cases);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Load study: " (case_list(study)) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                main {
                    (opening(study))
                    section {
                        h2 { "All cases" }
                        (table(&study.cases))
                        (legend())
                    }
                    @if !pairs.is_empty() {
                        section {
                            h2 { "The same requests, differently distributed" }
                            p.note {
                                "Each pair makes the same number of requests, once by many clients \
                                 with few iterations and once by few clients with many."
                            }
                            div.pairs { @for pair in &pairs { (pair_table(pair)) } }
                        }
                    }
                    @for finding in &study.cases { (case(finding)) }
                    (provenance(study))
                }
            }
        }
    }
    .into_string()
}

fn opening(study: &Study) -> Markup {
    let total: u64 = study.cases.iter().map(|finding| finding.client.requests_sent).sum();
    let wrong: Vec<String> = study.cases.iter().flat_map(in_words).collect();
    html! {
        header {
            p.eyebrow { "Talea load study" }
            h1 { "How the API behaves as clients pile up" }
            p.lead {
                "In each case " b { "N" } " concurrent clients run " b { "M" } " times the sequence \
                 create, list, get, update, delete against an API in a process of its own, each \
                 waiting for its answer before it sends the next request: "
                b { "T = N · M · 5" } " requests. The database is emptied before each case. The \
                 server's numbers are read from its own metrics, the clients' numbers from the \
                 clients; neither is reckoned from the other."
            }
            @if wrong.is_empty() {
                p.verdict.good {
                    span.mark aria-hidden="true" { "✓" }
                    span {
                        b { (counted(total, "request")) " sent and received, none failed." }
                        " Clients and server agree in every case. "
                        (scrapes(study))
                    }
                }
            } @else {
                div.verdict.bad {
                    span.mark aria-hidden="true" { "!" }
                    div {
                        @for line in &wrong { p { (line) } }
                        p { (scrapes(study)) }
                    }
                }
            }
        }
    }
}

fn scrapes(study: &Study) -> String {
    format!("{} of the metrics are not among them.", counted(study.scrapes, "scrape"))
}

fn table(findings: &[Finding]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="All cases" {
            table.cases {
                thead {
                    tr.groups {
                        th rowspan="2" scope="col" { "Case" }
                        th colspan="2" scope="colgroup" { span { "Load" } }
                        th colspan="3" scope="colgroup" { span { "Requests" } }
                        th colspan="2" scope="colgroup" { span { "Time, s" } }
                        th colspan="2" scope="colgroup" { span { "Requests/s" } }
                        th colspan="3" scope="colgroup" { span { "Response time, ms" } }
                        th colspan="2" scope="colgroup" { span { "Server tasks, peak" } }
                    }
                    tr {
                        th.first scope="col" { "N" } th scope="col" { "M" }
                        th.first scope="col" { "sent" } th scope="col" { "received" }
                        th scope="col" { "failed" }
                        th.first scope="col" { "clients" } th scope="col" { "server CPU" }
                        th.first scope="col" { "mean" } th scope="col" { "peak 2 s" }
                        th.first scope="col" { "mean" } th scope="col" { "p50" }
                        th scope="col" { "p99" }
                        th.first scope="col" { "additional" } th scope="col" { "ready" }
                    }
                }
                tbody {
                    @for finding in findings {
                        tr {
                            th scope="row" { a href=(format!("#{}", anchor(finding))) { (finding.id) } }
                            td.first { (whole(finding.clients)) }
                            td { (whole_or_none(finding.iterations)) }
                            td.first { (whole(finding.client.requests_sent)) }
                            td.wrong[finding.disagreement.is_some()] {
                                (whole_or_none(seen(finding).requests_received))
                            }
                            td.wrong[finding.client.failed > 0] { (whole(finding.client.failed)) }
                            td.first { (measured(finding.client.seconds)) }
                            td { (measured_or_none(seen(finding).cpu_seconds)) }
                            td.first { (measured_or_none(finding.client.mean_rate)) }
                            td { (measured_or_none(seen(finding).peak_rate_2s)) }
                            td.first { (measured_or_none(seen(finding).mean_response_ms)) }
                            td { (measured_or_none(finding.client.p50_ms)) }
                            td { (measured_or_none(finding.client.p99_ms)) }
                            td.first { (whole_or_none(seen(finding).peak_additional_tasks)) }
                            td { (whole_or_none(seen(finding).peak_ready_tasks)) }
                        }
                    }
                }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        p.note {
            b { "Received" } ", " b { "server CPU" } ", " b { "peak 2 s" } ", " b { "mean" }
            " response time and " b { "tasks" } " come from the server's metrics; "
            b { "sent" } ", " b { "failed" } ", " b { "clients" } " time, " b { "mean" }
            " rate (sent ÷ time), " b { "p50" } " and " b { "p99" } " from the clients. "
            "Tasks are those that serve connections; their peaks are high-water marks that the "
            "server keeps, not the largest sample. A task is " i { "ready" } " when it was woken and has not been polled yet. "
            "The peak rate is that of the best full 2 s; of the whole case where that is shorter; "
            (NONE) " where there are not two samples."
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
                        @for finding in [many, few] {
                            th scope="col" {
                                (finding.id)
                                span.sizes { (whole(finding.clients)) " × " (whole_or_none(finding.iterations)) }
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
        }
    }
}

fn case(finding: &Finding) -> Markup {
    html! {
        section.case id=(anchor(finding)) {
            h2 {
                span.badge { (finding.id) }
                (finding.model)
            }
            @for line in in_words(finding) { p.wrong { (line) } }
            div.grid {
                (facts(finding))
                @for metric in metrics::of(finding, &seen(finding)) { (figure(&metric)) }
            }
        }
    }
}

fn facts(finding: &Finding) -> Markup {
    let milliseconds = |number| format!("{} ms", measured_or_none(number));
    let facts = [
        ("Requests sent", whole(finding.client.requests_sent)),
        ("Requests received", whole_or_none(seen(finding).requests_received)),
        ("Failed", whole(finding.client.failed)),
        ("Client time", format!("{} s", measured(finding.client.seconds))),
        ("Mean rate", format!("{} req/s", measured_or_none(finding.client.mean_rate))),
        (
            "p50, p99 at the clients",
            format!(
                "{}, {}",
                measured_or_none(finding.client.p50_ms),
                milliseconds(finding.client.p99_ms)
            ),
        ),
        ("Server CPU", format!("{} s", measured_or_none(seen(finding).cpu_seconds))),
    ];
    html! {
        dl.card.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

fn figure(metric: &Metric<'_>) -> Markup {
    html! {
        figure.card {
            figcaption {
                span { b { (metric.title) } span.unit { (metric.unit) } }
                span.headline { (metric.headline) }
            }
            (PreEscaped(metric.chart.to_svg()))
            @match metric.key {
                Some(Key::NowAndPeak) => {
                    p.key { span.thick {} "when sampled" span.peak {} "most so far" }
                }
                Some(Key::FullAndShorter) => {
                    p.key { span.thick {} "over 2 s" span.thin {} "over less, at the beginning" }
                }
                Some(Key::ShorterAlone) => {
                    p.key { span.thin {} "over less: the case is shorter than 2 s" }
                }
                None => {}
            }
        }
    }
}

fn provenance(study: &Study) -> Markup {
    let machine = &study.machine;
    let memory = machine.memory_bytes.map_or(NONE.to_owned(), bytes);
    let rows = [
        ("Processor", format!("{}, {}", machine.cpu_model, counted(machine.cores, "core"))),
        ("Memory", memory),
        ("System", format!("{}, {}, {}", machine.os, machine.kernel, machine.architecture)),
        ("Talea", format!("{}, {} build", study.versions.talea, study.versions.build)),
        ("API", study.versions.subject.clone()),
        ("Begun", study.begun.clone()),
        (
            "Sampled",
            format!(
                "every {} ms and at the end of each case, {} in all",
                study.sampled_every_ms,
                counted(study.scrapes, "scrape")
            ),
        ),
    ];
    html! {
        section {
            h2 { "Where this comes from" }
            dl.card.provenance {
                @for (name, value) in rows { div { dt { (name) } dd { (value) } } }
                div { dt { "Again" } dd { code { (study.command) } } }
            }
            p.note {
                "Clients and server share the machine. Response times at the clients run from the \
                 start of a request to the end of the answer's body, without connecting; those of \
                 the server are its own measurement. All numbers and series are in "
                code { "report.json" } "."
            }
        }
    }
}

fn case_list(study: &Study) -> String {
    let ids: Vec<&str> = study.cases.iter().map(|finding| finding.id.as_str()).collect();
    ids.join(", ")
}

fn anchor(finding: &Finding) -> String {
    format!("case-{}", finding.id)
}
