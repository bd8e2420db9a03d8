//! Meters a service on hyper: a function finds the endpoint of a request.
//!
//! `cargo run --example hyper -- 3000 9464` serves on port 3000, and its metrics on 9464.

use std::convert::Infallible;
use std::error::Error;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use talea::Registry;
use talea_http::{Endpoints, MetricsServer, RequestBody};
use tokio::net::TcpListener;
use tower::{Layer, service_fn};

async fn respond(request: Request<RequestBody<Incoming>>) -> Result<Response<String>, Infallible> {
    let mut response = match request.uri().path().strip_prefix("/hello/") {
        Some(name) => Response::new(format!("Hello, {name}!\n")),
        None => Response::new(String::new()),
    };
    if response.body().is_empty() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = |n| std::env::args().nth(n).unwrap_or_default().parse().unwrap_or(0);
    let registry = Registry::new()?;
    let endpoints = Endpoints::new(&registry)?;
    let hello = endpoints.declare(&Method::GET, "/hello/{name}");
    let unmatched = endpoints.unmatched();
    let metered = endpoints.layer(move |request: &Request<Incoming>| {
        let is_hello = request.uri().path().starts_with("/hello/");
        if is_hello && request.method() == Method::GET { hello } else { unmatched }
    });
    let service = metered.layer(service_fn(respond));

    let metrics = MetricsServer::bind(([127, 0, 0, 1], port(2)).into(), &registry)?;
    let listener = TcpListener::bind(("127.0.0.1", port(1))).await?;
    println!("http://{}/hello/you", listener.local_addr()?);
    println!("http://{}/metrics", metrics.local_addr());
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service);
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
