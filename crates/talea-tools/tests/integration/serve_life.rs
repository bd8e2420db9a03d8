//! `talea serve`: the real agent, while what it serves is stopped, dies and comes back, and
//! until it is stopped itself.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use talea::{Config, Counter, Family, Labels, Opts, Registry, Seconds, Summary};

use crate::support::agent::{Agent, Answer};
use crate::support::items_api::{ItemsApi, LISTED, is_listed};
use crate::support::region_folder::RegionFolder;
use crate::support::{End, LONGEST, Running, assert_refused, sample, talea, until, wait_for};

/// The values of a page in text 0.0.4, by name and labels as they are written.
fn values(page: &str) -> BTreeMap<&str, f64> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series, value.parse().unwrap())
        })
        .collect()
}

/// Clients that list items of whatever service there is, and what they know of it.
#[derive(Default)]
struct Load {
    address: RwLock<String>,
    is_over: AtomicBool,
    begun: AtomicU64,
    answered: AtomicU64,
    scrapes: AtomicU64,
}

impl Load {
    /// Lists again and again until it is over. It says whether all of an answer came.
    fn run(&self) {
        while !self.is_over.load(SeqCst) {
            let address = self.address.read().unwrap().clone();
            self.begun.fetch_add(1, SeqCst);
            if is_listed(&address) {
                self.answered.fetch_add(1, SeqCst);
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// Scrapes again and again until it is over. No counter ever goes down, and what was answered before
/// a scrape is in it.
fn watch(agent: &Agent, load: &Load) {
    let mut before = String::new();
    while !load.is_over.load(SeqCst) {
        let answered = load.answered.load(SeqCst);
        let page = agent.scrape();
        load.scrapes.fetch_add(1, SeqCst);
        let begun = load.begun.load(SeqCst);
        let now = values(&page);
        let listed = now.get(LISTED).copied().unwrap_or(0.0) as u64;
        assert!((answered..=begun).contains(&listed), "{answered} <= {listed} <= {begun}");
        let counts = |series: &str| {
            let name = series.split('{').next().unwrap();
            let is_counter =
                ["_total", "_count", "_bucket"].iter().any(|ending| name.ends_with(ending));
            // These are what one process says of itself, and begin anew with the next.
            is_counter && !name.starts_with("process_") && !name.starts_with("tokio_")
        };
        for (series, was) in values(&before).into_iter().filter(|(series, _)| counts(series)) {
            let is = now.get(series).unwrap_or_else(|| panic!("{series} is gone"));
            assert!(*is >= was, "{series} was {was} and is {is}");
        }
        before = page;
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_application_is_served_while_it_is_stopped_dead_and_back_with_all_that_was_counted() {
    let place = RegionFolder::new();
    let mut service = ItemsApi::start(Some(&place.region()));
    let agent = Agent::start([place.region()]);
    let load = Load { address: RwLock::new(service.items.clone()), ..Load::default() };
    let answered = || load.answered.load(SeqCst);
    // No scrape waits for the service: they end while it is stopped, and after it has died.
    let ten_scrapes = || {
        let first = load.scrapes.load(SeqCst);
        until("ten scrapes", || load.scrapes.load(SeqCst) >= first + 10);
    };
    scope(|scope| {
        let _end = End(&load.is_over);
        let clients: Vec<_> = (0..3).map(|_| scope.spawn(|| load.run())).collect();
        let watch = scope.spawn(|| watch(&agent, &load));
        until("some are answered", || answered() > 0);
        ten_scrapes();
        service.signal(Signal::STOP);
        ten_scrapes();
        service.kill();
        ten_scrapes();
        let of_the_first = answered();
        service = ItemsApi::start(Some(&place.region()));
        load.address.write().unwrap().clone_from(&service.items);
        until("some are answered again", || answered() > of_the_first);
        ten_scrapes();
        load.is_over.store(true, SeqCst);
        clients.into_iter().for_each(|client| client.join().unwrap());
        watch.join().unwrap();
    });
    // Nothing more comes: the counts of both lives.
    let page = agent.scrape();
    let listed = values(&page)[LISTED] as u64;
    assert!(listed >= answered(), "{listed} of {}", answered());
    assert_eq!(sample(&page, r#"talea_agent_region_up{region="shop"}"#), Some(1.0));
    let stderr = agent.stderr();
    assert!(stderr.iter().filter(|line| line.contains("shop")).count() == 1, "{stderr:?}");
}

#[test]
fn memory_of_a_process_is_served_also_when_that_is_killed() {
    let mut service = ItemsApi::start(None);
    let agent = Agent::start(["--pid", &service.pid().to_string()]);
    service.list(3);
    let listed = || sample::<f64>(&agent.scrape(), LISTED);
    assert_eq!(listed(), Some(3.0));
    let of_it = format!("{{region=\"{}\"}}", service.pid());
    let shown = || {
        let page = agent.scrape();
        ["talea_region_processes", "talea_region_last_death_timestamp_seconds"]
            .map(|metric| sample::<f64>(&page, &format!("{metric}{of_it}")))
    };
    assert_eq!(shown(), [Some(1.0), None]);
    let before = unix_seconds();
    service.list(2);
    service.kill();
    let [living, death] = shown();
    assert!(living == Some(0.0) && death >= Some(before), "{living:?}, {death:?}");
    for _ in 0..3 {
        assert_eq!(listed(), Some(5.0));
        assert_eq!(agent.get("/readyz", &[]).status, 200);
        sleep(Duration::from_millis(600));
    }
    assert_eq!(sample(&agent.scrape(), &format!("talea_agent_region_up{of_it}")), Some(1.0));
}

fn unix_seconds() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
}

#[test]
fn a_process_that_has_no_region_in_memory_is_one_clear_line() {
    let place = RegionFolder::new();
    let service = ItemsApi::start(Some(&place.region()));
    let sleeps = Running(Command::new("sleep").arg("60").spawn().unwrap());
    let (pid, other) = (service.pid().to_string(), sleeps.0.id().to_string());
    let region = place.region();
    let region = region.to_str().unwrap();
    for (arguments, parts) in [
        (&["serve", "--pid", "4194305"][..], &["No such file"][..]),
        (&["serve", "--pid", &pid], &["no region in memory", "in a file, name that"]),
        // Also beside what can be served.
        (&["serve", region, "--pid", &other], &["no region in memory", "in a file, name that"]),
    ] {
        let process = format!("process {}:", arguments.last().unwrap());
        assert_refused(&talea(arguments), &[&[&*process], parts].concat());
    }
}

/// A service that counts in a file, which an agent serves.
struct Served {
    place: RegionFolder,
    service: ItemsApi,
    agent: Agent,
}

impl Served {
    fn start() -> Self {
        let place = RegionFolder::new();
        let service = ItemsApi::start(Some(&place.region()));
        let agent = Agent::start([place.region()]);
        Self { place, service, agent }
    }

    /// Values that the agent has for the region.
    fn shown<const N: usize>(&self, metrics: [&str; N]) -> [Option<f64>; N] {
        let page = self.agent.scrape();
        metrics.map(|metric| sample(&page, &format!("{metric}{{region=\"shop\"}}")))
    }
}

#[test]
fn nobody_is_said_to_live_in_a_region_that_cannot_be_read() {
    let mut served = Served::start();
    let lives = ["talea_agent_region_up", "talea_region_processes"];
    assert_eq!(served.shown(lives), [Some(1.0); 2]);
    let by_path = |served: &Served| {
        let page = served.agent.scrape();
        ["restartable", "atomic", "single"].map(|path| {
            let series = format!("talea_adds_by{{region=\"shop\",path=\"{path}\"}}");
            sample::<f64>(&page, &series)
        })
    };
    assert_eq!(by_path(&served).into_iter().flatten().sum::<f64>(), 1.0);
    std::fs::remove_file(served.place.region()).unwrap();
    served.service.kill();
    assert_eq!(served.shown(lives), [Some(0.0), None]);
    assert_eq!(by_path(&served), [None; 3]);
}

const PROCESSES: &str = "talea_region_processes";
const LAST_DEATH: &str = "talea_region_last_death_timestamp_seconds";

#[test]
fn a_process_whose_file_is_replaced_has_died_and_one_whose_file_is_unreadable_for_a_while_has_not()
{
    let mut served = Served::start();
    let region = served.place.region();
    assert_eq!(served.shown([PROCESSES, LAST_DEATH]), [Some(1.0), None]);
    for (mode, living) in [(0o666, None), (0o600, Some(1.0))] {
        std::fs::set_permissions(&region, Permissions::from_mode(mode)).unwrap();
        assert_eq!(served.shown([PROCESSES, LAST_DEATH]), [living, None]);
    }
    let before = unix_seconds();
    std::fs::remove_file(&region).unwrap();
    served.service.kill();
    assert_eq!(served.shown([PROCESSES]), [None]);
    let _next = ItemsApi::start(Some(&region));
    let [living, death] = served.shown([PROCESSES, LAST_DEATH]);
    assert!(living == Some(1.0) && death >= Some(before), "{living:?}, {death:?}");
}

#[test]
fn a_scrape_of_few_families_finds_a_process_of_a_file_dead() {
    let mut served = Served::start();
    let path = format!("/metrics?name[]={PROCESSES}&name[]={LAST_DEATH}");
    let page = served.agent.get(&path, &[]).text();
    assert_eq!(values(&page).into_values().collect::<Vec<_>>(), [1.0], "{page}");
    served.service.kill();
    let page = served.agent.get(&path, &[]).text();
    assert_eq!(values(&page)[r#"talea_region_processes{region="shop"}"#], 0.0, "{page}");
    assert_eq!(values(&page).len(), 2, "{page}");
}

/// The environment variable that gives the process of `a_process_that_observes_on_request` its
/// region.
const SUMMARY: &str = "TALEA_TEST_SUMMARY";
const WINDOW: Duration = Duration::from_secs(2);

/// Not a claim of its own: another test starts it as a process. For each line of its input it
/// observes that many milliseconds, a hundred times.
#[test]
fn a_process_that_observes_on_request() {
    let Some(region) = std::env::var_os(SUMMARY) else { return };
    let registry = Registry::open(region).unwrap();
    let opts = Opts::new("pricing", "Time to price.").quantiles(&[0.5, 0.9]).window(WINDOW);
    let pricing: Summary<Seconds> = registry.register(opts).unwrap();
    println!("\nready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let time = Duration::from_millis(line.parse().unwrap());
        (0..100).for_each(|_| pricing.observe(time));
        println!("\nobserved");
    }
}

/// A process with a summary.
struct Observer {
    process: Running,
    said: Box<dyn Iterator<Item = String>>,
}

impl Observer {
    fn start(region: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "serve_life::a_process_that_observes_on_request", "--nocapture"])
            .env(SUMMARY, region)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.filter(|line| line == "ready" || line == "observed");
        let mut observer = Self { process: Running(child), said: Box::new(said) };
        assert_eq!(observer.said.next().as_deref(), Some("ready"));
        observer
    }

    /// Observes a time, a hundred times.
    fn observe(&mut self, millis: u64) {
        writeln!(self.process.0.stdin.as_ref().unwrap(), "{millis}").unwrap();
        assert_eq!(self.said.next().as_deref(), Some("observed"));
    }
}

#[test]
fn quantiles_are_those_of_their_window_whether_anybody_scrapes_or_not() {
    let place = RegionFolder::new();
    let mut observer = Observer::start(&place.region());
    let agent = Agent::start([place.region()]);
    let of = |page: &str| {
        let now = values(page);
        ["0.5", "0.9"].map(|q| now[&*format!("pricing_seconds{{quantile=\"{q}\"}}")])
    };
    // Quantiles of a page that was made within a window of the observation.
    let observe = |observer: &mut Observer, millis| {
        wait_for(|| {
            let began = Instant::now();
            observer.observe(millis);
            let page = agent.scrape();
            let shown = of(&page);
            if began.elapsed() < WINDOW { Ok(shown) } else { Err(page) }
        })
    };
    let assert_near = |shown: [f64; 2], expected: f64| {
        assert!(
            shown.into_iter().all(|shown: f64| (shown / expected - 1.0).abs() < 0.0434),
            "{shown:?}, expected {expected}"
        );
    };
    observer.observe(10);
    // Nobody scrapes: the agent itself sees that time pass. Two seconds are more than it may be late.
    sleep(WINDOW + 2 * Duration::from_secs(2));
    assert_near(observe(&mut observer, 1000), 1.0);
    until("a window without observations", || of(&agent.scrape()).iter().all(|it| it.is_nan()));
    assert_near(observe(&mut observer, 20), 0.02);
    until("a window without observations", || of(&agent.scrape()).iter().all(|it| it.is_nan()));
    drop(observer);
    // The observations outlive the process that made them.
    let shown = wait_for(|| {
        let began = Instant::now();
        Observer::start(&place.region()).observe(40);
        let shown = of(&agent.scrape());
        if began.elapsed() < WINDOW { Ok(shown) } else { Err(shown) }
    });
    assert_near(shown, 0.04);
}

#[test]
fn values_that_are_read_move_though_nobody_scrapes_the_application() {
    let Served { service, agent, place: _place } = Served::start();
    let value = |series: &str| sample(&agent.scrape(), series).unwrap_or(0.0);
    let cpu = || value("process_cpu_seconds_total");
    let before = cpu();
    let _connections = [(); 3].map(|()| TcpStream::connect(&service.items).unwrap());
    until("a gauge moves", || value("server_tasks_alive") == 3.0);
    until("a counter moves", || {
        service.make_and_list(20);
        cpu() > before
    });
    assert!(value("server_tasks_alive_peak") >= 3.0);
}

#[derive(Labels)]
struct Of<'a> {
    customer: &'a str,
}

/// A region whose page is larger than what a connection takes of it that nobody reads.
fn large(region: &Path) -> Registry {
    let registry = Registry::open_with(region, Config::with_len(256 << 20)).unwrap();
    let opts = Opts::new("orders", "Orders accepted.").limit(100_000);
    let orders: Family<Of<'static>, Counter> = registry.register(opts).unwrap();
    let name = "x".repeat(400);
    for n in 0..60_000 {
        orders.with(Of { customer: &format!("{name}{n}") }).inc();
    }
    registry
}

/// Asks for a page, and takes but the beginning of it.
fn begin_scrape(agent: &Agent) -> TcpStream {
    let mut stream = TcpStream::connect(&agent.address).unwrap();
    stream.set_read_timeout(Some(LONGEST)).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut piece = [0; 4096];
    stream.read_exact(&mut piece).unwrap();
    assert!(piece.starts_with(b"HTTP/1.1 200 OK\r\n"));
    stream
}

/// How the agent's scrapes ended.
const COUNTS: &str = "/metrics?name[]=talea_agent_scrapes_total";

/// How many ended so, by that page; none if it is another answer.
fn ended(page: &Answer, outcome: &str) -> Option<f64> {
    let series = format!("talea_agent_scrapes_total{{outcome=\"{outcome}\"}}");
    let page = (page.status == 200).then(|| page.text())?;
    values(&page).get(&*series).copied()
}

/// Whether all of a page comes, when it is read on.
fn is_whole(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    read.is_ok() && rest.ends_with(b"\r\n0\r\n\r\n")
}

#[test]
fn a_signal_ends_it_whatever_it_is_at() {
    let place = RegionFolder::new();
    let ends = |agent: Agent, what: &str| assert_eq!(agent.stop(), Some(0), "{what}");
    ends(Agent::start([place.region()]), "while it waits");

    let _orders = large(&place.region());
    let agent = Agent::start([place.region()]);
    let reads_no_more = begin_scrape(&agent);
    let mut speaks_no_more = TcpStream::connect(&agent.address).unwrap();
    speaks_no_more.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
    ends(agent, "while somebody takes a page and another asks for one");
    assert!(!is_whole(reads_no_more), "it was in the middle of a scrape");

    let agent = Agent::start([place.region()]);
    let reads = begin_scrape(&agent);
    scope(|scope| {
        let is_whole = scope.spawn(|| is_whole(reads));
        ends(agent, "while somebody reads a page");
        assert!(is_whole.join().unwrap(), "who reads on gets all of it");
    });
}

#[test]
fn a_hangup_is_noted_and_ends_nothing() {
    let place = RegionFolder::new();
    let _orders = large(&place.region());
    let agent = Agent::start([place.region()]);
    let pid = Pid::from_raw(agent.pid() as i32).unwrap();
    for _ in 0..2 {
        kill_process(pid, Signal::HUP).unwrap();
        agent.says("SIGHUP has no effect");
        agent.scrape();
    }
    assert_eq!(agent.stop(), Some(0));
}

#[test]
fn a_scrape_that_is_still_moving_keeps_its_turn_from_one_with_little_time() {
    let place = RegionFolder::new();
    let _orders = large(&place.region());
    let agent = Agent::start([place.region().to_str().unwrap(), "--at-once", "1"]);
    let takes = begin_scrape(&agent);
    let refused = agent.get("/metrics", &["x-prometheus-scrape-timeout-seconds: 0.02"]);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(agent.get("/healthz", &[]).status, 200);
    assert_eq!(agent.get("/readyz", &[]).status, 200);
    drop(takes);
    let page = agent.until(COUNTS, |page| ended(page, "broken_off") == Some(1.0));
    assert!(ended(&page, "refused") >= Some(1.0), "{page:?}");
}

#[test]
fn an_empty_page_is_complete_and_one_that_nobody_reads_is_broken_off() {
    let place = RegionFolder::new();
    let _orders = large(&place.region());
    let agent = Agent::start([place.region().to_str().unwrap(), "--at-once", "1"]);
    assert_eq!(agent.get("/metrics?name[]=none", &[]).text(), "");
    let page = agent.until(COUNTS, |page| !page.body.is_empty());
    assert_eq!(ended(&page, "broken_off"), None, "{page:?}");
    let takes_nothing = begin_scrape(&agent);
    drop(takes_nothing);
    agent.until(COUNTS, |page| ended(page, "broken_off") == Some(1.0));
}
