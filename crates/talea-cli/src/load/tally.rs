//! What was sent and what became of it.

use std::collections::BTreeMap;
use std::fmt;

use hyper::StatusCode;

use super::connection::Trouble;
use super::crud::Step;

/// Exact counts of one client, or of all.
///
/// `requests() == sent + not_sent`, and once a load has ended
/// `sent == answered() + failures without an answer + unanswered`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests handed to a connection that took them.
    pub sent: u64,
    /// Requests that could not be sent: no connection, or no item to get, update or delete.
    pub not_sent: u64,
    /// Requests that were under way when a signal stopped the load.
    pub unanswered: u64,
    /// Answers that were read to their end, by status.
    pub answers: BTreeMap<u16, u64>,
    /// Failed requests by kind, those not sent among them.
    pub failures: BTreeMap<Failure, u64>,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections that were opened to replace one that was closed or given up.
    pub reconnects: u64,
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Answered with another status than the step's.
    Status(Step, u16),
    /// Created, but the answer names no id.
    NoId,
    /// No answer.
    Trouble(Step, Trouble),
    /// Needs the item of a create that failed.
    NoItem(Step),
}

impl Tally {
    /// Requests that were sent or could not be.
    pub fn requests(&self) -> u64 {
        self.sent + self.not_sent
    }

    /// Answers of any status.
    pub fn answered(&self) -> u64 {
        self.answers.values().sum()
    }

    /// Requests that failed, those not sent among them.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(super) fn answer(&mut self, status: StatusCode) {
        *self.answers.entry(status.as_u16()).or_default() += 1;
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.sent += other.sent;
        self.not_sent += other.not_sent;
        self.unanswered += other.unanswered;
        self.connections += other.connections;
        self.reconnects += other.reconnects;
        for (status, count) in other.answers {
            *self.answers.entry(status).or_default() += count;
        }
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Status(step, found) => {
                let found = StatusCode::from_u16(*found).map_err(|_| fmt::Error)?;
                write!(f, "{step}: {found}, expected {}", step.expected())
            }
            Failure::NoId => write!(f, "{}: no id at data.id of the answer", Step::Create),
            Failure::Trouble(step, trouble) => write!(f, "{step}: {trouble}"),
            Failure::NoItem(step) => write!(f, "{step}: not sent: its create failed"),
        }
    }
}
