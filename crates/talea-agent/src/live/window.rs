//! The requests of the last seconds, by endpoint.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::health::{CPU, MEMORY};
use super::reading::Reading;
use super::requests::Counts;
use super::step::{Moment, Step};
use talea_view::families::{Between, Quantiles};

/// How many readings the trend of an endpoint has.
pub(crate) const TREND: usize = 120;

/// The readings of the last seconds.
#[derive(Debug)]
pub struct Window {
    span: Duration,
    last: Option<Moment>,
    /// The steps from each reading to the next one, the latest last.
    steps: VecDeque<Step>,
    /// The rates of each endpoint at the latest readings, and its p99 in milliseconds.
    trends: BTreeMap<String, VecDeque<(f64, Option<f64>)>>,
    restarted: Option<Instant>,
}

/// All endpoints, in the time that a window covers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By the names of endpoints.
    pub rows: Vec<Row>,
    pub total: Row,
    /// The time that the window covers; zero after the first reading.
    pub length: Duration,
    /// The most that a rate may be wrong by, as a share of it, since a reading takes some time.
    pub uncertainty: f64,
    /// Processor time a second: 1 is one core.
    pub cpu_cores: Option<f64>,
    pub memory_bytes: Option<f64>,
    pub processes: Option<usize>,
    /// When a process was found to have started anew.
    pub restarted: Option<Instant>,
}

/// The requests to one endpoint in the time that a window covers.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub name: String,
    /// Requests in the window, and a second.
    pub count: f64,
    pub rate: f64,
    /// The share of responses with a status of 500 or more; `None` if there were no responses, or
    /// statuses are not shown.
    pub errors: Option<f64>,
    pub times: Quantiles,
    pub in_flight: Option<f64>,
    /// Responses a second by status.
    pub statuses: Vec<(String, f64)>,
    /// Requests since the series began.
    pub requests: f64,
    /// Requests a second at the latest readings, the last one last.
    pub trend: Vec<f64>,
    /// p99 in milliseconds at the same readings; of wide buckets their bound, `None` if nothing was requested.
    pub p99_trend: Vec<Option<f64>>,
}

impl Window {
    pub fn new(span: Duration) -> Self {
        let (steps, trends) = (VecDeque::new(), BTreeMap::new());
        Self { span, last: None, steps, trends, restarted: None }
    }

    /// Takes the next reading. An endpoint that counts less than before began anew from 0.
    pub fn add(&mut self, reading: &Reading) {
        let now = Moment::of(reading, self.last.as_ref());
        if let Some(before) = self.last.take() {
            let step = Step::between(&before, &now);
            if before.health.is_another(&now.health) {
                self.restarted = Some(now.ended);
            }
            self.note_trends(&step);
            let covered = |step: &Step| now.ended.saturating_duration_since(step.ended);
            self.steps.retain(|step| covered(step) < self.span);
            self.steps.push_back(step);
        }
        self.last = Some(now);
    }

    fn note_trends(&mut self, step: &Step) {
        let seconds = step.length.as_secs_f64();
        self.trends.retain(|name, _| step.grown.contains_key(name));
        for (name, counts) in &step.grown {
            let trend = self.trends.entry(name.clone()).or_default();
            let p99 = counts.times.quantiles().p99_ms.map(drawn);
            trend.push_back((per_second(counts.times.count, seconds), p99));
            if trend.len() > TREND {
                trend.pop_front();
            }
        }
    }

    /// What happened from the reading before to the latest one; `None` after the first.
    pub fn latest(&self) -> Option<&Step> {
        self.steps.back()
    }

    /// The sums of the window's steps. Its cost grows with the endpoints and with the readings in it.
    pub fn table(&self) -> Table {
        let Some(last) = &self.last else { return Table::default() };
        let length: Duration = self.steps.iter().map(|step| step.length).sum();
        let seconds = length.as_secs_f64();
        let (mut rows, mut all) = (Vec::new(), Counts::default());
        for (name, now) in &last.requests.0 {
            let now = Counts::total(now.values());
            let mut grown = Counts { in_flight: now.in_flight, ..Counts::default() };
            let steps = self.steps.iter().filter_map(|step| step.grown.get(name));
            steps.for_each(|step| grown.add(step));
            all.add(&grown);
            if let Some(in_flight) = now.in_flight {
                *all.in_flight.get_or_insert_default() += in_flight;
            }
            let trend = self.trends.get(name).into_iter().flatten().copied();
            let (trend, p99_trend) = trend.unzip();
            rows.push(Row {
                name: name.clone(),
                requests: now.times.count,
                trend,
                p99_trend,
                ..Row::of(&grown, seconds)
            });
        }
        // The ends of what is covered are two readings; those between do not matter.
        let ends = self.steps.front().into_iter().chain(self.steps.back());
        let uncertain = ends.map(|step| step.uncertainty).max().unwrap_or_default();
        Table {
            total: Row {
                name: "all".to_owned(),
                requests: rows.iter().map(|row| row.requests).sum(),
                trend: together(&rows),
                ..Row::of(&all, seconds)
            },
            rows,
            length,
            uncertainty: per_second(uncertain.as_secs_f64(), seconds),
            cpu_cores: last.health.rate(CPU),
            memory_bytes: last.health.gauge(MEMORY),
            processes: last.processes,
            restarted: self.restarted,
        }
    }
}

/// Where a quantile is drawn: at its estimate, or at a bound that is known.
fn drawn(between: Between) -> f64 {
    let estimate = between.estimate().map(|(estimate, _)| estimate);
    estimate.or(between.high).unwrap_or(between.low)
}

