//! Raw samples: a line for each request.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::StatusCode;
use tempfile::{Builder, NamedTempFile};

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
    /// When it went out; of one that did not, when its client took it.
    pub started: Duration,
    /// From then to the end of the answer, or for as long as it was waited for.
    pub took: Duration,
    /// The time that counts for the request in all quantiles, from when it was to be made; none of one that
    /// failed without an answer.
    pub response: Option<Duration>,
    /// How it ended.
    pub end: SampleEnd,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub enum SampleEnd {
    /// With an answer, which may count as a failure.
    Answered(StatusCode, Option<Failure>),
    /// By its time limit.
    TimedOut(Failure),
    /// It was under way when the load was stopped.
    CutOff,
    /// Without an answer.
    Failed(Failure),
}

const HEADER: &str = "round,client,step,intended_us,started_us,took_us,status,failure,response_us,\
                      at_least\n";

/// A file that samples can be written to.
#[derive(Debug)]
pub struct SamplesFile {
    path: PathBuf,
    /// Whether it is a device or a pipe, which is written to; any other file is replaced.
    is_special: bool,
}

impl SamplesFile {
    /// Tries whether the file can be written, so that a load whose samples would be lost does not
    /// begin.
    /// Fails when a file in its folder cannot be made.
    pub fn prepare(path: &Path) -> Result<Self> {
        // A link stays, and the file that it leads to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_special = path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir());
        let file = Self { path, is_special };
        if file.path.is_dir() {
            bail!("{}: it is a folder", file.cannot());
        }
        if !is_special {
            file.temporary().with_context(|| file.cannot())?;
        }
        Ok(file)
    }

    /// Writes samples of rounds as CSV (RFC 4180), in the order in which requests were to be made;
    /// the file is there once it is whole.
    /// Fails when it cannot be written.
    pub fn write(&self, scenario: &Scenario, rounds: &mut [Vec<Sample>]) -> Result<()> {
        self.try_write(scenario, rounds).with_context(|| self.cannot())
    }

    fn try_write(&self, scenario: &Scenario, rounds: &mut [Vec<Sample>]) -> io::Result<()> {
        if self.is_special {
            lines(File::create(&self.path)?, scenario, rounds)?;
        } else {
            lines(self.temporary()?, scenario, rounds)?.persist(&self.path)?;
        }
        Ok(())
    }

    fn temporary(&self) -> io::Result<NamedTempFile> {
        let mut builder = Builder::new();
        builder.prefix(".samples-").suffix(".tmp");
        // As any file that the user makes: the mask takes away what it takes away.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        builder.tempfile_in(folder.unwrap_or(Path::new(".")))
    }

    fn cannot(&self) -> String {
        format!("the samples cannot be written to {}", self.path.display())
    }
}

/// Writes the header and a line for each sample, and gives the file back.
fn lines<F: Write>(file: F, scenario: &Scenario, rounds: &mut [Vec<Sample>]) -> io::Result<F> {
    let mut file = BufWriter::new(file);
    file.write_all(HEADER.as_bytes())?;
    for (round, samples) in rounds.iter_mut().enumerate() {
        samples.sort_by_key(|sample| sample.intended);
        for sample in samples.iter() {
            let Sample { client, step, intended, started, took, response, end } = sample;
            let (status, failure) = match end {
                SampleEnd::Answered(status, failure) => (Some(status.as_u16()), failure.as_ref()),
                SampleEnd::TimedOut(failure) | SampleEnd::Failed(failure) => (None, Some(failure)),
                SampleEnd::CutOff => (None, None),
            };
            let is_cut_off = matches!(end, SampleEnd::CutOff);
            let failure = failure.map_or_else(
                || if is_cut_off { "under way when stopped" } else { "" }.to_owned(),
                |failure| failure.describe(scenario),
            );
            writeln!(
                file,
                "{},{client},{},{},{},{},{},{},{},{}",
                round + 1,
                quoted(&scenario.steps[*step].name),
                intended.as_micros(),
                started.as_micros(),
                took.as_micros(),
                status.map_or_else(String::new, |status| status.to_string()),
                quoted(&failure),
                response.map_or_else(String::new, |response| response.as_micros().to_string()),
                is_cut_off || matches!(end, SampleEnd::TimedOut(_)),
            )?;
        }
    }
    file.into_inner().map_err(io::IntoInnerError::into_error)
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}
