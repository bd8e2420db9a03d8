//! Counts of requests and their results.

use std::collections::BTreeMap;

use hyper::StatusCode;
use talea_statistics::figures::counted;

use crate::connection::RequestError;
use crate::redirect::NoRedirect;
use crate::scenario::{NoReply, NoRequest, Scenario, status_text};

/// Exact counts of one client, or of all.
///
/// `requests() == sent + not_sent`, and once a load has ended
/// `sent == answered() + failures without an answer + unanswered`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Requests handed to a connection that took them.
    pub sent: u64,
    /// Requests that could not be sent: no connection, or nothing captured that they need.
    pub not_sent: u64,
    /// Requests that were under way when a signal stopped the load.
    pub unanswered: u64,
    /// Requests that a client had begun when a signal stopped the load: those that are unanswered, and those for
    /// which a connection was being opened.
    pub cut_off: u64,
    /// Arrivals of an open model that still waited for a client when a signal stopped the load.
    pub not_begun: u64,
    /// Answers that were read to their end, by status.
    pub answers: BTreeMap<u16, u64>,
    /// Failed requests by kind, those not sent among them.
    pub failures: BTreeMap<Failure, u64>,
    /// How often each check passed and failed, by step and check.
    pub checks: BTreeMap<(usize, usize), Checked>,
    /// The numbers in responses, by step and number.
    pub measures: BTreeMap<(usize, usize), Sum>,
    /// By how many seconds this clock is ahead of the server's, whose dates have whole seconds: the least of some.
    pub clock: Option<f64>,
    /// A feed whose rows were used up, before its clients were done.
    pub feed_ended: Option<usize>,
    pub connections: u64,
    /// Connections that were opened to replace one that was closed or given up.
    pub reconnects: u64,
}

/// How often a check passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub passed: u64,
    pub failed: u64,
}

/// Numbers that were added up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    pub count: u64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
}

impl Sum {
    fn of(number: f64) -> Self {
        Self { count: 1, sum: number, min: number, max: number }
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// How a request failed; steps and variables are given by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Answered with another status than the step's.
    Status(usize, StatusCode),
    /// Answered with the expected status of HTTP, but the call of gRPC was not done.
    NoReply(usize, NoReply),
    /// Answered as expected, but there was nothing to capture: the step and which of its captures.
    NotCaptured(usize, usize),
    /// Answered with the expected status, but a check of the step failed.
    Check(usize, usize),
    /// Answered with a redirect that is not followed.
    Redirect(usize, NoRedirect),
    RequestError(usize, RequestError),
    NoRequest(usize, NoRequest),
    /// An arrival that was not begun, since a feed has no more rows.
    FeedEnded(usize),
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

    /// Requests that have no time: without an answer, they failed otherwise than by their time limit.
    pub fn untimed(&self) -> u64 {
        let untimed = self.failures.iter().filter(|(kind, _)| kind.is_untimed());
        untimed.map(|(_, count)| count).sum()
    }

    pub(super) fn answer(&mut self, status: StatusCode) {
        *self.answers.entry(status.as_u16()).or_default() += 1;
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    pub(super) fn check(&mut self, step: usize, check: usize, passes: bool) {
        let Checked { passed, failed } = self.checks.entry((step, check)).or_default();
        *(if passes { passed } else { failed }) += 1;
    }

    pub(super) fn measure(&mut self, step: usize, measure: usize, number: f64) {
        let one = Sum::of(number);
        self.measures.entry((step, measure)).and_modify(|sum| *sum = sum.and(one)).or_insert(one);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.sent += other.sent;
        self.not_sent += other.not_sent;
        self.unanswered += other.unanswered;
        self.cut_off += other.cut_off;
        self.not_begun += other.not_begun;
        self.connections += other.connections;
        self.reconnects += other.reconnects;
        self.clock = [self.clock, other.clock].into_iter().flatten().reduce(f64::min);
        self.feed_ended = self.feed_ended.or(other.feed_ended);
        for (place, Checked { passed, failed }) in other.checks {
            let all = self.checks.entry(place).or_default();
            all.passed += passed;
            all.failed += failed;
        }
        for (place, one) in other.measures {
            self.measures.entry(place).and_modify(|sum| *sum = sum.and(one)).or_insert(one);
        }
        for (status, count) in other.answers {
            *self.answers.entry(status).or_default() += count;
        }
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
    }
}

impl Failure {
    pub(super) fn step(self) -> usize {
        match self {
            Self::Status(step, _)
            | Self::NoReply(step, _)
            | Self::NotCaptured(step, _)
            | Self::Check(step, _)
            | Self::Redirect(step, _)
            | Self::RequestError(step, _)
            | Self::NoRequest(step, _) => step,
            Self::FeedEnded(_) => 0,
        }
    }

    /// Whether there was an answer, which was not the expected one.
    pub(super) fn is_answered(self) -> bool {
        matches!(
            self,
            Self::Status(..)
                | Self::NoReply(..)
                | Self::NotCaptured(..)
                | Self::Check(..)
                | Self::Redirect(..)
        )
    }

    fn is_timeout(self) -> bool {
        matches!(self, Self::RequestError(_, error) if error.is_timeout())
    }

    fn is_untimed(self) -> bool {
        !self.is_answered() && !self.is_timeout()
    }

    pub fn describe(self, scenario: &Scenario) -> String {
        let step = |step: usize| &scenario.steps[step];
        let variable = |place: usize| &scenario.variables[place].name;
        match self {
            Self::Status(n, found) => {
                let (name, expected) = (&step(n).name, &step(n).expected);
                format!("{name}: {}, expected {expected}", status_text(found))
            }
            Self::NoReply(n, why) => format!("{}: {why}", step(n).name),
            Self::NotCaptured(n, capture) => {
                let step = step(n);
                let capture = &step.captures[capture];
                let (name, pointer) = (variable(capture.variable), &capture.pointer);
                format!("{}: nothing at {pointer} in the response for {{{name}}}", step.name)
            }
            Self::Check(n, check) => {
                let step = step(n);
                format!("{}: failed the check that {}", step.name, step.checks[check])
            }
            Self::Redirect(n, NoRedirect::Elsewhere) => {
                format!("{}: redirected to another server, which gets no load", step(n).name)
            }
            Self::Redirect(n, NoRedirect::TooMany) => {
                let most = counted(scenario.redirects.into(), "redirect");
                format!("{}: redirected again after {most}", step(n).name)
            }
            Self::Redirect(n, NoRedirect::Malformed) => {
                format!("{}: redirected to an invalid URL", step(n).name)
            }
            Self::FeedEnded(feed) => {
                format!("not sent: the feed {} has no more rows", scenario.feeds[feed].name)
            }
            Self::RequestError(n, trouble) => format!("{}: {trouble}", step(n).name),
            Self::NoRequest(n, NoRequest::Unfilled(place)) => {
                format!("{}: not sent: there is no {{{}}}", step(n).name, variable(place))
            }
            Self::NoRequest(n, NoRequest::Malformed) => {
                format!("{}: not sent: its values make the request invalid", step(n).name)
            }
        }
    }
}
