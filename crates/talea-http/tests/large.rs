//! Claims about large scrapes: how much memory they take, and for how long. One test at
//! a time, since they look at the memory of the whole process.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use flate2::write::GzDecoder;
use http_body_util::BodyExt;
use peak_alloc::PeakAlloc;
use talea::{Config, Counter, Escaping, Format, Opts, Registry};
use talea_http::{Exposition, MetricsServer};
use tokio::sync::{Mutex, MutexGuard};

use client::{get, open};

mod client;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::const_new(());

const SERIES: u64 = if cfg!(debug_assertions) { 300_000 } else { 1_000_000 };
const MIB: usize = 1 << 20;
/// What a scrape may have in memory beside its snapshot: the pieces that the server and
/// this process' client have taken, and what gzip needs.
const BESIDE: usize = 3 * MIB;
const PATIENCE: Duration = Duration::from_secs(1);

struct Large {
    address: SocketAddr,
    _server: Option<MetricsServer>,
    _alone: MutexGuard<'static, ()>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let config = Config { series: SERIES * 2, ..Config::with_len(SERIES * 512) };
    let registry = Registry::with_config(config).unwrap();
    let opts = Opts::new("orders", "Orders accepted.").limit(SERIES);
    let orders = registry.family::<Counter>(opts, &["customer"]).unwrap();
    for n in 0..SERIES {
        let customer = format!("a-customer-with-quite-a-long-name-{n:030}");
        orders.with_values(&[customer]).add(n);
    }
    registry
});

/// A server with many series, which was scraped once.
async fn large(at_once: usize) -> Large {
    let alone = ALONE.lock().await;
    let exposition = Exposition::new(&REGISTRY).at_once(at_once).patience(PATIENCE);
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = MetricsServer::builder(exposition).bind(loopback).unwrap();
    let large = Large { address: server.local_addr(), _server: Some(server), _alone: alone };
    large.read(&[]).await;
    large
}

impl Large {
    /// Scrapes; returns how much came, as it was before gzip.
    async fn read(&self, headers: &[(&str, &str)]) -> usize {
        let mut answer = open(self.address, Method::GET, "/metrics", headers).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(!answer.headers().contains_key("content-length"));
        let zipped = answer.headers().contains_key("content-encoding");
        let mut unzipped = GzDecoder::new(Count(0));
        while let Some(frame) = answer.body_mut().frame().await {
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

    /// Begins to scrape and then reads no more.
    fn stall(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut begun = [0; 15];
        stream.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200 OK");
        stream
    }

    async fn is_full(&self) -> bool {
        // One family that is not there, so that it costs nothing; and little time, so that it
        // waits for no turn.
        let soon = [("x-prometheus-scrape-timeout-seconds", "0.02")];
        let answer = get(self.address, "/metrics?name[]=x", &soon).await;
        answer.status == StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Counts what comes.
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

/// How long a scrape is.
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

/// How many files and connections this process has open.
fn descriptors() -> usize {
    std::fs::read_dir("/dev/fd").unwrap().count()
}

/// Until it is so.
async fn wait_for(what: &str, limit: Duration, mut is: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is().await {
        assert!(began.elapsed() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

#[tokio::test]
async fn a_large_scrape_has_little_in_memory_beside_its_snapshot() {
    let large = large(4).await;
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
async fn a_client_that_stops_reading_is_dropped_and_its_memory_is_free() {
    let large = large(2).await;
    let (before, connections) = (MEMORY.current_usage(), descriptors());
    let mut stalled = [large.stall(), large.stall()];
    assert!(large.is_full().await);
    // The memory of one snapshot was kept; the other is new.
    let snapshot = MEMORY.current_usage() - before;
    assert!(snapshot > SERIES as usize * 64, "{snapshot}");
    let freed = async || MEMORY.current_usage() < before + BESIDE;
    let waited = wait_for("its memory is free", PATIENCE * 8, freed).await;
    assert!(waited > PATIENCE / 4, "{waited:?}");
    assert!(!large.is_full().await);
    // The connections' ends here stay.
    let ended = async || descriptors() <= connections + stalled.len();
    wait_for("the connections end", PATIENCE * 8, ended).await;
    // What was on its way comes, and then no end: the connection breaks off.
    for stream in &mut stalled {
        stream.set_read_timeout(Some(PATIENCE * 8)).unwrap();
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => assert!(!rest.ends_with(b"\r\n0\r\n\r\n")),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_for_its_clients_forever_keeps_no_scrape_for_them() {
    let alone = ALONE.lock().await;
    let exposition = Exposition::new(&REGISTRY).at_once(1).patience(PATIENCE);
    let app = axum::Router::new().route_service("/metrics", exposition);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await });
    let large = Large { address, _server: None, _alone: alone };
    let mut stalled = large.stall();
    assert!(large.is_full().await);
    let free = async || !large.is_full().await;
    let waited = wait_for("the next may scrape", PATIENCE * 8, free).await;
    assert!(waited > PATIENCE / 4, "{waited:?}");
    // It finds that the scrape was given up when it reads on.
    let mut rest = Vec::new();
    let _ = stalled.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_connection_that_is_dropped_frees_its_scrape_at_once() {
    let large = large(1).await;
    for _ in 0..3 {
        let stalled = large.stall();
        assert!(large.is_full().await);
        drop(stalled);
        let free = async || !large.is_full().await;
        wait_for("the next may scrape", PATIENCE / 2, free).await;
    }
}

#[tokio::test]
async fn a_scraper_that_has_no_time_left_gets_no_more() {
    let large = large(1).await;
    let mut stalled = TcpStream::connect(large.address).unwrap();
    let within = "x-prometheus-scrape-timeout-seconds: 1";
    write!(stalled, "GET /metrics HTTP/1.1\r\nhost: x\r\n{within}\r\n\r\n").unwrap();
    // It takes a little again and again.
    let mut some = vec![0; 1 << 16];
    let began = Instant::now();
    let mut over = false;
    while began.elapsed() < Duration::from_secs(4) && !over {
        let _ = stalled.read(&mut some).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        over = !large.is_full().await;
    }
    assert!(over && began.elapsed() > Duration::from_millis(700), "{:?}", began.elapsed());
}
