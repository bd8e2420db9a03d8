//! Requests that are recorded by calls, for servers that are not tower's.

use http::{Extensions, HeaderMap, Method, StatusCode, Uri, Version};

use super::arrival::Exchange;
use super::attributes::RequestHead;
use super::clock::Instant;
#[cfg(feature = "actix")]
use super::costs::PollStart;
use super::end::ResponseTransfer;
use super::meters::{Endpoint, RequestMeters};
use super::request_size::RequestSize;
use super::response::BodyEnd;

/// A request that is recorded by calls: for servers that are not tower's, and bindings to other
/// languages. It is recorded once, at the endpoint that it [enters](Self::enter) first.
///
/// If it is dropped before its end, it counts as aborted, or as panicked after
/// [`failed`](Self::failed). Cost: as the layers, and it allocates nothing.
///
/// ```
/// use http::{Method, Version};
/// use talea::Registry;
/// use talea_http::{Endpoints, ManualExchange};
///
/// let registry = Registry::for_test()?;
/// let endpoint = Endpoints::new(&registry)?.declare(&Method::GET, "/items/{id}");
/// let mut exchange = ManualExchange::arrived();
/// exchange.enter(endpoint, &Method::GET, Version::HTTP_11, false);
/// exchange.respond(200, 12);
/// let labels = [("method", "GET"), ("route", "/items/{id}"), ("outcome", "complete")];
/// assert_eq!(registry.snapshot().value("http_request_outcomes_total", &labels), Some(1.0));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an exchange that is dropped counts as aborted"]
pub struct ManualExchange {
    exchange: Exchange,
    transfer: Option<ResponseTransfer>,
    /// Whether it has entered an endpoint, and may have ended since.
    has_entered: bool,
}

impl ManualExchange {
    /// A request that arrives now. It is recorded only if it enters an endpoint, or waits at one.
    pub fn arrived() -> Self {
        let mut exchange = Exchange::closed();
        exchange.start = Instant::now();
        exchange.request_size = RequestSize::Known(0);
        Self { exchange, transfer: None, has_entered: false }
    }

    /// The request is for this endpoint: it is in flight from now on. Has no effect if the request has
    /// entered an endpoint already.
    pub fn enter(&mut self, endpoint: Endpoint, method: &Method, version: Version, is_https: bool) {
        if std::mem::replace(&mut self.has_entered, true) {
            return;
        }
        self.move_to(endpoint, method, version, is_https);
    }

    /// The endpoint of the request is not known yet: until the request [enters](Self::enter) one, it is in
    /// flight at this one. Has no effect if the request has entered an endpoint already.
    pub fn wait_at(
        &mut self,
        endpoint: Endpoint,
        method: &Method,
        version: Version,
        is_https: bool,
    ) {
        if !self.has_entered {
            self.move_to(endpoint, method, version, is_https);
        }
    }

    fn move_to(&mut self, endpoint: Endpoint, method: &Method, version: Version, is_https: bool) {
        let meters = match endpoint.meters.only_request() {
            Some(meters) => meters,
            None => request_meters(endpoint, method, version, is_https),
        };
        if let Some(before) = self.exchange.meters {
            before.in_flight.dec();
        }
        self.exchange.enter(meters, method);
    }

    /// Whether it has entered an endpoint, and has not ended.
    pub fn is_open(&self) -> bool {
        self.has_entered && (self.exchange.meters.is_some() || self.transfer.is_some())
    }

    /// The length of the request's body, in bytes.
    pub fn received(&mut self, bytes: u64) {
        self.exchange.request_size = RequestSize::Known(bytes);
    }

    /// Moves a request that has not ended to another place.
    #[cfg(feature = "actix")]
    pub(crate) fn take_open(&mut self) -> Option<Self> {
        let ended = Self { exchange: Exchange::closed(), transfer: None, has_entered: true };
        self.is_open().then(|| std::mem::replace(self, ended))
    }

    /// The service's code is polled for the request.
    #[cfg(feature = "actix")]
    pub(crate) fn begin_poll(&self) -> PollStart {
        self.exchange.begin_poll()
    }

    #[cfg(feature = "actix")]
    pub(crate) fn end_poll(&mut self, start: PollStart) {
        self.exchange.end_poll(start);
    }

    /// The request's body ended with an error.
    #[cfg(feature = "actix")]
    pub(crate) fn note_aborted_body(&mut self) {
        self.exchange.aborted_body = true;
    }

    /// The whole response is sent, with a body of this length. An invalid status counts as 500.
    pub fn respond(&mut self, status: u16, bytes: u64) {
        let _ = self.exchange.head(known(status), &Extensions::new(), BodyEnd::WithHead(bytes));
    }

    /// The head of the response is sent, and its body follows.
    pub fn begin_response(&mut self, status: u16) {
        let end = BodyEnd::Watched(None);
        let head = self.exchange.head(known(status), &Extensions::new(), end);
        self.transfer = head.map(|head| head.begin(&mut self.exchange));
    }

    /// Adds to the number of bytes of the response's body that were sent.
    pub fn sent(&mut self, bytes: u64) {
        if let Some(transfer) = &mut self.transfer {
            transfer.sent += bytes;
        }
    }

    /// The body of the response failed.
    #[cfg(feature = "actix")]
    pub(crate) fn fail_body(&mut self) {
        if let Some(mut transfer) = self.transfer.take() {
            transfer.fail();
        }
    }

    /// The body of the response has ended.
    pub fn end(&mut self) {
        if let Some(mut transfer) = self.transfer.take() {
            transfer.end();
        }
    }

