//! The table on the screen.

use talea_statistics::figures::{
    NONE, count, counted, measured, measured_or_none, whole, whole_or_none,
};

use super::analysis::caveats;
use crate::study::{CaseResult, Server};
use talea_view::families::Between;
use talea_view::screen;

/// A column of the table, on the screen and in the report.
pub(super) struct Column {
    /// The heading that it shares with columns beside it.
    pub(super) group: &'static str,
    pub(super) title: &'static str,
    heading: &'static str,
    /// The quantity that the service reports in it, if it is the service's.
    quantity: Option<&'static str>,
    pub(super) of: fn(&CaseResult) -> String,
    /// Whether its number in a case is a fault.
    pub(super) is_wrong: fn(&CaseResult) -> bool,
    /// Its text for a case by a Prometheus.
    by_prometheus: fn(&Server) -> String,
}

/// A column of the load or of the clients' numbers.
const fn clients(
    group: &'static str,
    title: &'static str,
    heading: &'static str,
    of: fn(&CaseResult) -> String,
) -> Column {
    Column {
        group,
        title,
        heading,
        quantity: None,
        of,
        is_wrong: |_| false,
        by_prometheus: |_| String::new(),
    }
}

/// A column of numbers of a server, as the study's samples have them and as a Prometheus does.
macro_rules! servers {
    ($group:ident, $title:literal, $heading:literal, $quantity:literal, $of:expr) => {
        Column {
            group: $group,
            title: $title,
            heading: $heading,
            quantity: Some($quantity),
            of: |result| {
                let of: fn(&Server) -> String = $of;
                of(&result.server_values())
            },
            is_wrong: |_| false,
            by_prometheus: $of,
        }
    };
}

const LOAD: &str = "Load";
const CLIENTS: &str = "At the clients";
const SERVER: &str = "At the server";
const TASKS: &str = "Server tasks";

/// Each, the name of the case first; those of one group side by side, latencies before others, since
/// a narrow screen shows the first.
pub(super) const COLUMNS: [Column; 17] = [
    clients("", "Case", "case", |result| result.id.clone()),
    clients(LOAD, "N", "N", |result| whole_or_none(result.concurrency())),
    clients(LOAD, "M", "M", |result| whole_or_none(result.iterations)),
    clients(CLIENTS, "p50, ms", "p50\nms", |it| it.client.shown("p50_ms", it.client.p50_ms)),
    clients(CLIENTS, "p99, ms", "p99\nms", |it| it.client.shown("p99_ms", it.client.p99_ms)),
    clients(CLIENTS, "mean req/s", "mean\nreq/s", |it| measured_or_none(it.client.mean_rate)),
    clients(CLIENTS, "time, s", "client\ns", |result| measured(result.client.seconds)),
    clients(CLIENTS, "sent", "T sent", |result| whole(result.client.requests_sent)),
    Column {
        is_wrong: |result| result.client.failed > 0,
        ..clients(CLIENTS, "failed", "failed", |result| whole(result.client.failed))
    },
    Column {
        is_wrong: |result| result.disagreement.is_some(),
        ..servers!(SERVER, "received", "received", "requests received", |server| {
            whole_or_none(server.requests_received)
        })
    },
    servers!(SERVER, "peak req/s", "peak 2 s\nreq/s", "the rate of requests", |server| {
        measured_or_none(server.peak_rate_2s)
    }),
    servers!(SERVER, "mean, ms", "server\nmean ms", "response times", |server| {
        measured_or_none(server.mean_response_ms)
    }),
    servers!(SERVER, "p99, ms", "server\np99 ms", "quantiles of response times", |server| {
        server.quantiles.p99_ms.map_or(NONE.to_owned(), in_ms)
    }),
    servers!(SERVER, "CPU, s", "server\nCPU s", "CPU time", |server| {
        measured_or_none(server.cpu_seconds)
    }),
    servers!(TASKS, "created", "tasks\ncreated", "tasks created", |server| {
        whole_or_none(server.tasks_created)
    }),
    servers!(TASKS, "alive, peak", "+tasks\npeak", "tasks alive", |server| {
        whole_or_none(server.peak_additional_tasks)
    }),
    servers!(TASKS, "ready, peak", "ready\npeak", "tasks ready", |server| {
        whole_or_none(server.peak_ready_tasks)
    }),
];

