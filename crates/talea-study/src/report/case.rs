//! The section of one case.

use maud::{Markup, PreEscaped, html};
use talea_statistics::figures::{
    NONE, bytes, counted, measured, measured_or_none, whole, whole_or_none,
};

use super::metrics::{self, Key, Metric};
use super::table::briefly;
use super::{heat, latencies};
use crate::study::{CaseResult, Clients};
use talea_view::document::figure as titled;

/// The fewest points that make a chart.
const ENOUGH: usize = 3;

pub(super) fn section(result: &CaseResult) -> Markup {
    let server = result.server.as_ref();
    let (charts, numbers): (Vec<_>, Vec<_>) =
        metrics::of(result).into_iter().partition(|metric| metric.chart.points() >= ENOUGH);
    html! {
        section.case id=(anchor(result)) {
            h2 { span.badge { (result.id) } (result.model) }
            @for line in briefly(result) { p.wrong { (line) } }
            @for line in without_answer(&result.client) { p.note { (line) } }
            div.tables {
                (latencies::percentiles(&result.client, server))
                (facts(result))
                (latencies::steps(&result.client))
                @if let Some(server) = server { (latencies::endpoints(&server.endpoints)) }
            }
            div.grid {
                (heat_map(result))
                @for metric in &charts { (figure(metric)) }
                @if !numbers.is_empty() { (too_short(&numbers)) }
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
    let in_ms = |field, ms: Option<f64>| {
        ms.map_or(NONE.to_owned(), |_| format!("{} ms", client.shown(field, ms)))
    };
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
        ("To connect, p99", in_ms("connect_p99_ms", client.phases.connect_p99_ms)),
        ("To the head, p99", in_ms("head_p99_ms", client.phases.head_p99_ms)),
        ("Bodies received", bytes(client.phases.bytes_received)),
        ("Generator", format!("{} cores", measured(client.generator_cores))),
    ];
    facts.retain(|(_, value)| value != NONE);
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

/// What requests without an answer count for in the times.
fn without_answer(client: &Clients) -> impl Iterator<Item = String> {
    let censored = (client.requests_censored > 0).then(|| {
        format!(
            "{} without a response timed out or were cut off: in the clients' times they count as \
             at least the time waited, and ≥ marks a figure that lies among them.",
            counted(client.requests_censored, "request")
        )
    });
    let untimed = (client.requests_untimed > 0).then(|| {
        let untimed = counted(client.requests_untimed, "request");
        format!("{untimed} failed otherwise without a response and have no response time.")
    });
    censored.into_iter().chain(untimed)
}

fn heat_map(result: &CaseResult) -> Markup {
    let times = &result.client.times;
    let label = format!("Case {}: how many requests took how long, over time.", result.id);
    html! {
        @if let Some(map) = heat::heat(times, &label).filter(|_| times.seconds.len() >= ENOUGH) {
            @let longest = html! { "longest " (result.client.shown("max_ms", result.client.max_ms)) };
            @let drawing = html! { (map) (heat::key(times)) };
            (titled("Response times", "ms at the clients, logarithmic", Some(&longest), &drawing))
        }
    }
}

/// The metrics that a case was too short to show over time, as numbers.
fn too_short(metrics: &[Metric<'_>]) -> Markup {
    html! {
        dl.card.facts {
            div { dt { b { "Over time" } span.unit { "too short for charts" } } dd {} }
            @for metric in metrics {
                div { dt { (metric.title) span.unit { (metric.unit) } } dd { (metric.headline) } }
            }
        }
    }
}

fn figure(metric: &Metric<'_>) -> Markup {
    let key = metric.key.map(|key| match key {
        Key::NowAndPeak => html! { span.thick {} "when sampled" span.peak {} "most so far" },
        Key::FullAndShorter => {
            html! { span.thick {} "over 2 s" span.thin {} "over less, at the beginning" }
        }
        Key::ShorterAlone => html! { span.thin {} "over less: the case is shorter than 2 s" },
        Key::BothSides { server } => html! {
            span.thick {} "clients, p50" span.peak {} "clients, p99"
            @if server { span.third {} "server, mean" }
        },
        Key::UsedAndPending => html! { span.thick {} "in use" span.peak {} "requests that wait" },
    });
    let drawing = html! {
        (PreEscaped(metric.chart.to_svg()))
        @if let Some(key) = key { p.key { (key) } }
    };
    titled(metric.title, metric.unit, Some(&html! { (metric.headline) }), &drawing)
}

fn answers(client: &Clients) -> Markup {
    html! {
        div.card.kinds {
            table {
                caption { b { "Responses" } span.unit { "by status, and what failed" } }
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
