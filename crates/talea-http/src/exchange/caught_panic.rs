//! Panics that a layer turned into a response before the meter saw them.

/// An extension that marks a response as that of a panic, which a layer caught.
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
pub(crate) const STATUS: u16 = 500;
pub(crate) const BODY: &[u8] = b"Service panicked";
