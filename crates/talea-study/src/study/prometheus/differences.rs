//! Differences between a Prometheus and the study's own samples.

use talea_statistics::figures::{measured, whole};

use super::super::series::WINDOW;
use super::super::server::Server;

/// The tolerance for a mean or a sum of the same counters: they are read at other instants.
const TOLERANCE: f64 = 0.01;
/// Processor time that the service may use between the two ways' last readings, in seconds: a
/// second's idling.
const IDLING: f64 = 0.1;
/// How long the best window of 2 s may seem to Prometheus, which scrapes at its own seconds: it may
/// begin a second too early and end a second too late.
const LENGTHENED: f64 = 2.0;
/// How much later than the instant that it writes down it may read, in seconds: until the scrape
/// runs into its time limit.
const LATE: f64 = 1.0;

/// Says in words how the two differ by more than the second between two scrapes explains.
pub(crate) fn differences(sampled: &Server, scraped: &Server) -> Vec<String> {
    let mut words = Vec::new();
    let mut say = |what: &str, ours: String, theirs: String| {
        words.push(format!("{what}: {ours} by the study's samples, {theirs} by Prometheus."));
    };
    let counts = [
        ("Requests received", sampled.requests_received, scraped.requests_received),
        ("Tasks created", sampled.tasks_created, scraped.tasks_created),
        ("Additional tasks, peak", sampled.peak_additional_tasks, scraped.peak_additional_tasks),
        ("Ready tasks, peak", sampled.peak_ready_tasks, scraped.peak_ready_tasks),
    ];
    for (what, ours, theirs) in counts {
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            if ours != theirs {
                say(what, whole(ours), whole(theirs));
            }
        }
    }
    let means = [
        ("Mean response time, ms", sampled.mean_response_ms, scraped.mean_response_ms, 0.0),
        ("Server CPU, s", sampled.cpu_seconds, scraped.cpu_seconds, IDLING),
    ];
    for (what, ours, theirs, slack) in means {
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            if (ours - theirs).abs() > ours.abs() * TOLERANCE + slack {
                say(what, measured(ours), measured(theirs));
            }
        }
    }
    if let (Some(ours), Some(theirs)) = (sampled.peak_rate_2s, scraped.peak_rate_2s) {
        let window = sampled.series.seconds.last().copied().unwrap_or_default();
        let window = window.min(WINDOW.as_secs_f64());
        let (least, most) =
            (ours * window / (window + LENGTHENED), ours * (window + LATE) / window);
        if theirs < least || theirs > most {
            say("Requests received a second, at most", measured(ours), measured(theirs));
        }
    }
    let one_sided = [
        ("Requests received", sampled.requests_received, scraped.requests_received),
        ("Additional tasks, peak", sampled.peak_additional_tasks, scraped.peak_additional_tasks),
    ];
    for (what, ours, theirs) in one_sided {
        if let (Some(ours), None) = (ours, theirs) {
            say(what, whole(ours), "nothing".to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::super::series::Series;
    use super::*;

    fn server(received: u64, mean: f64, cpu: f64, peak: f64) -> Server {
        Server {
            requests_received: Some(received),
            mean_response_ms: Some(mean),
            cpu_seconds: Some(cpu),
            peak_rate_2s: Some(peak),
            series: Series { seconds: vec![0.0, 5.0], ..Series::default() },
            ..Server::default()
        }
    }

    #[test]
    fn only_what_a_scrape_interval_does_not_explain_is_reported() {
        const RATE: &str = "Requests received a second, at most";
        for (theirs, expected) in [
            (server(1000, 4.01, 1.05, 300.0), &[][..]),
            (server(999, 4.0, 1.0, 500.0), &[("Requests received", "1,000", "999")]),
            // A rate may be off by the second of a scrape, and no more.
            (server(1000, 4.0, 1.0, 249.0), &[(RATE, "500", "249")]),
            (server(1000, 4.0, 1.0, 251.0), &[]),
            (server(1000, 4.0, 1.0, 749.0), &[]),
            (server(1000, 4.0, 1.0, 751.0), &[(RATE, "500", "751")]),
            (
                server(1000, 5.0, 2.0, 200.0),
                &[
                    ("Mean response time, ms", "4.00", "5.00"),
                    ("Server CPU, s", "1.00", "2.00"),
                    (RATE, "500", "200"),
                ],
            ),
            (Server::default(), &[("Requests received", "1,000", "nothing")]),
        ] {
            let expected = expected.iter().map(|(what, ours, theirs)| {
                format!("{what}: {ours} by the study's samples, {theirs} by Prometheus.")
            });
            let found = differences(&server(1000, 4.0, 1.0, 500.0), &theirs);
            assert_eq!(found, expected.collect::<Vec<_>>(), "{theirs:?}");
        }
    }
}
