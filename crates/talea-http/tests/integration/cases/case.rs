//! A case: the behavior of a client, and the expected record.

use crate::cases::door::Door;
use crate::cases::server::Setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

use Protocol::{Http1, Http2};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Sends a body, and reads the whole response.
    Asks(Body),
    /// Resets once some of its body was read.
    ResetsInRequest,
    /// Resets once the handler runs.
    ResetsWhileItWaits,
    /// Resets once it has some of the response.
    ResetsInResponse,
    /// Resets a connection of HTTP/2 once it has some of the response.
    ResetsConnection,
    Closes,
    /// Sends this number of requests on one connection, one after the other or pipelined.
    Keeps(usize),
    Pipelines(usize),
    /// Sends this number of requests at once, each in a stream of HTTP/2.
    Multiplexes(usize),
    /// Sends a body after `100 Continue`.
    Expects(u64),
    IsOld,
    Upgrades,
    /// Upgrades a request that stays in flight until its connection closes.
    UpgradesWithGuard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Nothing,
    Whole(u64),
    Streamed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Complete,
    Aborted,
    Panicked,
    TimedOut,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) method: &'static str,
    /// The method under which its endpoint is declared.
    pub(crate) declared: &'static str,
    pub(crate) route: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) outcome: Outcome,
    /// The bytes of both bodies, if they are certain.
    pub(crate) request: Option<u64>,
    pub(crate) response: Option<u64>,
}

#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) client: Client,
    pub(crate) path: &'static str,
    pub(crate) protocols: &'static [Protocol],
    /// Whether a door can serve it as it is expected.
    pub(crate) fits: fn(&Door) -> bool,
    pub(crate) setup: Setup,
    pub(crate) expected: Expected,
}

pub(crate) const fn ask(method: &'static str, path: &'static str) -> Case {
    Case {
        client: Client::Asks(Body::Nothing),
        path,
        protocols: &[Http1, Http2],
        fits: |_| true,
        setup: Setup { limited: false, hosts: &[] },
        expected: Expected {
            method,
            declared: method,
            route: path,
            status: None,
            outcome: Outcome::Complete,
            request: Some(0),
            response: Some(0),
        },
    }
}

pub(crate) const fn get(path: &'static str) -> Case {
    ask("GET", path)
}

pub(crate) const fn post(path: &'static str) -> Case {
    ask("POST", path)
}

impl Expected {
    /// Whether a panic goes through the meter to its caller before there is a response.
    pub(crate) fn unwinds(&self) -> bool {
        self.outcome == Outcome::Panicked && (self.status, self.response) == (Some(500), Some(0))
    }
}

impl Case {
    pub(crate) const fn client(self, client: Client) -> Self {
        Self { client, ..self }
    }

    pub(crate) const fn body(self, body: Body) -> Self {
        let (Body::Whole(bytes) | Body::Streamed(bytes)) = body else { return self };
        self.client(Client::Asks(body)).request(Some(bytes))
    }

    pub(crate) const fn http1(self) -> Self {
        Self { protocols: &[Http1], ..self }
    }

    pub(crate) const fn http2(self) -> Self {
        Self { protocols: &[Http2], ..self }
    }

    pub(crate) const fn only_if(self, fits: fn(&Door) -> bool) -> Self {
        Self { fits, ..self }
    }

    /// With a time limit outside of the meter.
    pub(crate) const fn limited(self) -> Self {
        Self { setup: Setup { limited: true, ..self.setup }, ..self }
    }

    pub(crate) const fn route(self, route: &'static str) -> Self {
        Self { expected: Expected { route, ..self.expected }, ..self }
    }

    pub(crate) const fn method(self, declared: &'static str) -> Self {
        Self { expected: Expected { declared, ..self.expected }, ..self }
    }

    pub(crate) const fn status(self, status: u16) -> Self {
        Self { expected: Expected { status: Some(status), ..self.expected }, ..self }
    }

    pub(crate) const fn outcome(self, outcome: Outcome) -> Self {
        Self { expected: Expected { outcome, ..self.expected }, ..self }
    }

    pub(crate) const fn request(self, request: Option<u64>) -> Self {
        Self { expected: Expected { request, ..self.expected }, ..self }
    }

    pub(crate) const fn response(self, response: Option<u64>) -> Self {
        Self { expected: Expected { response, ..self.expected }, ..self }
    }
}
