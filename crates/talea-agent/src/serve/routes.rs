//! The agent's routes.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use talea_http::Exposition;
use talea_http::turns::{Client, Turns};

use super::agent::Agent;
use super::{postmortem, scrape_outcome};
use crate::page::{self, Feed, busy};
use crate::web::{Hosts, check_host};

/// How many requests for `/readyz` wait for a turn. Each looks for regions.
const WAITING: usize = 64;

/// `/metrics`, `/healthz` while it runs, `/readyz` where all that was named is served (of a
/// directory a region, if it has any), and the live page. At most `at_once` scrapes are answered at
/// the same time.
pub fn routes(agent: &Agent, at_once: usize, feed: &Arc<Feed>, hosts: Hosts) -> Router {
    let metrics = Exposition::of(agent).at_once(at_once);
    let record = from_fn_with_state(agent.clone(), scrape_outcome::record_outcome);
    let postmortem = Router::new()
        .route("/postmortem", get(postmortem::postmortem))
        .with_state((agent.clone(), feed.clone()));
    Router::new()
        .route_service("/metrics", metrics)
        .route_layer(record)
        .route("/healthz", get(|| async { plain(StatusCode::OK, "ok\n".to_owned()) }))
        .route("/readyz", get(readyz))
        .with_state((agent.clone(), Turns::new(1, WAITING)))
        .merge(page::routes(feed.clone()))
        .merge(postmortem)
        .layer(from_fn_with_state(hosts, check_host))
}

async fn readyz(
    State((agent, turns)): State<(Agent, Turns)>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
) -> Response {
    let turn = turns.turn(Client::new(Some(client.ip()), "")).await;
    let Ok(turn) = turn else { return busy("too many clients ask") };
    // It opens files.
    let readiness = tokio::task::spawn_blocking(move || {
        let readiness = agent.readiness();
        drop(turn);
        readiness
    });
    match readiness.await {
        Ok((is_ready, refusals)) => {
            let (status, first) = match is_ready {
                true => (StatusCode::OK, "ready\n"),
                false => (StatusCode::SERVICE_UNAVAILABLE, ""),
            };
            let lines = refusals.iter().map(|one| format!("{one}\n"));
            plain(status, lines.fold(first.to_owned(), |all, line| all + &line))
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, String::new()),
    }
}

fn plain(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
