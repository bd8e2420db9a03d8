//! Files in which other programs find the figures and conditions of a load or a study.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result};
use talea_load::{StepSummary, Summary};
use talea_statistics::figures::{measured_or_none, whole};
use talea_study::compare::{Finding, Judgement};
use talea_study::study::Study;
use talea_view::printable;

/// A file, and its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultFile {
    format: Format,
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A line for each row.
    Csv,
    /// A test case for each condition, as CI servers read it.
    Junit,
    /// A table, appended to what is there, as the summary of a step in GitHub Actions is.
    Markdown,
}

/// The figures and conditions of a load or a study.
#[derive(Debug)]
pub(crate) struct Results {
    title: String,
    rows: Vec<Row>,
    judgements: Vec<Judgement>,
}

/// The requests of a round or a case, or of a step of it.
#[derive(Debug)]
struct Row {
    name: String,
    /// None of all steps.
    step: Option<String>,
    /// Requests that were sent or could not be.
    requests: u64,
    failed: u64,
    rate: Option<f64>,
    /// Mean, p50, p90, p99 and the longest response time, as they are shown: a lower bound with its sign.
    ms: [String; 5],
    /// Why the two sides disagree, if they do.
    disagreement: Option<String>,
}

const COLUMNS: [&str; 10] = [
    "name", "step", "requests", "failed", "rate", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms",
];

impl Results {
    /// The results of the rounds of a load.
    pub(crate) fn of_load(rounds: &[Summary], judgements: &[Judgement]) -> Self {
        let title = rounds.first().map_or(String::new(), |round| {
            format!("{}: {}, {}", round.url, round.scenario, round.model)
        });
        let mut rows = Vec::new();
        for (n, round) in rounds.iter().enumerate() {
            let name = format!("round {}", n + 1);
            let shown = |field, ms| round.at_least.shown(field, ms);
            rows.push(Row {
                name: name.clone(),
                step: None,
                requests: round.requests_sent + round.requests_not_sent,
                failed: round.failed,
                rate: round.mean_rate,
                ms: [
                    shown("client_mean_ms", round.client_mean_ms),
                    shown("client_p50_ms", round.client_p50_ms),
                    shown("client_p90_ms", round.client_p90_ms),
                    shown("client_p99_ms", round.client_p99_ms),
                    shown("client_max_ms", round.client_max_ms),
                ],
                disagreement: None,
            });
            rows.extend(round.steps.iter().map(|step| Row::of_step(&name, step)));
        }
        Self { title, rows, judgements: judgements.to_vec() }
    }

    /// The results of studies by their names, of which one alone has none.
    pub(crate) fn of_studies(studies: &[(String, Study)], judgements: &[Judgement]) -> Self {
        let title = studies.iter().map(|(_, study)| study.subject.as_str());
        let title = title.collect::<Vec<_>>().join(" | ");
        let mut rows = Vec::new();
        for (name, study) in studies {
            for case in &study.cases {
                let gap = if name.is_empty() { "" } else { ", " };
                let name = format!("{name}{gap}case {}", case.id);
                let client = &case.client;
                let shown = |field, ms| client.at_least.shown(field, ms);
                rows.push(Row {
                    name: name.clone(),
                    step: None,
                    requests: client.requests_sent + client.requests_not_sent,
                    failed: client.failed,
                    rate: client.mean_rate,
                    ms: [
                        shown("mean_ms", client.mean_ms),
                        shown("p50_ms", client.p50_ms),
                        shown("p90_ms", client.p90_ms),
                        shown("p99_ms", client.p99_ms),
                        shown("max_ms", client.max_ms),
                    ],
                    disagreement: case.disagreement.clone(),
                });
                rows.extend(client.steps.iter().map(|step| Row::of_step(&name, step)));
            }
        }
        Self { title, rows, judgements: judgements.to_vec() }
    }

    fn csv(&self) -> String {
        let mut text = COLUMNS.join(",") + "\n";
        for row in &self.rows {
            let step = row.step.clone().unwrap_or_default();
            let [requests, failed] = [row.requests, row.failed].map(|count| count.to_string());
            let rate = row.rate.map_or_else(String::new, |rate| format!("{rate:.3}"));
            let cells = [row.name.clone(), step, requests, failed, rate];
            let cells: Vec<_> = cells.iter().chain(&row.ms).map(|cell| csv_cell(cell)).collect();
            text.push_str(&(cells.join(",") + "\n"));
        }
        text
    }

