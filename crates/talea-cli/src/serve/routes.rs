//! The agent's routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use talea_http::Exposition;

use super::agent::Agent;
use super::{postmortem, scrape_outcome};
use crate::page::{self, Feed};

/// `/metrics`, `/healthz` while it runs, `/readyz` where all that was named is served, and the
/// live page. At most `at_once` scrapes are answered at the same time.
pub(super) fn routes(agent: &Agent, at_once: usize, feed: &Arc<Feed>) -> Router {
    let metrics = Exposition::of(agent).at_once(at_once);
    let record =
        axum::middleware::from_fn_with_state(agent.clone(), scrape_outcome::record_outcome);
    let postmortem = Router::new()
        .route("/postmortem", get(postmortem::postmortem))
        .with_state((agent.clone(), feed.clone()));
    Router::new()
        .route_service("/metrics", metrics)
        .route_layer(record)
        .route("/healthz", get(|| async { plain(StatusCode::OK, "ok\n".to_owned()) }))
        .route("/readyz", get(readyz))
        .with_state(agent.clone())
        .merge(page::routes(feed.clone()))
        .merge(postmortem)
}

async fn readyz(State(agent): State<Agent>) -> Response {
    // It opens files.
    let missing = tokio::task::spawn_blocking(move || agent.missing()).await;
    match missing {
        Ok(missing) if missing.is_empty() => plain(StatusCode::OK, "ready\n".to_owned()),
        Ok(missing) => {
            let lines = missing.iter().map(|one| format!("{one}\n")).collect();
            plain(StatusCode::SERVICE_UNAVAILABLE, lines)
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, String::new()),
    }
}

fn plain(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
