//! From samples to the series that are plotted over time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use talea_load::scenario::Quantity;

use super::clients::rounded;
use super::reading::Reading;
use crate::families::Durations;

/// The window of rates and means over time.
pub(crate) const WINDOW: Duration = Duration::from_secs(2);

/// A reading and when it was taken.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Since the baseline, which is taken just before the first client starts.
    pub at: Duration,
    pub reading: Reading,
}

/// The server's metrics over time, column by column. A column is as long as `seconds`, or empty
/// where the service does not report it.
///
/// A rate or mean covers the last 2 s, or the time since the case began where that is less. It is
/// none where that window holds fewer than two samples; a mean also where no request ended in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Series {
    /// When each sample was taken, since the baseline.
    pub seconds: Vec<f64>,
    pub requests_received: Vec<Option<f64>>,
    /// Requests received a second, over the window.
    pub rate_2s: Vec<Option<f64>>,
    /// Mean response time, over the window.
    pub mean_response_ms_2s: Vec<Option<f64>>,
    pub in_flight: Vec<Option<f64>>,
    /// Server tasks beyond those of the baseline.
    pub additional_tasks: Vec<Option<f64>>,
    /// The most that there were so far, by the server's high-water mark.
    pub additional_tasks_peak: Vec<Option<f64>>,
    pub ready_tasks: Vec<Option<f64>>,
    /// The most that there were so far, by the server's high-water mark.
    pub ready_tasks_peak: Vec<Option<f64>>,
    /// Processor time a second, over the window; 1 is one core.
    pub cpu_cores_2s: Vec<Option<f64>>,
    pub memory_bytes: Vec<Option<f64>>,
    pub pool_used: Vec<Option<f64>>,
    pub pool_pending: Vec<Option<f64>>,
}

/// The increase of counters since the baseline of a case, also across restarts of the service.
#[derive(Clone, Debug, Default)]
pub(super) struct CounterIncrease {
    pub(super) at: Duration,
    pub(super) requests: Option<f64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) tasks_spawned: Option<f64>,
    pub(super) durations: Durations,
    /// How often the service seems to have started anew.
    pub(super) restarts: u64,
}

/// The counts of each sample since the first.
pub(super) fn counted(samples: &[Sample]) -> Vec<CounterIncrease> {
    let Some((first, later)) = samples.split_first() else { return Vec::new() };
    let known = |quantity| first.reading.get(quantity).map(|_| 0.0);
    let mut next = CounterIncrease {
        at: first.at,
        requests: known(Quantity::Requests),
        cpu_seconds: known(Quantity::CpuSeconds),
        tasks_spawned: known(Quantity::TasksSpawned),
        ..CounterIncrease::default()
    };
    let mut all = vec![next.clone()];
    // A sample may lack a metric that those before it had.
    let mut before = first.reading.clone();
    for sample in later {
        let now = &sample.reading;
        let fell = |quantity| match (before.get(quantity), now.get(quantity)) {
            (Some(before), Some(now)) => now < before,
            _ => false,
        };
        let started = |reading: &Reading| reading.get(Quantity::StartTime);
        let other_process = match (started(&before), started(now)) {
            (Some(before), Some(now)) => (now - before).abs() > 0.5,
            _ => false,
        };
        next.at = sample.at;
        next.restarts += u64::from(other_process || fell(Quantity::Requests));
        next.requests = grown(next.requests, &before, now, Quantity::Requests);
        next.cpu_seconds = grown(next.cpu_seconds, &before, now, Quantity::CpuSeconds);
        next.tasks_spawned = grown(next.tasks_spawned, &before, now, Quantity::TasksSpawned);
        if now.get(Quantity::Duration).is_some() {
            let anew = fell(Quantity::Duration);
            let from = if anew { &Durations::default() } else { &before.durations };
            next.durations.add_increase(from, &now.durations);
        }
        all.push(next.clone());
        before.update(now);
    }
    all
}