    fn junit(&self) -> String {
        let mut cases = String::new();
        let (mut failures, mut errors, mut all) = (0, 0, 0);
        // A row of all steps says how many requests failed.
        for row in self.rows.iter().filter(|row| row.step.is_none()) {
            let failed = format!("{} of {} requests failed", row.failed, row.requests);
            let trouble = row.disagreement.clone().or((row.failed > 0).then_some(failed));
            let name = format!("{}: no request fails", row.name);
            let trouble = trouble.map(|trouble| ("failure", trouble));
            (all, failures) = (all + 1, failures + u64::from(trouble.is_some()));
            push_test_case(&mut cases, &name, trouble);
        }
        for Judgement { result, words } in &self.judgements {
            let trouble = match result {
                Finding::Passed => None,
                Finding::Failed => Some(("failure", words.clone())),
                // No tool may take it for a success.
                Finding::NotDecided | Finding::Unknown => {
                    Some(("error", format!("{result}: {words}")))
                }
            };
            all += 1;
            failures += u64::from(*result == Finding::Failed);
            errors += u64::from(matches!(result, Finding::NotDecided | Finding::Unknown));
            push_test_case(&mut cases, words, trouble);
        }
        let title = xml_text(&self.title);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{title}\" tests=\"{all}\" \
             failures=\"{failures}\" errors=\"{errors}\">\n{cases}  </testsuite>\n</testsuites>\n"
        )
    }

    fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n", markdown_text(&self.title));
        for Judgement { result, words } in &self.judgements {
            let mark = if *result == Finding::Passed { "✅" } else { "❌" };
            // To write to a text does not fail.
            let _ = writeln!(text, "- {mark} **{result}** {}", markdown_text(words));
        }
        let heading = [
            "",
            "step",
            "requests",
            "failed",
            "requests/s",
            "mean, ms",
            "p50",
            "p90",
            "p99",
            "max",
        ];
        let _ = write!(text, "\n| {} |\n| --- | --- |", heading.join(" | "));
        text.push_str(&(" --: |".repeat(heading.len() - 2) + "\n"));
        for row in &self.rows {
            let step = markdown_text(row.step.as_deref().unwrap_or_default());
            let cells = [
                markdown_text(&row.name),
                step,
                whole(row.requests),
                whole(row.failed),
                measured_or_none(row.rate),
            ];
            let cells: Vec<_> = cells.iter().chain(&row.ms).map(String::as_str).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text + "\n"
    }
}

impl Row {
    fn of_step(name: &str, step: &StepSummary) -> Self {
        let shown = |field, ms| step.at_least.shown(field, ms);
        Self {
            name: name.to_owned(),
            step: Some(step.name.clone()),
            requests: step.requests(),
            failed: step.failed,
            rate: None,
            ms: [
                shown("mean_ms", step.mean_ms),
                shown("p50_ms", step.p50_ms),
                shown("p90_ms", step.p90_ms),
                shown("p99_ms", step.p99_ms),
                shown("max_ms", step.max_ms),
            ],
            disagreement: None,
        }
    }
}

fn push_test_case(cases: &mut String, name: &str, trouble: Option<(&str, String)>) {
    let name = xml_text(name);
    let case = format!("    <testcase classname=\"talea\" name=\"{name}\"");
    cases.push_str(&match trouble {
        None => format!("{case}/>\n"),
        Some((kind, words)) => {
            format!("{case}>\n      <{kind} message=\"{}\"/>\n    </testcase>\n", xml_text(&words))
        }
    });
}

/// Text for an attribute of XML, which has no control characters (XML 1.0, 2.2).
fn xml_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A cell of CSV (RFC 4180).
fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Text in a line or a cell of Markdown, of which nothing is markup.
fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        if c.is_ascii_punctuation() && !"/.,:;()=%\"'".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

impl ResultFile {
    /// Fails if the file cannot be opened for writing. One that is there stays as it is.
    pub(crate) fn prepare(&self) -> Result<()> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)
            .map(drop)
            .with_context(|| self.cannot())
    }

    /// Writes the results; Markdown behind what is there.
    pub(crate) fn write(&self, results: &Results) -> Result<()> {
        let (text, appends) = match self.format {
            Format::Csv => (results.csv(), false),
            Format::Junit => (results.junit(), false),
            Format::Markdown => (results.markdown(), true),
        };
        let mut options = OpenOptions::new();
        options.create(true).write(true).append(appends).truncate(!appends);
        let written = options.open(&self.path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| self.cannot())
    }

    fn cannot(&self) -> String {
        format!("the results cannot be written to {}", self.path.display())
    }
}

impl FromStr for ResultFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found {text:?}, expected csv=FILE, junit=FILE or markdown=FILE");
        let (format, path) = text.split_once('=').ok_or_else(expected)?;
        let format = match format {
            "csv" => Format::Csv,
            "junit" => Format::Junit,
            "markdown" => Format::Markdown,
            _ => return Err(expected()),
        };
        if path.is_empty() {
            return Err(expected());
        }
        Ok(Self { format, path: path.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_no_markup() {
        assert_eq!(xml_text("a<b>&\"\u{1b}[2J"), "a&lt;b&gt;&amp;&quot;\u{fffd}[2J");
        assert_eq!(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(markdown_text("a|<b>`c` d_e"), r"a\|\<b\>\`c\` d\_e");
    }

    #[test]
    fn a_result_file_has_a_format_and_a_path() {
        let file: ResultFile = "junit=a=b.xml".parse().unwrap();
        assert_eq!((file.format, file.path), (Format::Junit, "a=b.xml".into()));
        for text in ["", "a.xml", "xml=a", "csv="] {
            assert!(text.parse::<ResultFile>().unwrap_err().contains("junit=FILE"), "{text}");
        }
    }
}
