//! The pusher: a thread that collects and sends.

use std::io;
use std::process;
use std::sync::mpsc as std_mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use talea::{Registry, Scrapable, Scraper};
use talea_page::Family;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::client::Client;
use crate::clock::Clock;
use crate::config::{Config, Protocol, Temporality};
use crate::error::Error;
use crate::metrics::Metrics;
use crate::otlp::{self, Deltas};
use crate::queue::Queue;
use crate::record::{Collection, Record};
use crate::relabel::{Relabelling, Rule, Twice};
use crate::remote_write::{self, Version, millis};
use crate::sender::{Notices, Sender};

/// Pushes the metrics of a registry to a receiver, on a thread of its own, until it is dropped.
///
/// When it is dropped it collects once more, and marks all series as ended unless
/// [the configuration](Config::end_series_at_stop) says otherwise; what the receiver does not take
/// within a second is lost, unless the queue has a [folder](Config::queue_in). [`stop`](Self::stop) waits
/// longer.
///
/// In a child made by `fork` there is no such thread: nothing is pushed from there, and the parent goes on.
#[derive(Debug)]
pub struct Pusher {
    commands: Option<mpsc::UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
    /// The id of the process that has the thread.
    process: u32,
}

/// How long a pusher that is dropped goes on sending.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);

/// As good as never, and near enough for a timer.
const LONGEST_INTERVAL: Duration = Duration::from_secs(365 * 24 * 3600);

enum Command {
    /// Collects, and says whether nothing waits any more within a time.
    Flush(Duration, std_mpsc::Sender<bool>),
    /// The last such.
    Stop(Duration, std_mpsc::Sender<bool>),
}

impl Pusher {
    /// Pushes the metrics of a registry. The metrics about pushing, `talea_push_…`, are in it too.
    ///
    /// ```no_run
    /// use talea_push::{Config, Pusher};
    ///
    /// let registry = talea::Registry::new()?;
    /// let config = Config::remote_write("http://localhost:9090/api/v1/write")?.label("job", "shop");
    /// let _pusher = Pusher::start(&registry, config)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The configuration cannot be used, as the [`Error`] says. A receiver that cannot be reached is no
    /// error.
    pub fn start(registry: &Registry, config: Config) -> Result<Self, Error> {
        Self::start_for(registry, registry, config)
    }

