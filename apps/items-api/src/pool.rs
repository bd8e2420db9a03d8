//! Connections to a database, which requests take in turn.
//!
//! A connection whose last query succeeded goes back as it is. After an error, or if its user left in
//! the middle of a query, a task of its own asks it first whether it still stands. So the usual request
//! pays for neither a task nor a question. A request may wait long for its turn and still not long for a
//! server that is gone, and it is known exactly who waits.

use crate::pool_metrics::{Connections, PoolMeter, PoolMetrics, PoolName};
use sqlx::{ConnectOptions, Connection, Database, Error};
use std::fmt;
use std::io::ErrorKind;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// How long a request may wait for its turn. Long, since a wait under load
/// is what a study measures, and must not turn into an error.
const QUEUE_LIMIT: Duration = Duration::from_secs(600);

/// After how long without use a connection is asked whether it still stands.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The pause before a refused connection is tried again; each is twice the one before, to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

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
    plan: Plan<D>,
    connections: Arc<OpenConnections<D>>,
    /// As many turns as connections.
    turns: Arc<Semaphore>,
    /// Wakes all waiters: no connection will become free.
    gone: Notify,
    meter: Option<PoolMeter>,
}

/// The connections that are open: those that wait here, and the number of all.
struct OpenConnections<D: Database> {
    idle: Mutex<Vec<(D::Connection, Instant)>>,
    count: AtomicU32,
}

impl<D: Database> fmt::Debug for OpenConnections<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenConnections").field("count", &self.count).finish_non_exhaustive()
    }
}

/// A connection that is taken, and comes back when this is dropped.
pub(crate) struct PooledConnection<D: Database> {
    /// `None` once it is on its way back.
    connection: Option<D::Connection>,
    // Dropped after the connection is back: then the turn is somebody else's.
    turn: Option<OwnedSemaphorePermit>,
    connections: Arc<OpenConnections<D>>,
    connect_limit: Duration,
    /// Whether its last query succeeded.
    is_ready: bool,
}

impl<D: Database> OpenConnections<D> {
    fn take_idle(&self) -> Option<(D::Connection, Instant)> {
        // The last that was used: its memory is still in the cache.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put_back(&self, connection: D::Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((connection, Instant::now()));
    }

    fn discard(&self, connection: D::Connection) {
        drop(connection);
        self.count.fetch_sub(1, Relaxed);
    }
}

impl<D: Database> Pool<D> {
    /// Opens all connections, and has `metrics` show them.
    pub(crate) async fn open(plan: Plan<D>, metrics: Option<&PoolMetrics>) -> sqlx::Result<Self> {
        let max = plan.connections;
        let connections = Arc::new(OpenConnections { idle: Mutex::default(), count: 0.into() });
        let turns = Arc::new(Semaphore::new(max as usize));
        let meter = metrics.map(|metrics| {
            let (connections, turns) = (connections.clone(), turns.clone());
            metrics.meter(plan.name, move || {
                let taken = max.saturating_sub(turns.available_permits() as u32);
                let open = connections.count.load(Relaxed);
                // Whose turn it is may still be connecting.
                let used = taken.min(open);
                Connections { used, idle: open - used, max }
            })
        });
        let pool = Pool { plan, connections, turns, gone: Notify::new(), meter };
        for _ in 0..max {
            let connection = pool.connect().await?;
            pool.connections.put_back(connection);
        }
        Ok(pool)
    }

    /// A connection, when it is the caller's turn.
    pub(crate) async fn take(&self) -> sqlx::Result<PooledConnection<D>> {
        let asked = self.meter.as_ref().map(|meter| (meter, Instant::now()));
        let turn = match self.turns.clone().try_acquire_owned() {
            Ok(turn) => turn,
            Err(_) => self.turn().await?,
        };
        let connection = self.standing().await.inspect_err(|_| {
            // Each of those who wait would find out the same, a few at a time.
            self.gone.notify_waiters();
        })?;
        if let Some((meter, since)) = asked {
            meter.waited(since.elapsed());
        }
        Ok(PooledConnection {
            connection: Some(connection),
            turn: Some(turn),
            connections: self.connections.clone(),
            connect_limit: self.plan.connect_limit,
            is_ready: false,
        })
    }

