//! What requests get: the application's answer, if they may have it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use tower_service::Service;

use super::counts::Counts;
use super::phase::{Answering, Phase};
use super::pieces::Pieces;
use super::web::Web;

/// What a browser asks its user for.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"talea\"");

/// The application behind the web configuration.
#[derive(Debug)]
pub(super) struct Answers {
    app: Router,
    web: Arc<Web>,
    counts: Arc<Counts>,
}

impl Answers {
    pub(super) fn new(app: Router, web: Arc<Web>, counts: Arc<Counts>) -> Self {
        Self { app, web, counts }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Answers one request. Its body is left unread, so that it keeps nothing.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        phase: Arc<Phase>,
    ) -> Result<Response<Pieces>, Infallible> {
        let answering = Answering::begin(&phase);
        let request = request.map(|_| Body::empty());
        // Those of now, not those of when it was connected.
        let rules = self.web.current();
        let mut response = if !rules.keeps_pace() {
            (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests\n").into_response()
        } else if rules.admits(request.headers()).await {
            answering.admitted();
            let Ok(response) = self.app.clone().call(request).await;
            response
        } else {
            self.counts.not_admitted();
            unauthorized()
        };
        set(response.headers_mut(), rules.headers());
        Ok(response.map(|body| Pieces::new(body, answering)))
    }
}

fn unauthorized() -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, CHALLENGE)];
    (StatusCode::UNAUTHORIZED, challenge, "Unauthorized\n").into_response()
}

/// Sets each, in place of what may be there.
fn set(headers: &mut HeaderMap, wanted: &HeaderMap) {
    for (name, value) in wanted {
        headers.insert(name, value.clone());
    }
}
