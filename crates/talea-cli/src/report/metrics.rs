//! The five metrics of a case, each as a titled chart.

use super::chart::Chart;
use crate::figures::{measured_or_none, whole_or_none};
use crate::study::{Finding, Server, WINDOW};

/// A chart with its words.
pub(super) struct Metric<'a> {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// The case's one number of this metric.
    pub(super) headline: String,
    pub(super) chart: Chart<'a>,
    /// What the thick and the thin line are, where there are two.
    pub(super) key: Option<Key>,
}

/// The key to a chart with two lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// What there was at each sample, and the most so far.
    NowAndPeak,
    /// Over a full window, and over less while the case is shorter than that.
    FullAndShorter,
    /// Over less than a window, because the whole case is shorter.
    ShorterAlone,
}

/// The metrics of a case that the server tells.
pub(super) fn of<'a>(finding: &Finding, server: &'a Server) -> Vec<Metric<'a>> {
    let series = &server.series;
    let (additional, ready) = (server.peak_additional_tasks, server.peak_ready_tasks);
    let metric = |title, unit, headline: String, values: &[Option<f64>], key, peaks: &[_]| {
        let label = format!("Case {}: {title} over time. {headline}.", finding.id);
        let full_from = match key {
            Some(Key::FullAndShorter | Key::ShorterAlone) => WINDOW.as_secs_f64(),
            Some(Key::NowAndPeak) | None => 0.0,
        };
        let peaks = (!peaks.is_empty()).then(|| known(peaks));
        let values = values.to_vec();
        let chart = Chart { seconds: &series.seconds, values, peaks, full_from, label };
        Metric { title, unit, headline, chart, key }
    };
    let lasted = series.seconds.last().copied().unwrap_or_default();
    let window = match lasted < WINDOW.as_secs_f64() {
        true => Key::ShorterAlone,
        false => Key::FullAndShorter,
    };
    let all = [
        metric(
            "Requests received",
            "since the case began",
            whole_or_none(server.requests_received),
            &series.requests_received,
            None,
            &[],
        ),
        metric(
            "Requests received a second",
            "req/s, over the last 2 s",
            format!("peak {}", measured_or_none(server.peak_rate_2s)),
            &series.rate_2s,
            Some(window),
            &[],
        ),
        metric(
            "Mean response time",
            "ms, over the last 2 s",
            format!("whole case {}", measured_or_none(server.mean_response_ms)),
            &series.mean_response_ms_2s,
            Some(window),
            &[],
        ),
        metric(
            "Additional server tasks",
            "tasks beyond the baseline",
            format!("peak {}", whole_or_none(additional)),
            &series.additional_tasks,
            Some(Key::NowAndPeak),
            &series.additional_tasks_peak,
        ),
        metric(
            "Ready tasks",
            "woken, not yet polled",
            format!("peak {}", whole_or_none(ready)),
            &series.ready_tasks,
            Some(Key::NowAndPeak),
            &series.ready_tasks_peak,
        ),
    ];
    all.into_iter().filter(|metric| !metric.chart.values.is_empty()).collect()
}

/// A high-water mark; where there is none yet, it is 0.
fn known(numbers: &[Option<f64>]) -> Vec<f64> {
    numbers.iter().map(|number| number.unwrap_or_default()).collect()
}