/// A counter's total with what it grew by. One that fell began at 0 again; one that was not there
/// yet was 0.
fn grown(total: Option<f64>, before: &Reading, now: &Reading, of: Quantity) -> Option<f64> {
    let Some(now) = now.get(of) else { return total };
    let before = before.get(of).unwrap_or(0.0);
    let grew = if now < before { now } else { now - before };
    Some(total.unwrap_or(0.0) + grew)
}

impl Series {
    /// Computes the series of a case; the first sample is its baseline, the last was taken after the
    /// last answer. A state at one instant, such as the requests in flight, is left out if no
    /// sample was taken in between: those two are of an idle service.
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let counted = counted(samples);
        let Some(baseline) = samples.first().map(|sample| &sample.reading) else {
            return Self::default();
        };
        let tasks = baseline.get(Quantity::Tasks);
        let is_sampled = is_sampled(samples);
        let column = |of: &dyn Fn(usize) -> Option<f64>| {
            let column: Vec<Option<f64>> = (0..samples.len()).map(of).collect();
            // A metric that the service never reported has no column.
            if column.iter().all(Option::is_none) { Vec::new() } else { column }
        };
        let known = |at: usize, quantity: Quantity| {
            let reported = samples[at].reading.get(quantity);
            reported.filter(|_| is_sampled || !quantity.is_momentary())
        };
        let state = |quantity| column(&|at| known(at, quantity));
        let additional = |of| column(&|at| Some((known(at, of)? - tasks?).max(0.0)));
        let over_window = |of: &dyn Fn(Window<'_>) -> Option<f64>, scale| {
            column(&|last| {
                let first = first_in_window(samples, last)?;
                let number = of((&counted[first], &counted[last]))?;
                Some(rounded(number, scale)).filter(|number| number.is_finite())
            })
        };
        Self {
            seconds: samples.iter().map(|it| rounded(it.at.as_secs_f64(), 1e3)).collect(),
            requests_received: column(&|at| counted[at].requests),
            rate_2s: over_window(&|window| rate(window, |at| at.requests), 1e2),
            mean_response_ms_2s: over_window(&mean_ms, 1e4),
            in_flight: state(Quantity::InFlight),
            additional_tasks: additional(Quantity::Tasks),
            additional_tasks_peak: additional(Quantity::TasksPeak),
            ready_tasks: state(Quantity::Ready),
            ready_tasks_peak: state(Quantity::ReadyPeak),
            cpu_cores_2s: over_window(&|window| rate(window, |at| at.cpu_seconds), 1e3),
            memory_bytes: state(Quantity::MemoryBytes),
            pool_used: state(Quantity::PoolUsed),
            pool_pending: state(Quantity::PoolPending),
        }
    }

    /// The highest rate over a full window; over the whole case where that is shorter than one.
    /// None where there are not two samples.
    pub(crate) fn peak_rate(&self) -> Option<f64> {
        let full = |seconds: f64| seconds >= WINDOW.as_secs_f64();
        if !full(*self.seconds.last()?) {
            return *self.rate_2s.last()?;
        }
        let rates = self.seconds.iter().zip(&self.rate_2s);
        rates.filter(|(seconds, _)| full(**seconds)).filter_map(|(_, rate)| *rate).reduce(f64::max)
    }
}

/// Whether a sample was taken while a case ran, between its baseline and its end.
pub(super) fn is_sampled(samples: &[Sample]) -> bool {
    samples.len() > 2
}

pub(super) fn most(column: &[Option<f64>]) -> Option<f64> {
    column.iter().flatten().copied().reduce(f64::max)
}

/// The first sample inside the window that ends with the sample at `last`; none where that is the
/// only one.
fn first_in_window(samples: &[Sample], last: usize) -> Option<usize> {
    let begin = samples[last].at.saturating_sub(WINDOW);
    let first = samples.partition_point(|sample| sample.at < begin);
    (first < last).then_some(first)
}

/// The counts where a window begins, and where it ends.
type Window<'a> = (&'a CounterIncrease, &'a CounterIncrease);

fn rate((from, to): Window<'_>, of: impl Fn(&CounterIncrease) -> Option<f64>) -> Option<f64> {
    let seconds = to.at.checked_sub(from.at)?.as_secs_f64();
    (seconds > 0.0).then(|| Some((of(to)? - of(from).unwrap_or(0.0)) / seconds)).flatten()
}

