//! Connections to a database, which requests take in turn.
//!
//! The connections are sqlx's pool. In front of it stands a queue of ours: so a request
//! may wait long for its turn and still not long for a server that is gone, and it is
//! known exactly who waits.

use crate::pool_metrics::{Connections, PoolMeter, PoolMetrics, PoolName};
use sqlx::migrate::{Migrate, Migrator};
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{Connection, Database, Error};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// How long a request may wait for its turn. Long, since a wait under load
/// is what a study measures, and must not turn into an error.
const QUEUE_LIMIT: Duration = Duration::from_secs(600);

/// After how long without use a connection is asked whether it still stands.
const FRESH_FOR: Duration = Duration::from_secs(1);

type Options<D> = <<D as Database>::Connection as Connection>::Options;

/// The parts of a pool.
#[derive(Debug)]
pub(crate) struct Plan<D: Database> {
    pub(crate) name: PoolName,
    pub(crate) connections: u32,
    /// How long opening a connection may take, once it is a request's turn.
    pub(crate) connect_limit: Duration,
    /// Whether the database is somewhere else, so that a connection may be broken.
    pub(crate) remote: bool,
    pub(crate) options: Options<D>,
}

/// Open connections.
#[derive(Debug)]
pub(crate) struct Pool<D: Database> {
    connections: sqlx::Pool<D>,
    /// As many turns as connections.
    turns: Arc<Semaphore>,
    max: u32,
    /// Wakes all waiters: no connection will become free.
    gone: Notify,
    meter: Option<PoolMeter>,
}

/// A connection that is taken, and comes back when this is dropped.
#[derive(Debug)]
pub(crate) struct PooledConnection<'a, D: Database> {
    // In this order: it is on its way back before the turn is somebody else's.
    connection: PoolConnection<D>,
    _turn: SemaphorePermit<'a>,
}

impl<D: Database> Pool<D> {
    /// Opens all connections, and has `metrics` show them.
    pub(crate) async fn open(plan: Plan<D>, metrics: Option<&PoolMetrics>) -> sqlx::Result<Self> {
        let connections = PoolOptions::new()
            .max_connections(plan.connections)
            .acquire_timeout(plan.connect_limit)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false);
        let connections = if plan.remote { tested_when_idle(connections) } else { connections };
        let connections = connections.connect_with(plan.options).await?;
        let max = plan.connections;
        // Not as sqlx's own minimum: for that it would go on by itself trying a server that
        // is gone, and keep those connections from requests meanwhile.
        let mut all = Vec::new();
        for _ in 0..max {
            all.push(connections.acquire().await?);
        }
        drop(all);
        let turns = Arc::new(Semaphore::new(max as usize));
        let meter = metrics.map(|metrics| {
            let (connections, turns) = (connections.clone(), turns.clone());
            metrics.meter(plan.name, move || {
                let taken = max.saturating_sub(turns.available_permits() as u32);
                let open = connections.size();
                // Whose turn it is may still be connecting.
                let used = taken.min(open);
                Connections { used, idle: open - used, max }
            })
        });
        Ok(Pool { connections, turns, max, gone: Notify::new(), meter })
    }

    /// Brings the tables up to date.
    pub(crate) async fn migrate(&self, migrations: &Migrator) -> sqlx::Result<()>
    where
        D::Connection: Migrate,
    {
        Ok(migrations.run(&self.connections).await?)
    }

    /// A connection, when it is the caller's turn.
    pub(crate) async fn take(&self) -> sqlx::Result<PooledConnection<'_, D>> {
        let asked = self.meter.as_ref().map(|meter| (meter, Instant::now()));
        let turn = match self.turns.try_acquire() {
            Ok(turn) => turn,
            Err(_) => self.turn().await?,
        };
        let connection = self.connection().await?;
        if let Some((meter, since)) = asked {
            meter.waited(since.elapsed());
        }
        Ok(PooledConnection { connection, _turn: turn })
    }

    /// The connection of whose turn it is: one that is there, or a new one.
    async fn connection(&self) -> sqlx::Result<PoolConnection<D>> {
        loop {
            match self.connections.acquire().await {
                Ok(connection) => return Ok(connection),
                // All are there: the last user left before an answer came, which is still
                // to be read.
                Err(Error::PoolTimedOut) if self.connections.size() == self.max => {}
                Err(error) => {
                    // Each of those who wait would find out the same, a few at a time.
                    self.gone.notify_waiters();
                    return Err(error);
                }
            }
        }
    }

    async fn turn(&self) -> sqlx::Result<SemaphorePermit<'_>> {
        let _waits = self.meter.as_ref().map(PoolMeter::wait);
        tokio::select! {
            biased;
            () = self.gone.notified() => Err(Error::PoolTimedOut),
            turn = timeout(QUEUE_LIMIT, self.turns.acquire()) => {
                turn.map_err(|_| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)
            }
        }
    }

    /// Sets the peak of those who wait to who waits now.
    pub(crate) fn reset_peak(&self) {
        if let Some(meter) = &self.meter {
            meter.reset_peak();
        }
    }

    /// Ends all connections, once what they do is done.
    pub(crate) async fn close(&self) {
        self.connections.close().await;
    }
}

/// A connection that was idle is asked whether it still stands. That takes an allocation a request.
fn tested_when_idle<D: Database>(options: PoolOptions<D>) -> PoolOptions<D> {
    options.before_acquire(|connection: &mut D::Connection, met| {
        Box::pin(async move {
            if met.idle_for > FRESH_FOR {
                connection.ping().await?;
            }
            Ok(true)
        })
    })
}

impl<D: Database> Deref for PooledConnection<'_, D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        &self.connection
    }
}

impl<D: Database> DerefMut for PooledConnection<'_, D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        &mut self.connection
    }
}
