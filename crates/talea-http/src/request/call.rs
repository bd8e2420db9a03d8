//! A gRPC call: a request whose status comes at its end, in the headers of a response without
//! messages or in its trailers. It ends once, as an [`Exchange`] does.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use talea::Counter;

use super::arrival::{CallGuard, Exchange};
use super::end::Latency;
use super::meters::{CallMeters, EndpointMeters, RequestMeters};
use super::request_size::RequestBytes;
use super::response::is_marked_panic;
use crate::labels::outcome::Outcome;
use crate::labels::status::RpcCodes;

/// A gRPC call in flight, until its status is known. If it is dropped before, it ends as cancelled, past
/// its deadline or panicked.
#[derive(Debug)]
pub(crate) struct Call {
    exchange: Exchange,
    /// The time after which the call is past its deadline.
    limit: Duration,
    /// The status of a response that names none.
    unnamed: u16,
    /// The bytes of the response's messages.
    responded: u64,
}

/// The counters of the messages in one call, by the body that they pass in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallMessages {
    pub(crate) in_request: Option<&'static Counter>,
    pub(crate) in_response: Option<&'static Counter>,
}

impl Call {
    /// A call that records nothing.
    #[inline]
    pub(crate) fn closed() -> Self {
        Self {
            exchange: Exchange::closed(),
            limit: Duration::MAX,
            unnamed: RpcCodes::UNKNOWN,
            responded: 0,
        }
    }

    /// Records that a call began. Returns the counter for the request's body, and those of the messages.
    pub(crate) fn open(
        &mut self,
        meters: &'static EndpointMeters,
        request: &Request<impl Body>,
        is_client: bool,
    ) -> (Option<RequestBytes>, CallMessages) {
        let bytes = self.exchange.open(meters, request);
        self.limit = limit(request.headers());
        let calls = self.exchange.meters.and_then(|meters| meters.calls);
        let messages = calls.map(|CallMeters { started, received, sent }| {
            started.inc();
            let (in_request, in_response) =
                if is_client { (sent, received) } else { (received, sent) };
            CallMessages { in_request: Some(in_request), in_response: Some(in_response) }
        });
        (bytes, messages.unwrap_or(CallMessages { in_request: None, in_response: None }))
    }

    #[inline]
    pub(crate) fn call(&mut self) -> CallGuard<'_> {
        self.exchange.call()
    }

    /// As [`Exchange::poll`].
    #[inline]
    pub(crate) fn poll(&mut self) -> CallGuard<'_> {
        self.exchange.poll()
    }

    /// The head of the response is there. Returns the call if its status follows in the trailers.
    pub(crate) fn respond(&mut self, response: &Response<impl Body>) -> Option<Self> {
        let (status, extensions) = (response.status(), response.extensions());
        self.unnamed = implied_code(status);
        self.exchange.caught_panic |= is_marked_panic(status, extensions);
        self.exchange.costs.record_to_head(self.exchange.start);
        if let Some(code) = named_code(response.headers()) {
            self.end(code);
        } else if response.body().is_end_stream() {
            self.end(self.unnamed);
        } else {
            return Some(std::mem::replace(self, Self::closed()));
        }
        None
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.responded += bytes;
    }

    /// The body of the response has ended, with trailers or without.
    pub(crate) fn end_body(&mut self, trailers: Option<&HeaderMap>) {
        self.end(trailers.and_then(named_code).unwrap_or(self.unnamed));
    }

    /// The service or the body of the response failed. The call has this status, unless it is past its
    /// deadline.
    #[cold]
    pub(crate) fn fail(&mut self, code: u16) {
        if let Some(meters) = self.exchange.meters {
            self.break_off(meters, code).keep_trace();
        }
    }

    #[inline]
    fn end(&mut self, code: u16) {
        let Some(meters) = self.exchange.meters else { return };
        let outcome = match code {
            _ if self.exchange.caught_panic => Outcome::Panicked,
            RpcCodes::DEADLINE_EXCEEDED => Outcome::TimedOut,
            _ => Outcome::Complete,
        };
        let latency =
            self.exchange.record_whole(meters, (Some(code), None), Some(outcome), self.responded);
        latency.keep_trace();
    }

    /// Ends a call that has no status from its service.
    #[cold]
    fn break_off(&mut self, meters: &'static RequestMeters, code: u16) -> Latency {
        let limit = self.limit.min(meters.families.timed_out_after.unwrap_or(Duration::MAX));
        let (code, outcome) = if self.exchange.unwound {
            (RpcCodes::UNKNOWN, Outcome::Panicked)
        } else if self.exchange.start.elapsed() >= limit {
            (RpcCodes::DEADLINE_EXCEEDED, Outcome::TimedOut)
        } else {
            (code, Outcome::Aborted)
        };
        self.exchange.record_whole(meters, (Some(code), None), Some(outcome), self.responded)
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if let Some(meters) = self.exchange.meters {
            self.break_off(meters, RpcCodes::CANCELLED);
        }
    }
}

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
static GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The first value of a header. Few headers are compared faster than a name is hashed.
fn value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    headers.iter().find_map(|(found, value)| (found == name).then_some(value))
}

