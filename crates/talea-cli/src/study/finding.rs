//! What was found in one case.

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::sampler::Samples;
use super::series::{Series, mean_response_ms};
use crate::figures::{counted, whole};
use crate::load::{KindOfFailure, Outcome, kinds_of_failure};
use crate::scenario::Scenario;

/// The numbers of one case. Client numbers come from the clients, server numbers from the server's
/// metrics; none is reckoned from what the other side should have seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The case's name.
    pub id: String,
    /// Concurrent clients.
    pub clients: u64,
    /// Runs of the sequence by each client.
    pub iterations: u64,
    /// Requests that the clients sent.
    pub requests_sent: u64,
    /// Requests that the server counted.
    pub requests_received: u64,
    /// Requests that failed, those that could not be sent among them.
    pub failed: u64,
    /// The same by kind.
    pub failures: Vec<KindOfFailure>,
    /// What is wrong, where sent and received are not the same number.
    pub disagreement: Option<String>,
    /// From the start of the first client to the end of the last, connecting included.
    pub client_seconds: f64,
    /// Requests sent a second, over the whole case.
    pub mean_rate: Option<f64>,
    /// Requests received a second, in the best 2 s.
    pub peak_rate_2s: Option<f64>,
    /// Mean response time by the server's clock, over the whole case.
    pub mean_response_ms: Option<f64>,
    /// Median response time by the clients' clock.
    pub client_p50_ms: Option<f64>,
    /// 99th percentile of the response time by the clients' clock.
    pub client_p99_ms: Option<f64>,
    /// The most server tasks at once beyond those before the case.
    pub peak_additional_tasks: u64,
    /// The most server tasks at once that were woken and not yet polled.
    pub peak_ready_tasks: u64,
    /// CPU time of the server's process.
    pub server_cpu_seconds: f64,
    /// Connections that the clients opened.
    pub connections: u64,
    /// Connections that were opened to replace another.
    pub reconnects: u64,
    /// Samples that are missing because a scrape failed.
    pub missed_samples: u64,
    /// The five metrics over time.
    pub series: Series,
}

impl Finding {
    /// Sets a load's outcome and the server's samples side by side.
    pub(super) fn new(
        case: &Case,
        scenario: &Scenario,
        outcome: &Outcome,
        samples: &Samples,
    ) -> Self {
        let series = Series::of(&samples.samples);
        let (before, after) = match samples.samples.as_slice() {
            [first, .., last] => (first.reading, last.reading),
            [only] => (only.reading, only.reading),
            [] => Default::default(),
        };
        let tally = &outcome.tally;
        let received = after.requests.saturating_sub(before.requests);
        Self {
            id: case.id.clone(),
            clients: case.clients,
            iterations: case.iterations,
            requests_sent: tally.sent,
            requests_received: received,
            failed: tally.failed(),
            failures: kinds_of_failure(scenario, outcome),
            disagreement: disagreement(tally.sent, received),
            client_seconds: outcome.elapsed.as_secs_f64(),
            mean_rate: outcome.mean_rate(),
            peak_rate_2s: series.peak_rate(),
            mean_response_ms: mean_response_ms(&before, &after),
            client_p50_ms: outcome.quantile_ms(0.5),
            client_p99_ms: outcome.quantile_ms(0.99),
            peak_additional_tasks: after.tasks_alive_peak.saturating_sub(before.tasks_alive),
            peak_ready_tasks: after.tasks_ready_peak,
            server_cpu_seconds: (after.cpu_seconds - before.cpu_seconds).max(0.0),
            connections: tally.connections,
            reconnects: tally.reconnects,
            missed_samples: samples.missed,
            series,
        }
    }

    /// Whether nothing failed and both sides agree.
    pub fn is_clean(&self) -> bool {
        self.failed == 0 && self.disagreement.is_none()
    }
}

/// Says in words how the two sides disagree; none where they agree.
pub fn disagreement(sent: u64, received: u64) -> Option<String> {
    let difference = sent.abs_diff(received);
    let direction = match received.cmp(&sent) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => "more than were sent",
        std::cmp::Ordering::Less => "fewer than were sent",
    };
    let sent = counted(sent, "request");
    let (received, difference) = (whole(received), whole(difference));
    Some(format!(
        "The clients sent {sent}, the server counted {received}: {difference} {direction}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_that_agree_need_no_words() {
        assert_eq!(disagreement(1000, 1000), None);
    }

    #[test]
    fn a_disagreement_names_both_numbers_and_the_difference() {
        assert_eq!(
            disagreement(1000, 1266).unwrap(),
            "The clients sent 1,000 requests, the server counted 1,266: 266 more than were sent."
        );
        assert_eq!(
            disagreement(1, 0).unwrap(),
            "The clients sent 1 request, the server counted 0: 1 fewer than were sent."
        );
    }
}
