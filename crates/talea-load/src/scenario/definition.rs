//! A scenario: its steps, its variables, the names of the service's metrics.

use fastrand::Rng;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, StatusCode};

use super::check::Check;
use super::feed::{Cursors, Feed};
use super::grpc::{GrpcMessage, GrpcMethod};
use super::names::Names;
use super::template::{NoRequest, Template};
use super::think::Think;
use super::value::{FeedEnded, Values, Variable};
use crate::session::Keep;

/// The requests of one iteration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in reports.
    pub name: String,
    /// The variables, by their places.
    pub variables: Vec<Variable>,
    /// The feeds, by their places.
    pub feeds: Vec<Feed>,
    /// The requests, in their order.
    pub steps: Vec<Step>,
    /// The flows of which each iteration runs one; if there are none, it runs all steps.
    pub flows: Vec<Flow>,
    /// Requests that are made once before the load, and that it does not count.
    pub setup: Vec<Step>,
    /// Requests that are made once after the load.
    pub teardown: Vec<Step>,
    /// Whether each iteration keeps the cookies that it gets.
    pub cookies: bool,
    /// How many redirects of a request are followed.
    pub redirects: u32,
    /// The names of the metrics of the service.
    pub metrics: Metrics,
}

/// A part of a scenario's steps, which run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its share of the iterations is this, of the sum over all flows.
    pub weight: u64,
}

impl Scenario {
    /// The steps of a flow, or all of them if there are no flows, with their places.
    pub(crate) fn steps_of(&self, flow: Option<usize>) -> impl Iterator<Item = (usize, &Step)> {
        let steps = self.steps.iter().enumerate();
        steps.filter(move |(_, step)| step.flow.is_none() || step.flow == flow)
    }

    /// The values of a client whose random values come from a seed.
    pub(crate) fn values(&self, seed: u64) -> Values {
        Values::new(&self.variables, &self.feeds, seed)
    }

    /// Begins an iteration, in which a client has other values.
    /// Fails when a feed has no more rows.
    pub(crate) fn begin(&self, values: &mut Values, cursors: &Cursors) -> Result<(), FeedEnded> {
        values.begin(&self.variables, &self.feeds, cursors)
    }

    /// Draws one of the flows by their weights; none if there are none.
    pub(crate) fn flow(&self, random: &mut Rng) -> Option<usize> {
        let all: u64 = self.flows.iter().map(|flow| flow.weight).sum();
        let mut drawn = (all > 0).then(|| random.u64(0..all))?;
        self.flows.iter().position(|flow| {
            let is_here = drawn < flow.weight;
            drawn = drawn.saturating_sub(flow.weight);
            is_here
        })
    }

    /// How many requests an iteration makes where every one of them can be sent, if that is known beforehand.
    pub fn requests_of_iteration(&self) -> Option<u64> {
        if self.redirects > 0 {
            return None;
        }
        let mut counts = (0..self.flows.len()).map(|flow| self.steps_of(Some(flow)).count() as u64);
        let first = counts.next().unwrap_or(self.steps.len() as u64);
        counts.all(|count| count == first).then_some(first)
    }
}

/// The settings of a scenario for the names of the service's metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The built-in names that they begin with.
    pub base: String,
    /// The names that differ: keys and metrics.
    pub overrides: Vec<(String, String)>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { base: "talea".to_owned(), overrides: Vec::new() }
    }
}

impl Metrics {
    /// The names, which begin with those of another base if one is given.
    /// Fails when there is no such base.
    pub fn names(&self, base: Option<&str>) -> Result<Names, String> {
        let mut names = Names::built_in(base.unwrap_or(&self.base))?;
        for (key, metric) in &self.overrides {
            names.set(key, metric)?;
        }
        Ok(names)
    }
}

/// One request of a scenario.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name in reports.
    pub name: String,
    /// Its method.
    pub method: Method,
    /// Its path and query, behind those of the target.
    pub path: Template,
    /// Headers that are the same each time.
    pub headers: HeaderMap,
    /// Headers with variables.
    pub filled_headers: Vec<(HeaderName, Template)>,
    /// Its body, if it has one.
    pub body: Option<Body>,
    /// The statuses that say that it was done.
    pub expected: ExpectedStatus,
    /// What the response must have beside its status.
    pub checks: Vec<Check>,
    /// Parts of the answer that later requests use.
    pub captures: Vec<Capture>,
    /// Numbers in responses that are added up.
    pub measures: Vec<NumberOfResponses>,
    /// After how many server-sent events the response is complete; after all of its body if this is none.
    pub events: Option<u64>,
    /// How long the client thinks after the answer.
    pub think: Option<Think>,
    /// The flow that it is a part of, by its place; of all flows if this is none.
    pub flow: Option<usize>,
    /// The method that it calls, if it is a call of gRPC.
    pub grpc: Option<GrpcMethod>,
    /// The WebSocket that it opens, if it opens one.
    pub websocket: Option<WebSocket>,
}

