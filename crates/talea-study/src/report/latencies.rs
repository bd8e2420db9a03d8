//! Response times in tables: by quantile, by step, by endpoint; each row with a bar on a scale that all
//! rows of the table share.

use maud::{Markup, html};
use talea_statistics::figures::{NONE, measured, measured_or_none, whole, whole_or_none};

use super::table::in_ms;
use crate::study::{Clients, EndpointSummary, Server};
use talea_view::chart::short;
use talea_view::families::{Between, Quantiles};

/// Response times at the clients, with the server's beside them.
pub(super) fn percentiles(client: &Clients, server: Option<&Server>) -> Markup {
    let quantiles = server.map(|server| server.quantiles.clone()).unwrap_or_default();
    let mean = server.and_then(|server| server.mean_response_ms);
    let rows = [
        ("mean", "mean_ms", client.mean_ms, mean.map(Found::Exact)),
        ("p50", "p50_ms", client.p50_ms, quantiles.p50_ms.map(Found::Quantile)),
        ("p90", "p90_ms", client.p90_ms, quantiles.p90_ms.map(Found::Quantile)),
        ("p99", "p99_ms", client.p99_ms, quantiles.p99_ms.map(Found::Quantile)),
        ("p99.9", "p999_ms", client.p999_ms, None),
        ("p99.99", "p9999_ms", client.p9999_ms, None),
        ("longest", "max_ms", client.max_ms, None),
    ];
    let at_clients = rows.iter().filter_map(|(_, _, client, _)| *client);
    let at_server = rows.iter().filter_map(|(.., server)| server.as_ref()?.known());
    let scale = Scale::over(at_clients.chain(at_server));
    let has_server = rows.iter().any(|(.., server)| server.is_some());
    let exactness = within(rows.iter().filter_map(|(.., server)| server.as_ref()));
    let columns: &[&str] = if has_server { &["clients", "server"] } else { &["clients"] };
    let rows = html! {
        @for (name, field, at_client, server) in &rows {
            tr {
                th scope="row" { (name) }
                td { (client.shown(field, *at_client)) }
                @if has_server { td { (server.as_ref().map_or(NONE.to_owned(), Found::text)) } }
                td.bar {
                    @if let Some(ms) = at_client { (scale.bar(*ms, "client")) }
                    @if let Some(ms) = server.as_ref().and_then(Found::known) {
                        (scale.bar(ms, "server"))
                    }
                }
            }
        }
    };
    let below = html! {
        @if has_server {
            p.key { span.thick {} "clients" span.third {} "server" }
            p.note { (exactness) }
        }
    };
    card("Response time", "ms", columns, &rows, &scale, &below)
}

/// A table whose rows end with a bar, on a scale that the foot shows.
fn card(
    title: &str,
    unit: &str,
    columns: &[&str],
    rows: &Markup,
    scale: &Scale,
    below: &Markup,
) -> Markup {
    html! {
        div.card.latencies {
            table {
                caption { b { (title) } span.unit { (unit) } }
                thead {
                    tr { th {} @for column in columns { th scope="col" { (column) } } th {} }
                }
                tbody { (rows) }
                (scale.axis(columns.len() + 1))
            }
            (below)
        }
    }
}

/// The steps, if there are several: which are slow, and which fail.
pub(super) fn steps(client: &Clients) -> Markup {
    let steps = &client.steps;
    let scale = Scale::over(steps.iter().flat_map(|step| [step.p50_ms, step.p99_ms]).flatten());
    let rows = html! {
        @for step in steps {
            tr {
                th scope="row" { (step.name) }
                td { (whole(step.answers)) }
                td.wrong[step.failed > 0] { (whole(step.failed)) }
                @for (field, ms) in [("p50_ms", step.p50_ms), ("p90_ms", step.p90_ms), ("p99_ms", step.p99_ms)] {
                    td { (step.at_least.shown(field, ms)) }
                }
                td.bar {
                    @if let Some((p50, p99)) = step.p50_ms.zip(step.p99_ms) {
                        (scale.range(p50, p99, "client"))
                    }
                }
            }
        }
    };
    let columns = ["responses", "failed", "p50", "p90", "p99"];
    let below = html! { p.note { "Bars go from p50 to p99." } };
    html! {
        @if steps.len() > 1 {
            (card("By step", "ms at the clients", &columns, &rows, &scale, &below))
        }
    }
}

/// The endpoints by the server's own histogram: which are slow.
pub(super) fn endpoints(endpoints: &[EndpointSummary]) -> Markup {
    let of = |quantiles: &Quantiles| quantiles.each().map(|it| it.map(Found::Quantile));
    let all = endpoints.iter().flat_map(|it| of(&it.quantiles)).flatten().collect::<Vec<_>>();
    let scale = Scale::over(all.iter().filter_map(Found::known));
    let rows = html! {
        @for EndpointSummary { name, requests, failed, mean_ms, quantiles, .. } in endpoints {
            @let found = of(quantiles);
            tr {
                th.name scope="row" { (name) }
                td { (whole(*requests)) }
                td { (whole_or_none(*failed)) }
                td { (measured_or_none(*mean_ms)) }
                @for one in &found { td { (one.as_ref().map_or(NONE.to_owned(), Found::text)) } }
                td.bar {
                    @let [p50, _, p99] = found.map(|it| it?.known());
                    @if let Some((p50, p99)) = p50.zip(p99) { (scale.range(p50, p99, "server")) }
                }
            }
        }
    };
    let columns = ["requests", "failed", "mean", "p50", "p90", "p99"];
    let below = html! { p.note { "Failed: a status from 500 on. Bars go from p50 to p99. " (within(all.iter())) } };
    html! {
        @if !endpoints.is_empty() {
            (card("By endpoint", "ms at the server", &columns, &rows, &scale, &below))
        }
    }
}

