//! The results of one case.

use serde::{Deserialize, Serialize};
use talea_load::Model;

use super::case::Case;
use super::clients::Clients;
use super::measure::{Measure, Measures};
use super::server::Server;

/// The numbers of one case. Client numbers come from the clients, server numbers from the server's
/// metrics; neither is derived from the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CaseResult {
    pub id: String,
    /// When its requests were made, in words.
    pub model: String,
    /// Concurrent clients; at most, where requests arrive at a rate.
    pub clients: u64,
    /// Whether requests arrived at a rate, whatever became of those before.
    #[serde(default)]
    pub open: bool,
    /// Runs of the scenario by each client, where that is decided beforehand.
    pub iterations: Option<u64>,
    pub client: Clients,
    /// The values of the server's metrics; none if it has none.
    pub server: Option<Server>,
    /// The server's values by a Prometheus, if one took part.
    pub prometheus: Option<Server>,
    /// The results of the queries of the reference there.
    pub queries: Vec<Query>,
    /// The fault, if sent and received are not the same number.
    pub disagreement: Option<String>,
    /// How the two ways of reading the server's metrics differ, in words.
    pub differences: Vec<String>,
    /// Each round's numbers; the rest is of the round whose client time is the middle one.
    pub rounds: Vec<Measures>,
}

/// A query of PromQL and what it finds, beside what the samples of the built-in scraper say.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Query {
    /// The quantity it asks for.
    pub title: String,
    pub query: String,
    /// The unit of both numbers; empty where they have none.
    pub unit: String,
    /// Its result; none if it finds nothing.
    pub found: Option<f64>,
    /// The value by the built-in scraper.
    pub sampled: Option<f64>,
}

impl CaseResult {
    pub fn new(case: &Case, client: Clients, mut server: Option<Server>) -> Self {
        if let Some(server) = &mut server {
            server.peak_rate_2s = peak_rate(server, client.sending_seconds);
        }
        let measures = Measure::all_of(&client, server.as_ref());
        Self {
            id: case.id.clone(),
            model: case.model.to_string(),
            clients: case.model.clients(),
            open: matches!(case.model, Model::Open { .. }),
            iterations: case.iterations(),
            disagreement: server
                .as_ref()
                .and_then(|server| server.disagreement(client.requests_sent)),
            queries: Vec::new(),
            differences: Vec::new(),
            rounds: vec![measures],
            client,
            server,
            prometheus: None,
        }
    }

    /// With one round, which has its numbers.
    #[must_use]
    pub fn with_measures(self) -> Self {
        let rounds = vec![Measure::all_of(&self.client, self.server.as_ref())];
        Self { rounds, ..self }
    }

    /// The server's values; none of them known if it has no metrics.
    pub(crate) fn server_values(&self) -> Server {
        self.server.clone().unwrap_or_default()
    }

    /// How many clients ran at the same time; none where requests arrived at a rate.
    pub(crate) fn concurrency(&self) -> Option<u64> {
        (!self.open).then_some(self.clients)
    }

    /// Whether nothing failed and both sides agree.
    pub fn is_clean(&self) -> bool {
        self.client.failed == 0 && self.disagreement.is_none()
    }

    /// Puts the rounds of one case together: the one whose client time is the middle one, or the
    /// first that is not clean, with the numbers of all. None of none.
    pub(super) fn of_rounds(rounds: Vec<CaseResult>) -> Option<Self> {
        let measures: Vec<Measures> =
            rounds.iter().flat_map(|round| round.rounds.iter().cloned()).collect();
        let mut sorted = rounds;
        sorted.sort_by(|one, other| one.client.seconds.total_cmp(&other.client.seconds));
        let shown = sorted.iter().position(|round| !round.is_clean()).unwrap_or(sorted.len() / 2);
        (!sorted.is_empty()).then(|| Self { rounds: measures, ..sorted.swap_remove(shown) })
    }
}

/// The peak rate of a server, whose samples also cover some time before and after the clients': at
/// least the mean while the clients ran.
fn peak_rate(server: &Server, seconds: f64) -> Option<f64> {
    let received = server.requests_received.filter(|_| seconds > 0.0);
    let mean = received.map(|received| received as f64 / seconds);
    server.peak_rate_2s.map(|peak| mean.map_or(peak, |mean| peak.max(mean)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_rate_is_never_below_the_mean() {
        let of = |peak, received| {
            let client = Clients { sending_seconds: 0.5, ..Clients::default() };
            let server =
                Server { peak_rate_2s: peak, requests_received: received, ..Server::default() };
            CaseResult::new(&"A".parse().unwrap(), client, Some(server))
                .server_values()
                .peak_rate_2s
        };
        assert_eq!(of(Some(180.0), Some(100)), Some(200.0));
        assert_eq!(of(Some(280.0), Some(100)), Some(280.0));
        assert_eq!(of(Some(180.0), None), Some(180.0));
        assert_eq!(of(None, Some(100)), None, "there were not two samples");
    }

    fn round(seconds: f64, failed: u64) -> CaseResult {
        let client = Clients { seconds, failed, ..Clients::default() };
        CaseResult::new(&"A".parse().unwrap(), client, None)
    }

    #[test]
    fn the_round_in_the_middle_or_one_that_failed_is_shown_with_the_numbers_of_all() {
        let all = CaseResult::of_rounds(vec![round(9.0, 0), round(1.0, 0), round(3.0, 0)]).unwrap();
        assert_eq!(all.client.seconds, 3.0);
        let times: Vec<f64> =
            all.rounds.iter().map(|round| round.get(Measure::Time).unwrap()).collect();
        assert_eq!(times, [9.0, 1.0, 3.0]);
        assert!(CaseResult::of_rounds(Vec::new()).is_none());
        let all = CaseResult::of_rounds(vec![round(1.0, 0), round(2.0, 0), round(9.0, 3)]).unwrap();
        assert_eq!(all.client.failed, 3);
    }
}