/// The status that headers or trailers name.
fn named_code(headers: &HeaderMap) -> Option<u16> {
    let code = value(headers, &GRPC_STATUS)?;
    let number = code.to_str().ok().and_then(|code| code.parse().ok());
    // A number that is none of the protocol's is treated as unknown.
    Some(number.filter(|code| *code <= RpcCodes::UNAUTHENTICATED).unwrap_or(RpcCodes::UNKNOWN))
}

/// The status of a response that names none, such as a proxy's: see the protocol's document
/// `http-grpc-status-mapping.md`.
fn implied_code(status: StatusCode) -> u16 {
    match status.as_u16() {
        400 => RpcCodes::INTERNAL,
        401 => RpcCodes::UNAUTHENTICATED,
        403 => RpcCodes::PERMISSION_DENIED,
        404 => RpcCodes::UNIMPLEMENTED,
        429 | 502 | 503 | 504 => RpcCodes::UNAVAILABLE,
        _ => RpcCodes::UNKNOWN,
    }
}

/// The time after which a call that is dropped is past its deadline: nine tenths of the time that its
/// header allows, since client and server start their clocks at different times.
fn limit(headers: &HeaderMap) -> Duration {
    let allowed =
        value(headers, &GRPC_TIMEOUT).and_then(|timeout| allowed_time(timeout.as_bytes()));
    allowed.map_or(Duration::MAX, |allowed| allowed / 10 * 9)
}

/// At most 8 digits and a unit (PROTOCOL-HTTP2.md, `Timeout`).
fn allowed_time(timeout: &[u8]) -> Option<Duration> {
    let (unit, digits) = timeout.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    match unit {
        b'H' => Some(Duration::from_secs(value * 3600)),
        b'M' => Some(Duration::from_secs(value * 60)),
        b'S' => Some(Duration::from_secs(value)),
        b'm' => Some(Duration::from_millis(value)),
        b'u' => Some(Duration::from_micros(value)),
        b'n' => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_read_as_the_protocol_writes_it() {
        for (timeout, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("40m", Some(Duration::from_millis(40))),
            ("5u", Some(Duration::from_micros(5))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("100000000n", None),
            ("H", None),
            ("", None),
            ("1s", None),
            ("-1S", None),
            ("1.5S", None),
        ] {
            assert_eq!(allowed_time(timeout.as_bytes()), expected, "{timeout:?}");
        }
    }

    #[test]
    fn a_status_outside_of_the_protocol_is_unknown() {
        for (value, expected) in [("0", 0), ("16", 16), ("17", 2), ("-1", 2), ("", 2), ("OK", 2)] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", value.parse().unwrap());
            assert_eq!(named_code(&headers), Some(expected), "{value:?}");
        }
        assert_eq!(named_code(&HeaderMap::new()), None);
    }
}
