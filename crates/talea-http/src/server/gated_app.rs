//! The response to each request: the application's, if the gate lets the request through.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use ::axum::Router;
use ::axum::body::Body;
use ::axum::extract::ConnectInfo;
use ::axum::response::IntoResponse;
use ::http::header::CONNECTION;
use ::http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
use tower_service::Service;

use super::gate::Gate;
use super::host::fault_of_host;
use super::phase::{Phase, ResponseGuard};
use super::watched_body::WatchedBody;

/// An application behind a gate.
#[derive(Debug)]
pub(super) struct GatedApp {
    pub(super) app: Router,
    pub(super) gate: Arc<dyn Gate>,
}

impl GatedApp {
    /// Responds to one request. The request's body is dropped unread, so that it takes no memory. Over
    /// HTTP/1 such a request is the last one of its connection: the place where the next one begins
    /// would depend on that body.
    pub(super) fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: SocketAddr,
        phase: &Arc<Phase>,
    ) -> impl Future<Output = Result<Response<WatchedBody>, Infallible>> + use<> {
        // At once, before hyper reads on.
        let guard = ResponseGuard::begin(phase);
        let is_last = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        if is_last {
            phase.ends_with_body();
        }
        let request = request.map(|_| Body::empty());
        async move {
            let mut response = self.response(request, client, &guard).await;
            self.gate.add_headers(response.headers_mut());
            if is_last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| WatchedBody::new(body, guard)))
        }
    }

    async fn response(
        &self,
        mut request: Request<Body>,
        client: SocketAddr,
        guard: &ResponseGuard,
    ) -> Response<Body> {
        if let Some(fault) = fault_of_host(request.version(), request.headers()) {
            return (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response();
        }
        if let Err(refusal) = self.gate.admit(request.headers(), client).await {
            return refusal;
        }
        guard.admitted();
        request.extensions_mut().insert(ConnectInfo(client));
        let Ok(response) = self.app.clone().call(request).await;
        response
    }
}
