//! Meters an existing service on axum by one call.
//!
//! `cargo run --example axum_existing -- 3000 9464` serves on port 3000, and its metrics on
//! 9464.

use std::error::Error;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use talea::Registry;
use talea_http::{MetricsServer, axum::meter};
use tokio::net::TcpListener;

fn service() -> Router {
    let hello = async |Path(name): Path<String>| format!("Hello, {name}!\n");
    Router::new().route("/hello/{name}", get(hello))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = |n| std::env::args().nth(n).unwrap_or_default().parse().unwrap_or(0);
    let registry = Registry::new()?;
    let app = meter(service(), &registry)?;

    let metrics = MetricsServer::bind(([127, 0, 0, 1], port(2)).into(), &registry)?;
    let listener = TcpListener::bind(("127.0.0.1", port(1))).await?;
    println!("http://{}/hello/you", listener.local_addr()?);
    println!("http://{}/metrics", metrics.local_addr());
    Ok(axum::serve(listener, app).await?)
}
