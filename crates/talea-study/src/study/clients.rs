//! The clients' numbers of one case.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use talea::HistogramSnapshot;

use talea_load::{
    CheckSummary, KindOfFailure, LowerBounds, NumberSummary, Outcome, Phases, Plan, StepSummary,
    Summary, Window, kinds_of_failure,
};

/// The requests of the clients of one case, and their answers. Response times are by their clock,
/// in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Clients {
    /// Requests that the case makes where every one of them can be sent, if that is known.
    pub requests_planned: Option<u64>,
    pub requests_sent: u64,
    pub requests_not_sent: u64,
    /// Answers that were read to their end, by status.
    pub answers_by_status: BTreeMap<u16, u64>,
    /// Requests that failed, those that could not be sent among them.
    pub failed: u64,
    pub failures: Vec<KindOfFailure>,
    /// Requests whose time is known by a lower bound alone: they timed out, or waited when a signal stopped the
    /// load. They count in all times as at least that long.
    pub requests_censored: u64,
    /// Requests that failed otherwise, without an answer, and count in no time.
    pub requests_untimed: u64,
    /// From the start of the first client to the end of the last, connecting included.
    pub seconds: f64,
    /// The time in which requests were sent; of arrivals at a rate that of the schedule at least. 0 in reports
    /// that do not have it.
    pub sending_seconds: f64,
    /// Requests sent a second of it.
    pub mean_rate: Option<f64>,
    pub mean_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub p9999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    #[serde(flatten)]
    pub phases: Phases,
    /// The names of those of these times that are lower bounds.
    pub at_least: LowerBounds,
    pub steps: Vec<StepSummary>,
    pub checks: Vec<CheckSummary>,
    pub measures: Vec<NumberSummary>,
    pub connections: u64,
    /// Connections that were opened to replace another.
    pub reconnects: u64,
    /// The generator's processor time a second; 1 is one core.
    pub generator_cores: f64,
    /// Why the generator, and not the server, may have been the limit.
    pub limits: Vec<String>,
    pub times: Times,
    /// The distribution of the response times; a report has it with the round's measures.
    #[serde(skip)]
    pub distribution: Option<talea_load::Times>,
}

/// Response times over time: slices of the case, each from the end of the one before. Requests that timed out
/// count as long as they were waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// When each slice ended, since the baseline.
    pub seconds: Vec<f64>,
    pub rate: Vec<f64>,
    /// Mean response time; none where no request ended.
    pub mean_ms: Vec<Option<f64>>,
    pub p50_ms: Vec<Option<f64>>,
    pub p99_ms: Vec<Option<f64>>,
    pub failed: Vec<u64>,
    pub heat: Heat,
}

/// How many requests took how long, slice by slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Heat {
    /// The bounds of the bands of response times, one more than there are bands.
    pub edges_ms: Vec<f64>,
    /// Of each slice, the requests in each band.
    pub counts: Vec<Vec<u64>>,
}

impl Clients {
    /// A time as it is shown, by the name of its field: `≥ 1,000` if it is a lower bound.
    pub(crate) fn shown(&self, field: &str, ms: Option<f64>) -> String {
        self.at_least.shown(field, ms)
    }

    /// The share of its requests that count in no time.
    pub(crate) fn untimed_share(&self) -> f64 {
        let all = self.requests_sent + self.requests_not_sent;
        self.requests_untimed as f64 / all.max(1) as f64
    }

    /// The share of the checks' results that passed; none if there are none.
    pub(crate) fn passed_checks(&self) -> Option<f64> {
        let passed: u64 = self.checks.iter().map(|check| check.passed).sum();
        let failed: u64 = self.checks.iter().map(|check| check.failed).sum();
        (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64)
    }

    /// Those of a load of which there is the summary and the distribution of the response times.
    pub fn of_summary(summary: &Summary, responses: &talea_load::Times) -> Self {
        let mut at_least = LowerBounds::default();
        Self {
            requests_planned: summary.requests_planned,
            requests_sent: summary.requests_sent,
            requests_not_sent: summary.requests_not_sent,
            failed: summary.failed,
            requests_untimed: summary.requests_untimed,
            seconds: summary.client_seconds,
            sending_seconds: summary.sending_seconds,
            mean_rate: summary.mean_rate,
            mean_ms: at_least.note("mean_ms", responses.mean()),
            p50_ms: at_least.note("p50_ms", responses.quantile(0.5)),
            p90_ms: at_least.note("p90_ms", responses.quantile(0.9)),
            p95_ms: at_least.note("p95_ms", responses.quantile(0.95)),
            p99_ms: at_least.note("p99_ms", responses.quantile(0.99)),
            p999_ms: at_least.note("p999_ms", responses.quantile(0.999)),
            p9999_ms: at_least.note("p9999_ms", responses.quantile(0.9999)),
            max_ms: at_least.note("max_ms", responses.quantile(1.0)),
            at_least,
            steps: summary.steps.clone(),
            checks: summary.checks.clone(),
            measures: summary.measures.clone(),
            distribution: Some(responses.clone()),
            ..Self::default()
        }
    }

