//! The processor time that `talea serve` takes while browsers look at its live page.
//!
//! A region with endpoints as `talea-http` shows them by default gets requests whose times are
//! log-normal. The agent, from the same build, serves it; connections read the page's events and discard
//! them. After a minute of each number of connections, a line says how much of a core the agent took and how
//! large its history is.

#[path = "../../src/agent.rs"]
mod agent;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use talea::{
    Bucketing, Config, Counter, DynamicLabels, Family, Gauge, Histogram, Opts, Registry, Seconds,
};

use agent::Agent;

#[derive(Debug, Parser)]
struct Arguments {
    /// Endpoints.
    #[arg(long, default_value_t = 200)]
    endpoints: usize,
    /// Requests a second to each endpoint.
    #[arg(long, default_value_t = 20)]
    requests: usize,
    /// Pages that are open, one number after the other.
    #[arg(long, value_delimiter = ',', default_value = "0,1,5")]
    pages: Vec<usize>,
    /// How long each of them is measured.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let path = folder.path().join("live.talea");
    let service = Service::new(&path, arguments.endpoints)?;
    let requests = arguments.requests;
    // It ends with the process.
    thread::spawn(move || service.run(requests));
    let mut agent = Agent::serve_with(&path, &[])?;
    println!("{} endpoints, {requests} requests a second to each", arguments.endpoints);
    println!(
        "pages  agent's CPU, share of a core  updates a second  bytes a second to a page  history, bytes"
    );
    for pages in arguments.pages {
        let totals = Arc::<Totals>::default();
        let open = |_| Ok(Page::open(agent.ask("/live/events")?, &totals));
        let open = (0..pages).map(open).collect::<Result<Vec<_>>>()?;
        // The first point has all endpoints.
        sleep(Duration::from_secs(3));
        let (began, cpu_before) = (Instant::now(), agent.cpu()?);
        let [updates_before, bytes_before] = totals.read();
        sleep(Duration::from_secs(arguments.seconds));
        let (took, cpu) = (began.elapsed().as_secs_f64(), agent.cpu()? - cpu_before);
        let [updates, bytes] = totals.read();
        let a_page = |count: u64| count as f64 / took / pages.max(1) as f64;
        let (updates, bytes) = (a_page(updates - updates_before), a_page(bytes - bytes_before));
        let history = agent.history()?;
        println!(
            "{pages:>5}  {:>28.2}%  {updates:>16.2}  {bytes:>24.0}  {history:>14}",
            cpu / took * 100.0
        );
        drop(open);
    }
    Ok(())
}

/// A service with the families of the default page.
struct Service {
    _registry: Registry,
    times: Vec<Histogram<Seconds>>,
    statuses: Vec<Vec<Counter>>,
    outcomes: Vec<Vec<Counter>>,
    in_flight: Vec<Gauge>,
}

impl Service {
    fn new(path: &Path, endpoints: usize) -> Result<Self> {
        let registry = Registry::open_with(path, Config::with_len(64 << 20))?;
        let opts = Opts::new("http_request_duration_seconds", "Time to the response's head.");
        let labels = &["method", "route"];
        let times =
            registry.family::<Histogram<Seconds>>(opts.bucketing(Bucketing::Dual), labels)?;
        let opts = Opts::new("http_requests", "Requests by status.");
        let statuses = registry.family::<Counter>(opts, &["method", "route", "status"])?;
        let opts = Opts::new("http_request_outcomes", "Requests by how they ended.");
        let outcomes = registry.family::<Counter>(opts, &["method", "route", "outcome"])?;
        let opts = Opts::new("http_requests_in_flight", "Requests that have no response yet.");
        let in_flight = registry.family::<Gauge>(opts, labels)?;
        let names: Vec<[String; 2]> = (0..endpoints)
            .map(|number| {
                let method = ["GET", "POST"][number % 2].to_owned();
                [method, format!("/api/resources/{}/{{id}}", number / 2)]
            })
            .collect();
        let of = |family: &Family<DynamicLabels, Counter>, values: &[&str]| -> Vec<Vec<Counter>> {
            names
                .iter()
                .map(|[method, route]| {
                    values
                        .iter()
                        .map(|value| {
                            family.with_values(&[method.as_str(), route.as_str(), value]).keep()
                        })
                        .collect()
                })
                .collect()
        };
        Ok(Self {
            times: names.iter().map(|names| times.with_values(names).keep()).collect(),
            statuses: of(&statuses, &["2xx", "4xx", "5xx"]),
            outcomes: of(&outcomes, &["complete", "aborted", "panicked"]),
            in_flight: names.iter().map(|names| in_flight.with_values(names).keep()).collect(),
            _registry: registry,
        })
    }

    fn run(&self, requests: usize) {
        let mut random = fastrand::Rng::with_seed(1);
        let began = Instant::now();
        for tenth in 1.. {
            for endpoint in 0..self.times.len() {
                for _ in 0..random.usize(..=requests / 5) {
                    self.request(endpoint, &mut random);
                }
                self.in_flight[endpoint].set(random.i64(0..4));
            }
            sleep((Duration::from_millis(100) * tenth).saturating_sub(began.elapsed()));
        }
    }

    fn request(&self, endpoint: usize, random: &mut fastrand::Rng) {
        let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let seconds = 0.02 * (0.5 * normal + 0.3 * (endpoint % 7) as f64).exp();
        self.times[endpoint].observe(Duration::from_secs_f64(seconds));
        let ending = if random.u8(..) == 0 { random.usize(..3) } else { 0 };
        self.statuses[endpoint][ending].inc();
        self.outcomes[endpoint][ending].inc();
    }
}

impl Agent {
    fn ask(&self, path: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        Ok(stream)
    }

    /// Bytes of memory that the history takes.
    fn history(&self) -> Result<u64> {
        let mut page = String::new();
        self.ask("/metrics?name[]=talea_agent_history_bytes")?.read_to_string(&mut page)?;
        let line = page.lines().find(|line| line.starts_with("talea_agent_history_bytes"));
        let value =
            line.and_then(|line| line.rsplit_once(' ')).context("no talea_agent_history_bytes")?;
        Ok(value.1.parse::<f64>()? as u64)
    }

    fn cpu(&mut self) -> Result<f64> {
        if let Some(status) = self.process.try_wait()? {
            bail!("the agent ended: {status}");
        }
        let mut nanos = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += text.split(' ').next().unwrap_or("0").parse::<u64>()?;
        }
        Ok(nanos as f64 / 1e9)
    }
}

/// The connection of an open page; it ends when it is dropped.
struct Page(TcpStream);

/// The totals of all pages.
#[derive(Default)]
struct Totals {
    updates: AtomicU64,
    bytes: AtomicU64,
}

impl Totals {
    fn read(&self) -> [u64; 2] {
        [&self.updates, &self.bytes].map(|total| total.load(Relaxed))
    }
}

impl Page {
    fn open(stream: TcpStream, totals: &Arc<Totals>) -> Self {
        let (totals, input) = (Arc::clone(totals), stream.try_clone());
        thread::spawn(move || {
            let Ok(input) = input else { return };
            for line in BufReader::new(input).lines().map_while(Result::ok) {
                totals.bytes.fetch_add(line.len() as u64 + 1, Relaxed);
                totals.updates.fetch_add(u64::from(line == "event: point"), Relaxed);
            }
        });
        Self(stream)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}
