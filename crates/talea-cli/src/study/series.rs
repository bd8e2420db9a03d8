//! From samples to what is plotted over time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reading::Reading;

/// The window of rates and means over time.
pub const WINDOW: Duration = Duration::from_secs(2);

/// A reading and when it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the baseline, which is taken just before the first client starts.
    pub at: Duration,
    /// What was read.
    pub reading: Reading,
}

/// The five metrics over time, column by column; all columns are of one length.
///
/// A rate or mean covers the last 2 s, or the time since the case began where that is less. It is
/// none where that window holds fewer than two samples; a mean also where no request ended in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// When each sample was taken, since the baseline.
    pub seconds: Vec<f64>,
    /// Requests received so far.
    pub requests_received: Vec<u64>,
    /// Requests received a second, over the window.
    pub rate_2s: Vec<Option<f64>>,
    /// Mean response time, over the window.
    pub mean_response_ms_2s: Vec<Option<f64>>,
    /// Server tasks beyond those of the baseline.
    pub additional_tasks: Vec<u64>,
    /// The most that there were so far, by the server's high-water mark.
    pub additional_tasks_peak: Vec<u64>,
    /// Server tasks woken and not yet polled.
    pub ready_tasks: Vec<u64>,
    /// The most that there were so far, by the server's high-water mark.
    pub ready_tasks_peak: Vec<u64>,
}

impl Series {
    /// Reckons the series of a case; the first sample is its baseline.
    pub fn of(samples: &[Sample]) -> Self {
        let mut series = Self::default();
        let Some(baseline) = samples.first().map(|sample| sample.reading) else { return series };
        for (last, sample) in samples.iter().enumerate() {
            let now = sample.reading;
            let over = first_in_window(samples, last).map(|first| (&samples[first], sample));
            series.seconds.push(rounded(sample.at.as_secs_f64(), 1e3));
            series.requests_received.push(now.requests.saturating_sub(baseline.requests));
            series.rate_2s.push(over.and_then(rate).map(|rate| rounded(rate, 1e2)));
            series.mean_response_ms_2s.push(over.and_then(mean_ms).map(|mean| rounded(mean, 1e4)));
            let additional = |tasks: u64| tasks.saturating_sub(baseline.tasks_alive);
            series.additional_tasks.push(additional(now.tasks_alive));
            series.additional_tasks_peak.push(additional(now.tasks_alive_peak));
            series.ready_tasks.push(now.tasks_ready);
            series.ready_tasks_peak.push(now.tasks_ready_peak);
        }
        series
    }

    /// The highest rate over a full window; over the whole case where that is shorter than one. None
    /// where there are not two samples.
    pub fn peak_rate(&self) -> Option<f64> {
        let full = |seconds: f64| seconds >= WINDOW.as_secs_f64();
        if !full(*self.seconds.last()?) {
            return *self.rate_2s.last()?;
        }
        let rates = self.seconds.iter().zip(&self.rate_2s);
        rates.filter(|(seconds, _)| full(**seconds)).filter_map(|(_, rate)| *rate).reduce(f64::max)
    }
}

/// The mean response time between two readings in milliseconds; none where no request ended.
pub(super) fn mean_response_ms(from: &Reading, to: &Reading) -> Option<f64> {
    let count = to.duration_count.saturating_sub(from.duration_count);
    (count > 0).then(|| (to.duration_sum - from.duration_sum) / count as f64 * 1e3)
}

/// The first sample inside the window that ends with the sample at `last`; none where that is the
/// only one.
fn first_in_window(samples: &[Sample], last: usize) -> Option<usize> {
    let begin = samples[last].at.saturating_sub(WINDOW);
    let first = samples.partition_point(|sample| sample.at < begin);
    (first < last).then_some(first)
}

fn rate((from, to): (&Sample, &Sample)) -> Option<f64> {
    let seconds = (to.at.checked_sub(from.at)?).as_secs_f64();
    let received = to.reading.requests.saturating_sub(from.reading.requests);
    (seconds > 0.0).then(|| received as f64 / seconds)
}

fn mean_ms((from, to): (&Sample, &Sample)) -> Option<f64> {
    mean_response_ms(&from.reading, &to.reading)
}

/// Keeps what a plot can show, so that the report stays small.
fn rounded(number: f64, scale: f64) -> f64 {
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, requests: u64) -> Sample {
        let reading = Reading {
            requests: requests + 1000,
            duration_count: requests,
            duration_sum: requests as f64 * 0.004,
            ..Reading::default()
        };
        Sample { at: Duration::from_millis(millis), reading }
    }

    #[test]
    fn a_single_sample_has_no_rate() {
        let series = Series::of(&[sample(0, 0)]);
        assert_eq!(series.rate_2s, [None]);
        assert_eq!(series.mean_response_ms_2s, [None]);
        assert_eq!(series.peak_rate(), None);
        assert_eq!(Series::of(&[]).peak_rate(), None);
    }

    #[test]
    fn a_short_case_has_the_rate_since_it_began() {
        let series = Series::of(&[sample(0, 0), sample(100, 50), sample(200, 150)]);
        assert_eq!(series.rate_2s, [None, Some(500.0), Some(750.0)]);
        assert_eq!(series.mean_response_ms_2s, [None, Some(4.0), Some(4.0)]);
        assert_eq!(series.requests_received, [0, 50, 150]);
        assert_eq!(series.peak_rate(), Some(750.0));
    }

    #[test]
    fn a_long_case_has_the_rate_of_the_last_two_seconds() {
        let samples: Vec<_> = (0..=40u64).map(|tick| sample(tick * 100, tick * tick)).collect();
        let series = Series::of(&samples);
        // (40² − 20²) in 2 s, and the peak is not that of a shorter window.
        assert_eq!(series.rate_2s[40], Some(600.0));
        assert_eq!(series.peak_rate(), Some(600.0));
    }

    #[test]
    fn a_lone_sample_after_a_gap_has_no_rate() {
        let series =
            Series::of(&[sample(0, 0), sample(100, 10), sample(5000, 20), sample(5100, 30)]);
        assert_eq!(series.rate_2s, [None, Some(100.0), None, Some(100.0)]);
    }

    #[test]
    fn a_window_without_requests_has_a_rate_of_zero_and_no_mean() {
        let series = Series::of(&[sample(0, 0), sample(100, 0)]);
        assert_eq!(series.rate_2s[1], Some(0.0));
        assert_eq!(series.mean_response_ms_2s[1], None);
    }
}
