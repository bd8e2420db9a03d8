//! The service under load: `GET /hello/{name}`, metered in the way that is named.
//!
//!     talea-hello VARIANT --threads N
//!
//! prints its address, serves until its standard input ends, and then prints how many
//! requests it has counted, if it counts them.

mod axum_prometheus;
mod metered;
mod plain;
mod prometheus_client;
mod quantiles;

use std::net::Ipv4Addr;

use anyhow::Result;
use axum::extract::Path;
use axum::serve::ListenerExt;
use clap::{Parser, ValueEnum};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::runtime;

#[derive(Debug, Parser)]
struct Arguments {
    variant: Variant,
    /// Threads that answer requests
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
}

/// How requests are metered.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Variant {
    Plain,
    Metered,
    Quantiles,
    PrometheusClient,
    AxumPrometheus,
}

/// A router, and what its metrics say about the number of requests.
struct Service {
    app: axum::Router,
    counted: Box<dyn Fn() -> Option<u64>>,
}

const ROUTE: &str = "/hello/{name}";

async fn hello(Path(name): Path<String>) -> String {
    format!("Hello, {name}!")
}

fn main() -> Result<()> {
    let Arguments { variant, threads } = Arguments::parse();
    // The runtime that `#[tokio::main]` makes, so one as services have.
    runtime::Builder::new_multi_thread()
        .worker_threads(threads.into())
        .enable_all()
        .build()?
        .block_on(serve(variant))
}

async fn serve(variant: Variant) -> Result<()> {
    let Service { app, counted } = match variant {
        Variant::Plain => plain::service(),
        Variant::Metered => metered::service()?,
        Variant::Quantiles => quantiles::service()?,
        Variant::PrometheusClient => prometheus_client::service(),
        Variant::AxumPrometheus => axum_prometheus::service(),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // Only how soon an answer leaves depends on it.
        let _ = stream.set_nodelay(true);
    });
    tokio::select! {
        served = async { axum::serve(listener, app).await } => served?,
        () = input_ends() => {}
    }
    if let Some(count) = counted() {
        println!("{count}");
    }
    Ok(())
}

/// The process that started this service has closed its standard input, or died.
async fn input_ends() {
    let mut ignored = Vec::new();
    let _ = tokio::io::stdin().read_to_end(&mut ignored).await;
}
