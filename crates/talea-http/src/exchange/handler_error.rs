//! The mark of a response whose handler returned an error.

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
