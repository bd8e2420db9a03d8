//! The result of a load.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::connect::EXPECTS_TLS;
use crate::connection::Protocol;
use crate::health::Health;
use crate::samples::Sample;
use crate::scenario::Scenario;
use crate::tally::Tally;
use crate::times::{LowerBounds, Times};

/// The parts of response times that are measured apart, and how much was received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    /// Time to open a connection, with TLS if there is any.
    pub connect_p50_ms: Option<f64>,
    /// Its 99th percentile.
    pub connect_p99_ms: Option<f64>,
    /// Time from the start of a request to the head of its answer.
    pub head_p50_ms: Option<f64>,
    /// Its 99th percentile.
    pub head_p99_ms: Option<f64>,
    /// Bytes in the bodies of responses.
    pub bytes_received: u64,
}

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The counts of all clients.
    pub tally: Tally,
    /// From the start of the first client to the end of the last, connecting included.
    pub elapsed: Duration,
    /// The time in which requests were sent: in an open model that of the schedule, or until the last was sent if
    /// that is later; otherwise, and if a signal stopped the load, `elapsed`.
    pub sending: Duration,
    /// Time from the start of a request to the end of its answer's body, of every answer that was
    /// read to its end, whatever its status, and a lower bound of it for every request that timed out or was
    /// cut off. Connecting is not part of it, unless a request timed out by that. In an open model the
    /// scenario's first request counts from when it was to be made, so that waiting for a client
    /// or a connection is part of it.
    pub response_times: Times,
    /// These times of each step of the scenario.
    pub step_times: Vec<Times>,
    /// As `response_times`, but from when each request was sent: without the wait for a client or a connection. Of an
    /// open model; empty otherwise, since there they are the same.
    pub sent_times: Times,
    /// Time from the start of a request to the head of its answer.
    pub head_times: Times,
    /// Time to open a connection, with TLS if there is any.
    pub connect_times: Times,
    /// Bytes in the bodies of responses.
    pub bytes_received: u64,
    /// As it was negotiated.
    pub protocol: Protocol,
    /// Whether a signal stopped the clients before they were done.
    pub interrupted: bool,
    /// Whether no request succeeded, and the server speaks TLS though the URL has `http`.
    pub expects_tls: bool,
    /// How the generator itself fared.
    pub health: Health,
    /// A sample of each request, if the plan asks for them.
    pub samples: Vec<Sample>,
}

impl Outcome {
    /// Requests sent a second; none when nothing was sent.
    pub fn mean_rate(&self) -> Option<f64> {
        let seconds = self.sending.as_secs_f64();
        (self.tally.sent > 0 && seconds > 0.0).then(|| self.tally.sent as f64 / seconds)
    }

    /// The parts of response times; adds the names of those that are lower bounds.
    pub fn phases(&self, bounds: &mut LowerBounds) -> Phases {
        let Self { head_times, connect_times, bytes_received, .. } = self;
        Phases {
            connect_p50_ms: bounds.note("connect_p50_ms", connect_times.quantile(0.5)),
            connect_p99_ms: bounds.note("connect_p99_ms", connect_times.quantile(0.99)),
            head_p50_ms: bounds.note("head_p50_ms", head_times.quantile(0.5)),
            head_p99_ms: bounds.note("head_p99_ms", head_times.quantile(0.99)),
            bytes_received: *bytes_received,
        }
    }

    /// Why numbers may not be the server's, in words.
    pub fn limits(&self, scenario: &Scenario) -> Vec<String> {
        let mut limits = self.health.limits();
        if let Some(feed) = self.tally.feed_ended {
            let name = &scenario.feeds[feed].name;
            limits.push(format!("the feed {name} had no more rows before the load was over"));
        }
        if self.expects_tls {
            limits.push(EXPECTS_TLS.to_owned());
            return limits;
        }
        let none_answered = self.tally.answered() == 0 && self.tally.failed() > 0;
        if none_answered && self.protocol == Protocol::Http2 {
            limits.push(
                "no response over HTTP/2: a server with HTTP/1.1 alone closes such connections; \
                 leave --http2 out"
                    .to_owned(),
            );
        }
        limits
    }
}