    /// Pushes what any source of scrapes has, such as an agent that joins several regions. The metrics about
    /// pushing are in `registry`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_for<S: Scrapable>(
        source: &S,
        registry: &Registry,
        config: Config,
    ) -> Result<Self, Error> {
        config.check()?;
        let client = Client::new(&config)?;
        let (queue, damaged) = Queue::open(config.queue_folder().as_deref(), config.most_bytes)?;
        if damaged > 0 {
            talea::notice(format_args!(
                "{damaged} files of the queue were damaged, and are removed: what they held is lost"
            ));
        }
        let metrics = Metrics::new(registry, config.target())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("talea-resolve")
            .build()
            .map_err(Error::Thread)?;
        let (commands, receiver) = mpsc::unbounded_channel();
        let mut scraper = Scraper::new(source);
        let mut collector = Collector::new(&config);
        let mut last = i64::MIN;
        if collector.needs_start() {
            last = millis(SystemTime::now());
            drop(collector.collect(scraper.families(), last));
        }
        let work = Work { scraper, collector, last, config, queue, metrics, clock: Clock::new() };
        let thread = thread::Builder::new()
            .name("talea-push".to_owned())
            .spawn(move || {
                runtime.block_on(work.run(client, receiver));
                // A name may be looked up still.
                runtime.shutdown_background();
            })
            .map_err(Error::Thread)?;
        Ok(Self { commands: Some(commands), thread: Some(thread), process: process::id() })
    }

    /// Collects now, and waits until nothing waits to be sent, at most for a time. Returns whether that is so:
    /// what the receiver refused for good does not wait. Do not call it on a thread of an async runtime.
    pub fn flush(&self, limit: Duration) -> bool {
        self.command(Command::Flush, limit)
    }

    /// Collects for the last time, marks all series as ended as when it is dropped, and waits until nothing waits to be sent, at most
    /// for a time. Returns whether that is so. Do not call it on a thread of an async runtime.
    pub fn stop(mut self, limit: Duration) -> bool {
        let sent = self.command(Command::Stop, limit);
        self.commands = None;
        sent
    }

    fn command(
        &self,
        command: fn(Duration, std_mpsc::Sender<bool>) -> Command,
        limit: Duration,
    ) -> bool {
        if self.process != process::id() {
            return false;
        }
        let (reply, replies) = std_mpsc::channel();
        let Some(commands) = &self.commands else { return false };
        commands.send(command(limit, reply)).is_ok() && replies.recv().unwrap_or(false)
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        if self.process != process::id() {
            // A child made by `fork` has no such thread, and to join it panics.
            return std::mem::forget((self.commands.take(), self.thread.take()));
        }
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Work<S: Scrapable> {
    scraper: Scraper<S>,
    collector: Collector,
    /// The time of the last collection.
    last: i64,
    config: Config,
    queue: Queue,
    metrics: Metrics,
    clock: Clock,
}

impl<S: Scrapable> Work<S> {
    async fn run(self, client: Client, commands: mpsc::UnboundedReceiver<Command>) {
        let Self { scraper, collector, last, config, queue, metrics, clock } = self;
        let mut sender = Sender {
            client,
            config: &config,
            queue: &queue,
            metrics: &metrics,
            clock: &clock,
            version: Version::V2,
            notices: Notices::default(),
        };
        let mut source = Source {
            scraper,
            collector,
            queue: &queue,
            metrics: &metrics,
            clock: &clock,
            ends_series: config.ends_series,
            named_twice: String::new(),
            last,
        };
        tokio::select! {
            () = sender.run() => {}
            () = source.run(config.interval, commands) => {}
        }
    }
}

/// Makes requests of pages.
enum Collector {
    RemoteWrite(Box<remote_write::Collector>),
    Otlp(otlp::Collector, Vec<Rule>),
}

impl Collector {
    fn new(config: &Config) -> Self {
        let Config { labels, rules, sends_classic, sends_native, most_samples, .. } = config;
        match config.protocol {
            Protocol::RemoteWrite => Self::RemoteWrite(Box::new(remote_write::Collector::new(
                labels.clone(),
                rules.clone(),
                *sends_classic,
                *sends_native,
                *most_samples,
            ))),
            // Over HTTP or gRPC.
            _ => {
                let deltas = (config.temporality == Temporality::Delta).then(|| deltas(config));
                let collector = otlp::Collector::new(labels, *sends_native, *most_samples, deltas);
                Self::Otlp(collector, rules.clone())
            }
        }
    }

    /// Whether differences are sent, and it is not known yet what was counted before.
    fn needs_start(&self) -> bool {
        match self {
            Self::RemoteWrite(_) => false,
            Self::Otlp(collector, _) => collector.deltas.as_ref().is_some_and(Deltas::is_empty),
        }
    }

    /// The requests with a page's values, and the series that were left out.
    fn collect(
        &mut self,
        families: impl Iterator<Item = Family>,
        time: i64,
    ) -> (Vec<Record>, Twice) {
        match self {
            Self::RemoteWrite(collector) => {
                let records = collector.collect(families, time);
                (records, collector.twice())
            }
            Self::Otlp(collector, rules) => {
                let mut relabelling = Relabelling::new(rules);
                let families = families.flat_map(|family| relabelling.family(family));
                let records = collector.collect(families, time);
                (records, relabelling.twice)
            }
        }
    }

    /// Keeps what the next differences are made from.
    fn save(&self) -> io::Result<()> {
        match self {
            Self::Otlp(otlp::Collector { deltas: Some(deltas), .. }, _) => deltas.save(),
            _ => Ok(()),
        }
    }
}

/// The values that the last pusher with this folder ended with.
fn deltas(config: &Config) -> Deltas {
    let longest = u64::try_from(config.max_age.as_nanos()).unwrap_or(u64::MAX);
    let (deltas, error) = Deltas::open(config.queue_folder().as_deref(), longest);
    if let Some(error) = error {
        talea::notice(format_args!(
            "it is not known where the last deltas to {} ended, so they begin now: {error}",
            config.target()
        ));
    }
    deltas
}

/// Collects values at intervals.
struct Source<'a, S: Scrapable> {
    scraper: Scraper<S>,
    collector: Collector,
    queue: &'a Queue,
    metrics: &'a Metrics,
    clock: &'a Clock,
    ends_series: bool,
    /// The first series that was left out of the last page, since another had its labels.
    named_twice: String,
    /// The time of the last collection.
    last: i64,
}

