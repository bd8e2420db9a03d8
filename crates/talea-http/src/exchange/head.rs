//! The head of a response: it ends the request, or the body goes on.

use http::{Extensions, HeaderMap, StatusCode};
use http_body::Body;

use super::caught_panic::{self, CaughtPanic};
use super::handler_error::HandlerError;
use super::request::Exchange;
use super::request_size::content_length;
use super::response::RecordedHead;
use super::upgrade::UpgradeGuard;
use crate::labels::outcome::Outcome;
use crate::meters::request::RequestMeters;

/// How the end of a response's body is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyEnd {
    /// With the head: so many bytes are buffered, and treated as sent.
    WithHead(u64),
    /// By watching the body, whose length may be known.
    Watched(Option<u64>),
}

impl BodyEnd {
    /// The end of a body that is watched. Its length is the one that it states, or else the one
    /// that the head declares: a server of HTTP/1 sends no more than that, and does not ask the
    /// body for its end.
    pub(crate) fn watched(body: &impl Body, headers: &HeaderMap) -> Self {
        Self::Watched(body.size_hint().exact().or_else(|| content_length(headers)))
    }
}

impl Exchange {
    /// Records the head of the response. If the body is to be watched, it returns the state for
    /// that; otherwise the request has ended.
    #[inline]
    pub(crate) fn head(
        &mut self,
        status: StatusCode,
        extensions: &Extensions,
        end: BodyEnd,
    ) -> Option<RecordedHead> {
        let meters = self.meters?;
        if meters.counts_errors {
            self.failed = is_failure(status, extensions);
        }
        let outcome = match Outcome::of_status(status.as_u16()) {
            _ if self.caught_panic || is_marked_panic(status, extensions) => Outcome::Panicked,
            // The client that would read the response has gone, unless it was a limit that ended its body.
            Outcome::Complete if self.aborted_body && status != StatusCode::PAYLOAD_TOO_LARGE => {
                Outcome::Aborted
            }
            outcome => outcome,
        };
        if status == StatusCode::SWITCHING_PROTOCOLS && self.upgrade(meters, status, extensions) {
            return None;
        }
        let has_none =
            self.is_head || self.is_connect && status.is_success() || has_no_body(status);
        let (status, end) =
            (Some(status.as_u16()), if has_none { BodyEnd::WithHead(0) } else { end });
        let sent = match end {
            BodyEnd::Watched(length) => {
                let may_be_panic = may_be_panic(status, length);
                let meters = self.record_head(meters, status, extensions);
                return Some(RecordedHead { meters, outcome, length, may_be_panic });
            }
            BodyEnd::WithHead(0) if self.tunnels(meters, status, extensions) => return None,
            BodyEnd::WithHead(bytes) => bytes,
        };
        self.record_whole(meters, (status, Some(extensions)), |_, _| outcome, sent).keep_trace();
        None
    }

    /// Whether a response without a body hands the request to a guard: over HTTP/2 a WebSocket begins
    /// with a 200 to an extended `CONNECT` (RFC 8441, 5), in place of a 101.
    #[cold]
    fn tunnels(
        &mut self,
        meters: &'static RequestMeters,
        status: Option<u16>,
        extensions: &Extensions,
    ) -> bool {
        status == Some(200) && self.upgrade(meters, StatusCode::OK, extensions)
    }

    /// Hands the request to the guard of its upgraded connection, if there is one.
    #[cold]
    fn upgrade(
        &mut self,
        meters: &'static RequestMeters,
        status: StatusCode,
        extensions: &Extensions,
    ) -> bool {
        let Some(guard) = extensions.get::<UpgradeGuard>() else { return false };
        let meters = self.record_head(meters, Some(status.as_u16()), extensions);
        let (outcome, length) = (Outcome::Complete, Some(0));
        let head = RecordedHead { meters, outcome, length, may_be_panic: false };
        guard.keep(head.begin(self));
        true
    }
}

#[inline]
fn is_marked_panic(status: StatusCode, extensions: &Extensions) -> bool {
    status.is_server_error() && extensions.get::<CaughtPanic>().is_some()
}

/// Whether a response may be that of a panic, by its status and length.
#[inline]
pub(crate) fn may_be_panic(status: Option<u16>, length: Option<u64>) -> bool {
    status == Some(caught_panic::STATUS) && length == Some(caught_panic::BODY.len() as u64)
}

fn is_failure(status: StatusCode, extensions: &Extensions) -> bool {
    status.is_server_error() || extensions.get::<HandlerError>().is_some()
}

/// Whether a response of this status is its head alone (RFC 9110, 6.4.1).
#[inline]
fn has_no_body(status: StatusCode) -> bool {
    // Most responses are a 200.
    status != StatusCode::OK && (status.is_informational() || matches!(status.as_u16(), 204 | 304))
}
