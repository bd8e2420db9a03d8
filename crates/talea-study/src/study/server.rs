//! The server's numbers of one case, from samples of its metrics.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use talea_load::scenario::Quantity;
use talea_statistics::MemoryGrowth;
use talea_statistics::figures::{counted as counted_in_words, whole};

use super::endpoints::EndpointSummary;
use super::series::{CounterIncrease, Sample, Series, is_sampled, most};
use talea_view::families::Quantiles;

/// The values of a server's metrics in one case; none if it does not report them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Requests that it counted, scrapes of its metrics among them if it counts those.
    pub requests_received: Option<u64>,
    /// Those of them that are scrapes of its metrics; none if it does not count them, or this is not known.
    pub scrapes_counted: Option<u64>,
    /// The requests that its response times are of; those that had not ended at the last reading are not among them.
    pub requests_timed: Option<u64>,
    /// Requests received a second, in the best 2 s.
    pub peak_rate_2s: Option<f64>,
    /// Mean response time by the server's clock, over the whole case.
    pub mean_response_ms: Option<f64>,
    /// Quantiles of the response time: the buckets of the server's histogram that they lie in.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// Each endpoint that had requests, the one that had most first.
    pub endpoints: Vec<EndpointSummary>,
    /// Server tasks that were made during the case.
    pub tasks_created: Option<u64>,
    /// The most server tasks at once beyond those before the case.
    pub peak_additional_tasks: Option<u64>,
    /// The most server tasks at once that were woken and not yet polled.
    pub peak_ready_tasks: Option<u64>,
    /// The most requests under way in any sample; none if each sample found none, though requests
    /// were received.
    pub peak_in_flight: Option<u64>,
    /// CPU time of the service's process.
    pub cpu_seconds: Option<f64>,
    /// The most memory in any sample.
    pub peak_memory_bytes: Option<u64>,
    /// How its memory grew; none if it began anew meanwhile.
    pub memory_growth: Option<MemoryGrowth>,
    /// Database connections that there may be.
    pub pool_max: Option<u64>,
    /// The most database connections in use in any sample.
    pub peak_pool_used: Option<u64>,
    /// The most requests at once that waited for a database connection.
    pub peak_pool_pending: Option<u64>,
    /// How often the service seems to have started anew during the case.
    pub restarts: u64,
    /// Whether no sample was taken between the first request and the last answer: then the most of
    /// something is known only from a high-water mark.
    pub unsampled: bool,
    /// Samples that are missing because a scrape failed.
    pub missed_samples: u64,
    /// Why the metrics could not be read after the last answer; then it is not known how many
    /// requests were received.
    pub unread: Option<String>,
    pub series: Series,
}

impl Server {
    /// Evaluates samples; the first is the baseline, the last was taken after the last answer.
    /// Whether high-water marks were reset before the first.
    pub(crate) fn of(samples: &[Sample], missed_samples: u64, reset: bool) -> Self {
        let series = Series::of(samples);
        let idle = CounterIncrease::default();
        let totals = samples.last().map_or(&idle, |last| &last.increase);
        let whole_of = |value: Option<f64>| value.map(|value| value.max(0.0).round() as u64);
        let peak = |now, mark| peak(samples, now, mark, reset);
        let additional = peak(Quantity::Tasks, Quantity::TasksPeak);
        let tasks = samples.first().and_then(|sample| sample.reading.get(Quantity::Tasks));
        let pending = peak(Quantity::PoolPending, Quantity::PoolPendingPeak);
        let requests_received = whole_of(totals.requests);
        // A request is in flight for a while, so that the most is not 0 if there was one.
        Self {
            requests_received,
            scrapes_counted: None,
            requests_timed: whole_of(Some(totals.durations.count).filter(|count| *count > 0.0)),
            peak_rate_2s: series.peak_rate(),
            mean_response_ms: totals.durations.mean_ms(),
            quantiles: Quantiles::by(|quantile| totals.durations.quantile_ms(quantile)),
            endpoints: Vec::new(),
            tasks_created: whole_of(totals.tasks_spawned),
            peak_additional_tasks: whole_of(additional.zip(tasks).map(|(most, idle)| most - idle)),
            peak_ready_tasks: whole_of(peak(Quantity::Ready, Quantity::ReadyPeak)),
            peak_in_flight: whole_of(most(&series.in_flight))
                .filter(|most| *most > 0 || requests_received.is_none_or(|received| received == 0)),
            cpu_seconds: totals.cpu_seconds,
            peak_memory_bytes: whole_of(most(&series.memory_bytes)),
            memory_growth: MemoryGrowth::of(&series.memory()).filter(|_| totals.restarts == 0),
            pool_max: whole_of(largest(samples, Quantity::PoolMax)),
            peak_pool_used: whole_of(most(&series.pool_used)),
            peak_pool_pending: whole_of(pending),
            restarts: totals.restarts,
            unsampled: samples.len() > 1 && !is_sampled(samples),
            missed_samples,
            unread: None,
            series,
        }
    }

