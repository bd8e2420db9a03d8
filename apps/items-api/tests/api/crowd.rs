//! Many clients at once.

use crate::client::{Connection, json};
use crate::postgres::Postgres;
use crate::service::{Service, program};
use serde_json::Value;
use std::process::{Command, Stdio};
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
        let client = |_| async move { client(Connection::open(items).await).await };
        (0..CLIENTS).map(client).collect::<JoinSet<_>>().join_all().await.concat()
    });
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), CLIENTS * ROUNDS, "each item has an id of its own");
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[]}"#);
}

/// Creates, lists, shows, changes and deletes an item, a few times.
async fn client(mut connection: Connection) -> Vec<i64> {
    let mut ids = Vec::new();
    for _ in 0..ROUNDS {
        let created = ask(&mut connection, "POST /api/items", 201).await;
        let id = created["data"]["id"].as_i64().expect("an id");
        let list = ask(&mut connection, "GET /api/items", 200).await;
        let list = list["data"].as_array().expect("a list");
        assert!(list.contains(&created["data"]), "what was created is in the list");
        let shown = ask(&mut connection, &format!("GET /api/items/{id}"), 200).await;
        assert_eq!(shown, created);
        ask(&mut connection, &format!("PUT /api/items/{id}"), 200).await;
        ask(&mut connection, &format!("DELETE /api/items/{id}"), 204).await;
        ids.push(id);
    }
    ids
}

async fn ask(connection: &mut Connection, line: &str, status: u16) -> Value {
    let answer = connection.send(line, json(r#"{"item":{"value":true}}"#)).await;
    assert_eq!(answer.status, status, "{line}: {answer:?}");
    serde_json::from_str(&answer.body).unwrap_or(Value::Null)
}
