//! Raw samples: a line for each request.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::scenario::Scenario;
use crate::tally::Failure;

/// The result of one request.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The client that made it, from 0.
    pub client: u64,
    /// Its step, from 0.
    pub step: usize,
    /// When it was to be made, after the start of the load; in a closed model when it was.
    pub intended: Duration,
    /// When it went out.
    pub started: Duration,
    /// From then to the end of the answer.
    pub took: Duration,
    /// The status of the answer, if there is one.
    pub status: Option<u16>,
    /// The failure, if it is one.
    pub failure: Option<Failure>,
}

const HEADER: &str = "round,client,step,intended_us,started_us,took_us,status,failure\n";

/// Writes samples of rounds as CSV (RFC 4180), in the order in which requests were to be made;
/// the file is there once it is whole.
/// Fails when it cannot be written.
pub fn write(path: &Path, scenario: &Scenario, rounds: &mut [Vec<Sample>]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let context = || format!("the samples cannot be written to {}", path.display());
    let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut file = std::io::BufWriter::new(file.with_context(context)?);
    file.write_all(HEADER.as_bytes()).with_context(context)?;
    for (round, samples) in rounds.iter_mut().enumerate() {
        samples.sort_by_key(|sample| sample.intended);
        for sample in samples.iter() {
            let Sample { client, step, intended, started, took, status, failure } = sample;
            let status = status.map_or_else(String::new, |status| status.to_string());
            let failure = failure.map_or_else(String::new, |failure| failure.describe(scenario));
            writeln!(
                file,
                "{},{client},{},{},{},{},{status},{}",
                round + 1,
                quoted(&scenario.steps[*step].name),
                intended.as_micros(),
                started.as_micros(),
                took.as_micros(),
                quoted(&failure),
            )
            .with_context(context)?;
        }
    }
    let file =
        file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
