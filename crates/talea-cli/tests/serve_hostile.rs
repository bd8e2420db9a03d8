//! `talea serve` with a large region and hostile clients: its memory stays within a bound, it goes
//! on answering, and a well-behaved scraper gets the whole page. In a binary of its own, so that
//! other tests do not slow it down.
#![cfg(target_os = "linux")]

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use h2::Reason as Reset;
use talea::{Config, Counter, Opts, Registry};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::support::agent::{Agent, ask};
use crate::support::test_server::{Client, asks};

const SERIES: u64 = if cfg!(debug_assertions) { 300_000 } else { 1_000_000 };
const MIB: u64 = 1 << 20;
/// The memory that a scrape may use for each series.
const EACH: u64 = 96;
/// The memory that all else may use, most of it for connections.
const BESIDE: u64 = 64 * MIB;
/// Far more than anything takes, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

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
        talea_cli::descriptors::ensure(3_000).unwrap();
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

    /// Scrapes, and is let in without an answer that asks it to come again.
    async fn scrape_at_first_try(&self) {
        let address = self.address.to_string();
        let scrape = move || ask(&address, "GET", "/metrics", &[]);
        let answer = tokio::task::spawn_blocking(scrape).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_whole(&answer.body);
    }

    /// Begins to scrape with so much time, and reads but the beginning.
    async fn stalls(&self, seconds: u64) -> Client {
        let mut client = self.says(&format!(
            "GET /metrics HTTP/1.1\r\nhost: x\r\nx-prometheus-scrape-timeout-seconds: {seconds}\r\n\r\n"
        )).await;
        let mut status = [0; 12];
        let read = tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut status);
        timeout(Duration::from_secs(10), read).await.expect("it is answered").unwrap();
        match &status {
            b"HTTP/1.1 200" => client,
            other => panic!("{:?}", String::from_utf8_lossy(other)),
        }
    }

    /// The most memory that the agent ever had, in bytes.
    fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.agent.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }

    fn assert_memory(&self, what: &str) {
        let (most, bound) = (self.most_memory(), self.at_once * SERIES * EACH + BESIDE);
        println!("{what}: at most {} MiB of {}", most / MIB, bound / MIB);
        assert!(most < bound, "{what}: {most} of {bound}");
    }

    /// A good scrape: how long it took until it was let in, with all of it read. A scraper that is
    /// not let in learns when to come again.
    async fn scrape(&self, within: Duration) -> Duration {
        let began = Instant::now();
        loop {
            let address = self.address.to_string();
            // On a thread of its own, as it is large.
            let scrape = move || {
                let answer = ask(&address, "GET", "/metrics", &[]);
                if answer.status == 200 {
                    assert_whole(&answer.body);
                }
                answer
            };
            let answer = tokio::task::spawn_blocking(scrape).await.unwrap();
            if answer.status == 200 {
                return began.elapsed();
            }
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
            assert!(began.elapsed() < within, "it is never let in");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asks for its health again and again, until it is asked to end; returns how often.
    async fn is_healthy(&self, is_over: &AtomicBool) -> (usize, Duration) {
        let (mut times, mut slowest) = (0, Duration::ZERO);
        while !is_over.load(Ordering::SeqCst) {
            let began = Instant::now();
            let ask = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            let answer = self.says(ask).await.rest().await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
            slowest = slowest.max(began.elapsed());
            times += 1;
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
        assert!(times > 0 && slowest < SOON, "{what}: {slowest:?}");
        self.assert_memory(what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_clients_do_it_answers_and_its_memory_is_bounded() {
    let large = Large::start(4);
    let mut idle = Vec::new();
    large
        .answers_while("1,000 idle connections", async {
            for _ in 0..1000 {
                idle.push(large.connect().await);
            }
            large.scrape(Duration::from_secs(10)).await;
        })
        .await;
    large
        .answers_while("heads that come byte by byte, and some that never end", async {
            let mut heads = Vec::new();
            for _ in 0..200 {
                heads.push(large.says("G").await);
            }
            let long = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx: {}", "x".repeat(1 << 20));
            let many =
                "GET /healthz HTTP/1.1\r\nhost: x\r\n".to_owned() + &"x: y\r\n".repeat(50_000);
            for head in [long, many] {
                for _ in 0..25 {
                    let mut client = large.connect().await;
                    client.tries(&head).await;
                    heads.push(client);
                }
            }
            for byte in "ET".chars() {
                sleep(Duration::from_secs(1)).await;
                for head in &mut heads[..200] {
                    head.tries(byte.to_string()).await;
                }
            }
            large.scrape(Duration::from_secs(10)).await;
        })
        .await;
    drop(idle);
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
            let stream = TcpStream::connect(large.address).await.unwrap();
            let mut client = h2::client::Builder::new();
            let client = client.initial_window_size(0).handshake::<_, Bytes>(stream);
            let (sends, connection) = client.await.unwrap();
            let goes_on = tokio::spawn(connection);
            let mut sends = sends.ready().await.unwrap();
            let mut asked = Vec::new();
            for _ in 0..16 {
                std::future::poll_fn(|cx| sends.poll_ready(cx)).await.unwrap();
                asked.push(sends.send_request(asks("/metrics"), true).unwrap());
            }
            for _ in 0..4 {
                large.scrape_at_first_try().await;
            }
            goes_on.abort();
        })
        .await;
    // All is as it was.
    large.answers_while("nobody else", async { _ = large.scrape(SOON * 5).await }).await;
    let page = large.agent.scrape();
    let broken_off = page.lines().find_map(|line| {
        let rest = line.strip_prefix("talea_agent_scrapes_total{outcome=\"broken_off\"} ")?;
        rest.parse::<u64>().ok()
    });
    assert!(broken_off.is_some_and(|broken_off| broken_off >= 8), "{broken_off:?}");
}

fn assert_whole(page: &[u8]) {
    let lines = page.split(|byte| *byte == b'\n');
    let series = lines.filter(|line| line.starts_with(b"orders_total{")).count();
    assert_eq!(series as u64, SERIES);
}

/// Opens a connection, and resets each scrape that it asks for, as long as it may.
async fn gives_up(large: &Large, streams: &AtomicUsize) {
    let stream = TcpStream::connect(large.address).await.unwrap();
    let client = h2::client::Builder::new()
        .max_concurrent_reset_streams(100_000)
        .handshake::<_, Bytes>(stream);
    let Ok((sends, connection)) = client.await else { return };
    let goes_on = tokio::spawn(connection);
    let Ok(mut sends) = sends.ready().await else { return };
    for n in 0..1_000 {
        if std::future::poll_fn(|cx| sends.poll_ready(cx)).await.is_err() {
            break;
        }
        let Ok((_, mut stream)) = sends.send_request(asks("/metrics"), true) else { break };
        stream.send_reset(Reset::CANCEL);
        streams.fetch_add(1, Ordering::SeqCst);
        if n % 16 == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
    goes_on.abort();
}
