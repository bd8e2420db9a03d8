//! Layers inside of the meter.

use std::io;
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use tower::{Layer, Service, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::timeout::TimeoutLayer;

use crate::cases::bodies::{BoxBody, boxed};
use crate::cases::routes::RouteLayer;

pub(crate) fn time_limit() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(50))
}

pub(crate) fn cors() -> CorsLayer {
    CorsLayer::new().allow_origin(Any).allow_methods(Any)
}

pub(crate) async fn respond_within<S, B>(
    layer: RouteLayer,
    service: S,
    request: Request<B>,
) -> Result<Response<BoxBody>, io::Error>
where
    S: Service<Request<B>, Response = Response<BoxBody>, Error = io::Error>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    match layer {
        RouteLayer::Nothing => service.oneshot(request).await,
        RouteLayer::TimeLimit => time_limit().layer(service).oneshot(request).await,
        RouteLayer::Cors => cors().layer(service).oneshot(request).await,
        RouteLayer::CatchesPanics => {
            let caught = CatchPanicLayer::new().layer(service).oneshot(request).await;
            caught.map(|response| response.map(boxed))
        }
    }
}
