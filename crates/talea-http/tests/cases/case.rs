//! A case: what a client does, and what must be told of it.

use crate::server::Setup;
use crate::way::{WAYS, Way};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

use Protocol::{Http1, Http2};

/// How the client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Sends so much, and reads all of the answer.
    Asks(Sends),
    /// Resets when some of its body was read.
    ResetsInRequest,
    /// Resets when the handler runs.
    ResetsWhileItWaits,
    /// Resets when some of the response is there.
    ResetsInResponse,
    /// Resets a connection of HTTP/2 when some of the response is there.
    ResetsConnection,
    /// Closes in order when the handler runs.
    Closes,
    /// Asks so many times on one connection, each after the other's answer, or at once.
    Keeps(usize),
    Pipelines(usize),
    /// The same at once, each in a stream of HTTP/2.
    Multiplexes(usize),
    /// Sends so much when the server says that it will read it.
    Expects(u64),
    /// Speaks HTTP/1.0.
    IsOld,
    /// Speaks WebSocket, once the server agrees.
    Upgrades,
}

/// What body a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
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

/// What a request was, and how it went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) method: &'static str,
    /// The method under which its endpoint is declared.
    pub(crate) declared: &'static str,
    pub(crate) route: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) outcome: Outcome,
    /// The bytes of both bodies, where it is sure how many pass.
    pub(crate) request: Option<u64>,
    pub(crate) response: Option<u64>,
}

#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) client: Client,
    pub(crate) path: &'static str,
    pub(crate) protocols: &'static [Protocol],
    /// The ways in which it can be.
    ways: &'static [Way],
    pub(crate) setup: Setup,
    told: Told,
}

/// A client that asks, and is answered.
pub(crate) const fn ask(method: &'static str, path: &'static str) -> Case {
    Case {
        client: Client::Asks(Sends::Nothing),
        path,
        protocols: &[Http1, Http2],
        ways: &WAYS,
        setup: Setup { limited: false, hosts: &[] },
        told: Told {
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
    pub(crate) const fn by(self, client: Client) -> Self {
        Self { client, ..self }
    }

    pub(crate) const fn sending(self, sends: Sends) -> Self {
        let (Sends::Whole(bytes) | Sends::Streamed(bytes)) = sends else { return self };
        self.by(Client::Asks(sends)).reads(Some(bytes))
    }

    pub(crate) const fn http1(self) -> Self {
        Self { protocols: &[Http1], ..self }
    }

    pub(crate) const fn http2(self) -> Self {
        Self { protocols: &[Http2], ..self }
    }

    pub(crate) const fn only(self, ways: &'static [Way]) -> Self {
        Self { ways, ..self }
    }

    /// The time is limited outside of the meter too.
    pub(crate) const fn limited(self) -> Self {
        Self { setup: Setup { limited: true, ..self.setup }, ..self }
    }

    pub(crate) const fn at(self, route: &'static str) -> Self {
        Self { told: Told { route, ..self.told }, ..self }
    }

    pub(crate) const fn under(self, declared: &'static str) -> Self {
        Self { told: Told { declared, ..self.told }, ..self }
    }

    pub(crate) const fn is(self, status: u16) -> Self {
        Self { told: Told { status: Some(status), ..self.told }, ..self }
    }

    pub(crate) const fn ends(self, outcome: Outcome) -> Self {
        Self { told: Told { outcome, ..self.told }, ..self }
    }

    /// The server reads so much; none if it is not sure how much.
    pub(crate) const fn reads(self, request: Option<u64>) -> Self {
        Self { told: Told { request, ..self.told }, ..self }
    }

    /// The server sends so much; none if it is not sure how much.
    pub(crate) const fn sends(self, response: Option<u64>) -> Self {
        Self { told: Told { response, ..self.told }, ..self }
    }

    pub(crate) fn is_of(&self, way: Way) -> bool {
        self.ways.contains(&way)
    }

    pub(crate) fn told(&self) -> Told {
        self.told
    }
}
