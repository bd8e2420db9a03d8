//! Large scrapes: how much memory they take, and for how long. In a process of its own, one test at
//! a time, since they measure the memory of the process.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use flate2::write::GzDecoder;
use http_body_util::BodyExt;
use peak_alloc::PeakAlloc;
use talea::{Escaping, Format, Registry};
use talea_http::{Exposition, MetricsServer};
use tokio::sync::{Mutex, MutexGuard};

use client::{get, loopback, open, serve};
use orders::orders;
use wait::{LONGEST, until};

#[path = "integration/support/client.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod client;
#[path = "integration/support/orders.rs"]
mod orders;
#[path = "integration/support/wait.rs"]
mod wait;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::const_new(());

const SERIES: u64 = if cfg!(debug_assertions) { 300_000 } else { 1_000_000 };
const MIB: usize = 1 << 20;
/// The memory that a scrape may use beside its snapshot: the pieces that the server and the client
/// in this process hold, and the buffers of gzip.
const BESIDE: usize = 3 * MIB;
const PATIENCE: Duration = Duration::from_secs(1);
/// So long that a test does not wait for it.
const FOREVER: Duration = Duration::from_secs(3600);

struct Large {
    address: SocketAddr,
    _server: Option<MetricsServer>,
    _alone: MutexGuard<'static, ()>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| orders(SERIES));

/// A server with many series, which was scraped once.
async fn large(at_once: usize, patience: Duration) -> Large {
    let alone = ALONE.lock().await;
    let exposition = Exposition::new(&REGISTRY).at_once(at_once).patience(patience);
    let server = MetricsServer::builder(exposition).bind(loopback()).unwrap();
    let large = Large { address: server.local_addr(), _server: Some(server), _alone: alone };
    large.read(&[]).await;
    large
}

impl Large {
    /// Scrapes, and returns the number of bytes before compression.
    async fn read(&self, headers: &[(&str, &str)]) -> usize {
        let mut response = open(self.address, Method::GET, "/metrics", headers).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(!response.headers().contains_key("content-length"));
        let zipped = response.headers().contains_key("content-encoding");
        let mut unzipped = GzDecoder::new(Count(0));
        while let Some(frame) = response.body_mut().frame().await {
            let data = frame.unwrap().into_data().unwrap();
            match zipped {
                true => unzipped.write_all(&data).unwrap(),
                false => unzipped.get_mut().0 += data.len(),
            }
        }
        if zipped {
            unzipped.try_finish().unwrap();
        }
        unzipped.get_ref().0
    }

    fn stall(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut begun = [0; 15];
        stream.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200 OK");
        stream
    }

    /// Begins so many scrapes that all turns are taken, and stops reading. If the machine is so
    /// slow that the first are given up meanwhile, it begins again.
    async fn fill(&self, turns: usize) -> Vec<TcpStream> {
        loop {
            let stalled = (0..turns).map(|_| self.stall()).collect();
            if self.is_full().await {
                return stalled;
            }
        }
    }

    async fn wait_for_a_turn(&self) {
        let start = Instant::now();
        while self.is_full().await {
            assert!(start.elapsed() < LONGEST, "waited in vain for a turn");
        }
    }

    async fn is_full(&self) -> bool {
        // It names no existing family, so that it costs nothing, and its time is short, so that it
        // does not wait for a turn.
        let soon = [("x-prometheus-scrape-timeout-seconds", "0.02")];
        let response = get(self.address, "/metrics?name[]=x", &soon).await;
        response.status == StatusCode::SERVICE_UNAVAILABLE
    }
}

struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn expected(format: Format) -> usize {
    let mut scraper = REGISTRY.scraper();
    scraper.format(format, Escaping::default());
    scraper.begin(|_| true);
    let (mut piece, mut len) = (Vec::new(), 0);
    while scraper.write_some(&mut piece, MIB) {
        len += piece.len();
        piece.clear();
    }
    len + piece.len()
}

/// The number of files and connections that this process has open.
fn descriptors() -> usize {
    std::fs::read_dir("/dev/fd").unwrap().count()
}

#[tokio::test]
async fn a_large_scrape_has_little_in_memory_beside_its_snapshot() {
    let large = large(4, PATIENCE).await;
    let openmetrics = ("accept", "application/openmetrics-text;version=1.0.0");
    let protobuf = "application/vnd.google.protobuf;\
                    proto=io.prometheus.client.MetricFamily;encoding=delimited";
    for (headers, format) in [
        (&[][..], Format::Text),
        (&[openmetrics], Format::OpenMetrics),
        (&[("accept", protobuf)], Format::Protobuf),
        (&[("accept-encoding", "gzip")], Format::Text),
    ] {
        let expected = expected(format);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let began = Instant::now();
        assert_eq!(large.read(headers).await, expected, "{headers:?}");
        let took = began.elapsed();
        let beside = MEMORY.peak_usage().saturating_sub(before);
        println!("{expected} bytes in {took:?}, with {beside} in memory: {headers:?}");
        assert!(beside < BESIDE, "{beside}");
    }
}

#[tokio::test]
async fn a_client_that_stops_reading_is_dropped_and_its_memory_is_freed() {
    let large = large(2, PATIENCE).await;
    let (before, connections) = (MEMORY.current_usage(), descriptors());
    MEMORY.reset_peak_usage();
    let began = Instant::now();
    let mut stalled = large.fill(2).await;
    // The memory of one snapshot was kept; the other is new.
    let snapshot = MEMORY.peak_usage() - before;
    assert!(snapshot > SERIES as usize * 64, "{snapshot}");
    until("its memory is free", || MEMORY.current_usage() < before + BESIDE).await;
    assert!(began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
    large.wait_for_a_turn().await;
    // The connections' ends in this test stay.
    until("the connections end", || descriptors() <= connections + stalled.len()).await;
    // Bytes in the buffers arrive, and then no end: the connection is aborted.
    for stream in &mut stalled {
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => assert!(!rest.ends_with(b"\r\n0\r\n\r\n")),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_time_limits_frees_the_scrape_of_a_client_that_stops_reading() {
    let alone = ALONE.lock().await;
    let exposition = Exposition::new(&REGISTRY).at_once(1).patience(PATIENCE);
    let app = axum::Router::new().route_service("/metrics", exposition);
    let large = Large { address: serve(app).await, _server: None, _alone: alone };
    let began = Instant::now();
    let mut stalled = large.fill(1).await.remove(0);
    large.wait_for_a_turn().await;
    assert!(began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
    // The client gets an error when it reads on.
    let mut rest = Vec::new();
    let _ = stalled.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_connection_that_is_dropped_frees_its_scrape_at_once() {
    let large = large(1, FOREVER).await;
    for _ in 0..3 {
        drop(large.fill(1).await);
        large.wait_for_a_turn().await;
    }
}

#[tokio::test]
async fn a_scrape_ends_with_the_time_of_its_scraper() {
    let large = large(1, FOREVER).await;
    let mut stalled = TcpStream::connect(large.address).unwrap();
    let within = "x-prometheus-scrape-timeout-seconds: 1";
    let began = Instant::now();
    write!(stalled, "GET /metrics HTTP/1.1\r\nhost: x\r\n{within}\r\n\r\n").unwrap();
    // It takes a little again and again.
    let mut some = vec![0; 1 << 12];
    while large.is_full().await {
        let _ = stalled.read(&mut some).unwrap();
    }
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}
