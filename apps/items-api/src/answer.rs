//! Responses of the service: data or an error.

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
pub struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into() }
    }

    pub(crate) fn no_such_item(id: impl std::fmt::Display) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, format!("there is no item {id}"))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "message": self.message } });
        (self.status, Json(body)).into_response()
    }
}

/// An error of the database goes to standard error, not to the client.
impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Refusal {
        eprintln!("items-api: the database failed: {error}");
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the database failed; the service's log says how",
        )
    }
}
