//! The metrics of a case over time, each as a titled chart.

use talea_statistics::figures::{NONE, bytes, measured_or_none, whole, whole_or_none};

use crate::study::{CaseResult, Server, WINDOW};
use talea_view::chart::{Chart, Curve, PEAK, THIRD};

/// A chart with its words.
pub(super) struct Metric<'a> {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// The case's one number of this metric.
    pub(super) headline: String,
    pub(super) chart: Chart<'a>,
    /// The names of the thick and the thin line, if there are two.
    pub(super) key: Option<Key>,
}

/// The key to a chart with two lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The value at each sample, and the highest so far.
    NowAndPeak,
    /// Over a full window, and over less while the case is shorter than that.
    FullAndShorter,
    /// Over less than a window, because the whole case is shorter.
    ShorterAlone,
    /// Quantiles of the clients, and whether the server's mean is beside them.
    BothSides { server: bool },
    /// Connections in use, and requests that wait for one.
    UsedAndPending,
}

impl Metric<'_> {
    /// Of values that each cover a window.
    fn over(mut self, window: Key) -> Self {
        self.key = Some(window);
        self.chart.full_from = WINDOW.as_secs_f64();
        self
    }

    /// Below a high-water mark; where there is none yet, it is 0.
    fn below(mut self, peaks: &[Option<f64>]) -> Self {
        self.key = Some(Key::NowAndPeak);
        let known = peaks.iter().map(|peak| peak.unwrap_or_default());
        self.chart.peaks = (!peaks.is_empty()).then(|| known.collect());
        self
    }
}

/// All that there is of a case over time.
pub(super) fn of(result: &CaseResult) -> Vec<Metric<'_>> {
    let mut all = vec![both_sides(result)];
    all.extend((result.client.failed > 0).then(|| failures(result)));
    all.extend(result.server.iter().flat_map(|server| of_server(result, server)));
    all.retain(|metric| metric.chart.values.iter().any(Option::is_some));
    all
}

fn both_sides(result: &CaseResult) -> Metric<'_> {
    let (title, unit) = ("Response time, both sides", "ms, over time");
    let times = &result.client.times;
    let server = result.server.as_ref().map(|server| &server.series);
    let server = server.filter(|series| !series.mean_response_ms_2s.is_empty());
    let mut curves = vec![Curve { seconds: &times.seconds, values: &times.p99_ms, colour: PEAK }];
    curves.extend(server.map(|series| Curve {
        seconds: &series.seconds,
        values: &series.mean_response_ms_2s,
        colour: THIRD,
    }));
    let headline = format!(
        "p50 {}, p99 {}",
        result.client.shown("p50_ms", result.client.p50_ms),
        result.client.shown("p99_ms", result.client.p99_ms)
    );
    let label = format!("Case {}: {title} over time. {headline}.", result.id);
    let chart = Chart { curves, ..Chart::new(&times.seconds, times.p50_ms.clone(), label) };
    let key = Some(Key::BothSides { server: server.is_some() });
    Metric { title, unit, headline, chart, key }
}

fn failures(result: &CaseResult) -> Metric<'_> {
    let (title, unit) = ("Failures", "requests that failed, by slice of time");
    let times = &result.client.times;
    let headline = format!("{} in all", whole(result.client.failed));
    let label = format!("Case {}: {title} over time. {headline}.", result.id);
    let values = times.failed.iter().map(|failed| Some(*failed as f64)).collect();
    let chart = Chart::new(&times.seconds, values, label);
    Metric { title, unit, headline, chart, key: None }
}

fn of_server<'a>(result: &CaseResult, server: &'a Server) -> Vec<Metric<'a>> {
    let series = &server.series;
    let (additional, ready) = (server.peak_additional_tasks, server.peak_ready_tasks);
    let created = whole_or_none(server.tasks_created);
    let metric = |title, unit, headline: String, values: &[Option<f64>]| {
        let label = format!("Case {}: {title} over time. {headline}.", result.id);
        let chart = Chart::new(&series.seconds, values.to_vec(), label);
        Metric { title, unit, headline, chart, key: None }
    };
    let lasted = series.seconds.last().copied().unwrap_or_default();
    let window = match lasted < WINDOW.as_secs_f64() {
        true => Key::ShorterAlone,
        false => Key::FullAndShorter,
    };
    let mut all = vec![
        metric(
            "Requests received",
            "since the case began",
            whole_or_none(server.requests_received),
            &series.requests_received,
        ),
        metric(
            "Requests received a second",
            "req/s, over the last 2 s",
            format!("peak {}", measured_or_none(server.peak_rate_2s)),
            &series.rate_2s,
        )
        .over(window),
        metric(
            "Mean response time",
            "ms, over the last 2 s",
            format!("whole case {}", measured_or_none(server.mean_response_ms)),
            &series.mean_response_ms_2s,
        )
        .over(window),
        metric(
            "Additional server tasks",
            "tasks beyond the baseline",
            format!("peak {}, {created} created", whole_or_none(additional)),
            &series.additional_tasks,
        )
        .below(&series.additional_tasks_peak),
        metric(
            "Ready tasks",
            "woken, not yet polled",
            format!("peak {}", whole_or_none(ready)),
            &series.ready_tasks,
        )
        .below(&series.ready_tasks_peak),
        metric("Requests in flight", "begun, not ended", in_flight(server), &series.in_flight),
        metric(
            "Server CPU",
            "cores, over the last 2 s",
            format!("{} s in all", measured_or_none(server.cpu_seconds)),
            &series.cpu_cores_2s,
        )
        .over(window),
        metric("Server memory", "MiB", memory(server), &mebibytes(&series.memory_bytes)),
    ];
    let mut pool = metric(
        "Database pool",
        "connections, and requests that wait for one",
        format!("at most {} wait", whole_or_none(server.peak_pool_pending)),
        &series.pool_used,
    );
    pool.key = Some(Key::UsedAndPending);
    if !series.pool_pending.is_empty() {
        let (seconds, values) = (&series.seconds[..], &series.pool_pending[..]);
        pool.chart.curves.push(Curve { seconds, values, colour: PEAK });
    }
    all.push(pool);
    all
}

/// The most requests in flight, which samples alone know.
fn in_flight(server: &Server) -> String {
    match server.peak_in_flight {
        Some(peak) => format!("peak {}", whole(peak)),
        None => format!("peak {NONE}, no sample found a request in flight"),
    }
}

/// The most memory, and how it grew.
fn memory(server: &Server) -> String {
    let peak = format!("peak {}", server.peak_memory_bytes.map_or(NONE.to_owned(), bytes));
    match &server.memory_growth {
        Some(growth) => format!("{peak}; {growth}"),
        None => peak,
    }
}

fn mebibytes(column: &[Option<f64>]) -> Vec<Option<f64>> {
    column.iter().map(|bytes| bytes.map(|bytes| bytes / (1024.0 * 1024.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_no_sample_met_have_no_peak_and_a_reason() {
        let headline = |peak_in_flight| in_flight(&Server { peak_in_flight, ..Server::default() });
        assert_eq!(headline(Some(7)), "peak 7");
        assert_eq!(headline(None), "peak –, no sample found a request in flight");
    }
}
