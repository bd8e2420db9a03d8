//! The endpoints: five things to do with items.

use crate::answer::{Data, ErrorAnswer};
use crate::request::{ItemBody, ItemId};
use crate::store::{Item, Store};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse;
use talea_http::Endpoints;

type Answer<T> = Result<T, ErrorAnswer>;

/// The routes, in a router of axum's or in one that meters what it declares.
macro_rules! routes {
    ($router:ty, $get:path) => {{
        let item = $get(show).put(update).patch(update).delete(remove);
        <$router>::new()
            .route("/api/items", $get(list).post(create).fallback(no_such_method))
            .route("/api/items/{id}", item.fallback(no_such_method))
            .fallback(no_such_path)
    }};
}

/// The service over `store`, each endpoint metered by `endpoints`, or none.
pub fn router(store: Store, endpoints: Option<&Endpoints>) -> axum::Router {
    match endpoints {
        Some(endpoints) => routes!(talea_http::axum::Router<_>, talea_http::axum::get)
            .with_state(store)
            .metered_by(endpoints),
        None => routes!(axum::Router<_>, axum::routing::get).with_state(store),
    }
}

async fn list(State(store): State<Store>) -> Answer<impl IntoResponse> {
    let items = store.list().await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], format!(r#"{{"data":{items}}}"#)))
}

async fn create(State(store): State<Store>, body: ItemBody) -> Answer<impl IntoResponse> {
    let data = store.create(body.value.unwrap_or(false)).await?;
    let location = format!("/api/items/{}", data.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(Data { data })))
}

async fn show(State(store): State<Store>, ItemId(id): ItemId) -> Answer<Json<Data<Item>>> {
    found(id, store.find(id).await?)
}

/// `PUT` and `PATCH` do the same: a field that the body does not have stays.
async fn update(
    State(store): State<Store>,
    ItemId(id): ItemId,
    body: ItemBody,
) -> Answer<Json<Data<Item>>> {
    found(id, store.update(id, body.value).await?)
}

fn found(id: i64, item: Option<Item>) -> Answer<Json<Data<Item>>> {
    item.map(|data| Json(Data { data })).ok_or_else(|| ErrorAnswer::no_such_item(id))
}

async fn remove(State(store): State<Store>, ItemId(id): ItemId) -> Answer<StatusCode> {
    if store.delete(id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ErrorAnswer::no_such_item(id))
    }
}

async fn no_such_path(uri: Uri) -> ErrorAnswer {
    ErrorAnswer::new(
        StatusCode::NOT_FOUND,
        format!("there is nothing at {}: the items are at /api/items", uri.path()),
    )
}

async fn no_such_method() -> ErrorAnswer {
    ErrorAnswer::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path does not answer that method: the Allow header names those it does",
    )
}
