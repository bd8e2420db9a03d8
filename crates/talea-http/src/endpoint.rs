//! An endpoint's meters: what is recorded of each request to it.

use std::sync::OnceLock;
use std::time::Duration;

use talea::{
    Bucketing, Counter, Error, Family, Histogram, Labels, Opts, Registry, Seconds, UpDownCounter,
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
    status: &'a str,
}

/// What the label `status` of `http_requests_total` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusLabel {
    /// The class, `1xx` to `5xx`. All series are there from the start.
    #[default]
    Class,
    /// The code, `100` to `599`. A series is there from the first answer of its
    /// code on, so an endpoint has as many as it has answered with.
    Code,
}

/// The name of what has no status, or one outside 100 to 599.
const NO_STATUS: &str = "_OTHER";

const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", NO_STATUS];

/// The place of a status in [`CLASSES`].
fn class(status: Option<u16>) -> usize {
    match status {
        Some(status @ 100..=599) => usize::from(status / 100 - 1),
        _ => CLASSES.len() - 1,
    }
}

/// The place of a status among the codes from 100 to 599, and one for others.
fn code(status: Option<u16>) -> usize {
    match status {
        Some(status @ 100..=599) => usize::from(status - 100),
        _ => CODES - 1,
    }
}

const CODES: usize = 501;

/// How durations are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    pub(crate) bucketing: Bucketing,
    pub(crate) quantiles: Vec<f64>,
}

/// The families that all endpoints share.
pub(crate) struct HttpMetrics {
    in_flight: Family<Endpoint<'static>, UpDownCounter>,
    requests: Family<Outcome<'static>, Counter>,
    duration: Family<Endpoint<'static>, Histogram<Seconds>>,
}

impl HttpMetrics {
    pub(crate) fn register(registry: &Registry, durations: &Durations) -> Result<Self, Error> {
        // The declaration bounds the series, and they are as hot as the service.
        let opts =
            |name, help| Opts::new(name, help).striped(true).limit(u64::MAX).expires_after(None);
        let mut duration = opts(
            "http_request_duration_seconds",
            "Time from a request's arrival at its route to the head of the response.",
        )
        .bucketing(durations.bucketing);
        if !durations.quantiles.is_empty() {
            duration = duration.quantiles(&durations.quantiles);
        }
        Ok(Self {
            in_flight: registry
                .register(opts("http_requests_in_flight", "Requests that are being answered."))?,
            requests: registry.register(opts(
                "http_requests_total",
                "Requests answered, by the status of the response.",
            ))?,
            duration: registry.register(duration)?,
        })
    }

    /// The meters of one endpoint; its series exist from now on.
    pub(crate) fn endpoint(
        &self,
        method: &'static str,
        route: &'static str,
        status: StatusLabel,
    ) -> Meters {
        let requests = |status| self.requests.with(Outcome { method, route, status }).keep();
        Meters {
            in_flight: self.in_flight.with(Endpoint { method, route }).keep(),
            requests: match status {
                StatusLabel::Class => Requests::ByClass(CLASSES.map(requests)),
                StatusLabel::Code => Requests::ByCode {
                    family: self.requests.clone(),
                    method,
                    route,
                    met: (0..CODES).map(|_| OnceLock::new()).collect(),
                },
            },
            duration: self.duration.with(Endpoint { method, route }).keep(),
        }
    }
}

/// The meters of one endpoint.
#[derive(Debug)]
pub(crate) struct Meters {
    in_flight: UpDownCounter,
    requests: Requests,
    duration: Histogram<Seconds>,
}

/// The requests to an endpoint, by their status.
#[derive(Debug)]
enum Requests {
    ByClass([Counter; CLASSES.len()]),
    ByCode {
        family: Family<Outcome<'static>, Counter>,
        method: &'static str,
        route: &'static str,
        /// The counters of the codes that were met.
        met: Box<[OnceLock<Counter>]>,
    },
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
        match &self.requests {
            Requests::ByClass(counters) => counters[class(status)].inc(),
            Requests::ByCode { family, method, route, met } => {
                let place = &met[code(status)];
                let counter = place.get_or_init(|| {
                    let known = status.filter(|status| (100..=599).contains(status));
                    let shown = known.map(|status| status.to_string());
                    let status = shown.as_deref().unwrap_or(NO_STATUS);
                    family.with(Outcome { method, route, status }).keep()
                });
                counter.inc();
            }
        }
        self.duration.observe(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_statuses_have_one_name() {
        for (status, expected) in [
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
            assert_eq!(CLASSES[class(status)], expected, "{status:?}");
        }
        let mut places: Vec<_> = (0..=u16::MAX).map(|status| code(Some(status))).collect();
        places.sort_unstable();
        places.dedup();
        assert!(places.into_iter().eq(0..CODES));
    }
}
