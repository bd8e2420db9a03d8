//! The five metrics of a case, each as a titled chart.

use super::chart::Chart;
use crate::figures::{measured_or_none, whole};
use crate::study::{Finding, WINDOW};

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

/// The five metrics of a case.
pub(super) fn of(finding: &Finding) -> [Metric<'_>; 5] {
    let series = &finding.series;
    let (additional, ready) = (finding.peak_additional_tasks, finding.peak_ready_tasks);
    let metric = |title, unit, headline: String, values, key, peaks| {
        let label = format!("Case {}: {title} over time. {headline}.", finding.id);
        let full_from = match key {
            Some(Key::FullAndShorter | Key::ShorterAlone) => WINDOW.as_secs_f64(),
            Some(Key::NowAndPeak) | None => 0.0,
        };
        let chart = Chart { seconds: &series.seconds, values, peaks, full_from, label };
        Metric { title, unit, headline, chart, key }
    };
    let lasted = series.seconds.last().copied().unwrap_or_default();
    let window = match lasted < WINDOW.as_secs_f64() {
        true => Key::ShorterAlone,
        false => Key::FullAndShorter,
    };
    [
        metric(
            "Requests received",
            "since the case began",
            whole(finding.requests_received),
            known(&series.requests_received),
            None,
            None,
        ),
        metric(
            "Requests received a second",
            "req/s, over the last 2 s",
            format!("peak {}", measured_or_none(finding.peak_rate_2s)),
            series.rate_2s.clone(),
            Some(window),
            None,
        ),
        metric(
            "Mean response time",
            "ms, over the last 2 s",
            format!("whole case {}", measured_or_none(finding.mean_response_ms)),
            series.mean_response_ms_2s.clone(),
            Some(window),
            None,
        ),
        metric(
            "Additional server tasks",
            "tasks beyond the baseline",
            format!("peak {}", whole(additional)),
            known(&series.additional_tasks),
            Some(Key::NowAndPeak),
            Some(floats(&series.additional_tasks_peak)),
        ),
        metric(
            "Ready tasks",
            "woken, not yet polled",
            format!("peak {}", whole(ready)),
            known(&series.ready_tasks),
            Some(Key::NowAndPeak),
            Some(floats(&series.ready_tasks_peak)),
        ),
    ]
}

fn known(numbers: &[u64]) -> Vec<Option<f64>> {
    numbers.iter().map(|number| Some(*number as f64)).collect()
}

fn floats(numbers: &[u64]) -> Vec<f64> {
    numbers.iter().map(|number| *number as f64).collect()
}
