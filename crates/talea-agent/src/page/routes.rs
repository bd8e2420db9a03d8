//! The routes of the live page.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::json;

use super::assets::{self, Asset};
use super::events::{Stream, Streams};
use super::feed::{Feed, now};
use super::query::{Selection, TimeRange, parameters};
use super::range::Range;
use super::series::{SeriesRange, exemplars, families};

#[derive(Clone, Debug)]
struct Shared {
    feed: Arc<Feed>,
    streams: Streams,
}

/// The client of a request, as the server knows it.
type Client = ConnectInfo<SocketAddr>;

/// The page at `/`, its files, and its data below `/live/`.
pub fn routes(feed: Arc<Feed>) -> Router {
    let shared = Shared { feed, streams: Streams::default() };
    let file =
        |asset: &'static Asset| get(move |asked: HeaderMap| async move { asset.answer(&asked) });
    Router::new()
        .route("/", file(&assets::HTML))
        .route("/page.js", file(&assets::SCRIPT))
        .route("/page.css", file(&assets::STYLE))
        .route("/live/events", get(events))
        .route("/live/range", get(range))
        .route("/live/families", get(list))
        .route("/live/series", get(series))
        .route("/live/exemplars", get(latest_exemplars))
        .route("/live/series/events", get(series_events))
        .with_state(shared)
}

async fn events(State(shared): State<Shared>, client: Client) -> Response {
    stream(shared.streams.points(&shared.feed, client.0.ip()))
}

async fn series_events(
    State(shared): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
) -> Response {
    let query = parameters(query);
    let Some(family) = query.get("family").cloned() else { return bad(NO_FAMILY) };
    let wanted = Selection::of(&query);
    stream(shared.streams.series(&shared.feed, client.0.ip(), family, wanted))
}

const NO_FAMILY: &str = "family: found nothing, expected the name of a family";

fn stream(stream: Option<Stream>) -> Response {
    match stream {
        Some(stream) => {
            let kind = (header::CONTENT_TYPE, "text/event-stream");
            // No proxy waits until it has more.
            (
                [kind, (header::HeaderName::from_static("x-accel-buffering"), "no")],
                Body::new(stream),
            )
                .into_response()
        }
        None => busy("too many live pages are open"),
    }
}

async fn range(
    State(shared): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
    asked: HeaderMap,
) -> Response {
    let query = parameters(query);
    let (family, wanted) = (query.get("family").cloned(), Selection::of(&query));
    past(shared, client, &query, asked, move |feed, span| match family {
        Some(family) => json_of(&Range::of_histogram(feed, &family, &wanted, span)),
        None => json_of(&Range::of(feed, span)),
    })
    .await
}

async fn series(
    State(shared): State<Shared>,
    client: Client,
    RawQuery(query): RawQuery,
    asked: HeaderMap,
) -> Response {
    let query = parameters(query);
    let Some(family) = query.get("family").cloned() else { return bad(NO_FAMILY) };
    let wanted = Selection::of(&query);
    past(shared, client, &query, asked, move |feed: &Feed, span| {
        json_of(&SeriesRange::of(feed, &family, &wanted, span))
    })
    .await
}

/// Answers with what `read` finds in a part of the past.
async fn past(
    shared: Shared,
    client: Client,
    query: &HashMap<String, String>,
    asked: HeaderMap,
    read: impl FnOnce(&Feed, TimeRange) -> Vec<u8> + Send + 'static,
) -> Response {
    let span = match TimeRange::of(query, now().unix_millis) {
        Ok(span) => span,
        Err(reason) => return bad(&reason),
    };
    let Some(turn) = shared.feed.turn(client.0.ip()).await else { return busy(PAST_IS_BUSY) };
    let answer = tokio::task::spawn_blocking(move || {
        let json = read(&shared.feed, span);
        drop(turn);
        json_answer(json, &asked)
    });
    answer.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn list(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
    asked: HeaderMap,
) -> Response {
    let (latest, wanted) = (shared.feed.latest(), Selection::of(&parameters(query)));
    let all = json!({ "t": latest.unix_millis, "families": families(&latest, &wanted) });
    json_answer(json_of(&all), &asked)
}

async fn latest_exemplars(
    State(shared): State<Shared>,
    RawQuery(query): RawQuery,
    asked: HeaderMap,
) -> Response {
    let query = parameters(query);
    let Some(family) = query.get("family") else { return bad(NO_FAMILY) };
    let latest = shared.feed.latest();
    let all = exemplars(&latest, family, &Selection::of(&query));
    json_answer(json_of(&json!({ "t": latest.unix_millis, "exemplars": all })), &asked)
}

fn json_of(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn json_answer(json: Vec<u8>, asked: &HeaderMap) -> Response {
    let kind = (header::CONTENT_TYPE, "application/json");
    if !assets::takes_gzip(asked) {
        return ([kind], json).into_response();
    }
    let headers = [kind, (header::CONTENT_ENCODING, "gzip"), (header::VARY, "accept-encoding")];
    (headers, assets::gzip(&json)).into_response()
}

fn bad(reason: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response()
}

/// The reason why a request for the past is refused.
pub const PAST_IS_BUSY: &str = "other pages are reading the past";

pub fn busy(reason: &str) -> Response {
    let retry = [(header::RETRY_AFTER, "2")];
    (StatusCode::SERVICE_UNAVAILABLE, retry, format!("{reason}; ask again\n")).into_response()
}
