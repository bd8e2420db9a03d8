//! The section of one case.

use maud::{Markup, PreEscaped, html};

use super::heat;
use super::metrics::{self, Key, Metric};
use super::table::briefly;
use crate::figures::{NONE, counted, measured, measured_or_none, whole, whole_or_none};
use crate::study::{Between, CaseResult, Clients, Server};

pub(super) fn section(result: &CaseResult) -> Markup {
    let server = result.server.as_ref();
    html! {
        section.case id=(anchor(result)) {
            h2 { span.badge { (result.id) } (result.model) }
            @for line in briefly(result) { p.wrong { (line) } }
            div.grid {
                (facts(result))
                (percentiles(&result.client, server))
                (steps(&result.client))
                (heat_map(result))
                @for metric in metrics::of(result) { (figure(&metric)) }
                (answers(&result.client))
            }
        }
    }
}

/// Where links to the case lead.
pub(super) fn anchor(result: &CaseResult) -> String {
    format!("case-{}", result.id.replace(['/', ':'], "-"))
}

fn facts(result: &CaseResult) -> Markup {
    let client = &result.client;
    let mut facts = vec![
        ("Requests sent", whole(client.requests_sent)),
        ("Failed", whole(client.failed)),
        ("Client time", format!("{} s", measured(client.seconds))),
        ("Mean rate", format!("{} req/s", measured_or_none(client.mean_rate))),
        (
            "Connections",
            match client.reconnects {
                0 => whole(client.connections),
                again => format!("{}, {} anew", whole(client.connections), whole(again)),
            },
        ),
        ("Generator", format!("{} cores", measured(client.generator_cores))),
    ];
    if let Some(server) = &result.server {
        facts.insert(1, ("Requests received", whole_or_none(server.requests_received)));
        facts.push(("Server CPU", format!("{} s", measured_or_none(server.cpu_seconds))));
        if let Some((waited, connections)) = server.peak_pool_pending.zip(server.pool_max) {
            let text = format!("{}, for {}", whole(waited), counted(connections, "connection"));
            facts.push(("Waiting at once", text));
        }
    }
    html! {
        dl.card.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// Response times at the clients, with the server's beside them.
fn percentiles(client: &Clients, server: Option<&Server>) -> Markup {
    let mean = server.and_then(|server| server.mean_response_ms).map(measured);
    let p50 = server.and_then(|server| server.p50_ms).map(between);
    let p99 = server.and_then(|server| server.p99_ms).map(between);
    let rows = [
        ("mean", client.mean_ms, mean),
        ("p50", client.p50_ms, p50),
        ("p90", client.p90_ms, None),
        ("p99", client.p99_ms, p99),
        ("p99.9", client.p999_ms, None),
        ("p99.99", client.p9999_ms, None),
        ("longest", client.max_ms, None),
    ];
    let longest = client.max_ms.unwrap_or(1.0);
    html! {
        div.card.percentiles {
            table {
                caption { b { "Response time" } span.unit { "ms" } }
                thead { tr { th {} th scope="col" { "clients" } th {} th scope="col" { "server" } } }
                tbody {
                    @for (name, client, server) in rows {
                        tr {
                            th scope="row" { (name) }
                            td { (measured_or_none(client)) }
                            td.bar {
                                @if let Some(ms) = client {
                                    span style=(format!("width:{:.1}%", share(ms, longest))) {}
                                }
                            }
                            td { (server.as_deref().unwrap_or(NONE)) }
                        }
                    }
                }
            }
            p.note {
                "Bars are logarithmic. Of the server's own percentiles its histogram gives the \
                 bucket."
            }
        }
    }
}

/// Which of the requests are slow, and which fail, if there are several.
fn steps(client: &Clients) -> Markup {
    let slowest = client.steps.iter().filter_map(|step| step.p99_ms).fold(0.0, f64::max);
    html! {
        @if client.steps.len() > 1 {
            div.card.percentiles {
                table {
                    caption { b { "By step" } span.unit { "ms at the clients" } }
                    thead {
                        tr {
                            th {} th scope="col" { "answers" } th scope="col" { "failed" }
                            th scope="col" { "p50" } th scope="col" { "p90" } th scope="col" { "p99" }
                            th {}
                        }
                    }
                    tbody {
                        @for step in &client.steps {
                            tr {
                                th scope="row" { (step.name) }
                                td { (whole(step.answers)) }
                                td.wrong[step.failed > 0] { (whole(step.failed)) }
                                td { (measured_or_none(step.p50_ms)) }
                                td { (measured_or_none(step.p90_ms)) }
                                td { (measured_or_none(step.p99_ms)) }
                                td.bar {
                                    @if let Some(ms) = step.p99_ms {
                                        span style=(format!("width:{:.1}%", share(ms, slowest))) {}
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `10–25`.
fn between(range: Between) -> String {
    match range.high {
        Some(high) => format!("{}–{}", short(range.low), short(high)),
        None => format!("above {}", short(range.low)),
    }
}

/// A threshold as it was written.
fn short(ms: f64) -> String {
    ((ms * 1e6).round() / 1e6).to_string()
}

/// How long a bar is, in hundredths: on a logarithmic scale of four powers of ten.
fn share(ms: f64, longest: f64) -> f64 {
    const POWERS: f64 = 4.0;
    ((ms / longest).log10() / POWERS + 1.0).clamp(0.02, 1.0) * 100.0
}

fn heat_map(result: &CaseResult) -> Markup {
    let times = &result.client.times;
    let label = format!("Case {}: how many answers took how long, over time.", result.id);
    html! {
        @if let Some(map) = heat::heat(times, &label) {
            figure.card {
                figcaption {
                    span { b { "Response times" } span.unit { "ms at the clients, logarithmic" } }
                    span.headline { "longest " (measured_or_none(result.client.max_ms)) }
                }
                (map)
                (heat::key(times))
            }
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
                Some(Key::BothSides { server }) => {
                    p.key {
                        span.thick {} "clients, p50" span.peak {} "clients, p99"
                        @if server { span.third {} "server, mean" }
                    }
                }
                Some(Key::UsedAndPending) => {
                    p.key { span.thick {} "in use" span.peak {} "requests that wait" }
                }
                None => {}
            }
        }
    }
}

/// Answers by status, and failures by kind.
fn answers(client: &Clients) -> Markup {
    html! {
        div.card.kinds {
            table {
                caption { b { "Answers" } span.unit { "by status, and what failed" } }
                tbody {
                    @for (status, count) in &client.answers_by_status {
                        tr { th scope="row" { (status) } td { (whole(*count)) } }
                    }
                    @for failure in &client.failures {
                        tr.wrong { th scope="row" { (failure.kind) } td { (whole(failure.count)) } }
                    }
                    @if client.answers_by_status.is_empty() && client.failures.is_empty() {
                        tr { th scope="row" { "nothing was sent" } td { (NONE) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_described_by_its_thresholds() {
        assert_eq!(between(Between { low: 0.25, high: Some(0.5) }), "0.25–0.5");
        assert_eq!(between(Between { low: 0.1 * 3.0 * 1e3, high: None }), "above 300");
    }

    #[test]
    fn a_bar_is_as_long_as_its_time_on_a_logarithmic_scale() {
        assert_eq!(share(100.0, 100.0), 100.0);
        assert_eq!(share(1.0, 100.0), 50.0);
        assert_eq!(share(1e-9, 100.0), 2.0, "it can still be seen");
    }
}
