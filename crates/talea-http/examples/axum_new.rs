//! Meters a new service on axum: its declaration makes the router and the meters.
//!
//! `cargo run --example axum_new -- 3000 9464` serves on port 3000, and its metrics on 9464.

use std::error::Error;

use axum::extract::Path;
use talea::Registry;
use talea_http::MetricsServer;
use talea_http::axum::{Router, get};
use tokio::net::TcpListener;

async fn hello(Path(name): Path<String>) -> String {
    format!("Hello, {name}!\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = |n| std::env::args().nth(n).unwrap_or_default().parse().unwrap_or(0);
    let registry = Registry::new()?;
    let app = Router::new().route("/hello/{name}", get(hello)).metered(&registry)?;

    let metrics = MetricsServer::bind(([127, 0, 0, 1], port(2)).into(), &registry)?;
    let listener = TcpListener::bind(("127.0.0.1", port(1))).await?;
    println!("http://{}/hello/you", listener.local_addr()?);
    println!("http://{}/metrics", metrics.local_addr());
    Ok(axum::serve(listener, app).await?)
}