    /// Adds the endpoints, and the quantiles from the same readings, whose buckets may be closer. If the
    /// service began anew in between, the samples know more: then their quantiles stay.
    pub(super) fn with_endpoints(
        mut self,
        (endpoints, quantiles): (Vec<EndpointSummary>, Quantiles),
    ) -> Self {
        self.endpoints = endpoints;
        if quantiles != Quantiles::default() && self.restarts == 0 {
            self.quantiles = quantiles;
        }
        self
    }

    /// Recognises that the service counts scrapes of its metrics: it counted as many requests more than were sent
    /// as there were scrapes. If it is said to count them, these scrapes are among its requests in any case.
    pub(super) fn with_scrapes(
        mut self,
        sent: u64,
        scrapes: RangeInclusive<u64>,
        counts_scrapes: Option<bool>,
    ) -> Self {
        let more = self.requests_received.map_or(0, |received| received.saturating_sub(sent));
        let is_recognised = more > 0 && scrapes.contains(&more) && self.restarts == 0;
        self.scrapes_counted = match counts_scrapes {
            Some(true) => Some(more.clamp(*scrapes.start(), *scrapes.end())),
            None if is_recognised => Some(more),
            Some(false) | None => None,
        };
        self
    }

    /// Says in words how what the clients sent and what the server counted disagree; none where
    /// they agree, or where the server does not count.
    pub(crate) fn disagreement(&self, sent: u64) -> Option<String> {
        if let Some(why) = &self.unread {
            return Some(format!(
                "The server's metrics could not be read after the last response, so it is not \
                 known how many requests it received: {why}."
            ));
        }
        let mut words = disagreement(sent, self.requests_received?, self.scrapes_counted)?;
        if self.restarts > 0 {
            let times = counted_in_words(self.restarts, "time");
            words += &format!(
                " It restarted {times} meanwhile: counts after the last sample before that are \
                 lost."
            );
        }
        Some(words)
    }
}

/// The most at once: by the server's high-water mark where it was reset, rose during the case or
/// was level with the count when it began; else the largest sample, since the mark is older than
/// the case. None if no sample was taken while the case ran.
fn peak(samples: &[Sample], now: Quantity, mark: Quantity, reset: bool) -> Option<f64> {
    let at = |n: usize, quantity| samples.get(n).and_then(|sample| sample.reading.get(quantity));
    let last = samples.len().checked_sub(1)?;
    match (at(0, mark), at(last, mark), at(0, now)) {
        (Some(before), Some(after), level) if reset || after > before || level == Some(before) => {
            largest(samples, mark)
        }
        _ if is_sampled(samples) => largest(samples, now),
        _ => None,
    }
}

fn largest(samples: &[Sample], quantity: Quantity) -> Option<f64> {
    samples.iter().filter_map(|sample| sample.reading.get(quantity)).reduce(f64::max)
}