    /// The service's code failed: by an exception, in languages that have those. The request ends as
    /// panicked, and if no head was sent, with status 500.
    pub fn failed(&mut self) {
        self.exchange.note_unwind();
        if let Some(transfer) = &mut self.transfer {
            transfer.exchange.note_unwind();
        }
        self.close();
    }

    /// Records nothing any more. Call this in a child that was forked during the request: its parent
    /// records the request.
    pub fn forget(&mut self) {
        self.has_entered = true;
        std::mem::forget(self.transfer.take());
        std::mem::forget(std::mem::replace(&mut self.exchange, Exchange::closed()));
    }

    /// Ends the request: as aborted, if it has not ended already.
    pub fn close(&mut self) {
        self.transfer = None;
        drop(std::mem::replace(&mut self.exchange, Exchange::closed()));
    }
}

/// The meters of a request at an endpoint with labels of the request. Out of line, as most have none.
#[inline(never)]
fn request_meters(
    endpoint: Endpoint,
    method: &Method,
    version: Version,
    is_https: bool,
) -> &'static RequestMeters {
    let uri = if is_https { Uri::from_static("https://_/") } else { Uri::default() };
    let (headers, extensions) = (&HeaderMap::new(), &Extensions::new());
    endpoint.meters.request(|| RequestHead { method, uri: &uri, version, headers, extensions })
}

fn known(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use talea::Registry;

    use super::*;
    use crate::{Endpoints, Opts};

    fn value(registry: &Registry, name: &str, label: (&str, &str)) -> f64 {
        let labels = [("method", "GET"), ("route", "/x"), label];
        registry.snapshot().value(name, &labels).unwrap_or(0.0)
    }

    fn entered(endpoints: &Endpoints) -> ManualExchange {
        let mut exchange = ManualExchange::arrived();
        exchange.enter(
            endpoints.declare(&Method::GET, "/x"),
            &Method::GET,
            Version::HTTP_11,
            false,
        );
        exchange
    }

    #[test]
    fn a_request_whose_endpoint_is_not_known_yet_is_in_flight_once() {
        let registry = Registry::for_test().unwrap();
        let endpoints = Endpoints::new(&registry).unwrap();
        let in_flight = || {
            let snapshot = registry.snapshot();
            let at = |method, route| {
                let labels = [("method", method), ("route", route)];
                snapshot.value("http_requests_in_flight", &labels).unwrap_or(0.0)
            };
            (at("_OTHER", "_unmatched"), at("GET", "/x"))
        };
        let unmatched = endpoints.unmatched();

        let mut exchange = ManualExchange::arrived();
        for _ in 0..2 {
            exchange.wait_at(unmatched, &Method::GET, Version::HTTP_11, false);
            assert_eq!((in_flight(), exchange.is_open()), ((1.0, 0.0), false));
        }
        exchange.enter(
            endpoints.declare(&Method::GET, "/x"),
            &Method::GET,
            Version::HTTP_11,
            false,
        );
        exchange.wait_at(unmatched, &Method::GET, Version::HTTP_11, false);
        assert_eq!((in_flight(), exchange.is_open()), ((0.0, 1.0), true));
        exchange.respond(200, 1);
        exchange.wait_at(unmatched, &Method::GET, Version::HTTP_11, false);
        assert_eq!(in_flight(), (0.0, 0.0));
        assert_eq!(value(&registry, "http_request_outcomes_total", ("outcome", "complete")), 1.0);
    }

    #[test]
    fn each_request_ends_once_in_its_way() {
        let registry = Registry::for_test().unwrap();
        let endpoints = Opts::new().detailed().register(&registry).unwrap();
        let outcome =
            |outcome| value(&registry, "http_request_outcomes_total", ("outcome", outcome));
        let status = |status| value(&registry, "http_requests_total", ("status", status));

        let mut whole = entered(&endpoints);
        whole.received(7);
        whole.respond(200, 12);
        whole.enter(endpoints.unmatched(), &Method::GET, Version::HTTP_11, false);
        whole.respond(500, 1);
        whole.failed();
        whole.close();
        drop(whole);
        assert_eq!((outcome("complete"), status("2xx")), (1.0, 1.0));

        let mut streamed = entered(&endpoints);
        streamed.enter(endpoints.unmatched(), &Method::GET, Version::HTTP_2, true);
        streamed.begin_response(201);
        streamed.sent(5);
        assert!(streamed.is_open());
        streamed.sent(6);
        streamed.end();
        streamed.end();
        assert!(!streamed.is_open());
        drop(streamed);
        assert_eq!((outcome("complete"), status("2xx")), (2.0, 2.0));

        let mut left = entered(&endpoints);
        left.begin_response(200);
        left.sent(5);
        drop(left);
        drop(entered(&endpoints));
        assert_eq!((outcome("aborted"), status("2xx")), (2.0, 3.0));

        entered(&endpoints).failed();
        let mut late = entered(&endpoints);
        late.begin_response(200);
        late.failed();
        assert_eq!((outcome("panicked"), status("5xx"), status("2xx")), (2.0, 1.0, 4.0));

        drop(ManualExchange::arrived());
        let mut odd = ManualExchange::arrived();
        odd.respond(200, 1);
        odd.begin_response(200);
        drop(odd);
        let labels = [("method", "GET"), ("route", "/x")];
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("http_requests_in_flight", &labels), Some(0.0));
        let text = snapshot.to_text();
        for line in [
            "http_response_body_size_bytes_sum{method=\"GET\",route=\"/x\"} 28\n",
            "http_request_body_size_bytes_sum{method=\"GET\",route=\"/x\"} 7\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
