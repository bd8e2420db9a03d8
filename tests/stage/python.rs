//! The parsers of Python's prometheus_client, which `scripts/setup --test` installs.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

use crate::files::{python_program, repository};
use crate::prometheus::labels;
use crate::samples::Samples;

#[derive(Clone, Copy, Debug)]
pub enum Parser {
    Text,
    /// That of OpenMetrics, which checks more.
    OpenMetrics,
}

/// The samples that it reads, each with its exemplar if it has one.
pub fn read(parser: Parser, text: &[u8]) -> (Samples, Vec<Json>) {
    let output = run(parser, text, Stdio::inherit());
    assert!(output.status.success(), "prometheus_client refuses it");
    let (mut samples, mut exemplars) = (Samples::new(), Vec::new());
    for line in output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let sample: Json = serde_json::from_slice(line).expect("read.py writes JSON");
        let text = |key: &str| sample[key].as_str().expect("read.py writes text").to_owned();
        let mut labels = labels(&sample["labels"]);
        labels.retain(|_, value| !value.is_empty());
        let value = text("value").parse().expect("a value is a number");
        let before = samples.insert((text("name"), labels), value);
        assert_eq!(before, None, "{sample}");
        exemplars.extend((!sample["exemplar"].is_null()).then(|| sample["exemplar"].clone()));
    }
    (samples, exemplars)
}

pub fn refuses(parser: Parser, text: &[u8]) -> bool {
    !run(parser, text, Stdio::null()).status.success()
}

fn run(parser: Parser, text: &[u8], errors: Stdio) -> Output {
    let name = match parser {
        Parser::Text => "text",
        Parser::OpenMetrics => "openmetrics",
    };
    let interpreter = python_program("python");
    let mut child = Command::new(&interpreter)
        .arg(repository("tests/read.py"))
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .unwrap_or_else(|error| {
            let wanted = interpreter.display();
            panic!("{wanted}: {error}; scripts/setup --test makes it, with the same target folder")
        });
    // It reads all before it writes.
    let mut input = child.stdin.take().expect("it has an input");
    input.write_all(text).expect("it reads");
    drop(input);
    child.wait_with_output().expect("it ends")
}