/// Says in words how two counts disagree, scrapes left out that the second has; none where they agree.
fn disagreement(sent: u64, received: u64, scrapes: Option<u64>) -> Option<String> {
    let expected = sent + scrapes.unwrap_or(0);
    let difference = expected.abs_diff(received);
    let direction = match received.cmp(&expected) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => "more than were sent",
        std::cmp::Ordering::Less => "fewer than were sent",
    };
    let sent = counted_in_words(sent, "request");
    let beside = scrapes.map(|scrapes| {
        format!(
            ", and there were {} of its metrics, which it counts too",
            counted_in_words(scrapes, "scrape")
        )
    });
    let (received, difference) = (whole(received), whole(difference));
    Some(format!(
        "The clients sent {sent}, the server counted {received}{}: {difference} {direction}.",
        beside.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::super::series::tests::samples;
    use super::*;

    fn sample(tenths: u64, values: &[(Quantity, f64)]) -> (u64, Reading) {
        let mut reading = Reading::default();
        for (quantity, value) in values {
            reading.set(*quantity, Some(*value));
        }
        (tenths * 100, reading)
    }

    #[test]
    fn sides_that_agree_need_no_words() {
        assert_eq!(disagreement(1000, 1000, None), None);
        assert_eq!(Server::default().disagreement(1000), None, "the server does not count");
    }

    #[test]
    fn a_disagreement_names_both_numbers_and_the_difference() {
        assert_eq!(
            disagreement(1000, 1266, None).unwrap(),
            "The clients sent 1,000 requests, the server counted 1,266: 266 more than were sent."
        );
        let fewer = "The clients sent 1 request, the server counted 0: 1 fewer than were sent.";
        assert_eq!(disagreement(1, 0, None).unwrap(), fewer);
        let server = Server { requests_received: Some(0), restarts: 1, ..Server::default() };
        assert!(server.disagreement(1).unwrap().contains("It restarted 1 time meanwhile"));
    }

    #[test]
    fn more_requests_are_scrapes_if_they_are_as_many() {
        let of = |received, counts_scrapes, restarts| {
            let received = Some(received);
            let server = Server { requests_received: received, restarts, ..Server::default() };
            let server = server.with_scrapes(1000, 41..=43, counts_scrapes);
            (server.scrapes_counted, server.disagreement(1000))
        };
        for (received, counts_scrapes, restarts, scrapes, words) in [
            (1041, None, 0, Some(41), ""),
            (1043, None, 0, Some(43), ""),
            (1000, None, 0, None, ""),
            (1040, None, 0, None, "counted 1,040: 40 more than were sent"),
            (1044, None, 0, None, "counted 1,044: 44 more than were sent"),
            (1041, None, 1, None, "counted 1,041: 41 more than were sent"),
            (959, None, 0, None, "41 fewer than were sent"),
            (1041, Some(false), 0, None, "41 more than were sent"),
            (1041, Some(true), 0, Some(41), ""),
            (
                1000,
                Some(true),
                0,
                Some(41),
                "41 scrapes of its metrics, which it counts too: 41 fewer",
            ),
            (
                1050,
                Some(true),
                0,
                Some(43),
                "43 scrapes of its metrics, which it counts too: 7 more",
            ),
        ] {
            let (found, disagreement) = of(received, counts_scrapes, restarts);
            assert_eq!(found, scrapes, "{received}, {counts_scrapes:?}");
            let disagreement = disagreement.unwrap_or_default();
            assert!(disagreement.contains(words), "{disagreement}");
            assert_eq!(disagreement.is_empty(), words.is_empty(), "{disagreement}");
        }
    }

    #[test]
    fn a_high_water_mark_is_believed_where_it_is_of_this_case() {
        use Quantity::{Tasks, TasksPeak};
        let of = |marks: [f64; 2], reset| {
            let samples = samples([
                sample(0, &[(Tasks, 4.0), (TasksPeak, marks[0])]),
                sample(1, &[(Tasks, 6.0), (TasksPeak, marks[1])]),
                sample(2, &[(Tasks, 4.0), (TasksPeak, marks[1])]),
            ]);
            Server::of(&samples, 0, reset).peak_additional_tasks
        };
        assert_eq!(of([4.0, 9.0], false), Some(5), "it was level");
        assert_eq!(of([7.0, 9.0], false), Some(5), "it rose");
        assert_eq!(of([9.0, 9.0], false), Some(2), "it is of an earlier case");
        assert_eq!(of([9.0, 9.0], true), Some(5), "it was reset before");
    }

    #[test]
    fn a_case_without_a_sample_knows_high_water_marks_alone() {
        use Quantity::{InFlight, PoolUsed, Ready, Tasks, TasksPeak, TasksSpawned};
        let idle = [(InFlight, 0.0), (PoolUsed, 0.0), (Ready, 0.0), (Tasks, 4.0)];
        let at = |tenths, peak, spawned| {
            let marks = [(TasksPeak, peak), (TasksSpawned, spawned)];
            sample(tenths, &[&idle[..], &marks[..]].concat())
        };
        let server = Server::of(&samples([at(0, 4.0, 90.0), at(1, 14.0, 310.0)]), 0, true);
        assert!(server.unsampled);
        assert_eq!((server.peak_in_flight, server.peak_pool_used), (None, None));
        assert_eq!((server.peak_ready_tasks, server.peak_additional_tasks), (None, Some(10)));
        assert_eq!(server.tasks_created, Some(220));
        assert!(server.series.in_flight.is_empty() && server.series.pool_used.is_empty());
        let mut busy = at(1, 14.0, 310.0);
        busy.1.set(InFlight, Some(7.0));
        let server = Server::of(&samples([at(0, 4.0, 90.0), busy, at(2, 14.0, 310.0)]), 0, true);
        assert!(!server.unsampled);
        assert_eq!((server.peak_in_flight, server.peak_ready_tasks), (Some(7), Some(0)));
    }

    #[test]
    fn samples_that_met_none_of_the_requests_know_no_peak_of_them() {
        use Quantity::{InFlight, Requests};
        let peak = |requests: [f64; 3], met| {
            let at = |n: usize, met| sample(n as u64, &[(Requests, requests[n]), (InFlight, met)]);
            Server::of(&samples([at(0, 0.0), at(1, met), at(2, 0.0)]), 0, true).peak_in_flight
        };
        assert_eq!(peak([5.0, 80.0, 105.0], 0.0), None, "each of 100 was in flight for a while");
        assert_eq!(peak([5.0, 80.0, 105.0], 3.0), Some(3));
        assert_eq!(peak([5.0, 5.0, 5.0], 0.0), Some(0), "there was none");
    }

    #[test]
    fn tasks_that_were_created_are_counted_over_a_restart() {
        let at = |tenths, spawned| sample(tenths, &[(Quantity::TasksSpawned, spawned)]);
        let server = Server::of(&samples([at(0, 100.0), at(1, 130.0), at(2, 4.0)]), 0, true);
        assert_eq!(server.tasks_created, Some(34));
    }

    #[test]
    fn after_a_restart_the_quantiles_of_the_samples_stay() {
        use talea_view::families::Between;
        let quantile = |low| Quantiles {
            p50_ms: Some(Between { low, high: Some(low * 1.09) }),
            ..Quantiles::default()
        };
        let with = |restarts, quantiles| {
            let sampled = Server { restarts, quantiles: quantile(1.0), ..Server::default() };
            sampled.with_endpoints((Vec::new(), quantiles)).quantiles
        };
        assert_eq!(with(0, quantile(2.0)), quantile(2.0));
        assert_eq!(with(1, quantile(2.0)), quantile(1.0));
        assert_eq!(with(0, Quantiles::default()), quantile(1.0), "the readings have none");
    }

    #[test]
    fn nothing_is_known_of_a_server_that_reports_nothing() {
        let server = Server::of(&samples([sample(0, &[]), sample(1, &[])]), 0, false);
        assert_eq!(server.requests_received, None);
        assert_eq!(server.peak_additional_tasks, None);
        assert_eq!(server.cpu_seconds, None);
    }
}
