//! Claims about what a real Prometheus has of the regions that an agent pushes, whatever happens to the agent, to its
//! disk, to its clock and to the regions.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stage::{LONGEST, Prometheus, Way, built, get};
use talea::{Combine, Counter, Gauge, Opts, Registry};
use tempfile::TempDir;

/// A region, and where an agent keeps what waits.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn orders(&self) -> (Registry, Counter) {
        let registry = Registry::open(self.at("shop.talea")).unwrap();
        let orders = registry.register(Opts::new("orders", "Orders accepted.")).unwrap();
        (registry, orders)
    }

    /// The numbers of the collections in the queue.
    fn waiting(&self) -> BTreeSet<String> {
        let Ok(entries) = fs::read_dir(self.at("queue/remote-write")) else {
            return BTreeSet::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".push")).collect()
    }

    /// Starts an agent that pushes to a receiver all the time.
    fn agent(&self, receiver: SocketAddr) -> Agent {
        Agent::start(self.command(receiver))
    }

    fn command(&self, receiver: SocketAddr) -> Command {
        let push = self.at("push.toml");
        let text = format!(
            "[[remote_write]]\nurl = \"http://{receiver}/api/v1/write\"\nqueue = \"queue\"\n\
             interval = \"20ms\"\nbackoff = [\"1ms\", \"20ms\"]\n"
        );
        fs::write(&push, text).unwrap();
        let mut command = Command::new(built("talea"));
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--dir").arg(self.0.path()).arg("--push").arg(push);
        command
    }
}

/// An agent, which is killed when it is dropped.
struct Agent {
    child: Child,
    address: SocketAddr,
}