/// The sum of the trends of all endpoints.
fn together(rows: &[Row]) -> Vec<f64> {
    let mut all = vec![0.0; rows.iter().map(|row| row.trend.len()).max().unwrap_or(0)];
    for row in rows {
        let from = all.len() - row.trend.len();
        all[from..].iter_mut().zip(&row.trend).for_each(|(sum, rate)| *sum += rate);
    }
    all
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

impl Row {
    fn of(counts: &Counts, seconds: f64) -> Self {
        let Counts { times, statuses, in_flight, .. } = counts;
        let total: f64 = statuses.values().sum();
        let errors: f64 = statuses.iter().filter(|it| it.0.starts_with('5')).map(|it| it.1).sum();
        Self {
            count: times.count,
            rate: per_second(times.count, seconds),
            errors: (total > 0.0).then(|| errors / total),
            times: times.quantiles(),
            in_flight: *in_flight,
            statuses: statuses
                .iter()
                .map(|(status, count)| (status.clone(), per_second(*count, seconds)))
                .collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_view::families::pages;

    /// A reading at some time, of endpoints with so many requests and errors, by a process that started
    /// then.
    fn reading(at: Instant, started: u32, endpoints: &[(&str, u64, u64)]) -> Reading {
        let series: Vec<_> = endpoints
            .iter()
            .flat_map(|(name, requests, errors)| {
                [("2xx", requests - errors), ("5xx", *errors)]
                    .map(|(status, count)| (format!("route=\"{name}\",status=\"{status}\""), count))
            })
            .collect();
        let series: Vec<_> = series.iter().map(|(labels, count)| (&**labels, *count)).collect();
        let started = pages::gauge("process_start_time_seconds", &[("", started)]);
        let families = pages::read(&(pages::requests(&series) + &started));
        let ended = at + Duration::from_millis(10);
        Reading { began: at, ended, unix_millis: 0, families, processes: Some(1) }
    }

    #[test]
    fn rates_are_those_of_the_window() {
        let (began, mut window) = (Instant::now(), Window::new(Duration::from_secs(10)));
        window.add(&reading(began, 1, &[("/a", 5_000, 5_000)]));
        assert_eq!((window.table().rows[0].rate, window.table().rows[0].errors), (0.0, None));
        for second in 1..=30 {
            let at = began + Duration::from_secs(second);
            // 10 a second at first and 100 in the last ten; "/b" comes late and counts from 0.
            let requests = 5_000 + second * 10 + second.saturating_sub(20) * 90;
            let b = ("/b", second.saturating_sub(25) * 10, 0);
            let endpoints = [("/a", requests, 5_000 + second), b];
            window.add(&reading(at, 1, &endpoints[..if second > 25 { 2 } else { 1 }]));
        }
        let table = window.table();
        assert_eq!(table.length, Duration::from_secs(10));
        assert_eq!((table.rows[0].rate, table.rows[0].errors), (100.0, Some(0.01)));
        assert_eq!(table.rows[0].trend.len(), 30);
        assert_eq!(table.rows[0].trend[0], 10.0);
        assert_eq!((table.rows[0].p99_trend.len(), table.rows[1].p99_trend.len()), (30, 5));
        assert_eq!(table.rows[0].p99_trend[29], Some(250.0));
        assert_eq!((table.rows[1].rate, table.rows[1].errors), (5.0, Some(0.0)));
        assert_eq!((table.total.rate, table.total.requests), (105.0, 6_250.0));
        assert_eq!(table.total.times.p99_ms, Some(Between { low: 0.0, high: Some(250.0) }));
        assert!((table.uncertainty - 0.001).abs() < 1e-9, "{}", table.uncertainty);
        assert_eq!(table.restarted, None);
    }

    #[test]
    fn a_service_that_starts_anew_counts_on() {
        let (mut at, mut window) = (Instant::now(), Window::new(Duration::from_secs(3600)));
        window.add(&reading(at, 1, &[("/a", 1_000, 0)]));
        let mut expected = 0;
        for (started, requests, grown) in
            [(1, 1_007, 7), (2, 3, 3), (2, 10, 7), (3, 0, 0), (3, 4, 4)]
        {
            at += Duration::from_secs(1);
            window.add(&reading(at, started, &[("/a", requests, 0)]));
            expected += grown;
            let table = window.table();
            let found = table.rows[0].rate * table.length.as_secs_f64();
            assert!((found - f64::from(expected)).abs() < 1e-6, "{found}, expected {expected}");
        }
        assert_eq!(
            window.table().restarted,
            Some(at - Duration::from_secs(1) + Duration::from_millis(10))
        );
    }

    #[test]
    fn a_machine_that_slept_has_one_long_step() {
        let (began, mut window) = (Instant::now(), Window::new(Duration::from_secs(10)));
        window.add(&reading(began, 1, &[("/a", 0, 0)]));
        window.add(&reading(began + Duration::from_secs(600), 1, &[("/a", 6_000, 0)]));
        assert_eq!((window.table().rows[0].rate, window.table().length.as_secs()), (10.0, 600));
    }

    #[test]
    fn endpoints_that_go_take_their_trends_with_them() {
        let (began, mut window) = (Instant::now(), Window::new(Duration::from_secs(10)));
        for second in 0..100 {
            let name = format!("/{second}");
            let at = began + Duration::from_secs(second);
            window.add(&reading(at, 1, &[("/a", second, 0), (&name, 1, 0)]));
        }
        assert_eq!(window.trends.len(), 2);
        assert_eq!((window.table().rows.len(), window.steps.len()), (2, 10));
    }
}
