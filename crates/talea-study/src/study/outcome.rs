//! A study that is done, and what came of one that was begun.

use serde::{Deserialize, Serialize};

use super::case_result::CaseResult;
use super::study_run::StoppedStudy;
use crate::machine::Machine;

/// A study that is done: all that a report says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Study {
    pub cases: Vec<CaseResult>,
    /// Where the service was, in words.
    pub subject: String,
    /// Whether the study started it, so that both share the machine.
    pub started: bool,
    pub scenario: String,
    pub steps: Vec<String>,
    pub protocol: String,
    /// Whether the service's database was emptied before each case.
    pub emptied: bool,
    /// Metrics that are named for the service, and that it did not report.
    #[serde(default)]
    pub missing_metrics: Vec<String>,
    pub machine: Machine,
    pub versions: Versions,
    /// The command that does it again.
    pub command: String,
    /// When it began, in RFC 3339.
    pub begun: String,
    /// How many times the metrics were scraped. A case says if scrapes are among the requests received.
    pub scrapes: u64,
    /// The time between two samples of a case, as aimed at.
    pub sampled_every_ms: u64,
}

impl Study {
    /// The same case in this study, if it has it.
    pub(crate) fn case_like(&self, case: &CaseResult) -> Option<&CaseResult> {
        self.cases.iter().find(|it| it.id == case.id && it.model == case.model)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Versions {
    pub talea: String,
    /// The version of the target, as it reports it.
    pub subject: String,
    /// Whether this program was optimised: `release` or `debug`.
    pub build: String,
}

#[derive(Debug)]
pub enum RunEnd<T> {
    Done(T),
    Stopped(StoppedStudy),
}
