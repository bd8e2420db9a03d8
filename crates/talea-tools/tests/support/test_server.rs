//! A server in this process with a small application, and raw clients.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{any, get};
use h2::client::SendRequest;
use hyper::body::Frame;
use talea_agent::web::Web;
use talea_http::server::{Counts, Limits, Reason, Server};
use talea_load::stop::Stop;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{LONGEST, http2_client};

/// A limit that no test meets.
pub(crate) const LONG: Duration = Duration::from_secs(3600);
/// A good request, after which the connection stays.
pub(crate) const HELLO: &str = "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    /// Handlers of `/hangs` that run.
    hanging: Arc<AtomicUsize>,
    pub(crate) serves: JoinHandle<()>,
}

/// Time that passes only as fast as this thread runs, for as long as it is kept: a millisecond for each
/// turn that all tasks had. So a machine that is busy makes no client late. It is for tests on one
/// thread.
pub(crate) struct OwnTime {
    /// Time would jump to the next timer if nothing could run; this task can, until it is dropped.
    _busy: std::sync::mpsc::Sender<()>,
    clock: JoinHandle<()>,
}

impl OwnTime {
    pub(crate) fn begin() -> Self {
        tokio::time::pause();
        let (busy, ends) = std::sync::mpsc::channel();
        tokio::task::spawn_blocking(move || ends.recv());
        let clock = tokio::spawn(async {
            loop {
                // The runtime looks for input each 61 turns.
                for _ in 0..128 {
                    tokio::task::yield_now().await;
                }
                std::thread::sleep(Duration::from_micros(100));
                tokio::time::advance(Duration::from_millis(1)).await;
            }
        });
        Self { _busy: busy, clock }
    }
}

impl Drop for OwnTime {
    fn drop(&mut self) {
        self.clock.abort();
    }
}

/// Limits that no test meets.
pub(crate) fn wide() -> Limits {
    Limits { connections: 2000, header_time: LONG, idle_time: LONG, patience: LONG }
}

impl TestServer {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_with(limits, Stop::never(), None).await
    }

    pub(crate) async fn start_with(limits: Limits, mut stop: Stop, web: Option<&Path>) -> Self {
        let web = Arc::new(web.map_or_else(Web::nothing, |web| Web::open(web).unwrap()));
        let server =
            Server::bind(std::net::SocketAddr::from(([127, 0, 0, 1], 0)), limits, web).unwrap();
        let (address, counts) = (server.local_addr(), server.counts());
        let hanging = Arc::new(AtomicUsize::new(0));
        let stopped = async move { stop.requested().await };
        let serves = tokio::spawn(server.serve(app(&hanging), stopped));
        Self { address, counts, hanging, serves }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// One that is accepted for sure.
    pub(crate) async fn connect_seen(&self) -> Client {
        let before = self.counts.accepted();
        let client = self.connect().await;
        self.until("it is accepted", |server| server.counts.accepted() > before).await;
        client
    }

    /// A client that has sent something.
    pub(crate) async fn says(&self, text: &str) -> Client {
        let mut client = self.connect().await;
        client.say(text).await;
        client
    }

    /// Asks over a connection of its own, and returns the whole answer.
    pub(crate) async fn hello(&self) -> String {
        let mut client =
            self.says("GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        client.rest().await
    }

    /// A client of HTTP/2, whose connection goes on by itself.
    pub(crate) async fn http2(&self, window: u32) -> SendRequest<Bytes> {
        http2_client::connect(self.address, window).await.unwrap().0
    }

    pub(crate) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is(self) {
            assert!(began.elapsed() < LONGEST, "waited for: {what}; {:?}", self.counts);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until so many were ended for a reason, and none for another.
    pub(crate) async fn ended(&self, reason: Reason, times: u64) {
        let what = format!("{times} ended as {}", reason.name());
        self.until(&what, |server| server.counts.closed(reason) >= times).await;
        self.none_ended_but(reason);
        assert_eq!(self.counts.closed(reason), times, "{:?}", self.counts);
    }

    pub(crate) fn none_ended_but(&self, reason: Reason) {
        for other in Reason::ALL.into_iter().filter(|other| *other != reason) {
            assert_eq!(self.counts.closed(other), 0, "{other:?}: {:?}", self.counts);
        }
    }

    pub(crate) fn none_ended(&self) {
        for reason in Reason::ALL {
            assert_eq!(self.counts.closed(reason), 0, "{:?}", self.counts);
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.serves.abort();
    }
}

/// A client that speaks for itself.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn say(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.unwrap();
    }

    /// Whether it could still be said.
    pub(crate) async fn tries(&mut self, text: impl AsRef<[u8]>) -> bool {
        self.0.write_all(text.as_ref()).await.is_ok()
    }

    /// An answer to [`HELLO`], after which the connection stays.
    pub(crate) async fn hears_hello(&mut self) {
        let mut heard = Vec::new();
        let hears = async {
            while !heard.ends_with(b"hello\n") {
                assert_ne!(self.0.read_buf(&mut heard).await.unwrap(), 0, "it ended");
            }
        };
        tokio::time::timeout(LONGEST, hears).await.expect("it says hello");
        assert!(heard.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }

    /// All that comes until the connection ends, one way or another.
    pub(crate) async fn rest(&mut self) -> String {
        let mut heard = Vec::new();
        let hears = async { while matches!(self.0.read_buf(&mut heard).await, Ok(1..)) {} };
        tokio::time::timeout(LONGEST, hears).await.expect("it ends");
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Whether it is still connected, as far as it can tell.
    pub(crate) async fn is_there(&mut self) -> bool {
        let read = tokio::time::timeout(Duration::from_millis(20), self.0.read_u8()).await;
        read.is_err()
    }
}

/// Memory of a process, in bytes, by the name that `/proc` has for it.
pub(crate) fn process_memory(pid: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn app(hanging: &Arc<AtomicUsize>) -> Router {
    let hanging = hanging.clone();
    let hangs = move || {
        let running = Running::count(&hanging);
        async move {
            let _running = running;
            std::future::pending::<()>().await;
        }
    };
    Router::new()
        .route("/hello", any(|| async { "hello\n" }))
        .route("/piece", get(|| async { vec![b'x'; 64 << 10] }))
        .route("/endless", get(|| async { Body::new(Endless) }))
        .route("/hangs", get(hangs))
}

struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::SeqCst);
        Self(all.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // A piece of its own each time, as it would be for a page.
        Poll::Ready(Some(Ok(Frame::data(vec![b'x'; 16 << 10].into()))))
    }
}