impl<S: Scrapable> Source<'_, S> {
    /// Collects until it is stopped.
    async fn run(&mut self, every: Duration, mut commands: mpsc::UnboundedReceiver<Command>) {
        // The first collection is made whatever is commanded meanwhile.
        self.collect();
        let every = every.clamp(Duration::from_millis(1), LONGEST_INTERVAL);
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let command = tokio::select! {
                // Dropping it counts as a command.
                command = commands.recv() => command,
                _ = ticks.tick() => {
                    self.collect();
                    continue;
                }
            };
            let (limit, reply) = match command {
                Some(Command::Flush(limit, reply)) => {
                    self.collect();
                    let _ = reply.send(self.empty(limit).await);
                    continue;
                }
                Some(Command::Stop(limit, reply)) => (limit, Some(reply)),
                None => (LAST_ATTEMPT, None),
            };
            self.collect();
            if self.ends_series {
                self.end();
            }
            let sent = self.empty(limit).await;
            if !sent {
                self.say_what_waits();
            }
            if let Some(reply) = reply {
                let _ = reply.send(sent);
            }
            return;
        }
    }

    /// Waits until nothing waits, at most for a time.
    async fn empty(&self, limit: Duration) -> bool {
        timeout(limit, self.queue.empty()).await.is_ok()
    }

    fn time(&mut self) -> i64 {
        self.last = self.clock.next(millis(SystemTime::now()), self.last);
        self.last
    }

    fn collect(&mut self) {
        let time = self.time();
        let (records, twice) = self.collector.collect(self.scraper.families(), time);
        self.note_twice(twice);
        self.push(time, records);
        // Not before they wait: what is lost between the two would be missing, and so it is sent again.
        if let Err(error) = self.collector.save() {
            self.metrics.queue_error();
            talea::notice(format_args!("where the deltas ended is not on disk: {error}"));
        }
    }

    /// Counts series that were left out, and names the first once until it is another.
    fn note_twice(&mut self, twice: Twice) {
        self.metrics.duplicates(twice.count);
        if twice.count > 0 && twice.first != self.named_twice {
            talea::notice(format_args!(
                "{} of the series that are pushed have the labels of another one and are left out, such as {}",
                twice.count, twice.first
            ));
        }
        self.named_twice = twice.first;
    }

    /// Ends all series, where the protocol has that.
    fn end(&mut self) {
        let time = self.time();
        if let Collector::RemoteWrite(collector) = &mut self.collector {
            let records = collector.end(time);
            self.push(time, records);
        }
    }

    fn push(&self, time: i64, records: Vec<Record>) {
        if records.is_empty() {
            return;
        }
        let pushed = self.queue.push(Collection { time, records });
        for (reason, counts) in pushed.dropped {
            self.metrics.dropped(reason, counts);
        }
        if let Some(error) = pushed.error {
            self.metrics.queue_error();
            talea::notice(format_args!("the queue is not on disk: {error}"));
        }
        self.metrics.load(self.queue.load_now(), time);
    }

    fn say_what_waits(&self) {
        let waiting = self.queue.load_now().counts.values();
        talea::notice(format_args!("pushing ends while {waiting} samples wait"));
    }
}
