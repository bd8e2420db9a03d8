//! The service under load: `GET /hello/{name}`, in a variant of metering.
//!
//!     talea-hello VARIANT [--listen ADDRESS] [--metrics-listen ADDRESS] [--threads N]
//!
//! prints its address, serves until its standard input ends, and then prints the number of
//! requests that it has counted, if it counts them.

mod actix;
mod axum_prometheus;
mod metered;
mod page;
mod prometheus_client;
mod service;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use clap::{Parser, ValueEnum};
use talea::Bucketing;
use talea_http::Opts;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::runtime;

use crate::service::{Framework, ROUTE, Service, hello};

#[derive(Debug, Parser)]
struct Arguments {
    variant: Variant,
    /// The address for requests; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:4320")]
    listen: SocketAddr,
    /// The address of the page that a study reads
    #[arg(long, default_value = "127.0.0.1:4321")]
    metrics_listen: SocketAddr,
    /// Threads that answer requests
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Variant {
    Plain,
    Metered,
    Quantiles,
    PrometheusClient,
    AxumPrometheus,
    Actix,
    ActixMetered,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // The runtime of `#[tokio::main]`, as services have it.
    runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads.into())
        .enable_all()
        .build()?
        .block_on(serve(&arguments))
}

async fn serve(arguments: &Arguments) -> Result<()> {
    let Service { framework, counted } = match arguments.variant {
        Variant::Plain => {
            let app = Router::new().route(ROUTE, get(hello));
            Service { framework: Framework::Axum(app), counted: Arc::new(|| None) }
        }
        Variant::Metered => metered::service(Opts::new().bucketing(Bucketing::Classic))?,
        // Of the last ten minutes: the registry keeps their windows on a thread of its own.
        Variant::Quantiles => {
            metered::service(Opts::new().bucketing(Bucketing::Dual).quantiles(&[0.5, 0.9, 0.99]))?
        }
        Variant::PrometheusClient => prometheus_client::service(),
        Variant::AxumPrometheus => axum_prometheus::service(),
        Variant::Actix => actix::plain(),
        Variant::ActixMetered => actix::metered()?,
    };
    let _page = page::serve(arguments.metrics_listen, &counted)?;
    let listener = TcpListener::bind(arguments.listen).await?;
    println!("{}", listener.local_addr()?);
    match framework {
        Framework::Axum(app) => {
            let listener = listener.tap_io(|stream| {
                // If this fails, an answer may only leave later.
                let _ = stream.set_nodelay(true);
            });
            tokio::select! {
                served = async { axum::serve(listener, app).await } => served?,
                () = input_ends() => {}
            }
        }
        Framework::Actix(meter) => {
            let (listener, threads) = (listener.into_std()?, arguments.threads);
            // It has a runtime of its own, which ends with the process.
            thread::spawn(move || actix::serve(listener, meter, threads).unwrap());
            input_ends().await;
        }
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
