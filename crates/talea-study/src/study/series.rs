//! From samples to the series that are plotted over time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use talea_load::scenario::Quantity;

use super::clients::rounded;
use super::reading::{Reading, SeriesKey};
use talea_view::families::Durations;

/// The window of rates and means over time.
pub const WINDOW: Duration = Duration::from_secs(2);

/// A reading and when it was taken.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Since the baseline, which is taken just before the first client starts.
    pub at: Duration,
    pub reading: Reading,
    /// Since the first sample.
    pub(super) increase: CounterIncrease,
}

/// The server's metrics over time, column by column. A column is as long as `seconds`, or empty
/// where the service does not report it.
///
/// A rate or mean covers the last 2 s, longer where samples are missing, or the time since the case
/// began where that is less. The first is none, and so is a mean where no request ended in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
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
    pub(super) requests: Option<f64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) tasks_spawned: Option<f64>,
    pub(super) durations: Durations,
    /// How often the service seems to have started anew.
    pub(super) restarts: u64,
}

/// The counters of a service from sample to sample. Each series is followed by itself: one that is
/// missing from a sample keeps its value, and one that fell began at 0 again.
#[derive(Default)]
pub(super) struct Counters {
    /// The latest value of each series; none before the first sample.
    latest: Option<BTreeMap<SeriesKey, Durations>>,
    /// When the process started that was started last.
    newest: Option<f64>,
    increase: CounterIncrease,
}

impl Counters {
    /// Takes the next sample; the first is the baseline. Of a reading that lacks a quantity, or has
    /// one that is no number, that quantity stays. A series that was not there yet was 0.
    pub(super) fn sample(&mut self, at: Duration, mut reading: Reading) -> Sample {
        let is_first = self.latest.is_none();
        let latest = self.latest.get_or_insert_default();
        let (newest, anew) = (self.newest, Durations::default());
        let mut is_restarted = false;
        for (key, now) in std::mem::take(&mut reading.series) {
            if reading.get(key.0).is_none() {
                continue;
            }
            if key.0 == Quantity::StartTime {
                is_restarted |= newest.is_some_and(|newest| now.count > newest + 0.5);
                self.newest = Some(self.newest.map_or(now.count, |known| known.max(now.count)));
                continue;
            }
            let known = latest.get(&key);
            let before = match known {
                _ if is_first => &now,
                Some(known) if known.count <= now.count => known,
                _ => &anew,
            };
            let add = |total: &mut Option<f64>| {
                *total.get_or_insert_default() += now.count - before.count;
            };
            match key.0 {
                Quantity::Requests => {
                    is_restarted |= known.is_some_and(|known| now.count < known.count);
                    add(&mut self.increase.requests);
                }
                Quantity::CpuSeconds => add(&mut self.increase.cpu_seconds),
                Quantity::TasksSpawned => add(&mut self.increase.tasks_spawned),
                _ => self.increase.durations.add_increase(before, &now),
            }
            latest.insert(key, now);
        }
        self.increase.restarts += u64::from(is_restarted);
        Sample { at, reading, increase: self.increase.clone() }
    }
}

