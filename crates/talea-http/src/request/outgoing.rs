//! An outgoing request: it may end without a response, by an error.

use http::Response;
use http_body::Body;

use super::arrival::Exchange;
use super::attributes::RequestHead;
use super::clock::Instant;
use super::end::ResponseTransfer;
use super::meters::EndpointMeters;
use super::request_size::RequestSize;
use crate::labels::error_kind::ErrorKind;
use crate::labels::status::FIRST_ERROR;

impl Exchange {
    /// Records that a request is sent whose body has this length.
    pub(crate) fn open_sized(
        &mut self,
        meters: &'static EndpointMeters,
        head: RequestHead<'_>,
        bytes: u64,
    ) {
        self.start = Instant::now();
        self.enter(meters.request(|| head), head.method);
        self.request_size = RequestSize::Known(bytes);
    }

    /// Records the head of a response from a server. Returns the state for its body, if that follows.
    pub(crate) fn receive(&mut self, response: &Response<impl Body>) -> Option<ResponseTransfer> {
        let mut transfer = self.respond(response, 0)?.begin(self);
        // A body with that text is of the server, whose panic is no panic here.
        transfer.may_be_panic = false;
        Some(transfer)
    }

    /// Ends a request that has no response.
    #[cold]
    pub(crate) fn fail(&mut self, kind: ErrorKind) {
        if let Some(meters) = self.meters {
            let status = (Some(FIRST_ERROR + kind as u16), None);
            self.record_whole(meters, status, Some(kind.outcome()), 0).keep_trace();
        }
    }
}
