//! Connections to a database, which requests take in turn.
//!
//! A connection whose last query succeeded goes back as it is. After an error, or if its user left in
//! the middle of a query, a task of its own asks it first whether it still stands. So the usual request
//! pays for neither a task nor a question. A request may wait long for its turn and still not long for a
//! server that is gone, and it is known exactly who waits.

use anyhow::{Result, anyhow, bail};
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use talea::Registry;
use talea_collectors::pool::{PoolMeter, PoolStatus};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// How long a request may wait for its turn. Long, since a wait under load
/// is what a study measures, and must not turn into an error.
const QUEUE_LIMIT: Duration = Duration::from_secs(600);

/// After how long without use a connection is asked whether it still stands.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// How connections to a database are opened and closed.
pub(crate) trait Connector: fmt::Debug + Send + Sync + 'static {
    type Connection: fmt::Debug + Send + 'static;

    fn connect(&self) -> impl Future<Output = Result<Self::Connection>> + Send;

    /// Whether a connection whose last query failed, or that was not used for a while, still works.
    fn stands(connection: &mut Self::Connection) -> impl Future<Output = bool> + Send;

    fn close(connection: Self::Connection) -> impl Future<Output = ()> + Send;
}

#[derive(Debug)]
pub(crate) struct Plan<C> {
    /// The label `pool_name` of its metrics.
    pub(crate) name: &'static str,
    pub(crate) connections: u32,
    /// How long opening a connection may take, once it is a request's turn.
    pub(crate) connect_limit: Duration,
    pub(crate) connector: C,
}

#[derive(Debug)]
pub(crate) struct Pool<C: Connector> {
    plan: Plan<C>,
    idle: Arc<IdleConnections<C>>,
    /// The number of connections that are open.
    open: Arc<AtomicU32>,
    turns: Arc<Semaphore>,
    /// Wakes all waiters: no connection will become free.
    gone: Notify,
    meter: Option<PoolMeter>,
}

/// The connections that nobody uses, and since when.
#[derive(Debug)]
struct IdleConnections<C: Connector>(Mutex<Vec<(OpenConnection<C>, Instant)>>);

/// A connection that is counted as open until it is dropped.
#[derive(Debug)]
struct OpenConnection<C: Connector> {
    connection: C::Connection,
    _counted: Counted,
}

#[derive(Debug)]
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl<C: Connector> OpenConnection<C> {
    async fn stands(&mut self, limit: Duration) -> bool {
        timeout(limit, C::stands(&mut self.connection)).await == Ok(true)
    }
}

/// A connection that is taken, and comes back when this is dropped.
pub(crate) struct PooledConnection<C: Connector> {
    /// `None` once it is on its way back.
    connection: Option<OpenConnection<C>>,
    // Dropped after the connection is back: then the turn is somebody else's.
    turn: Option<OwnedSemaphorePermit>,
    idle: Arc<IdleConnections<C>>,
    connect_limit: Duration,
    is_ready: bool,
}

impl<C: Connector> IdleConnections<C> {
    fn take(&self) -> Option<(OpenConnection<C>, Instant)> {
        // The last that was used: its memory is still in the cache.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put_back(&self, connection: OpenConnection<C>) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((connection, Instant::now()));
    }
}

fn meter(
    registry: &Registry,
    name: &str,
    max: u32,
    open: &Arc<AtomicU32>,
    turns: &Arc<Semaphore>,
) -> Result<PoolMeter, talea::Error> {
    let (open, turns) = (open.clone(), turns.clone());
    PoolMeter::register(registry, name, move || {
        let taken = max.saturating_sub(turns.available_permits() as u32);
        let open = open.load(Relaxed);
        // A request that has its turn may still be connecting.
        let used = taken.min(open);
        PoolStatus { used: used.into(), idle: (open - used).into(), max: max.into() }
    })
}

impl<C: Connector> Pool<C> {
    /// Opens all connections, and has `registry` show them.
    pub(crate) async fn open(plan: Plan<C>, registry: Option<&Registry>) -> Result<Self> {
        let max = plan.connections;
        let idle = Arc::new(IdleConnections(Mutex::default()));
        let open = Arc::new(AtomicU32::default());
        let turns = Arc::new(Semaphore::new(max as usize));
        let meter = match registry {
            Some(registry) => Some(meter(registry, plan.name, max, &open, &turns)?),
            None => None,
        };
        let pool = Pool { plan, idle, open, turns, gone: Notify::new(), meter };
        for _ in 0..max {
            pool.idle.put_back(pool.connect().await?);
        }
        Ok(pool)
    }