impl Agent {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let found = line
                .split_once("http://")
                .and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
            said.push(line);
            found
        });
        let address = address.unwrap_or_else(|| panic!("{said:?}"));
        // Nobody reads the rest, and nobody waits for somebody to.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// The sum of all series of a name in its page.
    async fn total(&self, name: &str) -> f64 {
        let (status, body) = get(self.address, "/metrics").await.unwrap();
        assert_eq!(status, 200);
        let page = String::from_utf8(body.to_vec()).unwrap();
        let lines = page.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        let of_name = lines.filter(|(labels, _)| labels.is_empty() || labels.starts_with('{'));
        of_name.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
    }

    /// Waits until the sum of all series of a name is so large.
    async fn reaches(&self, name: &str, at_least: f64) {
        let began = Instant::now();
        while self.total(name).await < at_least {
            assert!(began.elapsed() < LONGEST, "{name} is {}", self.total(name).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until nothing waits to be sent.
    async fn has_sent_all(&self) {
        let began = Instant::now();
        while self.total("talea_push_queue_samples").await > 1_000.0 {
            assert!(began.elapsed() < LONGEST, "it does not send what waits");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All values that a Prometheus has of the orders, in the order of their times, also if these are in the future.
async fn stored(prometheus: &Prometheus) -> Vec<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let later = (now + 3 * 3_600).to_string();
    let query = [("query", "orders_total[12h]"), ("time", &*later)];
    let data = prometheus.api("query", &query).await;
    let series = data["result"].as_array().unwrap();
    assert!(series.len() <= 1, "{data}");
    let values = series.iter().flat_map(|series| series["values"].as_array().unwrap());
    values
        .map(|pair| pair[1].as_str().unwrap().parse::<f64>().unwrap())
        .filter(|value| !value.is_nan())
        .map(|value| value as u64)
        .collect()
}

async fn stores(prometheus: &Prometheus, last: u64) -> Vec<u64> {
    let began = Instant::now();
    loop {
        let values = stored(prometheus).await;
        if values.last() == Some(&last) {
            return values;
        }
        assert!(began.elapsed() < LONGEST, "{last} is not in {values:?}: {}", prometheus.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How often the agent is killed; `TALEA_KILLS` sets another number.
const KILLS: usize = 5;

#[tokio::test]
async fn an_agent_that_is_killed_in_an_outage_loses_nothing() {
    let kills = std::env::var("TALEA_KILLS").map_or(KILLS, |n| n.parse().unwrap());
    let prometheus = Prometheus::start_receiver("prometheus", "native-histograms").await;
    let way = Way::to(prometheus.address());
    let place = Place::new();
    let (_registry, orders) = place.orders();
    let mut agent = place.agent(way.address);
    prometheus.wait_for("orders_total", |value| value == 0.0).await;
    way.set_open(false);
    let mut on_disk = BTreeSet::new();
    for _ in 0..kills {
        orders.inc();
        let (before, began) = (place.waiting(), Instant::now());
        // What is in the folder before the kill is acknowledged.
        while place.waiting().difference(&before).count() < 3 {
            assert!(began.elapsed() < LONGEST, "nothing waits");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        on_disk.extend(place.waiting());
        agent.child.kill().unwrap();
        agent.child.wait().unwrap();
        agent = place.agent(way.address);
    }
    orders.add(7);
    way.set_open(true);
    let values = stores(&prometheus, kills as u64 + 7).await;
    assert!(values.is_sorted(), "{values:?}");
    for n in 0..=kills as u64 {
        assert!(values.contains(&n), "{n} is not in {values:?}");
    }
    assert!(values.len() >= on_disk.len(), "{} of {}", values.len(), on_disk.len());
    assert_eq!(agent.total("talea_push_samples_failed_total").await, 0.0, "{}", prometheus.log());
    assert_eq!(agent.total("talea_push_samples_dropped_total").await, 0.0);
    assert_eq!(prometheus.log(), "", "it complains");
}

#[tokio::test]
async fn a_disk_that_is_full_for_a_part_of_an_outage_loses_nothing() {
    let prometheus = Prometheus::start_receiver("prometheus", "native-histograms").await;
    let way = Way::to(prometheus.address());
    way.set_open(false);
    let place = Place::new();
    let (_registry, orders) = place.orders();
    fs::create_dir(place.at("queue")).unwrap();
    // A file system with room for some collections, which the agent alone sees.
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=200k none \"$0\" && exec \"$@\"").arg(place.at("queue"));
    let of_agent = place.command(way.address);
    command.arg(of_agent.get_program()).args(of_agent.get_args());
    let agent = Agent::start(command);
    for _ in 0..5 {
        orders.inc();
        let errors = agent.total("talea_push_queue_write_errors_total").await;
        agent.reaches("talea_push_queue_write_errors_total", errors + 1.0).await;
    }
    way.set_open(true);
    let values = stores(&prometheus, 5).await;
    assert!(values.is_sorted(), "{values:?}");
    agent.has_sent_all().await;
    for name in ["talea_push_samples_dropped_total", "talea_push_samples_failed_total"] {
        assert_eq!(agent.total(name).await, 0.0, "{name}: {}", prometheus.log());
    }
    assert_eq!(prometheus.log(), "", "it complains");
}

/// Sets the clock of a program ahead by as many seconds as a file says.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("TALEA_TEST_CLOCK"), "r") : NULL;
    long ahead = 0;
    if (file && fscanf(file, "%ld", &ahead) == 1) time->tv_sec += ahead;
    if (file) fclose(file);
    return result;
}
"#;

#[tokio::test]
async fn a_clock_that_steps_an_hour_both_ways_leaves_the_last_values_exact() {
    let prometheus = Prometheus::start_receiver("prometheus", "native-histograms").await;
    let place = Place::new();
    let (_registry, orders) = place.orders();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-x", "c", "-", "-ldl", "-o"]).arg(place.at("clock.so"));
    let mut compiler = compiler.stdin(Stdio::piped()).spawn().unwrap();
    compiler.stdin.take().unwrap().write_all(CLOCK.as_bytes()).unwrap();
    assert!(compiler.wait().unwrap().success());
    let clock = place.at("clock");
    set_ahead(&clock, 0);
    let mut command = place.command(prometheus.address());
    command.env("LD_PRELOAD", place.at("clock.so")).env("TALEA_TEST_CLOCK", &clock);
    let agent = Agent::start(command);
    let mut accepted = 0;
    for (what, ahead) in [("now", 0), ("ahead", 3_600), ("back", 0), ("behind", -3_600), ("now", 0)]
    {
        set_ahead(&clock, ahead);
        orders.inc();
        accepted += 1;
        let requests = agent.total("talea_push_requests_total").await;
        agent.reaches("talea_push_requests_total", requests + 5.0).await;
        // A receiver refuses what is an hour in the future.
        if what != "ahead" {
            stores(&prometheus, accepted).await;
        }
    }
    let values = stored(&prometheus).await;
    assert!(values.is_sorted(), "{values:?}");
    assert_eq!(agent.total("talea_push_samples_dropped_total").await, 0.0);
}

fn set_ahead(clock: &Path, seconds: i64) {
    // As a whole: the agent reads it all the time.
    let new = clock.with_extension("new");
    fs::write(&new, seconds.to_string()).unwrap();
    fs::rename(new, clock).unwrap();
}

#[tokio::test]
async fn a_region_that_is_replaced_has_its_own_values_at_the_receiver() {
    let prometheus = Prometheus::start_receiver("prometheus", "native-histograms").await;
    let place = Place::new();
    let _agent = {
        let (_registry, orders) = place.orders();
        orders.add(5);
        let agent = place.agent(prometheus.address());
        prometheus.wait_for("orders_total", |value| value == 5.0).await;
        agent
    };
    fs::remove_file(place.at("shop.talea")).unwrap();
    let (_registry, orders) = place.orders();
    orders.add(2);
    prometheus.wait_for("orders_total", |value| value == 2.0).await;
    orders.inc();
    prometheus.wait_for("orders_total", |value| value == 3.0).await;
}

#[test]
#[ignore = "a process that another test starts and kills"]
fn has_a_level_until_it_is_killed() {
    let registry = Registry::open(std::env::var_os("TALEA_TEST_REGION").unwrap()).unwrap();
    let opts = Opts::new("level", "Of this process.").combine(Combine::Each);
    registry.register::<Gauge>(opts).unwrap().set(7);
    println!("\nset");
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Waits until a query finds no series.
async fn ends(prometheus: &Prometheus, query: &str) {
    let began = Instant::now();
    while prometheus.number(query).await.is_some() {
        assert!(began.elapsed() < LONGEST, "{query} does not end: {}", prometheus.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_series_of_a_killed_process_and_of_a_removed_region_end_at_once() {
    let prometheus = Prometheus::start_receiver("prometheus", "native-histograms").await;
    let place = Place::new();
    let (_registry, orders) = place.orders();
    orders.add(5);
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "push_by_agent::has_a_level_until_it_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env("TALEA_TEST_REGION", place.at("shop.talea"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _agent = place.agent(prometheus.address());
    prometheus.wait_for("level", |value| value == 7.0).await;
    process.kill().unwrap();
    process.wait().unwrap();
    ends(&prometheus, "level").await;
    assert_eq!(prometheus.number("orders_total").await, Some(5.0), "what counts stays");
    fs::remove_file(place.at("shop.talea")).unwrap();
    ends(&prometheus, "orders_total").await;
    assert_eq!(prometheus.log(), "", "it complains");
}
