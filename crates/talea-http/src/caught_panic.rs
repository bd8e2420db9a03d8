//! Panics that a layer made into a response before the meter saw them.

/// An extension of a response that says that it stands for a panic, which a layer caught.
///
/// A panic of a handler is counted as `panicked` wherever Talea sees it: if nothing catches it, if
/// the handler is declared by [`axum::Router`](crate::axum::Router), and if `tower_http`'s
/// `CatchPanicLayer::new()` catches it, whose response is known by its status and body. If you catch
/// panics by a handler of your own, add this to its response:
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
/// Without it, such a response is counted as `complete`, with its status; so is the response to a
/// `HEAD` whose panic `CatchPanicLayer::new()` caught, since it has no body to be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaughtPanic;

/// The status and the body by which `tower_http`'s `CatchPanicLayer::new()` answers.
pub(crate) const STATUS: u16 = 500;
pub(crate) const BODY: &[u8] = b"Service panicked";
