//! The response to each request: the application's, if the gate lets the request through.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use ::axum::Router;
use ::axum::body::Body;
use ::axum::extract::ConnectInfo;
use ::http::{Request, Response};
use hyper::body::Incoming;
use tower_service::Service;

use super::body::WatchedBody;
use super::gate::Gate;
use super::phase::{Phase, ResponseGuard};

#[derive(Debug)]
pub(super) struct Requests {
    pub(super) app: Router,
    pub(super) gate: Arc<dyn Gate>,
}

impl Requests {
    /// Answers one request. Its body is dropped unread, so that it takes no memory.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: SocketAddr,
        phase: Arc<Phase>,
    ) -> Result<Response<WatchedBody>, Infallible> {
        let guard = ResponseGuard::begin(&phase);
        let mut request = request.map(|_| Body::empty());
        let mut response = match self.gate.admit(request.headers(), client).await {
            Ok(()) => {
                guard.admitted();
                request.extensions_mut().insert(ConnectInfo(client));
                let Ok(response) = self.app.clone().call(request).await;
                response
            }
            Err(refusal) => refusal,
        };
        self.gate.add_headers(response.headers_mut());
        Ok(response.map(|body| WatchedBody::new(body, guard)))
    }
}