    pub fn new(plan: &Plan, outcome: &Outcome, times: Times) -> Self {
        let (tally, all) = (&outcome.tally, &outcome.response_times);
        let mut at_least = LowerBounds::default();
        Self {
            requests_planned: plan.requests(),
            requests_sent: tally.sent,
            requests_not_sent: tally.not_sent,
            answers_by_status: tally.answers.clone(),
            failed: tally.failed(),
            failures: kinds_of_failure(&plan.scenario, outcome),
            requests_censored: all.censored(),
            requests_untimed: tally.untimed(),
            seconds: outcome.elapsed.as_secs_f64(),
            sending_seconds: outcome.sending.as_secs_f64(),
            mean_rate: outcome.mean_rate(),
            mean_ms: at_least.note("mean_ms", all.mean()),
            p50_ms: at_least.note("p50_ms", all.quantile(0.5)),
            p90_ms: at_least.note("p90_ms", all.quantile(0.9)),
            p95_ms: at_least.note("p95_ms", all.quantile(0.95)),
            p99_ms: at_least.note("p99_ms", all.quantile(0.99)),
            p999_ms: at_least.note("p999_ms", all.quantile(0.999)),
            p9999_ms: at_least.note("p9999_ms", all.quantile(0.9999)),
            max_ms: at_least.note("max_ms", all.quantile(1.0)),
            phases: outcome.phases(&mut at_least),
            at_least,
            steps: StepSummary::all_of(&plan.scenario, outcome),
            checks: CheckSummary::all_of(&plan.scenario, outcome),
            measures: NumberSummary::all_of(&plan.scenario, outcome),
            connections: tally.connections,
            reconnects: tally.reconnects,
            generator_cores: outcome.health.cores(),
            limits: outcome.limits(&plan.scenario),
            times,
            distribution: Some(all.clone()),
        }
    }
}

/// The clients' histogram as it was at some instants. When there are too many of them every second
/// one is dropped: each has all that was before it, so only the slices become longer.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseTimeline {
    taken: Vec<(Duration, Observed)>,
    /// Of how many instants one is kept, and how many have passed since.
    stride: usize,
    passed: usize,
}

/// The counts of the clients since the case began.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The times of answers, and lower bounds of those of requests that timed out.
    pub(super) times: HistogramSnapshot,
    pub(super) failed: u64,
}

impl Observed {
    pub(super) fn of(window: &Window) -> Self {
        Self { times: window.response_times().all(), failed: window.requests_failed() }
    }
}

/// How many slices a case has at most.
const SLICES: usize = 160;
/// Bands of response times in a factor of ten.
const BANDS: f64 = 6.0;

impl ResponseTimeline {
    /// Records the observations since the case began, at an instant of it.
    pub(super) fn record(&mut self, at: Duration, observed: impl FnOnce() -> Observed) {
        self.passed += 1;
        if self.passed >= self.stride {
            self.passed = 0;
            self.keep(at, observed());
        }
    }

    /// Adds the point of the case's end, which is always kept.
    pub(super) fn end(&mut self, at: Duration, observed: Observed) {
        self.keep(at, observed);
    }

    fn keep(&mut self, at: Duration, observed: Observed) {
        self.taken.push((at, observed));
        if self.taken.len() > SLICES {
            let mut nth = 0;
            self.taken.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.stride = self.stride.max(1) * 2;
        }
    }

    pub(super) fn times(&self) -> Times {
        let Some((_, all)) = self.taken.last() else { return Times::default() };
        let edges = edges(&all.times);
        let mut times = Times::default();
        let mut before: Option<&(Duration, Observed)> = None;
        for now in &self.taken {
            let (begun, slice, failed) = match before {
                Some((at, earlier)) => {
                    (*at, now.1.times.diff(&earlier.times), now.1.failed - earlier.failed)
                }
                None => (Duration::ZERO, now.1.times.clone(), now.1.failed),
            };
            before = Some(now);
            let length = now.0.saturating_sub(begun).as_secs_f64();
            let ms = |seconds: Option<f64>| seconds.map(|it| rounded(it * 1e3, 1e4));
            times.seconds.push(rounded(now.0.as_secs_f64(), 1e3));
            let rate = if length > 0.0 { slice.count() as f64 / length } else { 0.0 };
            times.failed.push(failed);
            times.rate.push(rounded(rate, 1e2));
            times.mean_ms.push(ms(slice.mean()));
            times.p50_ms.push(ms(slice.quantile(0.5)));
            times.p99_ms.push(ms(slice.quantile(0.99)));
            times.heat.counts.push(in_bands(&slice, &edges));
        }
        times.heat.edges_ms = edges.iter().map(|edge| rounded(edge * 1e3, 1e6)).collect();
        times
    }
}

