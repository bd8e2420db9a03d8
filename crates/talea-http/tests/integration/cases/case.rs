//! A case: the behavior of a client, and the expected record.

use crate::cases::metering::{METERINGS, Metering};
use crate::cases::server::Setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

use Protocol::{Http1, Http2};

/// The behavior of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Body a body, and reads the whole response.
    Asks(Body),
    /// Resets once some of its body was read.
    ResetsInRequest,
    /// Resets once the handler runs.
    ResetsWhileItWaits,
    /// Resets once it has some of the response.
    ResetsInResponse,
    /// Resets a connection of HTTP/2 once it has some of the response.
    ResetsConnection,
    /// Closes its side of the connection once the handler runs.
    Closes,
    /// Body so many requests on one connection, one after the other or pipelined.
    Keeps(usize),
    Pipelines(usize),
    /// Body so many requests at once, each in a stream of HTTP/2.
    Multiplexes(usize),
    /// Body a body after `100 Continue`.
    Expects(u64),
    /// Uses HTTP/1.0.
    IsOld,
    /// Upgrades to a WebSocket.
    Upgrades,
}

/// The body that a client sends.
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

/// The expected record of a request.
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
    /// The ways of metering in which it is possible.
    meterings: &'static [Metering],
    pub(crate) setup: Setup,
    expected: Expected,
}

/// A request with a complete response.
pub(crate) const fn ask(method: &'static str, path: &'static str) -> Case {
    Case {
        client: Client::Asks(Body::Nothing),
        path,
        protocols: &[Http1, Http2],
        meterings: &METERINGS,
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

    pub(crate) const fn meterings(self, meterings: &'static [Metering]) -> Self {
        Self { meterings, ..self }
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

    /// The bytes that the server reads, if they are certain.
    pub(crate) const fn request(self, request: Option<u64>) -> Self {
        Self { expected: Expected { request, ..self.expected }, ..self }
    }

    /// The bytes that the server sends, if they are certain.
    pub(crate) const fn response(self, response: Option<u64>) -> Self {
        Self { expected: Expected { response, ..self.expected }, ..self }
    }

    pub(crate) fn is_possible(&self, metering: Metering) -> bool {
        self.meterings.contains(&metering)
    }

    pub(crate) fn expected(&self) -> Expected {
        self.expected
    }
}
