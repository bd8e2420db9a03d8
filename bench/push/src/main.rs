//! What it costs to push a page: `talea serve --push`, beside a Prometheus in agent mode that scrapes `talea serve` and
//! forwards what it finds.
//!
//! A region has as many counters as asked for, each of which grows before each collection. A sink reads requests and
//! throws them away. For each of the two, a line has the CPU time of a collection, the peak of memory, and
//! the bytes on the wire of a series. With `--outage`, what each loses if it is killed while its receiver is down.

#[path = "../../src/agent.rs"]
mod agent;
mod outage;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use talea::{Config, Counter, Opts, Registry};

use agent::Agent;

/// Series of a family.
const FAMILY: usize = 10_000;

#[derive(Debug, Parser)]
struct Arguments {
    /// Series, in families of 10,000.
    #[arg(long, default_value_t = 1_000_000)]
    series: usize,
    /// Seconds from one collection to the next.
    #[arg(long, default_value_t = 15)]
    interval: u64,
    /// Collections that are measured, after two that are not.
    #[arg(long, default_value_t = 4)]
    collections: u64,
    /// The Prometheus program.
    #[arg(long, default_value = "prometheus")]
    prometheus: String,
    /// Whether that sends remote-write 2.0, which it does from 3.0 on.
    #[arg(long)]
    v2: bool,
    /// Count what is lost if the senders are killed while their receiver is down, instead; with 1,000 series.
    #[arg(long)]
    outage: bool,
}

fn main() -> Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.outage {
        arguments.series = arguments.series.min(1_000);
    }
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let region = folder.path().join("shop.talea");
    let counters = fill(&region, arguments.series)?;
    // It ends with the process.
    thread::spawn(move || {
        loop {
            counters.iter().for_each(Counter::inc);
            sleep(Duration::from_secs(1));
        }
    });
    if arguments.outage {
        return outage::run(&arguments, folder.path(), &region);
    }
    println!("{} series, a collection every {} s", arguments.series, arguments.interval);
    println!("{:32}  CPU s a collection  peak MiB  bytes a series  requests a collection", "");

    let sink = Sink::start()?;
    let push = folder.path().join("push.toml");
    let text = format!(
        "[[remote_write]]\nurl = \"http://{}/\"\ninterval = \"{}s\"\nqueue = \"queue\"\n\
         max_samples = 5000\n",
        sink.address, arguments.interval
    );
    fs::write(&push, text)?;
    let plain = Agent::serve_with(&region, &[])?;
    let scraped = measure(&arguments, plain.process.id(), &sink, "talea serve alone")?;
    let pushing = Agent::serve_with(&region, &["--push".as_ref(), push.as_os_str()])?;
    let pushed = measure(&arguments, pushing.process.id(), &sink, "talea serve --push")?;
    drop(pushing);

    let sink = Sink::start()?;
    let url = format!("http://{}/", sink.address);
    let prometheus =
        prometheus_agent(&arguments, folder.path(), plain.address, &url, arguments.interval)?;
    let before = cpu(plain.process.id())?;
    let forwarded =
        measure(&arguments, prometheus.0.id(), &sink, "Prometheus, scrapes and forwards")?;
    let served = (cpu(plain.process.id())? - before) / (arguments.collections + 2) as f64;
    println!("talea serve takes {served:.2} s for a scrape of it");
    let pushes = pushed - scraped;
    println!(
        "the push alone takes {pushes:.2} s, {:.2} of Prometheus' {forwarded:.2} s",
        pushes / forwarded
    );
    Ok(())
}

