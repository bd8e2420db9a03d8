//! Layers inside of the meter.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::time::Duration;

use axum::body::{Bytes, HttpBody as Body};
use axum::http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use talea_http::CaughtPanic;
use tower::{Layer, Service, ServiceExt};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{self, CorsLayer};
use tower_http::timeout::TimeoutLayer;

use crate::cases::bodies::{BoxBody, boxed};
use crate::cases::routes::RouteLayer;

pub(crate) fn time_limit() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(50))
}

pub(crate) fn cors() -> CorsLayer {
    CorsLayer::new().allow_origin(cors::Any).allow_methods(cors::Any)
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
        RouteLayer::Panics => unreachable!("handled earlier"),
        RouteLayer::CatchesPanics => {
            let caught = CatchPanicLayer::new().layer(service).oneshot(request).await;
            caught.map(|response| response.map(boxed))
        }
        RouteLayer::CatchesAndMarks => {
            let caught = CatchPanicLayer::custom(marked).layer(service).oneshot(request).await;
            caught.map(|response| response.map(boxed))
        }
        RouteLayer::CatchesUnmarked => {
            let caught = CatchPanicLayer::custom(unmarked).layer(service).oneshot(request).await;
            caught.map(|response| response.map(boxed))
        }
        RouteLayer::CatchesAndChanges => {
            Ok(uppercase(CatchPanicLayer::new().layer(service).oneshot(request).await?).await)
        }
    }
}

/// The responses of layers that catch panics by handlers of their own.
pub(crate) fn unmarked(_: Box<dyn Any + Send>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("sorry"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

pub(crate) fn marked(panic: Box<dyn Any + Send>) -> Response<Full<Bytes>> {
    let mut response = unmarked(panic);
    response.extensions_mut().insert(CaughtPanic);
    response
}

pub(crate) async fn uppercase<B>(response: Response<B>) -> Response<BoxBody>
where
    B: Body<Data = Bytes>,
    B::Error: Debug,
{
    let (head, body) = response.into_parts();
    let text = body.collect().await.unwrap().to_bytes().to_ascii_uppercase();
    Response::from_parts(head, boxed(Full::from(text)))
}
