//! `talea check`: reads, checks, prints.

use anyhow::{Context, Result};
use serde_json::json;
use talea_load::stop::Stop;
use talea_parse::{Finding, Severity, Syntax, check};
use talea_statistics::figures::counted;

use super::Source;
use crate::arguments::CheckArguments;
use crate::ending::Ending;
use talea_view::printable;
use talea_view::screen;

/// Checks a text and prints what was found to standard output.
/// Fails when the text cannot be read: no such file, no answer, not UTF-8.
pub(crate) async fn run(arguments: &CheckArguments, mut stop: Stop) -> Result<Ending> {
    let source = &arguments.source;
    let wanted = arguments.format.map(Syntax::from);
    let read = tokio::select! {
        read = source.read(wanted, &arguments.tls) => read?,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    let syntax = wanted.or(read.syntax).unwrap_or_else(|| Syntax::of_text(&read.text));
    let mut findings = check(&read.text, syntax);
    if read.text.trim().is_empty() && !findings.iter().any(is_violation) {
        findings.push(empty());
    }

    let printed = match arguments.json {
        true => in_json(source, &findings),
        false => in_words(source, syntax, &read.text, &findings),
    };
    screen::write(printed.as_bytes()).context("standard output")?;
    Ok(if findings.iter().any(|finding| arguments.strict || is_violation(finding)) {
        Ending::Failures
    } else {
        Ending::Clean
    })
}

fn is_violation(finding: &Finding) -> bool {
    finding.severity == Severity::Violation
}

/// An empty text. A scraper takes one in text 0.0.4, but a user who checks one has named the wrong
/// source.
fn empty() -> Finding {
    Finding {
        line: 1,
        column: 1,
        severity: Severity::Violation,
        rule: "empty",
        found: "the text is empty".to_owned(),
        instead: "name a file or a URL with metrics; in OpenMetrics no metrics are # EOF"
            .to_owned(),
    }
}

fn in_words(source: &Source, syntax: Syntax, text: &str, findings: &[Finding]) -> String {
    let violations = findings.iter().filter(|finding| is_violation(finding)).count();
    let format = match syntax {
        Syntax::Text => "Prometheus text 0.0.4",
        Syntax::OpenMetrics => "OpenMetrics 1.0",
    };
    let sum = format!(
        "{source}: {}, {} of advice in {} of {format}\n",
        counted(violations as u64, "violation"),
        counted((findings.len() - violations) as u64, "piece"),
        counted(text.lines().count() as u64, "line"),
    );
    findings
        .iter()
        .map(|finding| printable(&format!("{source}:{finding}")) + "\n")
        .chain([sum])
        .collect()
}

fn in_json(source: &Source, findings: &[Finding]) -> String {
    findings
        .iter()
        .map(|Finding { line, column, severity, rule, found, instead }: &Finding| {
            let finding = json!({
                "path": source.to_string(), "line": line, "column": column,
                "severity": severity.as_str(), "rule": rule, "found": found, "instead": instead,
            });
            finding.to_string() + "\n"
        })
        .collect()
}
