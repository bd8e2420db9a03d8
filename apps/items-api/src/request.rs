//! The parts of a request: the id in its path, the item in its body.

use crate::answer::ErrorAnswer;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::{Deserialize, Deserializer};

/// The id in the path. A text that is no integer names no item, so the answer is 404.
#[derive(Debug)]
pub(crate) struct ItemId(pub(crate) i64);

impl<S: Send + Sync> FromRequestParts<S> for ItemId {
    type Rejection = ErrorAnswer;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ItemId, ErrorAnswer> {
        let Ok(Path(id)) = Path::<String>::from_request_parts(parts, state).await else {
            return Err(ErrorAnswer::no_such_item("of that name"));
        };
        match id.parse() {
            Ok(id) => Ok(ItemId(id)),
            Err(_) => Err(ErrorAnswer::no_such_item(id)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct ItemBody {
    /// None when the item names no value; null is not a value.
    pub(crate) value: Option<bool>,
}

#[derive(Deserialize)]
struct Document {
    item: Fields,
}

#[derive(Deserialize)]
struct Fields {
    #[serde(default, deserialize_with = "present")]
    value: Option<bool>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<bool>, D::Error> {
    bool::deserialize(value).map(Some)
}

impl<S: Send + Sync> FromRequest<S> for ItemBody {
    type Rejection = ErrorAnswer;

    async fn from_request(request: Request, state: &S) -> Result<ItemBody, ErrorAnswer> {
        match Json::<Document>::from_request(request, state).await {
            Ok(Json(document)) => Ok(ItemBody { value: document.item.value }),
            Err(rejection) => Err(refuse(&rejection)),
        }
    }
}

/// A body that came but is not an item is 422, whatever is wrong with it; a body
/// that is too large, or broke off, keeps its own status.
fn refuse(rejection: &JsonRejection) -> ErrorAnswer {
    let found = rejection.body_text();
    if let JsonRejection::BytesRejection(broken) = rejection {
        return ErrorAnswer::new(broken.status(), found);
    }
    let expected = r#"expected {"item":{"value":true}} with the content type application/json"#;
    ErrorAnswer::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{found}; {expected}"))
}
