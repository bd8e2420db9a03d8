//! The table on the screen.

use crate::figures::{NONE, counted, measured, measured_or_none, whole, whole_or_none};
use crate::screen;
use crate::study::{CaseResult, Server};

/// A column of the table.
struct Column {
    heading: &'static str,
    /// The quantity that the service reports in it, if it is the service's.
    quantity: Option<&'static str>,
    of: fn(&CaseResult) -> String,
    /// Its text for a case by a Prometheus.
    by_prometheus: fn(&Server) -> String,
}

/// A column of the clients' numbers.
const fn clients(heading: &'static str, of: fn(&CaseResult) -> String) -> Column {
    Column { heading, quantity: None, of, by_prometheus: |_| String::new() }
}

/// A column of numbers of a server, as the study's samples have them and as a Prometheus does.
macro_rules! servers {
    ($heading:literal, $quantity:literal, $shown:ident($field:ident)) => {
        Column {
            heading: $heading,
            quantity: Some($quantity),
            of: |result| $shown(result.server_values().$field),
            by_prometheus: |server| $shown(server.$field),
        }
    };
}

const COLUMNS: [Column; 16] = [
    clients("case", |result| result.id.clone()),
    clients("N", |result| whole_or_none(result.concurrency())),
    clients("M", |result| whole_or_none(result.iterations)),
    clients("T sent", |result| whole(result.client.requests_sent)),
    servers!("received", "requests received", whole_or_none(requests_received)),
    clients("failed", |result| whole(result.client.failed)),
    clients("client\ns", |result| measured(result.client.seconds)),
    clients("mean\nreq/s", |result| measured_or_none(result.client.mean_rate)),
    servers!("peak 2 s\nreq/s", "the rate of requests", measured_or_none(peak_rate_2s)),
    servers!("mean\nms", "response times", measured_or_none(mean_response_ms)),
    clients("p50\nms", |result| measured_or_none(result.client.p50_ms)),
    clients("p99\nms", |result| measured_or_none(result.client.p99_ms)),
    servers!("tasks\ncreated", "tasks created", whole_or_none(tasks_created)),
    servers!("+tasks\npeak", "tasks alive", whole_or_none(peak_additional_tasks)),
    servers!("ready\npeak", "tasks ready", whole_or_none(peak_ready_tasks)),
    servers!("server\nCPU s", "CPU time", measured_or_none(cpu_seconds)),
];

/// All results, one row each, and a line of words for each case where the two sides disagree or
/// where requests failed. A column that no case has anything in is left out, and a line says what
/// the service does not report.
pub(crate) fn table(results: &[CaseResult]) -> String {
    let is_empty = |column: &&Column| results.iter().all(|result| (column.of)(result) == NONE);
    let (empty, shown): (Vec<&Column>, Vec<&Column>) = COLUMNS.iter().partition(is_empty);
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
        .then(|| format!("Not reported by the service: {}.", missing.join(", ")));
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
    wrong(result).into_iter().chain(failures).chain(differences).chain(unsampled).collect()
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
    let missed =
        (missed > 0).then(|| format!("Case {id}: {} samples could not be taken.", whole(missed)));
    disagreement.chain(missed).collect()
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

    fn result(sent: u64, received: u64) -> CaseResult {
        let disagreement = Server { requests_received: Some(received), ..Server::default() };
        serde_json::from_value(serde_json::json!({
            "id": "A", "model": "10 clients × 20 iterations", "clients": 10, "iterations": 20,
            "client": { "requests_sent": sent, "seconds": 0.5, "mean_rate": 2000.0 },
            "server": { "requests_received": received },
            "disagreement": disagreement.disagreement(sent), "queries": [], "differences": [],
            "rounds": []
        }))
        .unwrap()
    }

    #[test]
    fn a_rate_without_two_samples_is_a_dash() {
        let mut other = result(1000, 1000);
        other.server.as_mut().unwrap().peak_rate_2s = Some(77.0);
        let text = table(&[result(1000, 1000), other]);
        assert!(text.contains(" – ") && text.contains(" 77"), "{text}");
        assert!(text.contains("1,000"), "{text}");
    }

    #[test]
    fn a_column_that_no_case_has_is_left_out_and_named() {
        let mut result = result(1000, 1000);
        result.server.as_mut().unwrap().tasks_created = Some(31);
        let text = table(&[result]);
        assert!(!text.contains(" – "), "{text}");
        assert!(text.contains("created") && text.contains(" 31 ") && !text.contains("ready\n"));
        let line = "Not reported by the service: the rate of requests, response times, tasks alive, \
                    tasks ready, CPU time.";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn a_case_without_a_sample_says_so() {
        let mut result = result(1000, 1000);
        result.server.as_mut().unwrap().unsampled = true;
        let text = table(&[result]);
        assert!(text.contains("Case A ended before its first sample"), "{text}");
    }

    #[test]
    fn a_prometheus_has_a_row_of_its_own() {
        let mut result = result(1000, 1000);
        result.prometheus =
            Some(Server { requests_received: Some(999), ..result.server.clone().unwrap() });
        result.differences = vec!["Requests received: not the same.".to_owned()];
        let text = table(&[result]);
        assert!(text.contains("Prometheus") && text.contains(" 999 "), "{text}");
        assert!(text.ends_with("Case A: Requests received: not the same."), "{text}");
    }

    #[test]
    fn a_disagreement_stands_below_the_table_in_words() {
        let text = table(&[result(1000, 1266)]);
        assert!(text.ends_with("266 more than were sent."), "{text}");
        assert!(!table(&[result(1000, 1000)]).contains("were sent"));
    }
}
