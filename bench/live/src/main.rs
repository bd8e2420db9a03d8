//! The processor time that `talea serve` takes while browsers look at its live page.
//!
//! A region with endpoints as `talea-http` shows them by default gets requests whose times are
//! log-normal. The agent, from the same build, serves it; connections read the page's events and discard
//! them. After a minute of each number of connections, a line says how much of a core the agent took and how
//! large its history is.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use talea::{
    Bucketing, Config, Counter, DynamicLabels, Family, Gauge, Histogram, Opts, Registry, Seconds,
};

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
    let mut agent = Agent::start(&path)?;
    println!("{} endpoints, {requests} requests a second to each", arguments.endpoints);
    println!(
        "pages  agent's CPU, share of a core  updates a second  bytes a second to a page  history, bytes"
    );
    for pages in arguments.pages {
        let connections = (0..pages).map(|_| agent.events()).collect::<Result<Vec<_>>>()?;
        let readers: Vec<_> = connections.into_iter().map(Reader::begin).collect();
        // The first point has all endpoints.
        sleep(Duration::from_secs(3));
        let (began, before) = (Instant::now(), agent.cpu()?);
        let bytes_before: u64 = readers.iter().map(Reader::bytes).sum();
        let events_before: u64 = readers.iter().map(Reader::events).sum();
        sleep(Duration::from_secs(arguments.seconds));
        let (took, cpu) = (began.elapsed().as_secs_f64(), agent.cpu()? - before);
        let bytes: u64 = readers.iter().map(Reader::bytes).sum();
        let a_page = (bytes - bytes_before) as f64 / took / pages.max(1) as f64;
        let events: u64 = readers.iter().map(Reader::events).sum();
        let updates = (events - events_before) as f64 / took / pages.max(1) as f64;
        let history = agent.history()?;
        println!(
            "{pages:>5}  {:>28.2}%  {updates:>16.2}  {a_page:>24.0}  {history:>14}",
            cpu / took * 100.0
        );
        drop(readers);
    }
    agent.child.kill()?;
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
        let name = |number: usize| {
            let method = ["GET", "POST"][number % 2].to_owned();
            [method, format!("/api/resources/{}/{{id}}", number / 2)]
        };
        let names: Vec<[String; 2]> = (0..endpoints).map(name).collect();
        let of = |family: &Family<DynamicLabels, Counter>, values: &[&str]| -> Vec<Vec<Counter>> {
            let of = |[method, route]: &[String; 2]| {
                let one = |value: &&str| {
                    family.with_values(&[method.as_str(), route.as_str(), value]).keep()
                };
                values.iter().map(one).collect()
            };
            names.iter().map(of).collect()
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

struct Agent {
    child: Child,
    address: String,
}

impl Agent {
    /// The program beside this one.
    fn start(region: &Path) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("talea");
        let mut command = Command::new(&program);
        command.arg("serve").arg(region).args(["--listen", "127.0.0.1:0"]);
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let stderr = child.stderr.take().context("standard error")?;
        let mut lines = BufReader::new(stderr).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("listening on"));
        let line = line.context("the agent does not listen")?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.context("no address")?.to_owned();
        thread::spawn(move || lines.count());
        Ok(Self { child, address })
    }

    fn ask(&self, path: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        Ok(stream)
    }

    fn events(&self) -> Result<TcpStream> {
        self.ask("/live/events")
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
        if let Some(status) = self.child.try_wait()? {
            bail!("the agent ended: {status}");
        }
        let mut nanos = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            nanos += text.split(' ').next().unwrap_or("0").parse::<u64>()?;
        }
        Ok(nanos as f64 / 1e9)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Reader {
    bytes: Arc<AtomicU64>,
    events: Arc<AtomicU64>,
    stream: TcpStream,
}

impl Reader {
    fn begin(stream: TcpStream) -> Self {
        let bytes = Arc::<AtomicU64>::default();
        let events = Arc::<AtomicU64>::default();
        let (to_bytes, to_events, input) = (bytes.clone(), events.clone(), stream.try_clone());
        thread::spawn(move || {
            let Ok(input) = input else { return };
            for line in BufReader::new(input).lines().map_while(Result::ok) {
                to_bytes.fetch_add(line.len() as u64 + 1, Ordering::Relaxed);
                to_events.fetch_add(u64::from(line == "event: point"), Ordering::Relaxed);
            }
        });
        Self { bytes, events, stream }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