/// A number of milliseconds that is known to lie in a bucket: as exactly as that says.
pub(super) fn in_ms(found: Between) -> String {
    match (found.estimate(), found.high) {
        (Some((ms, _)), _) => measured(ms),
        (None, Some(high)) => format!("{}–{}", as_written(found.low), as_written(high)),
        (None, None) => format!("above {}", as_written(found.low)),
    }
}

/// A threshold as it was written.
fn as_written(ms: f64) -> String {
    ((ms * 1e6).round() / 1e6).to_string()
}

/// The columns that any case has something in, and the others.
pub(super) fn columns(results: &[CaseResult]) -> (Vec<&'static Column>, Vec<&'static Column>) {
    COLUMNS.iter().partition(|column| results.iter().any(|result| (column.of)(result) != NONE))
}

/// All results, one row each, and a line of words for each case where the two sides disagree or
/// where requests failed. A column that no case has anything in is left out, and a line says what
/// is not known of the service.
pub fn table(results: &[CaseResult]) -> String {
    let (shown, empty) = columns(results);
    let headings: Vec<&str> = shown.iter().map(|column| column.heading).collect();
    let mut table = screen::table(&headings, |column| column > 0);
    for result in results {
        table.add_row(shown.iter().map(|column| (column.of)(result)));
        if let Some(prometheus) = &result.prometheus {
            let numbers = shown.iter().map(|column| (column.by_prometheus)(prometheus));
            table.add_row(std::iter::once("  Prometheus".to_owned()).chain(numbers.skip(1)));
        }
    }
    let mut text = table.to_string();
    let missing: Vec<&str> = empty.iter().filter_map(|column| column.quantity).collect();
    let missing = (!missing.is_empty() && results.iter().any(|result| result.server.is_some()))
        .then(|| format!("Not known for the service: {}.", missing.join(", ")));
    for line in missing.into_iter().chain(results.iter().flat_map(in_words)) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// The faults of a case, in words: empty if all is well.
fn in_words(result: &CaseResult) -> Vec<String> {
    let id = &result.id;
    let failures = result.client.failures.iter();
    let failures = failures
        .map(|failure| format!("Case {id}: {} failed: {}.", whole(failure.count), failure.kind));
    let differences = result.differences.iter().map(|words| format!("Case {id}: {words}"));
    let unsampled = unsampled(result);
    let scrapes = counted_scrapes(result);
    let said = wrong(result)
        .into_iter()
        .chain(scrapes)
        .chain(untimed(result))
        .chain(failures)
        .chain(differences)
        .chain(unsampled);
    said.chain(caveats(result)).collect()
}

/// The faults in short: failures of all kinds in one line.
pub(super) fn briefly(result: &CaseResult) -> Vec<String> {
    let (id, client) = (&result.id, &result.client);
    let all = client.requests_sent + client.requests_not_sent;
    let most = client.failures.iter().max_by_key(|failure| failure.count);
    let failed = most.map(|most| {
        format!(
            "Case {id}: {} of {} failed, {} of them: {}.",
            whole(client.failed),
            counted(all, "request"),
            whole(most.count),
            most.kind
        )
    });
    wrong(result).into_iter().chain(failed).collect()
}

/// How the two sides disagree, and what could not be read.
fn wrong(result: &CaseResult) -> Vec<String> {
    let id = &result.id;
    let disagreement = result.disagreement.iter().map(|words| format!("Case {id}: {words}"));
    let missed = result.server.as_ref().map_or(0, |server| server.missed_samples);
    let missed = (missed > 0)
        .then(|| format!("Case {id}: {} could not be taken.", counted(missed, "sample")));
    disagreement.chain(missed).collect()
}

/// That the service counts scrapes of its metrics as requests, if it does.
pub(super) fn counted_scrapes(result: &CaseResult) -> Option<String> {
    let server = result.server.as_ref()?;
    let (received, scrapes) = (server.requests_received?, server.scrapes_counted?);
    Some(format!(
        "Case {}: of the {} that the server counted, {} of its metrics, which it counts too.",
        result.id,
        counted(received, "request"),
        count(scrapes, "is a scrape", "are scrapes"),
    ))
}

/// That the server's response times leave out requests that it counted, such as those that clients gave up and it
/// still answers.
pub(super) fn untimed(result: &CaseResult) -> Option<String> {
    let server = result.server.as_ref()?;
    let (received, timed) = (server.requests_received?, server.requests_timed?);
    (timed < received).then(|| {
        format!(
            "Case {}: the server's response times are of {} of the {} that it counted; the others had not ended, or \
             it does not time them.",
            result.id,
            whole(timed),
            counted(received, "request"),
        )
    })
}

/// Why peaks of a case are not known, if no sample was taken while it ran.
pub(super) fn unsampled(result: &CaseResult) -> Option<String> {
    result.server.as_ref().is_some_and(|server| server.unsampled).then(|| {
        format!(
            "Case {} ended before its first sample: its peaks are known from high-water marks \
             alone (--long runs longer cases).",
            result.id
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Clients;

    fn result(sent: u64, received: u64) -> CaseResult {
        let server = Server { requests_received: Some(received), ..Server::default() };
        let mean_rate = Some(2000.0);
        CaseResult {
            id: "A".to_owned(),
            clients: 10,
            client: Clients { requests_sent: sent, mean_rate, ..Clients::default() },
            disagreement: server.disagreement(sent),
            server: Some(server),
            ..CaseResult::default()
        }
    }

    fn with_server(change: impl FnOnce(&mut Server)) -> CaseResult {
        let mut result = result(1000, 1000);
        change(result.server.as_mut().unwrap());
        result
    }

    #[test]
    fn a_number_that_is_not_known_is_a_dash_and_a_column_that_no_case_has_is_named() {
        let text = table(&[result(1000, 1000), with_server(|it| it.peak_rate_2s = Some(77.0))]);
        assert!(text.contains(" – ") && text.contains(" 77"), "{text}");
        assert!(text.contains("1,000"), "{text}");
        let text = table(&[with_server(|it| it.tasks_created = Some(31))]);
        assert!(!text.contains(" – "), "{text}");
        assert!(text.contains("created") && text.contains(" 31 ") && !text.contains("ready\n"));
        let line = "Not known for the service: the rate of requests, response times, quantiles of \
                    response times, CPU time, tasks alive, tasks ready.";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn a_bucket_is_shown_by_its_thresholds_unless_they_are_close() {
        let in_ms = |low, high| in_ms(Between { low, high });
        assert_eq!(in_ms(0.25, Some(0.5)), "0.25–0.5");
        assert_eq!(in_ms(0.1 * 3.0 * 1e3, None), "above 300");
        assert_eq!(in_ms(1.0, Some(1.09)), "1.04");
    }

    #[test]
    fn the_columns_of_a_group_are_side_by_side() {
        let mut groups: Vec<&str> = COLUMNS.iter().map(|column| column.group).collect();
        groups.dedup();
        assert_eq!(groups, ["", LOAD, CLIENTS, SERVER, TASKS]);
    }

    #[test]
    fn the_faults_and_limits_of_a_case_stand_below_the_table() {
        let mut limited = result(1000, 1000);
        limited.client.limits = vec!["no response over HTTP/2".to_owned()];
        let unsampled = "Case A ended before its first sample: its peaks are known from high-water \
                         marks alone (--long runs longer cases).";
        for (result, words) in [
            (with_server(|it| it.unsampled = true), unsampled),
            (limited, "Beware of A: no response over HTTP/2."),
            (
                with_server(|it| it.requests_timed = Some(990)),
                "Case A: the server's response times are of 990 of the 1,000 requests that it counted; the others had \
                 not ended, or it does not time them.",
            ),
            (with_server(|it| it.missed_samples = 1), "Case A: 1 sample could not be taken."),
            (with_server(|it| it.missed_samples = 2), "Case A: 2 samples could not be taken."),
            (result(1000, 1266), "266 more than were sent."),
        ] {
            let text = table(&[result]);
            assert!(text.ends_with(words), "{words}: {text}");
        }
        assert!(!table(&[result(1000, 1000)]).contains("were sent"));
    }

    #[test]
    fn a_prometheus_has_a_row_of_its_own() {
        let mut result = result(1000, 1000);
        result.prometheus = Some(Server { requests_received: Some(999), ..Server::default() });
        result.differences = vec!["Requests received: not the same.".to_owned()];
        let text = table(&[result]);
        assert!(text.contains("Prometheus") && text.contains(" 999 "), "{text}");
        assert!(text.ends_with("Case A: Requests received: not the same."), "{text}");
    }
}
