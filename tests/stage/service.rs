//! Services that are scraped while they are under load: the items API, and one that does
//! all that a service should not.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::ACCEPT;
use axum::routing::get;
use hyper::body::{Bytes, Frame};
use items_api::arguments::Arguments;
use items_api::metering::Metering;
use talea::{Counter, DynamicLabels, Family, Opts, Registry};
use talea_http::MetricsServer;
use talea_http::axum::Layer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::LONGEST;
use crate::prometheus::free_address;

/// As if the client knew the text format alone.
pub async fn without_accept(mut request: Request) -> Request {
    request.headers_mut().remove(ACCEPT);
    request
}

/// Later than the objective of the rules allows.
const LATE: Duration = Duration::from_millis(300);

/// Both services, as long as it lives.
#[derive(Debug)]
pub struct Service {
    pub items: SocketAddr,
    pub items_metrics: SocketAddr,
    /// Where `/fails`, `/panics`, `/late`, `/streams` and `/hangs` are.
    pub faults: SocketAddr,
    faults_metrics: MetricsServer,
    _running: JoinSet<()>,
}

impl Service {
    /// Starts them and waits until they answer.
    pub async fn start() -> Self {
        let mut running = JoinSet::new();
        let (items, items_metrics) = (free_address(), free_address());
        let arguments = Arguments {
            listen: items,
            metrics_listen: items_metrics,
            database_url: None,
            pool: 10,
            metrics: Metering::On,
            study: false,
        };
        running.spawn(async {
            items_api::service::run(arguments).await.expect("the items API runs");
        });

        let registry = Registry::new().expect("a registry");
        let app = faults(&registry).expect("they are metered");
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let faults_metrics = MetricsServer::bind(loopback, &registry).expect("a free port");
        let listener = TcpListener::bind(loopback).await.expect("a free port");
        let faults = listener.local_addr().expect("a listener has an address");
        running.spawn(async { axum::serve(listener, app).await.expect("it serves") });

        let began = Instant::now();
        for address in [items, items_metrics] {
            while TcpStream::connect(address).await.is_err() {
                assert!(began.elapsed() < LONGEST, "the items API does not start");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Self { items, items_metrics, faults, faults_metrics, _running: running }
    }

    pub fn faults_metrics(&self) -> SocketAddr {
        self.faults_metrics.local_addr()
    }
}

/// A router that existed, with a layer; and a family that has no room.
fn faults(registry: &Registry) -> Result<Router, talea::Error> {
    let visits: Family<DynamicLabels, Counter> =
        registry.family(Opts::new("visits", "By who came.").limit(1), &["who"])?;
    let count = AtomicUsize::new(0);
    let fail = move || {
        let who = count.fetch_add(1, Ordering::Relaxed).to_string();
        visits.with_values(&[&who]).inc();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let fail = Arc::new(fail);
    let routes = Router::new()
        .route("/fails", get(async move || fail()))
        // As a panic does, but for what it prints.
        .route("/panics", get(async || -> () { std::panic::resume_unwind(Box::new("a bug")) }))
        .route(
            "/late",
            get(async || {
                tokio::time::sleep(LATE).await;
                StatusCode::GATEWAY_TIMEOUT
            }),
        )
        .route("/streams", get(async || Body::new(Endless)))
        .route("/hangs", get(async || pending::<()>().await));
    let all = ["/fails", "/panics", "/late", "/streams", "/hangs"].map(|route| ("GET", route));
    Ok(routes.layer(Layer::new(registry)?.routes(&all).expect("routes")))
}

/// A body whose end nobody waits for.
struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
