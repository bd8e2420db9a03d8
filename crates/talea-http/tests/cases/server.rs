//! A server on loopback, what was asked of it, and whether all of that is told.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use talea::Registry;
use talea_http::{Convention, Opts};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tower::{ServiceExt, service_fn};

use crate::app::status;
use crate::case::{Case, Protocol, Told};
use crate::series::{Made, Series, durations, ended, in_flight, shown, tell};
use crate::way::{Serves, Way};
use crate::witness::{Record, Witness};

/// For how long anything may take on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// When a service is given up outside of the meter, and what the meter is told of that.
/// It begins to count later than who gives up, on a busy machine by many milliseconds.
const GIVEN_UP: Duration = Duration::from_millis(500);
const TIMED_OUT_AFTER: Duration = Duration::from_millis(10);

/// What is special of a server.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup {
    /// Whether its time is limited outside of the meter.
    pub(crate) limited: bool,
    /// The hosts that are listed.
    pub(crate) hosts: &'static [&'static str],
}

impl Setup {
    pub(crate) fn opts(self, convention: Convention) -> Opts {
        let opts = Opts::new().convention(convention).hosts(self.hosts);
        if self.limited { opts.timed_out_after(TIMED_OUT_AFTER) } else { opts }
    }
}

pub(crate) struct Server {
    pub(crate) way: Way,
    pub(crate) convention: Convention,
    pub(crate) registry: Registry,
    pub(crate) witness: Arc<Witness>,
    http1: SocketAddr,
    http2: SocketAddr,
    names: AtomicU64,
    asked: Mutex<Vec<(u64, Told)>>,
    accepting: [AbortHandle; 2],
}

impl Server {
    pub(crate) async fn start(way: Way, convention: Convention, setup: Setup) -> Self {
        let registry = Registry::for_test().unwrap();
        let endpoints = setup.opts(convention).register(&registry).unwrap();
        let witness = Arc::default();
        let mut service: Serves<Incoming> = way.service(&endpoints, Arc::clone(&witness));
        if setup.limited {
            service = given_up(service);
        }
        let (listener1, listener2) = (listen().await, listen().await);
        Self {
            way,
            convention,
            registry,
            witness,
            http1: listener1.local_addr().unwrap(),
            http2: listener2.local_addr().unwrap(),
            names: AtomicU64::new(0),
            asked: Mutex::default(),
            accepting: [
                tokio::spawn(accept(listener1, Protocol::Http1, service.clone())).abort_handle(),
                tokio::spawn(accept(listener2, Protocol::Http2, service)).abort_handle(),
            ],
        }
    }

    pub(crate) async fn connect(&self, protocol: Protocol) -> TcpStream {
        let address = match protocol {
            Protocol::Http1 => self.http1,
            Protocol::Http2 => self.http2,
        };
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// A name for a request that is made now.
    pub(crate) fn name(&self, case: &Case) -> u64 {
        let name = self.names.fetch_add(1, SeqCst);
        self.asked.lock().unwrap().push((name, case.told()));
        name
    }

    /// Waits until something is seen of a request.
    pub(crate) async fn sees(&self, name: u64, what: impl Fn(&Record) -> bool) -> Arc<Record> {
        let seen = async || self.witness.record(name).filter(|record| what(record));
        until(&format!("a request by {:?} {:?}", self.way, self.convention), seen).await
    }

    /// Sees that a request is in flight while it is.
    pub(crate) fn has_some_in_flight(&self) {
        let in_flight = in_flight(&self.registry.snapshot());
        assert!(in_flight >= 1.0, "{in_flight}, {:?} {:?}", self.way, self.convention);
    }

    /// Waits until nobody works on a request, and sees that each is told as it went.
    pub(crate) async fn settles(&self, what: &str) {
        let (way, convention) = (self.way, self.convention);
        let at_rest = async || {
            let is_over = self.witness.is_at_rest() && in_flight(&self.registry.snapshot()) == 0.0;
            is_over.then_some(())
        };
        until(&format!("nothing is in flight: {what}, {way:?}, {convention:?}"), at_rest).await;
        let snapshot = self.registry.snapshot();
        let asked = self.asked.lock().unwrap();
        assert_eq!(self.witness.calls(), asked.len() as u64, "{what}, {way:?}, {convention:?}");
        for (name, ended) in ended(convention, &snapshot, &[]) {
            assert_eq!(ended, asked.len() as f64, "{name}: {what}, {way:?}, {convention:?}");
        }
        let (to_head, to_end) = durations(convention, &snapshot);
        // Sums of floats depend on their order.
        assert!(to_head <= to_end + 1e-6, "{to_head} to the head, {to_end} to the end: {what}");
        let mut expected = Series::new();
        for &(name, told) in asked.iter() {
            let record = self.witness.record(name).unwrap();
            for (sure, seen) in
                [(told.request, record.request()), (told.response, record.response())]
            {
                assert_eq!(sure.unwrap_or(seen), seen, "{told:?}: {what}, {way:?}");
            }
            tell(&mut expected, convention, &Made { way, told, record: &record });
        }
        let differs = differences(&expected, &shown(&snapshot));
        assert!(differs.is_empty(), "{what}, {way:?}, {convention:?}:\n{}", differs.join("\n"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.iter().for_each(AbortHandle::abort);
    }
}

/// Gives up what takes too long, as a service outside of the meter would.
fn given_up(service: Serves<Incoming>) -> Serves<Incoming> {
    service_fn(move |request| {
        let service = service.clone();
        async move {
            let answer = tokio::time::timeout(GIVEN_UP, service.oneshot(request)).await;
            answer.unwrap_or_else(|_| Ok(status(StatusCode::GATEWAY_TIMEOUT)))
        }
    })
    .boxed_clone()
}

async fn listen() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.unwrap()
}

async fn accept(listener: TcpListener, protocol: Protocol, service: Serves<Incoming>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(connection(stream, protocol, service.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection. An error is the client's, or the case's own affair; so is a panic.
fn connection(
    stream: TcpStream,
    protocol: Protocol,
    service: Serves<Incoming>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    stream.set_nodelay(true).unwrap();
    let (io, service) = (TokioIo::new(stream), TowerToHyperService::new(service));
    match protocol {
        Protocol::Http1 => {
            let serving = http1::Builder::new().serve_connection(io, service).with_upgrades();
            Box::pin(async move { drop(serving.await) })
        }
        Protocol::Http2 => {
            let serving = http2::Builder::new(TokioExecutor::new()).serve_connection(io, service);
            Box::pin(async move { drop(serving.await) })
        }
    }
}

/// Polls until there is something.
pub(crate) async fn until<T, F>(what: &str, is_there: impl Fn() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let start = Instant::now();
    loop {
        if let Some(found) = is_there().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for: {what}");
        sleep(Duration::from_millis(1)).await;
    }
}

fn differences(expected: &Series, shown: &Series) -> Vec<String> {
    let keys = expected.keys().chain(shown.keys().filter(|key| !expected.contains_key(*key)));
    let differing = keys.filter(|key| expected.get(*key) != shown.get(*key));
    let line = |key: &String| format!("{key}: {:?}, not {:?}", shown.get(key), expected.get(key));
    differing.map(line).collect()
}
