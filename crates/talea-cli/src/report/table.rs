//! The table on the screen.

use super::seen;
use crate::figures::{counted, measured, measured_or_none, whole, whole_or_none};
use crate::screen;
use crate::study::{Finding, Server};

const HEADINGS: [&str; 15] = [
    "case",
    "N",
    "M",
    "T sent",
    "received",
    "failed",
    "client\ns",
    "mean\nreq/s",
    "peak 2 s\nreq/s",
    "mean\nms",
    "p50\nms",
    "p99\nms",
    "+tasks\npeak",
    "ready\npeak",
    "server\nCPU s",
];

/// All findings, one row each, and a line of words for each case where the two sides disagree or
/// where requests failed.
pub fn table(findings: &[Finding]) -> String {
    let mut table = screen::table(HEADINGS, |column| column > 0);
    for finding in findings {
        table.add_row(row(finding));
        if let Some(prometheus) = &finding.prometheus {
            table.add_row(by_prometheus(prometheus));
        }
    }
    let mut text = table.to_string();
    for line in findings.iter().flat_map(in_words) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

fn row(finding: &Finding) -> [String; 15] {
    [
        finding.id.clone(),
        whole_or_none(finding.concurrency()),
        whole_or_none(finding.iterations),
        whole(finding.client.requests_sent),
        whole_or_none(seen(finding).requests_received),
        whole(finding.client.failed),
        measured(finding.client.seconds),
        measured_or_none(finding.client.mean_rate),
        measured_or_none(seen(finding).peak_rate_2s),
        measured_or_none(seen(finding).mean_response_ms),
        measured_or_none(finding.client.p50_ms),
        measured_or_none(finding.client.p99_ms),
        whole_or_none(seen(finding).peak_additional_tasks),
        whole_or_none(seen(finding).peak_ready_tasks),
        measured_or_none(seen(finding).cpu_seconds),
    ]
}

/// The server's numbers as a Prometheus has them.
fn by_prometheus(server: &Server) -> [String; 15] {
    let mut row = [const { String::new() }; 15];
    row[0] = "  Prometheus".to_owned();
    row[4] = whole_or_none(server.requests_received);
    row[8] = measured_or_none(server.peak_rate_2s);
    row[9] = measured_or_none(server.mean_response_ms);
    row[12] = whole_or_none(server.peak_additional_tasks);
    row[13] = whole_or_none(server.peak_ready_tasks);
    row[14] = measured_or_none(server.cpu_seconds);
    row
}

/// What is wrong with a case, in words: nothing where all is well.
fn in_words(finding: &Finding) -> Vec<String> {
    let id = &finding.id;
    let failures = finding.client.failures.iter();
    let failures = failures
        .map(|failure| format!("Case {id}: {} failed: {}.", whole(failure.count), failure.kind));
    let differences = finding.differences.iter().map(|words| format!("Case {id}: {words}"));
    wrong(finding).into_iter().chain(failures).chain(differences).collect()
}

/// The same in short: failures of all kinds in one line.
pub(super) fn briefly(finding: &Finding) -> Vec<String> {
    let (id, client) = (&finding.id, &finding.client);
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
    wrong(finding).into_iter().chain(failed).collect()
}

/// How the two sides disagree, and what could not be read.
fn wrong(finding: &Finding) -> Vec<String> {
    let id = &finding.id;
    let disagreement = finding.disagreement.iter().map(|words| format!("Case {id}: {words}"));
    let missed = finding.server.as_ref().map_or(0, |server| server.missed_samples);
    let missed =
        (missed > 0).then(|| format!("Case {id}: {} samples could not be taken.", whole(missed)));
    disagreement.chain(missed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(sent: u64, received: u64) -> Finding {
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
        let text = table(&[finding(1000, 1000)]);
        assert!(text.contains(" – "), "{text}");
        assert!(text.contains("1,000"), "{text}");
    }

    #[test]
    fn a_prometheus_has_a_row_of_its_own() {
        let mut finding = finding(1000, 1000);
        finding.prometheus =
            Some(Server { requests_received: Some(999), ..finding.server.clone().unwrap() });
        finding.differences = vec!["Requests received: not the same.".to_owned()];
        let text = table(&[finding]);
        assert!(text.contains("Prometheus") && text.contains(" 999 "), "{text}");
        assert!(text.ends_with("Case A: Requests received: not the same."), "{text}");
    }

    #[test]
    fn a_disagreement_stands_below_the_table_in_words() {
        let text = table(&[finding(1000, 1266)]);
        assert!(text.ends_with("266 more than were sent."), "{text}");
        assert!(!table(&[finding(1000, 1000)]).contains("were sent"));
    }
}