fn mean_ms((from, to): Window<'_>) -> Option<f64> {
    let count = to.durations.count - from.durations.count;
    (count > 0.0).then(|| (to.durations.sum - from.durations.sum) / count * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(millis: u64, requests: u64) -> Sample {
        let mut reading = Reading::default();
        reading.set(Quantity::Requests, Some((requests + 1000) as f64));
        reading.set(Quantity::Duration, Some(requests as f64));
        reading.durations.count = requests as f64;
        reading.durations.sum = requests as f64 * 0.004;
        Sample { at: Duration::from_millis(millis), reading }
    }

    fn started_at(mut sample: Sample, seconds: f64, requests: f64) -> Sample {
        sample.reading.set(Quantity::StartTime, Some(seconds));
        sample.reading.set(Quantity::Requests, Some(requests));
        sample
    }

    #[test]
    fn a_single_sample_has_no_rate() {
        let series = Series::of(&[sample(0, 0)]);
        assert!(series.rate_2s.is_empty() && series.mean_response_ms_2s.is_empty());
        assert_eq!(series.peak_rate(), None);
        assert_eq!(Series::of(&[]).peak_rate(), None);
    }

    #[test]
    fn a_short_case_has_the_rate_since_it_began() {
        let series = Series::of(&[sample(0, 0), sample(100, 50), sample(200, 150)]);
        assert_eq!(series.rate_2s, [None, Some(500.0), Some(750.0)]);
        assert_eq!(series.mean_response_ms_2s, [None, Some(4.0), Some(4.0)]);
        assert_eq!(series.requests_received, [Some(0.0), Some(50.0), Some(150.0)]);
        assert_eq!(series.peak_rate(), Some(750.0));
        let unreported = [series.ready_tasks, series.pool_used];
        assert!(unreported.concat().is_empty(), "what is not reported has no column");
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
    fn a_window_of_one_sample_has_no_rate_and_one_without_requests_has_no_mean() {
        let samples = [sample(0, 0), sample(100, 10), sample(5000, 20), sample(5100, 30)];
        assert_eq!(Series::of(&samples).rate_2s, [None, Some(100.0), None, Some(100.0)]);
        let series = Series::of(&[sample(0, 0), sample(100, 0)]);
        assert_eq!(series.rate_2s[1], Some(0.0));
        assert!(series.mean_response_ms_2s.is_empty());
    }

    #[test]
    fn a_service_that_starts_anew_counts_on_from_0() {
        let samples = [
            started_at(sample(0, 0), 10.0, 500.0),
            started_at(sample(100, 0), 10.0, 530.0),
            started_at(sample(200, 0), 20.0, 7.0),
            started_at(sample(300, 0), 20.0, 9.0),
        ];
        let counted = counted(&samples);
        assert_eq!(counted[3].requests, Some(39.0));
        assert_eq!(counted[3].restarts, 1);
    }

    #[test]
    fn a_metric_that_a_page_lacks_goes_on_where_it_was() {
        let nothing = Sample { reading: Reading::default(), ..sample(200, 0) };
        let mut samples = vec![sample(0, 500), sample(100, 530), nothing, sample(300, 570)];
        for sample in &mut samples {
            let count = sample.reading.durations.count;
            sample.reading.durations.add(1.0, count);
        }
        let counted = counted(&samples);
        assert_eq!(counted[2].requests, Some(30.0));
        assert_eq!((counted[3].requests, counted[3].restarts), (Some(70.0), 0));
        let durations = &counted[3].durations;
        assert_eq!((durations.count, &durations.below[..]), (70.0, &[(1.0, 70.0)][..]));
        assert_eq!(counted[2].durations.count, 30.0);
    }

    #[test]
    fn a_metric_that_comes_with_the_first_request_began_at_0() {
        let mut first = sample(0, 0);
        first.reading.set(Quantity::Requests, None);
        let series = Series::of(&[first, sample(100, 0)]);
        assert_eq!(series.requests_received, [None, Some(1000.0)]);
    }
}