/// A region with counters.
fn fill(path: &Path, series: usize) -> Result<Vec<Counter>> {
    let bytes = (series as u64 * 1_024).next_multiple_of(1 << 20).max(64 << 20);
    let registry = Registry::open_with(path, Config::with_len(bytes))?;
    let mut counters = Vec::with_capacity(series);
    for n in 0..series.div_ceil(FAMILY) {
        let name = format!("shop_orders_{n}");
        let opts = Opts::new(&name, "Orders accepted, by customer.").limit(FAMILY as u64);
        let family = registry.family::<Counter>(opts, &["method", "customer"])?;
        for customer in 0..FAMILY.min(series - n * FAMILY) {
            let method = ["card", "transfer", "cash"][customer % 3];
            counters.push(family.with_values(&[method, &format!("customer-{customer}")]).keep());
        }
    }
    Ok(counters)
}

/// A server that reads requests, and responds that all was written.
struct Sink {
    address: SocketAddr,
    totals: Arc<Totals>,
}

#[derive(Default)]
struct Totals {
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl Sink {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let sink = Self { address: listener.local_addr()?, totals: Arc::default() };
        let totals = sink.totals.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let totals = totals.clone();
                thread::spawn(move || drain(stream, &totals));
            }
        });
        Ok(sink)
    }
}

fn drain(stream: TcpStream, totals: &Totals) -> Option<()> {
    const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\
        X-Prometheus-Remote-Write-Samples-Written: 1000000000\r\n\
        X-Prometheus-Remote-Write-Histograms-Written: 1000000000\r\n\
        X-Prometheus-Remote-Write-Exemplars-Written: 1000000000\r\n\r\n";
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    loop {
        let (mut head, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            head += reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
        totals.bytes.fetch_add(head as u64 + length, Relaxed);
        totals.requests.fetch_add(1, Relaxed);
        reader.get_mut().write_all(TAKEN).ok()?;
    }
}

/// Prints what a process takes for a collection; returns its CPU seconds.
fn measure(arguments: &Arguments, pid: u32, sink: &Sink, name: &str) -> Result<f64> {
    let Arguments { interval, collections, series, .. } = *arguments;
    sleep(Duration::from_secs(2 * interval));
    let load = |total: &AtomicU64| total.load(Relaxed) as f64;
    let [bytes, requests] = [&sink.totals.bytes, &sink.totals.requests].map(load);
    let before = cpu(pid)?;
    sleep(Duration::from_secs(interval * collections));
    let count = collections as f64;
    let took = (cpu(pid)? - before) / count;
    let bytes = (load(&sink.totals.bytes) - bytes) / count / series as f64;
    let requests = (load(&sink.totals.requests) - requests) / count;
    let peak = peak_kib(pid)? / 1024.0;
    println!("{name:32}  {took:18.2}  {peak:8.0}  {bytes:14.1}  {requests:21.0}");
    Ok(took)
}

/// The CPU time of a process, in seconds.
fn cpu(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("a stat file")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

fn peak_kib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()).context("VmHWM")?;
    Ok(number.parse()?)
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn prometheus_agent(
    arguments: &Arguments,
    folder: &Path,
    scraped: SocketAddr,
    receiver: &str,
    interval: u64,
) -> Result<Running> {
    let config = folder.join("prometheus.yml");
    let message = match arguments.v2 {
        true => ", protobuf_message: io.prometheus.write.v2.Request",
        false => "",
    };
    let text = format!(
        "global: {{scrape_interval: {interval}s, scrape_timeout: {interval}s, external_labels: {{agent: prometheus}}}}\n\
         scrape_configs:\n- {{job_name: shop, static_configs: [{{targets: ['{scraped}']}}]}}\n\
         remote_write:\n- {{url: '{receiver}'{message}}}\n"
    );
    fs::write(&config, text)?;
    let mut command = Command::new(&arguments.prometheus);
    // From 3.0 on it is no feature any more.
    command.arg(if arguments.v2 { "--agent" } else { "--enable-feature=agent" });
    let child = command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.agent.path={}", folder.join("data").display()))
        .arg("--web.listen-address=127.0.0.1:0")
        .arg("--log.level=error")
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", arguments.prometheus))?;
    Ok(Running(child))
}
