//! Records the outcome of each scrape once it is over.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Frame, SizeHint};

use super::agent::Agent;
use super::meters::{Outcome, OutcomeLabel};

/// Counts in the agent's metrics how a scrape ended. If no region can be read because descriptors
/// or memory ran out, the answer is 503: a scraper must not take an empty page for the true state.
pub(super) async fn record_outcome(
    State(agent): State<Agent>,
    request: Request,
    next: Next,
) -> Response {
    let mut scrape = Scrape { agent, began: Instant::now(), is_over: false };
    let is_head = request.method() == Method::HEAD;
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        scrape.end(Outcome::Refused);
        return response;
    }
    // The page is there before its response is.
    if scrape.agent.was_starved_since(scrape.began) {
        scrape.end(Outcome::Refused);
        return starved();
    }
    if is_head {
        scrape.end_without_body();
        return response;
    }
    // A server does not ask for an empty body.
    if response.body().size_hint().exact() == Some(0) {
        scrape.end(Outcome::Complete);
    }
    response.map(|inner| Body::new(RecordedBody { inner, scrape }))
}

fn starved() -> Response {
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (RETRY_AFTER, "1")];
    let text = "No region can be read: the agent is out of file descriptors or memory.\n";
    (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
}

impl Agent {
    fn ended(&self, outcome: Outcome) {
        self.meters().scrapes.with(OutcomeLabel { outcome }).inc();
    }
}

/// A scrape. If it is dropped before its end, as when its client goes away, it is broken off.
struct Scrape {
    agent: Agent,
    began: Instant,
    is_over: bool,
}

impl Scrape {
    fn end(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        if matches!(outcome, Outcome::Complete) {
            self.agent.meters().scrape_duration.observe(self.began.elapsed());
        }
        self.agent.ended(outcome);
    }

    /// Ends one that only asked for the head, whose time is not that of a page.
    fn end_without_body(&mut self) {
        self.is_over = true;
        self.agent.ended(Outcome::Complete);
    }
}

impl Drop for Scrape {
    fn drop(&mut self) {
        self.end(Outcome::BrokenOff);
    }
}

/// A body that records how it ended.
struct RecordedBody {
    inner: Body,
    scrape: Scrape,
}

impl hyper::body::Body for RecordedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let len = frame.data_ref().map_or(0, Bytes::len);
                self.scrape.agent.meters().scrape_bytes.add(len as u64);
                if self.inner.is_end_stream() {
                    self.scrape.end(Outcome::Complete);
                }
            }
            Some(Err(_)) => self.scrape.end(Outcome::BrokenOff),
            None => self.scrape.end(Outcome::Complete),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::Waker;

    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::serve::sources::Sources;

    #[test]
    fn a_client_that_leaves_before_its_turn_has_broken_off() {
        let agent = Agent::new(Sources::default(), Vec::new(), None).unwrap();
        let waits = Router::new().route("/", get(pending::<()>));
        let record = from_fn_with_state(agent.clone(), record_outcome);
        let service = TowerToHyperService::new(waits.layer(record));
        let broken_off =
            || agent.meters().scrapes.with(OutcomeLabel { outcome: Outcome::BrokenOff }).get();
        let mut scrape = Box::pin(service.call(Request::new(Body::empty())));
        assert!(scrape.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(broken_off(), 0);
        drop(scrape);
        assert_eq!(broken_off(), 1);
    }
}
