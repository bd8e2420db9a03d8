//! Pools of connections: what requests wait for. Works with any pool, since it asks for four things that each has: connections
//! in use, idle ones, the most that there may be, and the future that gets one.
//!
//! The names are OpenTelemetry's, but for the first, which it calls `db.client.connection.count`: of a gauge, `_count` at the
//! end of its name would be taken for that of a histogram.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use talea::{
    Combine, Counter, DynamicLabels, Error, Family, Gauge, Histogram, Metric, Opts, Registry,
    Seconds,
};

const POOL: &str = "pool_name";

/// The connections of a pool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Those that somebody uses.
    pub used: u64,
    /// Those that are open and that nobody uses.
    pub idle: u64,
    /// The most that the pool opens.
    pub max: u64,
}

/// Records who waits for a connection of a pool, and how long.
///
/// Clones share their counts. Cost of an [`acquire`](Self::acquire) that need not wait: two reads of the clock and an
/// observation.
#[derive(Clone, Debug)]
pub struct PoolMeter {
    waiting: Arc<Waiting>,
    wait_time: Histogram<Seconds>,
    failures: Counter,
}

impl PoolMeter {
    /// Has `registry` show a pool from now on, by the label `pool_name`; `status` is called for each snapshot.
    ///
    /// | metric | meaning |
    /// |---|---|
    /// | `db_client_connections{state}` | connections that are open: `used` or `idle` |
    /// | `db_client_connection_max` | connections that there may be |
    /// | `db_client_connection_pending_requests` | requests that wait for a connection now |
    /// | `db_client_connection_pending_requests_peak` | the most of them at one moment since the last reset |
    /// | `db_client_connection_wait_time_seconds` | how long requests waited, those that need not wait among them |
    /// | `db_client_connection_acquire_failures_total` | requests that got none: an error, such as a time-out |
    ///
    /// If processes share the registry, all are sums over the living processes but the peak, which is the highest of a process.
    /// In a child made by `fork`, the gauges are not refreshed.
    ///
    /// ```
    /// # use talea::Registry;
    /// use talea_collectors::pool::{PoolMeter, PoolStatus};
    ///
    /// # struct Connections;
    /// # impl Connections {
    /// #     fn size(&self) -> u32 { 4 }
    /// #     fn num_idle(&self) -> usize { 3 }
    /// #     async fn acquire(&self) -> Result<(), String> { Ok(()) }
    /// # }
    /// # fn connections() -> std::sync::Arc<Connections> { std::sync::Arc::new(Connections) }
    /// # async fn run(registry: &Registry) -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = connections(); // such as sqlx's
    /// let of_snapshots = pool.clone();
    /// let meter = PoolMeter::register(registry, "orders", move || {
    ///     let (all, idle) = (of_snapshots.size() as u64, of_snapshots.num_idle() as u64);
    ///     PoolStatus { used: all.saturating_sub(idle), idle, max: 10 } // read one after the other
    /// })?;
    /// let connection = meter.acquire(pool.acquire()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A metric cannot be registered: see [`Registry::register`].
    pub fn register(
        registry: &Registry,
        pool: &str,
        status: impl Fn() -> PoolStatus + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let new = New { registry, pool };
        let states = new.family::<Gauge>(
            "connections",
            "Connections that are open, by whether somebody uses them.",
            &[POOL, "state"],
            Combine::Sum,
        )?;
        let [used, idle] = ["used", "idle"].map(|state| states.with_values(&[pool, state]).keep());
        let max = new.gauge("connection_max", "Connections that there may be.", Combine::Sum)?;
        let pending = new.gauge(
            "connection_pending_requests",
            "Requests that wait for a connection.",
            Combine::Sum,
        )?;
        let peak = new.gauge(
            "connection_pending_requests_peak",
            "Most requests that waited for a connection at once since the last reset.",
            Combine::Max,
        )?;
        let wait_time = Opts::new(
            "db_client_connection_wait_time",
            "Time that requests waited for a connection.",
        );
        let wait_time: Family<DynamicLabels, Histogram<Seconds>> =
            registry.family(wait_time, &[POOL])?;
        let wait_time = wait_time.with_values(&[pool]).keep();
        let failures =
            Opts::new("db_client_connection_acquire_failures", "Requests that got no connection.");
        let failures: Family<DynamicLabels, Counter> = registry.family(failures, &[POOL])?;
        let failures = failures.with_values(&[pool]).keep();
        let waiting = Arc::new(Waiting::default());
        let seen = waiting.clone();
        let process = std::process::id();
        registry.on_snapshot(move || {
            // A child made by `fork` has a copy of its parent's pool.
            if std::process::id() != process {
                return;
            }
            let now = status();
            for (gauge, value) in [(&used, now.used), (&idle, now.idle), (&max, now.max)] {
                gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            }
            // The peak last: it is never shown below the other.
            pending.set(seen.now.load(SeqCst));
            peak.set(seen.peak.load(SeqCst));
        });
        Ok(Self { waiting, wait_time, failures })
    }

    /// Waits for a connection, with the future of any pool that gets one.
    ///
    /// The time is recorded if there is one; an error is counted. A request counts as one that waits from the first time that
    /// the future is not ready, until it is or is dropped.
    ///
    /// # Errors
    /// As the future.
    pub async fn acquire<T, E>(&self, acquire: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let began = Instant::now();
        let mut acquire = pin!(acquire);
        let mut waits = None;
        let acquired = std::future::poll_fn(|context| {
            let polled = acquire.as_mut().poll(context);
            if polled.is_pending() && waits.is_none() {
                waits = Some(self.wait());
            }
            polled
        });
        let acquired = acquired.await;
        drop(waits);
        match &acquired {
            Ok(_) => self.waited(began.elapsed()),
            Err(_) => self.failures.inc(),
        }
        acquired
    }

    /// Counts the caller among those who wait, until what is returned is dropped: for a pool whose wait is no future.
    pub fn wait(&self) -> WaitGuard {
        let now = self.waiting.now.fetch_add(1, SeqCst) + 1;
        self.waiting.peak.fetch_max(now, SeqCst);
        WaitGuard(self.waiting.clone())
    }

    /// Records that somebody has a connection, after so long.
    pub fn waited(&self, time: Duration) {
        self.wait_time.observe(time);
    }

    /// Sets the peak to the count of this moment.
    pub fn reset_peak(&self) {
        self.waiting.peak.store(0, SeqCst);
        // A request that came in between has raised the peak already, or is counted here.
        self.waiting.peak.fetch_max(self.waiting.now.load(SeqCst), SeqCst);
    }
}

/// How many wait, and the most at once since the last reset.
#[derive(Debug, Default)]
struct Waiting {
    now: AtomicI64,
    peak: AtomicI64,
}

/// Counts a request among those that wait while it lives.
#[derive(Debug)]
pub struct WaitGuard(Arc<Waiting>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

/// Registers metrics of one pool.
#[derive(Clone, Copy)]
struct New<'a> {
    registry: &'a Registry,
    pool: &'a str,
}

impl New<'_> {
    fn family<M: Metric>(
        self,
        name: &str,
        help: &str,
        labels: &[&str],
        combine: Combine,
    ) -> Result<Family<DynamicLabels, M>, Error> {
        let name = format!("db_client_{name}");
        self.registry.family(Opts::new(&name, help).combine(combine), labels)
    }

    fn gauge(self, name: &str, help: &str, combine: Combine) -> Result<Gauge, Error> {
        let family = self.family::<Gauge>(name, help, &[POOL], combine)?;
        Ok(family.with_values(&[self.pool]).keep())
    }
}
