//! A server on loopback, the requests to it, and whether all of them were recorded.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use talea::Registry;
use talea_http::{Convention, Opts};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tower::{ServiceExt, service_fn};

use crate::cases::bodies::{BoxBody, boxed};
use crate::cases::case::{Case, Expected, Protocol};
use crate::cases::door::{BoxService, Door};
use crate::cases::handlers::status;
use crate::cases::series::{MadeRequest, Series, add_expected, durations, in_flight, recorded};
use crate::cases::witness::{NAME, Record, Witness};
use crate::support::client::loopback;
use crate::support::wait::until;

/// The time limit outside of the meter. It counts from when the handler runs, and so from later
/// than the meter.
const TIME_LIMIT: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Default)]
pub(crate) struct Setup {
    /// Whether a service outside of the meter limits the time of requests.
    pub(crate) limited: bool,
    pub(crate) hosts: &'static [&'static str],
}

impl Setup {
    pub(crate) fn opts(self, convention: Convention) -> Opts {
        let opts = Opts::new().detailed().convention(convention).hosts(self.hosts);
        if self.limited { opts.timed_out_after(TIME_LIMIT) } else { opts }
    }
}

pub(crate) struct Server {
    pub(crate) door: &'static Door,
    pub(crate) convention: Convention,
    pub(crate) registry: Registry,
    pub(crate) witness: Arc<Witness>,
    service: Mutex<BoxService>,
    /// For each protocol.
    listeners: [TcpListener; 2],
    names: AtomicU64,
    requests: Mutex<Vec<(u64, Expected)>>,
}

impl Server {
    pub(crate) async fn start(door: &'static Door, convention: Convention, setup: Setup) -> Self {
        let registry = Registry::for_test().unwrap();
        let endpoints = setup.opts(convention).register(&registry).unwrap();
        let witness = Arc::default();
        let mut service = (door.service)(&endpoints, Arc::clone(&witness));
        if setup.limited {
            service = limited(service, Arc::clone(&witness));
        }
        let listen = async || TcpListener::bind(loopback()).await.unwrap();
        Self {
            door,
            convention,
            registry,
            witness,
            service: Mutex::new(service),
            listeners: [listen().await, listen().await],
            names: AtomicU64::new(0),
            requests: Mutex::default(),
        }
    }

    /// Connects, and serves a connection of the same protocol.
    pub(crate) async fn connect(&self, protocol: Protocol) -> TcpStream {
        let listener = &self.listeners[protocol as usize];
        let connects = TcpStream::connect(listener.local_addr().unwrap());
        let (stream, accepted) = tokio::join!(connects, listener.accept());
        let service = self.service.lock().unwrap().clone();
        tokio::spawn(connection(accepted.unwrap().0, protocol, service));
        let stream = stream.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// A number for a request that is made now.
    pub(crate) fn name(&self, case: &Case) -> u64 {
        let name = self.names.fetch_add(1, SeqCst);
        self.requests.lock().unwrap().push((name, case.expected));
        name
    }

    pub(crate) async fn wait_for(&self, name: u64, is: impl Fn(&Record) -> bool) {
        until(&format!("a request by {} {:?}", self.door.name, self.convention), || {
            self.witness.record(name).is_some_and(|record| is(&record))
        })
        .await;
    }

    pub(crate) fn assert_in_flight(&self) {
        let in_flight = in_flight(&self.registry.snapshot());
        assert!(in_flight >= 1.0, "{in_flight}, {} {:?}", self.door.name, self.convention);
    }

    /// Waits until no request is processed, and asserts that each is recorded as expected.
    pub(crate) async fn assert_recorded(&self, what: &str) {
        let (door, convention) = (self.door, self.convention);
        let what = format!("{what}, {}, {convention:?}", door.name);
        until(&format!("nothing is in flight: {what}"), || {
            self.witness.is_at_rest() && in_flight(&self.registry.snapshot()) == 0.0
        })
        .await;
        let snapshot = self.registry.snapshot();
        let requests = self.requests.lock().unwrap();
        assert_eq!(self.witness.calls(), requests.len() as u64, "{what}");
        let (to_head, to_end) = durations(convention, &snapshot);
        // Sums of floats depend on their order.
        assert!(to_head <= to_end + 1e-6, "{to_head} to the head, {to_end} to the end: {what}");
        let mut series = Series::new();
        for &(name, expected) in requests.iter() {
            let record = self.witness.record(name).unwrap();
            for (certain, bytes) in
                [(expected.request, record.request()), (expected.response, record.response())]
            {
                assert_eq!(certain.unwrap_or(bytes), bytes, "{expected:?}: {what}");
            }
            assert!(record.has_unwound() || !expected.unwinds(), "{expected:?}: {what}");
            let made = MadeRequest { door, expected, record: &record };
            add_expected(&mut series, convention, &made);
        }
        let differs = differences(&series, &recorded(&snapshot));
        assert!(differs.is_empty(), "{what}:\n{}", differs.join("\n"));
    }
}

/// Gives up requests after a time limit, as a proxy outside of the meter would.
fn limited(service: BoxService, witness: Arc<Witness>) -> BoxService {
    service_fn(move |request: Request<BoxBody>| {
        let (service, witness) = (service.clone(), Arc::clone(&witness));
        let name = request.headers()[NAME].to_str().unwrap().parse().unwrap();
        async move {
            let is_running = || witness.record(name).is_some_and(|record| record.is_running());
            let limit = async {
                while !is_running() {
                    sleep(Duration::from_millis(1)).await;
                }
                sleep(TIME_LIMIT).await;
            };
            tokio::select! {
                response = service.oneshot(request) => response,
                () = limit => Ok(status(StatusCode::GATEWAY_TIMEOUT)),
            }
        }
    })
    .boxed_clone()
}

/// Serves a connection. Errors and panics are part of some cases.
async fn connection(stream: TcpStream, protocol: Protocol, service: BoxService) {
    stream.set_nodelay(true).unwrap();
    let service = service.map_request(|request: Request<Incoming>| request.map(boxed));
    let (io, service) = (TokioIo::new(stream), TowerToHyperService::new(service));
    let _ = match protocol {
        Protocol::Http1 => {
            http1::Builder::new().serve_connection(io, service).with_upgrades().await
        }
        Protocol::Http2 => {
            http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
        }
    };
}

fn differences(expected: &Series, found: &Series) -> Vec<String> {
    let keys = expected.keys().chain(found.keys().filter(|key| !expected.contains_key(*key)));
    let differing = keys.filter(|key| expected.get(*key) != found.get(*key));
    differing
        .map(|key: &String| format!("{key}: {:?}, not {:?}", found.get(key), expected.get(key)))
        .collect()
}
