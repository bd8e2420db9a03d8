//! The last minute before a process died, as a page of the agent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};

use super::agent::Agent;
use crate::page::{Feed, PAST_IS_BUSY, busy, parameters};
use crate::postmortem::{Postmortem, Record, Remains};
use talea_view::document::STYLE;

/// How much before the death.
const LAST: Duration = Duration::from_secs(60);

pub(super) type Shared = (Agent, Arc<Feed>);

/// Answers with a page, or JSON with `format=json`, of `region=NAME`, or of the region in which a process died
/// last.
pub(super) async fn postmortem(
    State((agent, feed)): State<Shared>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = parameters(query);
    let is_json = query.get("format").is_some_and(|format| format == "json");
    let region = query.get("region").cloned();
    let Some(turn) = feed.turn(client.ip()).await else { return busy(PAST_IS_BUSY) };
    // It reads an hour, and a region.
    let made = tokio::task::spawn_blocking(move || {
        let made = made(&agent, &feed, region, is_json);
        drop(turn);
        made
    });
    match made.await {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            (StatusCode::NOT_FOUND, "nothing was recorded of such a region\n").into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn made(agent: &Agent, feed: &Feed, region: Option<String>, is_json: bool) -> Option<Response> {
    let region = match region {
        Some(region) => region,
        None => feed.last_death().or_else(|| agent.names().into_iter().next())?,
    };
    let label = agent.label().unwrap_or_default();
    let record = Record::of(&feed.seconds(), &region, label, LAST)?;
    let look = agent.look(&region);
    let remains = look.and_then(|(source, look)| Remains::of(source, &look).ok());
    let known = Postmortem { record: Some(record), region: remains };
    if is_json {
        let kind = (header::CONTENT_TYPE, "application/json");
        return Some(([kind], known.json().ok()?).into_response());
    }
    let mut answer = Html(known.html()).into_response();
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy());
    Some(answer)
}

/// The page has its style within it and no script.
fn policy() -> HeaderValue {
    let style = BASE64_STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Extent, History};
    use crate::page::About;
    use crate::serve::Sources;

    #[test]
    fn a_postmortem_waits_while_the_past_is_read() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        // One thread, which does all work in turn.
        let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let second = Duration::from_secs(1);
            let extent = Extent { seconds: second, minutes: second, bytes: 1 << 20 };
            let feed = Feed::new(About::default(), History::new(extent));
            let agent = Agent::new(Sources::default(), Vec::new(), None).unwrap();
            let client = SocketAddr::from(([127, 0, 0, 1], 1));
            let turn = feed.turn(client.ip()).await.unwrap();
            let query = RawQuery(Some("region=shop".to_owned()));
            let asked = tokio::spawn(postmortem(
                State((agent, Arc::clone(&feed))),
                ConnectInfo(client),
                query,
            ));
            for _ in 0..3 {
                tokio::task::yield_now().await;
                tokio::task::spawn_blocking(|| ()).await.unwrap();
            }
            assert!(!asked.is_finished());
            drop(turn);
            assert_eq!(asked.await.unwrap().status(), StatusCode::NOT_FOUND);
        });
    }
}