/// Bounds that hold all of some observations, evenly on a logarithmic scale.
fn edges(all: &HistogramSnapshot) -> Vec<f64> {
    // A time below a microsecond is no answer.
    let least = |quantile| all.quantile(quantile).map(|seconds: f64| seconds.max(1e-6));
    let Some((low, high)) = least(0.0).zip(least(1.0)) else { return Vec::new() };
    let (low, high) = ((low.log10() * BANDS).floor() as i32, (high.log10() * BANDS).floor() as i32);
    (low..=high + 1).map(|edge| 10f64.powf(f64::from(edge) / BANDS)).collect()
}

fn in_bands(slice: &HistogramSnapshot, edges: &[f64]) -> Vec<u64> {
    let bands = edges.len().saturating_sub(1);
    let mut counts = Vec::with_capacity(bands);
    let mut before = 0;
    for (n, upper) in edges.iter().skip(1).enumerate() {
        // The outermost bounds hold the rest: a bucket may lie across one.
        let below = match n + 1 == bands {
            true => slice.count(),
            false => slice.count_below(*upper).round() as u64,
        };
        counts.push(below.saturating_sub(before));
        before = below.max(before);
    }
    counts
}

/// Keeps what a plot can show, so that the report stays small.
pub(super) fn rounded(number: f64, scale: f64) -> f64 {
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use talea::{Bucketing, Histogram, Opts, Registry, Seconds};

    use super::*;

    struct Load(Registry, Histogram<Seconds>);

    impl Load {
        fn new() -> Self {
            let registry = Registry::new().unwrap();
            let opts = Opts::new("x_seconds", "x").bucketing(Bucketing::Native).schema(5);
            let histogram = registry.register(opts).unwrap();
            Self(registry, histogram)
        }

        /// With as many failures as answers.
        fn so_far(&self) -> Observed {
            let times = self.0.snapshot().histogram("x_seconds", &[]).unwrap();
            Observed { failed: times.count(), times }
        }
    }

    #[test]
    fn slices_hold_what_was_observed_in_them_and_no_more() {
        let observed = Load::new();
        let mut timeline = ResponseTimeline::default();
        for slice in 1..=3u64 {
            for _ in 0..slice * 10 {
                observed.1.observe(Duration::from_millis(slice * slice));
            }
            timeline.record(Duration::from_millis(slice * 100), || observed.so_far());
        }
        timeline.end(Duration::from_millis(400), observed.so_far());
        let times = timeline.times();
        assert_eq!(times.seconds, [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(times.rate, [100.0, 200.0, 300.0, 0.0]);
        assert_eq!(times.failed, [10, 20, 30, 0]);
        assert!((times.p50_ms[1].unwrap() / 4.0 - 1.0).abs() < 0.011);
        assert_eq!((times.p50_ms[3], times.mean_ms[3]), (None, None));
        let in_all: Vec<u64> = times.heat.counts.iter().map(|slice| slice.iter().sum()).collect();
        assert_eq!(in_all, [10, 20, 30, 0]);
        let (first, last) = (times.heat.edges_ms[0], *times.heat.edges_ms.last().unwrap());
        assert!(first <= 1.0 && last >= 9.0, "{first} to {last}");
        // 1 ms, 4 ms and 9 ms are each in a band of their own.
        let band = |slice: usize| times.heat.counts[slice].iter().position(|count| *count > 0);
        assert!(band(0) < band(1) && band(1) < band(2));
    }

    #[test]
    fn a_long_case_has_longer_slices_and_loses_nothing() {
        let observed = Load::new();
        let mut timeline = ResponseTimeline::default();
        for tenth in 1..=5_000u64 {
            observed.1.observe(Duration::from_millis(1 + tenth % 7));
            timeline.record(Duration::from_millis(tenth * 100), || observed.so_far());
        }
        timeline.end(Duration::from_millis(500_001), observed.so_far());
        let times = timeline.times();
        assert!((SLICES / 3..=SLICES).contains(&times.seconds.len()), "{}", times.seconds.len());
        assert!(times.seconds.windows(2).all(|pair| pair[0] < pair[1]));
        let all: u64 = times.heat.counts.iter().flatten().sum();
        assert_eq!(all, 5_000);
    }

    #[test]
    fn a_case_without_answers_has_no_times() {
        let mut timeline = ResponseTimeline::default();
        timeline.end(Duration::from_millis(10), Load::new().so_far());
        let times = timeline.times();
        assert_eq!((times.heat.edges_ms.len(), times.rate.len()), (0, 1));
        assert!(ResponseTimeline::default().times().seconds.is_empty());
    }
}
