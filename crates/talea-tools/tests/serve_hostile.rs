//! `talea serve` with a large region and hostile clients: its memory stays within a bound, it goes
//! on answering, and a well-behaved scraper gets the whole page. In a binary of its own, so that
//! other tests do not slow it down.
#![cfg(target_os = "linux")]

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use talea::{Config, Counter, Opts, Registry};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::agent::{Agent, Answer, ask};
use crate::support::http2_client;
use crate::support::test_server::{Client, process_memory};
use crate::support::{LONGEST, sample};

const SERIES: u64 = if cfg!(debug_assertions) { 300_000 } else { 1_000_000 };
const MIB: u64 = 1 << 20;
/// The memory that a scrape may use for each series.
const EACH: u64 = 96;
/// The memory that all else may use, most of it for connections.
const BESIDE: u64 = 64 * MIB;

/// An agent with a large region, which was scraped once.
struct Large {
    agent: Agent,
    address: SocketAddr,
    at_once: u64,
    _registry: Registry,
    _place: tempfile::TempDir,
}

impl Large {
    fn start(at_once: u64) -> Self {
        talea_load::descriptors::ensure(3_000).unwrap();
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = place.path().join("large.talea");
        let config = Config { series: SERIES * 2, ..Config::with_len(SERIES * 512) };
        let registry = Registry::open_with(&path, config).unwrap();
        let opts = Opts::new("orders", "Orders accepted.").limit(SERIES);
        let orders = registry.family::<Counter>(opts, &["customer"]).unwrap();
        for n in 0..SERIES {
            orders.with_values(&[format!("a-customer-with-a-name-{n:010}")]).add(n);
        }
        let agent =
            Agent::start([path.as_os_str(), "--at-once".as_ref(), at_once.to_string().as_ref()]);
        let address = agent.address.parse().unwrap();
        let large = Self { agent, address, at_once, _registry: registry, _place: place };
        let began = Instant::now();
        assert_whole(&large.agent.get("/metrics", &[]).body);
        println!("a scrape of {SERIES} series takes {:?}", began.elapsed());
        large
    }

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    async fn says(&self, text: &str) -> Client {
        let mut client = self.connect().await;
        client.tries(text).await;
        client
    }

    /// Scrapes on a thread of its own, as it is large; a page is whole.
    async fn answer(&self) -> Answer {
        let address = self.address.to_string();
        let answer = tokio::task::spawn_blocking(move || ask(&address, "GET", "/metrics", &[]))
            .await
            .unwrap();
        if answer.status == 200 {
            assert_whole(&answer.body);
        }
        answer
    }

    /// Scrapes, and is let in without an answer that asks it to come again.
    async fn scrape_at_first_try(&self) {
        assert_eq!(self.answer().await.status, 200);
    }

    /// Begins to scrape with so much time, and reads but the beginning.
    async fn stalls(&self, seconds: u64) -> Client {
        let mut client = self.says(&format!(
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nx-prometheus-scrape-timeout-seconds: {seconds}\r\n\r\n"
        )).await;
        let mut status = [0; 12];
        let read = tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut status);
        timeout(LONGEST, read).await.expect("it is answered").unwrap();
        match &status {
            b"HTTP/1.1 200" => client,
            other => panic!("{:?}", String::from_utf8_lossy(other)),
        }
    }

    fn assert_memory(&self, what: &str) {
        let most = process_memory(&self.agent.pid().to_string(), "VmHWM:");
        let bound = self.at_once * SERIES * EACH + BESIDE;
        println!("{what}: at most {} MiB of {}", most / MIB, bound / MIB);
        assert!(most < bound, "{what}: {most} of {bound}");
    }

    /// A good scrape: how long it took until it was let in, with all of it read. A scraper that is
    /// not let in learns when to come again.
    async fn scrape(&self) -> Duration {
        let began = Instant::now();
        loop {
            let answer = self.answer().await;
            if answer.status == 200 {
                return began.elapsed();
            }
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
            assert!(began.elapsed() < LONGEST, "it is never let in");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asks for its health again and again, until it is asked to end; returns how often it had an
    /// answer before, and the longest time that one took.
    async fn is_healthy(&self, is_over: &AtomicBool) -> (usize, Duration) {
        let (mut times, mut slowest) = (0, Duration::ZERO);
        while !is_over.load(Ordering::SeqCst) {
            let began = Instant::now();
            let ask = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            let answer = self.says(ask).await.rest().await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
            slowest = slowest.max(began.elapsed());
            times += usize::from(!is_over.load(Ordering::SeqCst));
            sleep(Duration::from_millis(20)).await;
        }
        (times, slowest)
    }

    /// Runs clients while it is asked for its health.
    async fn answers_while(&self, what: &str, attack: impl Future<Output = ()>) {
        let is_over = AtomicBool::new(false);
        let attack = async {
            attack.await;
            is_over.store(true, Ordering::SeqCst);
        };
        let ((), (times, slowest)) = tokio::join!(attack, self.is_healthy(&is_over));
        println!("{what}: it answered {times} times, within {slowest:?}");
        assert!(times > 0, "{what}: it answered only once that was over");
        self.assert_memory(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_clients_do_it_answers_and_its_memory_is_bounded() {
    let large = Large::start(4);
    large
        .answers_while("scrapes that are asked for and given up at once", async {
            let began = Instant::now();
            let streams = AtomicUsize::new(0);
            while began.elapsed() < Duration::from_secs(4) {
                gives_up(&large, &streams).await;
            }
            println!("{} streams were given up", streams.into_inner());
        })
        .await;
    large
        .answers_while("four readers that take nothing", async {
            let mut stalled = Vec::new();
            for _ in 0..4 {
                stalled.push(large.stalls(60).await);
            }
            for _ in 0..4 {
                large.scrape_at_first_try().await;
                stalled.push(large.stalls(60).await);
            }
        })
        .await;
    large
        .answers_while("a client of HTTP/2 with a window of 0", async {
            let connected = http2_client::connect(large.address, 0).await;
            let (mut sends, goes_on) = connected.expect("a connection");
            let mut asked = Vec::new();
            for _ in 0..16 {
                asked.push(http2_client::ask(&mut sends, "/metrics").await.expect("a stream"));
            }
            for _ in 0..4 {
                large.scrape_at_first_try().await;
            }
            goes_on.abort();
        })
        .await;
    // All is as it was.
    large.answers_while("nobody else", async { _ = large.scrape().await }).await;
    let page = large.agent.scrape();
    let broken_off = "talea_agent_scrapes_total{outcome=\"broken_off\"}";
    let broken_off: Option<u64> = sample(&page, broken_off);
    assert!(broken_off.is_some_and(|broken_off| broken_off >= 8), "{broken_off:?}");
}

fn assert_whole(page: &[u8]) {
    let lines = page.split(|byte| *byte == b'\n');
    let series = lines.filter(|line| line.starts_with(b"orders_total{")).count();
    assert_eq!(series as u64, SERIES);
}

/// Opens a connection, and resets each scrape that it asks for, as long as it may.
async fn gives_up(large: &Large, streams: &AtomicUsize) {
    let Some((mut sends, goes_on)) = http2_client::connect(large.address, 65_535).await else {
        return;
    };
    for n in 0..1_000 {
        if !http2_client::ask_and_reset(&mut sends, "/metrics").await {
            break;
        }
        streams.fetch_add(1, Ordering::SeqCst);
        if n % 16 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    goes_on.abort();
}
