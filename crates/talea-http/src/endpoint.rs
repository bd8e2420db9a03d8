//! An endpoint's meters: what is recorded of each request to it.

use std::time::Duration;

use talea::{
    Counter, Error, Family, Histogram, LabelValue, Labels, Opts, Registry, Seconds, UpDownCounter,
};

/// The method of what the declaration does not name.
pub(crate) const OTHER: &str = "_OTHER";
/// The route of what no declared route matched.
pub(crate) const UNMATCHED: &str = "_unmatched";

#[derive(Labels)]
struct Endpoint<'a> {
    method: &'a str,
    route: &'a str,
}

#[derive(Labels)]
struct Outcome<'a> {
    method: &'a str,
    route: &'a str,
    status: StatusClass,
}

#[derive(Clone, Copy, LabelValue)]
enum StatusClass {
    #[label(rename = "1xx")]
    Informational,
    #[label(rename = "2xx")]
    Success,
    #[label(rename = "3xx")]
    Redirection,
    #[label(rename = "4xx")]
    ClientError,
    #[label(rename = "5xx")]
    ServerError,
    #[label(rename = "_OTHER")]
    Other,
}

impl StatusClass {
    const ALL: [Self; 6] = [
        Self::Informational,
        Self::Success,
        Self::Redirection,
        Self::ClientError,
        Self::ServerError,
        Self::Other,
    ];

    fn of(status: Option<u16>) -> Self {
        match status {
            Some(status @ 100..=599) => Self::ALL[usize::from(status / 100 - 1)],
            _ => Self::Other,
        }
    }
}

/// The families that all endpoints share.
pub(crate) struct HttpMetrics {
    in_flight: Family<Endpoint<'static>, UpDownCounter>,
    requests: Family<Outcome<'static>, Counter>,
    duration: Family<Endpoint<'static>, Histogram<Seconds>>,
}

impl HttpMetrics {
    pub(crate) fn register(registry: &Registry) -> Result<Self, Error> {
        // The declaration bounds the series, and they are as hot as the service.
        let opts = |name, help| Opts::new(name, help).striped(true).limit(u64::MAX);
        Ok(Self {
            in_flight: registry
                .register(opts("http_requests_in_flight", "Requests that are being answered."))?,
            requests: registry.register(opts(
                "http_requests_total",
                "Requests answered, by the class of the response's status.",
            ))?,
            duration: registry.register(opts(
                "http_request_duration_seconds",
                "Time from a request's arrival at its route to the head of the response.",
            ))?,
        })
    }

    /// The meters of one endpoint; its series exist from now on.
    pub(crate) fn endpoint(&self, method: &str, route: &str) -> Meters {
        Meters {
            in_flight: self.in_flight.with(Endpoint { method, route }),
            requests: StatusClass::ALL
                .map(|status| self.requests.with(Outcome { method, route, status })),
            duration: self.duration.with(Endpoint { method, route }),
        }
    }
}

/// The meters of one endpoint.
#[derive(Debug)]
pub(crate) struct Meters {
    in_flight: UpDownCounter,
    requests: [Counter; StatusClass::ALL.len()],
    duration: Histogram<Seconds>,
}

impl Meters {
    #[inline]
    pub(crate) fn started(&self) {
        self.in_flight.inc();
    }

    /// A request has ended, with a status or without one.
    #[inline]
    pub(crate) fn ended(&self, status: Option<u16>, took: Duration) {
        self.in_flight.dec();
        self.requests[StatusClass::of(status) as usize].inc();
        self.duration.observe(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_statuses_have_one_name() {
        let shown = |status| {
            let labels = Outcome { method: "", route: "", status: StatusClass::of(status) };
            let text = talea::LabelText::of(&labels);
            String::from_utf8(text.as_bytes().to_vec()).unwrap()
        };
        for (status, class) in [
            (Some(100), "1xx"),
            (Some(204), "2xx"),
            (Some(304), "3xx"),
            (Some(499), "4xx"),
            (Some(599), "5xx"),
            (Some(600), "_OTHER"),
            (Some(999), "_OTHER"),
            (Some(99), "_OTHER"),
            (None, "_OTHER"),
        ] {
            let expected = format!("method=\"\",route=\"\",status=\"{class}\"");
            assert_eq!(shown(status), expected, "{status:?}");
        }
    }
}