impl Series {
    /// Computes the series of a case; the first sample is its baseline, the last was taken after the
    /// last answer. A state at one instant, such as the requests in flight, is left out if no
    /// sample was taken in between: those two are of an idle service.
    pub(crate) fn of(samples: &[Sample]) -> Self {
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
                let first = first_of_window(samples, last)?;
                let number = of((&samples[first], &samples[last]))?;
                Some(rounded(number, scale)).filter(|number| number.is_finite())
            })
        };
        Self {
            seconds: samples.iter().map(|it| rounded(it.at.as_secs_f64(), 1e3)).collect(),
            requests_received: column(&|at| samples[at].increase.requests),
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

    /// The memory at each sample that has it, with its time.
    pub(super) fn memory(&self) -> Vec<(f64, f64)> {
        let samples = self.seconds.iter().zip(&self.memory_bytes);
        samples.filter_map(|(at, memory)| Some((*at, (*memory)?))).collect()
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

/// The last sample before the window that ends with the sample at `last`, or the first of all. One
/// inside may be much later, as after a stall, and the window much shorter. None for the first.
fn first_of_window(samples: &[Sample], last: usize) -> Option<usize> {
    let begin = samples[last].at.saturating_sub(WINDOW);
    let inside = samples.partition_point(|sample| sample.at <= begin);
    (last > 0).then(|| inside.saturating_sub(1))
}

/// The samples where a window begins, and where it ends.
type Window<'a> = (&'a Sample, &'a Sample);

fn rate((from, to): Window<'_>, of: impl Fn(&CounterIncrease) -> Option<f64>) -> Option<f64> {
    let seconds = to.at.checked_sub(from.at)?.as_secs_f64();
    (seconds > 0.0)
        .then(|| Some((of(&to.increase)? - of(&from.increase).unwrap_or(0.0)) / seconds))
        .flatten()
}

fn mean_ms((from, to): Window<'_>) -> Option<f64> {
    let (from, to) = (&from.increase.durations, &to.increase.durations);
    let count = to.count - from.count;
    (count > 0.0).then(|| (to.sum - from.sum) / count * 1e3)
}

#[cfg(test)]
pub(super) mod tests {
    use talea_load::scenario::Names;

    use super::super::reading::Column;
    use super::*;

    /// Readings, each so many milliseconds after the baseline.
    pub(in super::super) fn samples(
        readings: impl IntoIterator<Item = (u64, Reading)>,
    ) -> Vec<Sample> {
        let mut counters = Counters::default();
        readings
            .into_iter()
            .map(|(at, reading)| counters.sample(Duration::from_millis(at), reading))
            .collect()
    }

    fn counted(readings: impl IntoIterator<Item = (u64, Reading)>) -> Vec<CounterIncrease> {
        samples(readings).into_iter().map(|sample| sample.increase).collect()
    }

    fn series_of(readings: impl IntoIterator<Item = (u64, Reading)>) -> Series {
        Series::of(&samples(readings))
    }

    fn sample(millis: u64, requests: u64) -> (u64, Reading) {
        let mut reading = Reading::default();
        reading.set(Quantity::Requests, Some((requests + 1000) as f64));
        let parts = [(Column::Count, 1.0), (Column::Sum, 0.004), (Column::AtMost(1.0), 1.0)];
        for (column, each) in parts {
            reading.add(column, std::iter::empty(), requests as f64 * each, 1.0);
        }
        (millis, reading)
    }

    fn started_at(
        (at, mut reading): (u64, Reading),
        seconds: f64,
        requests: f64,
    ) -> (u64, Reading) {
        reading.set(Quantity::StartTime, Some(seconds));
        reading.set(Quantity::Requests, Some(requests));
        (at, reading)
    }

    #[test]
    fn a_single_sample_has_no_rate() {
        let series = series_of([sample(0, 0)]);
        assert!(series.rate_2s.is_empty() && series.mean_response_ms_2s.is_empty());
        assert_eq!(series.peak_rate(), None);
        assert_eq!(series_of([]).peak_rate(), None);
    }

    #[test]
    fn a_short_case_has_the_rate_since_it_began() {
        let series = series_of([sample(0, 0), sample(100, 50), sample(200, 150)]);
        assert_eq!(series.rate_2s, [None, Some(500.0), Some(750.0)]);
        assert_eq!(series.mean_response_ms_2s, [None, Some(4.0), Some(4.0)]);
        assert_eq!(series.requests_received, [Some(0.0), Some(50.0), Some(150.0)]);
        assert_eq!(series.peak_rate(), Some(750.0));
        let unreported = [series.ready_tasks, series.pool_used];
        assert!(unreported.concat().is_empty(), "what is not reported has no column");
    }

    #[test]
    fn a_long_case_has_the_rate_of_the_last_two_seconds() {
        let series = series_of((0..=40u64).map(|tick| sample(tick * 100, tick * tick)));
        // (40² − 20²) in 2 s, and the peak is not that of a shorter window.
        assert_eq!(series.rate_2s[40], Some(600.0));
        assert_eq!(series.peak_rate(), Some(600.0));
    }

    #[test]
    fn a_rate_after_a_stall_covers_the_stall() {
        let samples = [sample(0, 0), sample(100, 10), sample(5000, 20), sample(5100, 510)];
        let series = series_of(samples);
        assert_eq!(series.rate_2s, [None, Some(100.0), Some(2.04), Some(100.0)]);
        assert_eq!(series.peak_rate(), Some(100.0), "not 4,900 for a tenth of a second");
        let series = series_of([sample(0, 0), sample(100, 0)]);
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
        let last = &counted(samples)[3];
        assert_eq!((last.requests, last.restarts), (Some(39.0), 1));
    }

    #[test]
    fn a_metric_that_a_page_lacks_goes_on_where_it_was() {
        let nothing = (200, Reading::default());
        let counted = counted([sample(0, 500), sample(100, 530), nothing, sample(300, 570)]);
        assert_eq!(counted[2].requests, Some(30.0));
        assert_eq!((counted[3].requests, counted[3].restarts), (Some(70.0), 0));
        let durations = &counted[3].durations;
        assert_eq!((durations.count, &durations.below[..]), (70.0, &[(1.0, 70.0)][..]));
        assert_eq!(counted[2].durations.count, 30.0);
    }

    #[test]
    fn a_metric_that_comes_with_the_first_request_began_at_0() {
        let mut first = sample(0, 0);
        first.1.set(Quantity::Requests, None);
        let series = series_of([first, sample(100, 0)]);
        assert_eq!(series.requests_received, [None, Some(1000.0)]);
    }

    /// The counts from pages, of which one is read each tenth of a second.
    fn of_pages(pages: &[String]) -> Vec<CounterIncrease> {
        let names = Names::built_in("talea").unwrap();
        let readings = pages.iter().map(|page| Reading::from_text(page, &names).unwrap());
        counted((0..).map(|n| n * 100).zip(readings))
    }

    /// A page of regions, each with the requests that it counted and when it was started.
    fn page(regions: &[(&str, u64, u64)]) -> String {
        regions
            .iter()
            .map(|(region, requests, started)| {
                format!(
                    "http_requests_total{{route=\"/a\",region=\"{region}\"}} {requests}\n\
                 http_request_duration_seconds_sum{{region=\"{region}\"}} {requests}\n\
                 http_request_duration_seconds_count{{region=\"{region}\"}} {requests}\n\
                 http_request_duration_seconds_bucket{{region=\"{region}\",le=\"1\"}} {requests}\n\
                 process_cpu_seconds_total{{region=\"{region}\"}} {requests}\n\
                 process_start_time_seconds{{region=\"{region}\"}} {started}\n"
                )
            })
            .collect()
    }

    #[test]
    fn a_series_that_a_page_lacks_goes_on_where_it_was() {
        let (a, b) = (|requests| ("a", requests, 10), |requests| ("b", requests, 20));
        let counted = of_pages(&[
            page(&[a(1_000), b(500)]),
            page(&[a(1_010), b(500)]),
            // Neither of them was restarted.
            page(&[a(1_020)]),
            page(&[b(503)]),
            page(&[a(1_030), b(505)]),
        ]);
        let requests: Vec<_> = counted.iter().map(|it| it.requests.unwrap()).collect();
        assert_eq!(requests, [0.0, 10.0, 20.0, 23.0, 35.0]);
        let last = counted.last().unwrap();
        assert_eq!((last.cpu_seconds, last.restarts), (Some(35.0), 0));
        let durations = &last.durations;
        assert_eq!((durations.sum, durations.count), (35.0, 35.0));
        assert_eq!(durations.below, [(1.0, 35.0)]);
    }

    #[test]
    fn of_several_processes_the_one_that_is_restarted_counts_from_0() {
        let counted = of_pages(&[
            page(&[("a", 1_000, 10), ("b", 500, 20)]),
            page(&[("a", 1_010, 10), ("b", 4, 30)]),
            page(&[("a", 1_020, 10), ("b", 6, 30)]),
        ]);
        let requests: Vec<_> = counted.iter().map(|it| it.requests.unwrap()).collect();
        assert_eq!(requests, [0.0, 14.0, 26.0]);
        let last = counted.last().unwrap();
        assert_eq!((last.durations.count, last.restarts), (26.0, 1));
        assert_eq!(last.durations.below, [(1.0, 26.0)]);
    }
}