    /// The connection of whose turn it is: one that is there, or a new one.
    async fn standing(&self) -> sqlx::Result<D::Connection> {
        while let Some((connection, since)) = self.connections.take_idle() {
            if !self.plan.remote || since.elapsed() <= FRESH_FOR {
                return Ok(connection);
            }
            // Counted as open until it is known: if this future is dropped, it is not.
            let mut asked = Asked { connection: Some(connection), connections: &self.connections };
            if asked.stands(self.plan.connect_limit).await {
                return asked.connection.take().ok_or(Error::PoolClosed);
            }
        }
        self.connect().await
    }

    /// Opens a connection. A server that refuses it, or that is just starting, is tried again.
    async fn connect(&self) -> sqlx::Result<D::Connection> {
        let connecting = async {
            let mut pause = FIRST_PAUSE;
            loop {
                match self.plan.options.connect().await {
                    Err(error) if is_passing(&error) => sleep(pause).await,
                    connected => return connected,
                }
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        };
        let limited = timeout(self.plan.connect_limit, connecting).await;
        let connection = limited.map_err(|_| Error::PoolTimedOut)??;
        self.connections.count.fetch_add(1, Relaxed);
        Ok(connection)
    }

    async fn turn(&self) -> sqlx::Result<OwnedSemaphorePermit> {
        let _waits = self.meter.as_ref().map(PoolMeter::wait);
        tokio::select! {
            biased;
            () = self.gone.notified() => Err(Error::PoolTimedOut),
            turn = timeout(QUEUE_LIMIT, self.turns.clone().acquire_owned()) => {
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
        // All of them are back then.
        let all = self.turns.acquire_many(self.plan.connections).await;
        self.turns.close();
        drop(all);
        while let Some((connection, _)) = self.connections.take_idle() {
            self.connections.count.fetch_sub(1, Relaxed);
            // It is closed also if the server does not answer.
            let _ = connection.close().await;
        }
    }
}

/// Whether a server that refused a connection may take one soon.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        Error::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}

/// A connection that is asked whether it still stands. If it is dropped meanwhile, it is no longer
/// open.
struct Asked<'a, D: Database> {
    connection: Option<D::Connection>,
    connections: &'a OpenConnections<D>,
}

impl<D: Database> Asked<'_, D> {
    async fn stands(&mut self, limit: Duration) -> bool {
        match &mut self.connection {
            Some(connection) => {
                timeout(limit, connection.ping()).await.is_ok_and(|ping| ping.is_ok())
            }
            None => false,
        }
    }
}

impl<D: Database> Drop for Asked<'_, D> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.connections.discard(connection);
        }
    }
}

impl<D: Database> PooledConnection<D> {
    /// Ends the use of the connection with the result of its last query.
    pub(crate) fn finish<T>(mut self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        self.is_ready = result.is_ok();
        result
    }
}

impl<D: Database> Drop for PooledConnection<D> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.is_ready {
            self.connections.put_back(connection);
            return;
        }
        // Its answer is still to be read, or it is broken. The turn stays taken meanwhile.
        let (connections, limit) = (self.connections.clone(), self.connect_limit);
        let turn = mem::take(&mut self.turn);
        let Ok(runtime) = Handle::try_current() else { return connections.discard(connection) };
        runtime.spawn(async move {
            let _turn = turn;
            let mut asked = Asked { connection: Some(connection), connections: &connections };
            if asked.stands(limit).await {
                asked.connection.take().into_iter().for_each(|back| connections.put_back(back));
            }
        });
    }
}

impl<D: Database> Deref for PooledConnection<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl<D: Database> DerefMut for PooledConnection<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        self.connection.as_mut().expect("it is there until it is dropped")
    }
}