/// A conversation over a WebSocket.
#[derive(Clone, Debug)]
pub struct WebSocket {
    /// The messages that are sent.
    pub send: Vec<Template>,
    /// After how many messages of the server it is over.
    pub messages: u64,
}

#[derive(Clone, Debug)]
pub struct Capture {
    pub variable: usize,
    /// Where it stands in the answer's JSON, as a JSON pointer (RFC 6901).
    pub pointer: String,
}

/// A number in each response that is added up under a name.
#[derive(Clone, Debug)]
pub struct NumberOfResponses {
    pub name: String,
    /// Where it stands in the response's JSON, as a JSON pointer.
    pub pointer: String,
}

impl Step {
    /// How much of a response is read and kept.
    pub(crate) fn keep(&self) -> Keep {
        match (self.events, &self.websocket) {
            (Some(events), _) => Keep::Events(events),
            (None, Some(websocket)) => Keep::Messages(websocket.messages),
            (None, None) if self.grpc.is_some() || self.reads_body() => Keep::Body,
            (None, None) => Keep::Nothing,
        }
    }

    /// Whether a check, a capture or a measure needs the body.
    pub(crate) fn reads_body(&self) -> bool {
        !self.captures.is_empty()
            || !self.measures.is_empty()
            || self.checks.iter().any(Check::reads_body)
    }
}

/// A body: its parts, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Body(pub(crate) Vec<BodyPart>);

#[derive(Clone, Debug)]
pub(crate) enum BodyPart {
    Text(Template),
    Bytes(Bytes),
    Message(GrpcMessage),
}

impl Body {
    /// The text of one that is a text without variables.
    pub fn constant(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [BodyPart::Text(text)] => text.constant(),
            _ => None,
        }
    }

    /// Its bytes if it has no variables.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        let mut all = Vec::new();
        for part in &self.0 {
            match part {
                BodyPart::Text(text) => all.extend_from_slice(text.constant()?.as_bytes()),
                BodyPart::Bytes(bytes) => all.extend_from_slice(bytes),
                BodyPart::Message(message) => all.extend_from_slice(message.constant()?),
            }
        }
        Some(all.into())
    }

    /// Its bytes with the values filled in.
    pub(crate) fn filled(&self, values: &Values) -> Result<Bytes, NoRequest> {
        let mut all = Vec::new();
        for part in &self.0 {
            match part {
                BodyPart::Text(text) => {
                    let mut filled = String::new();
                    text.fill(values, &mut filled)?;
                    all.extend_from_slice(filled.as_bytes());
                }
                BodyPart::Bytes(bytes) => all.extend_from_slice(bytes),
                BodyPart::Message(message) => all.extend_from_slice(&message.filled(values)?),
            }
        }
        Ok(all.into())
    }
}

impl From<Template> for Body {
    fn from(text: Template) -> Self {
        Self(vec![BodyPart::Text(text)])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedStatus {
    AnySuccess,
    OneOf(Vec<StatusCode>),
}

impl ExpectedStatus {
    /// Whether a status is among them.
    pub fn includes(&self, status: StatusCode) -> bool {
        match self {
            Self::AnySuccess => status.is_success(),
            Self::OneOf(statuses) => statuses.contains(&status),
        }
    }
}

impl std::fmt::Display for ExpectedStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AnySuccess => f.write_str("200 to 299"),
            Self::OneOf(statuses) => {
                let texts: Vec<String> = statuses.iter().copied().map(status_text).collect();
                f.write_str(&texts.join(" or "))
            }
        }
    }
}

/// Its number and its name, such as `404 Not Found`; 520 has none.
pub(crate) fn status_text(status: StatusCode) -> String {
    let name = status.canonical_reason().unwrap_or_default();
    format!("{} {name}", status.as_u16()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_a_name_is_shown_by_its_number() {
        let statuses = [200, 520].map(|code| StatusCode::from_u16(code).unwrap());
        assert_eq!(ExpectedStatus::OneOf(statuses.to_vec()).to_string(), "200 OK or 520");
    }
}
