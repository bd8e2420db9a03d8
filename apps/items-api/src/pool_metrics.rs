//! The metrics of pools of connections, each by its `pool_name`, under the names of
//! OpenTelemetry:
//!
//! | metric | what it says |
//! |---|---|
//! | `db_client_connections` | connections that are open, by `state`: `used` by a request, or `idle` |
//! | `db_client_connection_max` | connections that there may be |
//! | `db_client_connection_pending_requests` | requests that wait for a connection now |
//! | `db_client_connection_pending_requests_peak` | the most of them at one moment since the last reset |
//! | `db_client_connection_wait_time_seconds` | how long requests waited, those that need not wait among them |
//!
//! (OpenTelemetry calls the first `db.client.connection.count`; of a gauge, `_count` at
//! the end of its name would be taken for that of a histogram.)

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;
use talea::{Error, Family, Gauge, Histogram, LabelValue, Labels, Metrics, Registry, Seconds};

#[derive(Debug, Clone, Copy, LabelValue)]
pub(crate) enum PoolName {
    /// SQLite's one connection that writes.
    Writer,
    /// SQLite's connections that read.
    Readers,
    /// PostgreSQL's connections.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    Postgres,
}

#[derive(Debug, Clone, Copy, LabelValue)]
enum State {
    Idle,
    Used,
}

#[derive(Labels)]
struct Pool {
    pool_name: PoolName,
}

#[derive(Labels)]
struct PoolInState {
    pool_name: PoolName,
    state: State,
}

#[derive(Debug, Metrics)]
#[metrics(prefix = "db_client")]
struct Families {
    /// Connections to the database that are open, by whether a request uses them.
    connections: Family<PoolInState, Gauge>,
    /// Connections that the pool may have.
    connection_max: Family<Pool, Gauge>,
    /// Requests that wait for a connection.
    connection_pending_requests: Family<Pool, Gauge>,
    /// Most requests that waited for a connection at once since the last reset.
    connection_pending_requests_peak: Family<Pool, Gauge>,
    /// Time that requests waited for a connection.
    connection_wait_time: Family<Pool, Histogram<Seconds>>,
}

#[derive(Debug)]
pub(crate) struct PoolMetrics {
    registry: Registry,
    families: Families,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Connections {
    pub(crate) used: u32,
    pub(crate) idle: u32,
    pub(crate) max: u32,
}

/// Records the waiting requests of one pool, and their waiting times.
#[derive(Debug)]
pub(crate) struct PoolMeter {
    waiting: Arc<WaitCounts>,
    wait_time: Histogram<Seconds>,
}

impl PoolMetrics {
    /// Shows no pool yet.
    /// Fails when a metric cannot be registered.
    pub(crate) fn register(registry: &Registry) -> Result<PoolMetrics, Error> {
        let families = Families::new();
        talea::install(registry, &[&families])?;
        Ok(PoolMetrics { registry: registry.clone(), families })
    }

    /// Shows the pool `pool_name`, which has what `connections` says, from now on.
    pub(crate) fn meter(
        &self,
        pool_name: PoolName,
        connections: impl Fn() -> Connections + Send + Sync + 'static,
    ) -> PoolMeter {
        let families = &self.families;
        let in_state = |state| families.connections.with(PoolInState { pool_name, state }).keep();
        let (idle, used) = (in_state(State::Idle), in_state(State::Used));
        let gauge = |family: &Family<Pool, Gauge>| family.with(Pool { pool_name }).keep();
        let max = gauge(&families.connection_max);
        let pending = gauge(&families.connection_pending_requests);
        let peak = gauge(&families.connection_pending_requests_peak);
        let waiting = Arc::new(WaitCounts::default());
        let seen = Arc::clone(&waiting);
        self.registry.on_snapshot(move || {
            let now = connections();
            idle.set(i64::from(now.idle));
            used.set(i64::from(now.used));
            max.set(i64::from(now.max));
            // The peak last: it is never shown below the other.
            pending.set(seen.now.load(SeqCst));
            peak.set(seen.peak.load(SeqCst));
        });
        let wait_time = families.connection_wait_time.with(Pool { pool_name }).keep();
        PoolMeter { waiting, wait_time }
    }
}

impl PoolMeter {
    /// Counts the caller among those who wait, until what is returned is dropped.
    pub(crate) fn wait(&self) -> WaitGuard<'_> {
        let now = self.waiting.now.fetch_add(1, SeqCst) + 1;
        self.waiting.peak.fetch_max(now, SeqCst);
        WaitGuard(&self.waiting)
    }

    /// Somebody has a connection, after so long.
    pub(crate) fn waited(&self, time: Duration) {
        self.wait_time.observe(time);
    }

    /// Sets the peak to the count of this moment.
    pub(crate) fn reset_peak(&self) {
        self.waiting.peak.store(0, SeqCst);
        // A request that came in between has raised the peak already, or is counted here.
        self.waiting.peak.fetch_max(self.waiting.now.load(SeqCst), SeqCst);
    }
}

/// How many wait, and the most at once since the last reset.
#[derive(Debug, Default)]
struct WaitCounts {
    now: AtomicI64,
    peak: AtomicI64,
}

/// Counts a request among those that wait while it lives.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a>(&'a WaitCounts);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "db_client_connection_pending_requests";
    const WRITER: [(&str, &str); 1] = [("pool_name", "writer")];

    #[test]
    fn the_peak_outlives_those_who_waited_until_it_is_reset() {
        let registry = Registry::for_test().unwrap();
        let metrics = PoolMetrics::register(&registry).unwrap();
        let meter = metrics.meter(PoolName::Writer, || Connections { used: 1, idle: 2, max: 5 });
        let peak = format!("{NAME}_peak");
        let shown = || {
            let snapshot = registry.snapshot();
            (snapshot.expect_value(NAME, &WRITER), snapshot.expect_value(&peak, &WRITER))
        };
        let (first, _second) = (meter.wait(), meter.wait());
        drop(first);
        assert_eq!(shown(), (1.0, 2.0));
        meter.reset_peak();
        assert_eq!(shown(), (1.0, 1.0));
    }
}
