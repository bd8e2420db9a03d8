//! Conventions: under which names and labels requests are told.

mod caddy;
mod opentelemetry;
mod prometheus;
mod servant;

use std::borrow::Cow;

use crate::case::{Declared, Methods};
use crate::endpoints::UNMATCHED;
use crate::status::Statuses;

pub(crate) use opentelemetry::error_type;

/// Under which names requests are told, so that dashboards and alerts that are there
/// already go on working. The tables are in the docs of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Convention {
    /// What Prometheus' users expect, and all that there is to tell.
    ///
    #[doc = include_str!("prometheus.md")]
    #[default]
    Prometheus,
    /// The semantic conventions of OpenTelemetry, named as its exporter for Prometheus
    /// names them.
    ///
    #[doc = include_str!("opentelemetry.md")]
    OpenTelemetry,
    /// The set of Haskell's servant-prometheus.
    ///
    #[doc = include_str!("servant.md")]
    Servant,
    /// The set of Caddy's web server.
    ///
    #[doc = include_str!("caddy.md")]
    Caddy,
}

impl Convention {
    pub(crate) fn set(self) -> Set {
        match self {
            Self::Prometheus => prometheus::SET,
            Self::OpenTelemetry => opentelemetry::SET,
            Self::Servant => servant::SET,
            Self::Caddy => caddy::SET,
        }
    }
}

/// A convention, as data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub(crate) in_flight: Told,
    /// Counts requests once their status is known.
    pub(crate) requests: Option<Told>,
    /// Counts requests that failed, see [`HandlerError`](crate::HandlerError).
    pub(crate) errors: Option<Told>,
    /// Counts requests when they have ended.
    pub(crate) outcomes: Option<Told>,
    /// Time to the response's head.
    pub(crate) to_head: Option<Told>,
    /// Time to the end of its body.
    pub(crate) to_end: Option<Told>,
    pub(crate) request_size: Option<Told>,
    pub(crate) response_size: Option<Told>,
    /// Whether a request's size is that of its line, headers and declared body, known
    /// when it arrives. Otherwise it is that of its body, as it passes.
    pub(crate) declared_request_size: bool,
    pub(crate) statuses: Statuses,
    pub(crate) methods: MethodNames,
    pub(crate) paths: Paths,
    /// The label of a listed host.
    pub(crate) host: &'static str,
    pub(crate) durations: &'static [f64],
}

/// A metric of a convention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: &'static [(&'static str, Source)],
}

/// What a label's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    // Of the endpoint's declaration, and of the service.
    Route,
    Handler,
    Server,
    /// A label of the user's own, the n-th, that is the same everywhere.
    Constant(usize),
    // Of the request, when it arrives.
    Method,
    Scheme,
    Version,
    Host,
    /// The n-th of the user's own labels from a request's extensions.
    Request(usize),
    // Of its answer.
    Status,
    /// The n-th of those from a response's.
    Response(usize),
    // Of its end.
    ErrorType,
    Outcome,
}

/// When a label's value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Known {
    Declared,
    Arrived,
    Answered,
    Ended,
}

impl Source {
    pub(crate) fn known(self) -> Known {
        match self {
            Self::Route | Self::Handler | Self::Server | Self::Constant(_) => Known::Declared,
            Self::Method | Self::Scheme | Self::Version | Self::Host | Self::Request(_) => {
                Known::Arrived
            }
            Self::Status | Self::Response(_) => Known::Answered,
            Self::ErrorType | Self::Outcome => Known::Ended,
        }
    }
}

/// How methods are named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MethodNames {
    /// As they are declared: a `HEAD` that a `GET` answers is a `GET`.
    Declared {
        /// The name of the methods that a route does not declare.
        rest: &'static str,
    },
    /// As they are sent; unknown ones have one name.
    Sent {
        /// The name of what is unknown.
        other: &'static str,
        /// Whether `QUERY` is known.
        query: bool,
    },
}

/// How routes are named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paths {
    /// `/items/{id}`
    Templates {
        /// The name where no route matched.
        unmatched: &'static str,
    },
    /// As servant-prometheus names them: `items/:id`, without `CaptureAll`, and nothing for
    /// requests that no endpoint answers.
    Servant,
}

impl Paths {
    pub(crate) fn text(self, declared: &Declared) -> Cow<'static, str> {
        let Declared { route, methods, .. } = *declared;
        match self {
            Self::Templates { unmatched } if route == UNMATCHED => unmatched.into(),
            Self::Templates { .. } => route.into(),
            Self::Servant if methods == Methods::Rest => "".into(),
            Self::Servant => {
                let segments = route.strip_prefix('/').unwrap_or(route).split('/');
                segments.filter_map(servant_segment).collect::<Vec<_>>().join("/").into()
            }
        }
    }
}

/// A template's segment as servant-prometheus has it; none if it has none.
fn servant_segment(segment: &str) -> Option<Cow<'_, str>> {
    let capture = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match capture {
        // Braces that are doubled stand for themselves.
        Some(name) if name.starts_with('{') => {}
        Some(name) if name.starts_with('*') => return None,
        Some(name) => return Some(format!(":{name}").into()),
        None => {}
    }
    Some(segment.replace("{{", "{").replace("}}", "}").into())
}

/// The thresholds of Prometheus' client for Go, which are Caddy's too.
const GO_DURATIONS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Those of OpenTelemetry's semantic conventions.
const OTEL_DURATIONS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servants_path_is_what_servant_prometheus_makes_of_it() {
        let one = Methods::One(talea::HttpMethod::Get);
        for (methods, route, path) in [
            (one, "/profile/{username}", "profile/:username"),
            (one, "/items/{id}/x/{*rest}", "items/:id/x"),
            (Methods::Each, "/items/{{id}}", "items/{id}"),
            (one, "/", ""),
            (Methods::Rest, "/items", ""),
            (Methods::Rest, UNMATCHED, ""),
        ] {
            let declared = Declared { methods, route, handler: "" };
            assert_eq!(Paths::Servant.text(&declared), path);
            let unmatched = if route == UNMATCHED { "none" } else { route };
            assert_eq!(Paths::Templates { unmatched: "none" }.text(&declared), unmatched);
        }
    }

    #[test]
    fn a_label_is_known_when_the_last_of_what_it_comes_from_is() {
        assert!(Source::Route.known() < Source::Method.known());
        assert!(Source::Method.known() < Source::Status.known());
        assert!(Source::Status.known() < Source::Outcome.known());
    }
}
