//! Any bytes: reading and checking never panic and agree with each other, and what was
//! read, written again in the plainest way, is read as the same.

use std::fmt::Write;

use talea_parse::{LabelsRef, Line, Reader, Severity, Syntax, check, families, page};

pub(crate) fn run(input: &[u8]) {
    let _ = page(input);
    let text = String::from_utf8_lossy(input);
    for syntax in [Syntax::Text, Syntax::OpenMetrics] {
        let read: Vec<_> = Reader::new(&text, syntax).collect();
        let findings = check(&text, syntax);
        for finding in &findings {
            let line = text.split('\n').nth(finding.line - 1).expect("a line of the text");
            assert!(finding.column <= line.chars().count() + 1, "{finding}");
        }
        let is_read = read.iter().all(Result::is_ok);
        let has_violations = findings.iter().any(|f| f.severity == Severity::Violation);
        assert!(is_read || has_violations, "what cannot be read is a violation");

        let lines: Vec<Line<'_>> = read.into_iter().flatten().collect();
        if is_read {
            let samples = lines.iter().filter(|line| matches!(line, Line::Sample(_))).count();
            let families = families(&text, syntax).expect("each line was read");
            assert_eq!(families.iter().map(|family| family.samples.len()).sum::<usize>(), samples);
        }
        let mut again = String::new();
        lines.iter().for_each(|line| write_line(&mut again, line, syntax));
        let ended = lines.last().is_some_and(|line| matches!(line, Line::End));
        if syntax == Syntax::OpenMetrics && !ended {
            again.push_str("# EOF\n");
        }
        let mut twice = String::new();
        for line in Reader::new(&again, syntax) {
            write_line(&mut twice, &line.expect("a line that can be read"), syntax);
        }
        assert_eq!(again, twice);
        assert!(check(&again, syntax).iter().all(|finding| finding.rule != "syntax"), "{again}");
    }
}

/// Whether a line can be written so that it departs in nothing from its format.
fn has_a_plain_form(line: &Line<'_>) -> bool {
    match line {
        Line::Type { name, .. } => !name.is_empty(),
        Line::Help { name, help } => !name.is_empty() && !help.ends_with('\r'),
        Line::Unit { name, unit } => {
            !name.is_empty()
                && unit.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        }
        Line::Sample(sample) => {
            let exemplar = sample.exemplar.iter().flat_map(|exemplar| exemplar.labels.iter());
            let mut labels = sample.labels.iter().chain(exemplar);
            !sample.name.is_empty() && labels.all(|(name, _)| !name.is_empty())
        }
        _ => true,
    }
}

fn write_line(out: &mut String, line: &Line<'_>, syntax: Syntax) {
    if !has_a_plain_form(line) {
        return;
    }
    let written = match line {
        Line::Type { name, kind } => {
            let kind = kind.as_str(syntax).expect("a type of the format");
            writeln!(out, "# TYPE {} {kind}", shown(name))
        }
        Line::Unit { name, unit } => writeln!(out, "# UNIT {} {unit}", shown(name)),
        Line::Help { name, help } => {
            let quotes = syntax == Syntax::OpenMetrics;
            // In text 0.0.4 blanks alone are no text.
            let is_blank = help.bytes().all(|byte| matches!(byte, b' ' | b'\t' | 0));
            let help = if is_blank && !quotes { "" } else { help };
            writeln!(out, "# HELP {} {}", shown(name), escaped(help, quotes))
        }
        Line::End => writeln!(out, "# EOF"),
        Line::Sample(sample) => {
            let (name, labels) = (sample.name.as_ref(), written(sample.labels));
            let _ = if is_plain(name, true) {
                write!(out, "{name}{{{labels}}} {}", number(sample.value))
            } else {
                let comma = if labels.is_empty() { "" } else { "," };
                write!(out, "{{{}{comma}{labels}}} {}", shown(name), number(sample.value))
            };
            let time = |time: f64| match syntax {
                Syntax::OpenMetrics => number(time),
                Syntax::Text if time.abs() < 1e12 => ((time * 1e3).round() as i64).to_string(),
                // Of more milliseconds than a float has room for some are lost.
                Syntax::Text => "0".to_owned(),
            };
            if let Some(timestamp) = sample.timestamp {
                let _ = write!(out, " {}", time(timestamp));
            }
            if let Some(exemplar) = sample.exemplar {
                let labels = written(exemplar.labels);
                let _ = write!(out, " # {{{labels}}} {}", number(exemplar.value));
                if let Some(timestamp) = exemplar.timestamp {
                    let _ = write!(out, " {}", time(timestamp));
                }
            }
            writeln!(out)
        }
        _ => Ok(()),
    };
    written.expect("a string takes everything");
}

fn written(labels: LabelsRef<'_>) -> String {
    labels
        .iter()
        .map(|(name, value)| {
            let name = if is_plain(&name, false) { name.into_owned() } else { quoted(&name) };
            format!("{name}={}", quoted(&value))
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// A metric's name in a line of metadata, or among labels.
fn shown(name: &str) -> String {
    if is_plain(name, true) { name.to_owned() } else { quoted(name) }
}

fn is_plain(name: &str, colons: bool) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || colons && c == ':';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text, true))
}

fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', r"\\").replace('\n', r"\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

fn number(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    format!("{x:?}")
}