    /// A connection, when it is the caller's turn.
    pub(crate) async fn take(&self) -> Result<PooledConnection<C>> {
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
            idle: self.idle.clone(),
            connect_limit: self.plan.connect_limit,
            is_ready: false,
        })
    }

    /// The connection of whose turn it is: one that is there, or a new one.
    async fn standing(&self) -> Result<OpenConnection<C>> {
        while let Some((mut connection, since)) = self.idle.take() {
            let is_fresh = since.elapsed() <= FRESH_FOR;
            if is_fresh || connection.stands(self.plan.connect_limit).await {
                return Ok(connection);
            }
        }
        self.connect().await
    }

    async fn connect(&self) -> Result<OpenConnection<C>> {
        let limit = self.plan.connect_limit;
        let Ok(connected) = timeout(limit, self.plan.connector.connect()).await else {
            bail!("no connection was made within {} s", limit.as_secs());
        };
        let connection = connected?;
        self.open.fetch_add(1, Relaxed);
        Ok(OpenConnection { connection, _counted: Counted(self.open.clone()) })
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        let _waits = self.meter.as_ref().map(PoolMeter::wait);
        tokio::select! {
            biased;
            () = self.gone.notified() => bail!("no connection can be made"),
            turn = timeout(QUEUE_LIMIT, self.turns.clone().acquire_owned()) => match turn {
                Ok(turn) => turn.map_err(|_| anyhow!("the database is being closed")),
                Err(_) => bail!("no connection was free within {} s", QUEUE_LIMIT.as_secs()),
            },
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
        while let Some((open, _)) = self.idle.take() {
            C::close(open.connection).await;
        }
    }
}

impl<C: Connector> PooledConnection<C> {
    /// Ends the use of the connection with the result of its last query.
    pub(crate) fn finish<T, E>(mut self, result: Result<T, E>) -> Result<T, E> {
        self.is_ready = result.is_ok();
        result
    }
}

impl<C: Connector> Drop for PooledConnection<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.is_ready {
            return self.idle.put_back(connection);
        }
        // Its answer is still to be read, or it is broken. The turn stays taken meanwhile.
        let (idle, limit) = (self.idle.clone(), self.connect_limit);
        let turn = mem::take(&mut self.turn);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let _turn = turn;
            if connection.stands(limit).await {
                idle.put_back(connection);
            }
        });
    }
}

impl<C: Connector> Deref for PooledConnection<C> {
    type Target = C::Connection;

    fn deref(&self) -> &C::Connection {
        &self.connection.as_ref().expect("it is there until it is dropped").connection
    }
}

impl<C: Connector> DerefMut for PooledConnection<C> {
    fn deref_mut(&mut self) -> &mut C::Connection {
        &mut self.connection.as_mut().expect("it is there until it is dropped").connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;

    const CONNECT_LIMIT: Duration = Duration::from_secs(3);
    const CONNECTIONS: u32 = 4;

    /// A database whose server may be gone.
    #[derive(Clone, Debug, Default)]
    struct Database(Arc<Server>);

    #[derive(Debug, Default)]
    struct Server {
        /// A server that is gone answers nothing, as a machine that lost its power.
        is_gone: AtomicBool,
        restarts: AtomicU32,
        questions: AtomicU32,
    }

    /// A connection to one run of the server.
    #[derive(Debug)]
    struct Connected {
        server: Arc<Server>,
        restarts: u32,
    }

    impl Connected {
        fn query(&self) -> Result<()> {
            if self.restarts == self.server.restarts.load(SeqCst) { Ok(()) } else { bail!("reset") }
        }
    }

    impl Connector for Database {
        type Connection = Connected;

        async fn connect(&self) -> Result<Connected> {
            if self.0.is_gone.load(SeqCst) {
                std::future::pending::<()>().await;
            }
            Ok(Connected { server: self.0.clone(), restarts: self.0.restarts.load(SeqCst) })
        }

        async fn stands(connection: &mut Connected) -> bool {
            connection.server.questions.fetch_add(1, SeqCst);
            connection.query().is_ok()
        }

        async fn close(_: Connected) {}
    }

    async fn pool(database: &Database) -> Arc<Pool<Database>> {
        let plan = Plan {
            name: "postgres",
            connections: CONNECTIONS,
            connect_limit: CONNECT_LIMIT,
            connector: database.clone(),
        };
        Arc::new(Pool::open(plan, None).await.unwrap())
    }

    async fn query(pool: &Pool<Database>) -> Result<()> {
        let connection = pool.take().await?;
        let result = connection.query();
        connection.finish(result)
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_give_up_with_the_first_that_cannot_connect() {
        let database = Database::default();
        let pool = pool(&database).await;
        tokio::time::advance(2 * FRESH_FOR).await;
        database.0.restarts.fetch_add(1, SeqCst);
        database.0.is_gone.store(true, SeqCst);
        let began = Instant::now();
        let requests: tokio::task::JoinSet<_> =
            std::iter::repeat_n(pool, 10 * CONNECTIONS as usize)
                .map(|pool| async move { query(&pool).await })
                .collect();
        assert!(requests.join_all().await.iter().all(Result::is_err));
        // Not a few at a time, each of which tries as long. The clock moves only when all wait.
        assert!(began.elapsed() < 2 * CONNECT_LIMIT, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_restart_of_the_server_costs_no_request_after_a_while_without_any() {
        let database = Database::default();
        let pool = pool(&database).await;
        query(&pool).await.unwrap();
        assert_eq!(database.0.questions.load(SeqCst), 0, "a connection that was used just now");
        database.0.restarts.fetch_add(1, SeqCst);
        tokio::time::advance(FRESH_FOR + Duration::from_millis(1)).await;
        for _ in 0..2 * CONNECTIONS {
            query(&pool).await.unwrap();
        }
    }
}
