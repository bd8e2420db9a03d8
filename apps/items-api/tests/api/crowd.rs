//! Many clients at once.

use crate::postgres::Postgres;
use crate::service::{Service, program};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::process::{Command, Stdio};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CLIENTS: usize = 400;
const ROUNDS: usize = 3;

#[test]
fn no_client_of_a_crowd_is_refused_or_loses_a_write() {
    serves_a_crowd(program());
}

#[test]
fn nor_is_one_where_postgres_has_the_items() {
    let mut command = program();
    command.env("DATABASE_URL", Postgres::shared().new_database());
    serves_a_crowd(command);
}

fn serves_a_crowd(mut command: Command) {
    items_api::descriptors::raise_limit();
    command.stderr(Stdio::inherit());
    let service = Service::run(command);
    let items = service.items;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut ids = runtime.block_on(async {
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(async move {
                let stream = TcpStream::connect(items).await.expect("a connection");
                let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
                tokio::spawn(connection);
                client(sender).await
            });
        }
        clients.join_all().await.concat()
    });
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), CLIENTS * ROUNDS, "each item has an id of its own");
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[]}"#);
}

/// Creates, lists, shows, changes and deletes an item, a few times.
async fn client(mut sender: SendRequest<Full<Bytes>>) -> Vec<i64> {
    let mut ids = Vec::new();
    for _ in 0..ROUNDS {
        let created = ask(&mut sender, Method::POST, "/api/items", 201).await;
        let id = created["data"]["id"].as_i64().expect("an id");
        let list = ask(&mut sender, Method::GET, "/api/items", 200).await;
        let list = list["data"].as_array().expect("a list");
        assert!(list.contains(&created["data"]), "what was created is in the list");
        let path = format!("/api/items/{id}");
        assert_eq!(ask(&mut sender, Method::GET, &path, 200).await, created);
        ask(&mut sender, Method::PUT, &path, 200).await;
        ask(&mut sender, Method::DELETE, &path, 204).await;
        ids.push(id);
    }
    ids
}

async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    status: u16,
) -> Value {
    let body = match method {
        Method::POST | Method::PUT => r#"{"item":{"value":true}}"#,
        _ => "",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "items")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    sender.ready().await.expect("a connection that lives");
    let answer = sender.send_request(request).await.expect("an answer");
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("the whole body").to_bytes();
    assert_eq!(head.status.as_u16(), status, "{path}: {body:?}");
    serde_json::from_slice(&body).unwrap_or(Value::Null)
}
