//! Responses of the service: data or an error.

use crate::log;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// The body of a good answer: `{"data":…}`.
#[derive(Debug, Serialize)]
pub struct Data<T> {
    /// An item, or a list of them.
    pub data: T,
}

/// An answer that is not the wanted one: `{"error":{"message":"…"}}`.
#[derive(Debug)]
pub struct ErrorAnswer {
    status: StatusCode,
    message: String,
}

impl ErrorAnswer {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> ErrorAnswer {
        ErrorAnswer { status, message: message.into() }
    }

    pub(crate) fn no_such_item(id: impl std::fmt::Display) -> ErrorAnswer {
        ErrorAnswer::new(StatusCode::NOT_FOUND, format!("there is no item {id}"))
    }
}

impl IntoResponse for ErrorAnswer {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "message": self.message } });
        (self.status, Json(body)).into_response()
    }
}

/// An error of the database goes to standard error, not to the client.
impl From<anyhow::Error> for ErrorAnswer {
    fn from(error: anyhow::Error) -> ErrorAnswer {
        log::line(format_args!("the database failed: {error:#}"));
        ErrorAnswer::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the database failed; the service's log says how",
        )
    }
}
