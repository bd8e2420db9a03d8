//! The layers that stand inside of the meter.

use std::io;
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use tower::{Layer, Service, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::timeout::TimeoutLayer;

use crate::answer::{Answer, boxed};
use crate::routes::Inside;

pub(crate) fn time_limit() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(50))
}

pub(crate) fn cors() -> CorsLayer {
    CorsLayer::new().allow_origin(Any).allow_methods(Any)
}

/// Answers by a service with a layer around it.
pub(crate) async fn answer<S, B>(
    inside: Inside,
    service: S,
    request: Request<B>,
) -> Result<Response<Answer>, io::Error>
where
    S: Service<Request<B>, Response = Response<Answer>, Error = io::Error>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    match inside {
        Inside::Nothing => service.oneshot(request).await,
        Inside::TimeLimit => time_limit().layer(service).oneshot(request).await,
        Inside::Cors => cors().layer(service).oneshot(request).await,
        Inside::CatchesPanics => {
            let caught = CatchPanicLayer::new().layer(service).oneshot(request).await;
            caught.map(|response| response.map(boxed))
        }
    }
}