enum Found {
    Exact(f64),
    Quantile(Between),
}

impl Found {
    /// The number, if it is known well enough for a bar.
    fn known(&self) -> Option<f64> {
        match self {
            Self::Exact(ms) => Some(*ms),
            Self::Quantile(found) => found.estimate().map(|(ms, _)| ms),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Exact(ms) => measured(*ms),
            Self::Quantile(found) => in_ms(*found),
        }
    }
}

/// How exact the server's quantiles are, in words.
fn within<'a>(all: impl Iterator<Item = &'a Found>) -> String {
    let (mut most, mut has_buckets) = (0.0f64, false);
    for found in all {
        let Found::Quantile(found) = found else { continue };
        match found.estimate() {
            Some((_, error)) => most = most.max(error),
            None => has_buckets = true,
        }
    }
    match (most > 0.0, has_buckets) {
        (true, _) => format!(
            "The server's quantiles are within {:.1} %: the native buckets of its histogram.",
            most * 100.0
        ),
        (false, true) => "The server's histogram gives the bucket of each quantile.".to_owned(),
        (false, false) => String::new(),
    }
}

/// A logarithmic scale from one mark of 1, 2 and 5 times a power of ten to another.
#[derive(Clone, Debug, PartialEq)]
struct Scale {
    marks: Vec<f64>,
}

impl Scale {
    /// The shortest that holds some values; of none, an empty one.
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let (least, most) =
            positive.fold((f64::MAX, 0.0f64), |(least, most), ms| (least.min(ms), most.max(ms)));
        if most == 0.0 {
            return Self { marks: Vec::new() };
        }
        let powers = least.log10().floor() as i32 - 1..=most.log10().ceil() as i32 + 1;
        let all: Vec<f64> =
            powers.flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power))).collect();
        let first = all.partition_point(|mark| *mark <= least).saturating_sub(1);
        let last = all.partition_point(|mark| *mark < most).max(first + 1);
        Self { marks: all[first..=last.min(all.len() - 1)].to_vec() }
    }

    /// Where a value lies, in hundredths of the scale.
    fn place(&self, ms: f64) -> f64 {
        let [low, .., high] = self.marks[..] else { return 0.0 };
        ((ms / low).ln() / (high / low).ln()).clamp(0.0, 1.0) * 100.0
    }

    fn bar(&self, ms: f64, side: &str) -> Markup {
        html! { span class=(side) style=(format!("width:{:.1}%", self.place(ms).max(1.0))) {} }
    }

    fn range(&self, from: f64, to: f64, side: &str) -> Markup {
        let (from, to) = (self.place(from), self.place(to));
        let width = (to - from).max(1.0);
        html! {
            span class=(side) style=(format!("margin-left:{from:.1}%;width:{width:.1}%")) {}
        }
    }

    /// The row of the marks, behind some columns: the ends, and what fits between.
    fn axis(&self, columns: usize) -> Markup {
        let shown = self.shown();
        html! {
            @if !shown.is_empty() {
                tfoot aria-hidden="true" {
                    tr {
                        td colspan=(columns) {}
                        td.axis {
                            @for mark in shown {
                                span style=(format!("left:{:.1}%", self.place(mark))) { (short(mark)) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The marks that are written: at most four, evenly.
    fn shown(&self) -> Vec<f64> {
        let last = self.marks.len().saturating_sub(1);
        let step = last.div_ceil(3).max(1);
        let inner = self.marks.iter().step_by(step).copied();
        let mut shown: Vec<f64> = inner.collect();
        if shown.len() > 1 && last % step != 0 {
            shown.pop();
        }
        if last > 0 && last % step != 0 {
            shown.push(self.marks[last]);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_the_server_s_quantiles_is_said() {
        let quantile = |low, high| Found::Quantile(Between { low, high: Some(high) });
        let close = [Found::Exact(1.0), quantile(1.0, 1.01), quantile(1.0, 1.09)];
        assert!(within(close.iter()).contains("within 4.3 %"));
        assert!(within([quantile(1.0, 2.5)].iter()).contains("gives the bucket of each quantile"));
        assert_eq!(within([Found::Exact(1.0)].iter()), "");
    }

    #[test]
    fn a_scale_holds_its_values_between_two_marks_by_their_logarithm() {
        for (values, marks) in [
            (&[0.7, 3.0][..], &[0.5, 1.0, 2.0, 5.0][..]),
            (&[1.0], &[1.0, 2.0]),
            (&[2.0, 2.0], &[2.0, 5.0]),
            (&[], &[]),
            (&[0.0, f64::INFINITY], &[]),
        ] {
            assert_eq!(Scale::over(values.iter().copied()).marks, marks, "{values:?}");
        }
        let scale = Scale::over([1.0, 99.0].into_iter());
        assert_eq!(scale.marks.last(), Some(&100.0));
        assert!((scale.place(10.0) - 50.0).abs() < 1e-9);
        assert_eq!((scale.place(0.1), scale.place(1e9)), (0.0, 100.0));
        assert_eq!(Scale::over(std::iter::empty()).place(1.0), 0.0);
    }

    #[test]
    fn at_most_four_marks_are_written_both_ends_among_them() {
        for last in 1..20 {
            let marks: Vec<f64> = (0..=last).map(|n| 2f64.powi(n)).collect();
            let shown = Scale { marks: marks.clone() }.shown();
            assert!(shown.len() <= 4, "{shown:?}");
            assert_eq!((shown.first(), shown.last()), (marks.first(), marks.last()), "{shown:?}");
        }
    }
}
