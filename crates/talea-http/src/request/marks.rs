//! Marks that a service puts into the extensions of a response, and the response of a layer that catches panics.

/// An extension that marks the response of a layer that caught a panic.
///
/// A panic of a handler is counted as `panicked` if nothing catches it, if the handler is declared
/// by [`axum::Router`](crate::axum::Router), or if `tower_http`'s `CatchPanicLayer::new()` catches
/// it: its response is recognised by status and body. If you catch panics by a handler of your own,
/// add this to its response:
///
/// ```
/// use axum::http::StatusCode;
/// use axum::response::{IntoResponse, Response};
/// use talea_http::CaughtPanic;
/// use tower_http::catch_panic::CatchPanicLayer;
///
/// let layer = CatchPanicLayer::custom(|_panic: Box<dyn std::any::Any + Send>| -> Response {
///     let mut response = (StatusCode::INTERNAL_SERVER_ERROR, "sorry").into_response();
///     response.extensions_mut().insert(CaughtPanic);
///     response
/// });
/// # let _ = layer;
/// ```
///
/// Without it, such a response is counted as `complete`, with its status. So is the response of
/// `CatchPanicLayer::new()` if it has not its own body at the meter: for a `HEAD`, or if a layer
/// between changes the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaughtPanic;

/// The status and the body of the response of `tower_http`'s `CatchPanicLayer::new()`.
pub(super) const PANIC_STATUS: u16 = 500;
pub(super) const PANIC_BODY: &[u8] = b"Service panicked";

/// An extension that marks a response as an error that its handler returned.
///
/// Only [`Convention::Caddy`](crate::Convention::Caddy) counts it, in
/// `caddy_http_request_errors_total`, whatever the status. axum turns `Ok` and `Err` into a
/// response before a meter sees it, so an `Err` with a status below 500 is not counted without this
/// mark. Add it where your error becomes a response:
///
/// ```
/// use axum::Extension;
/// use axum::http::StatusCode;
/// use axum::response::{IntoResponse, Response};
/// use talea_http::HandlerError;
///
/// enum AppError {
///     NoSuchItem,
/// }
///
/// impl IntoResponse for AppError {
///     fn into_response(self) -> Response {
///         let Self::NoSuchItem = self;
///         (StatusCode::NOT_FOUND, Extension(HandlerError), "no such item").into_response()
///     }
/// }
///
/// async fn show() -> Result<&'static str, AppError> {
///     Err(AppError::NoSuchItem)
/// }
/// ```
///
/// Without axum, use `response.extensions_mut().insert(HandlerError)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerError;
