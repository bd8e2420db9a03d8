//! Connections to a database, which requests take in turn from a pool of deadpool's, metered by
//! [`PoolMeter`].
//!
//! A connection whose last query succeeded just now is taken as it is. After an error, or if its user left
//! in the middle of a query, or after a while, it is asked first whether it still stands. So the usual
//! request does not pay for a question. A request may wait long for its turn and still not long for a
//! server that is gone.

use anyhow::{Result, anyhow, bail};
use deadpool::managed::{self, Metrics, QueueMode, RecycleError, RecycleResult, TimeoutType};
use deadpool::managed::{Manager, Object, PoolError, Timeouts};
use std::fmt;
use std::time::Duration;
use talea::Registry;
use talea_collectors::pool::{PoolMeter, PoolStatus};
use tokio::sync::Notify;
use tokio::time::Instant;

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
    connections: managed::Pool<Connections<C>>,
    connect_limit: Duration,
    /// Wakes all waiters: no connection will become free.
    gone: Notify,
    meter: Option<PoolMeter>,
}

/// What deadpool does with connections.
#[derive(Debug)]
pub(crate) struct Connections<C>(C);

/// A connection that comes back when it is dropped.
pub(crate) type PooledConnection<C> = Object<Connections<C>>;

#[derive(Debug)]
pub(crate) struct Connected<C: Connector> {
    pub(crate) inner: C::Connection,
    /// When its last query succeeded. `None` while somebody uses it.
    succeeded: Option<Instant>,
}

impl<C: Connector> Connected<C> {
    /// Ends the use of the connection with the result of its last query.
    pub(crate) fn finish<T, E>(&mut self, result: Result<T, E>) -> Result<T, E> {
        self.succeeded = result.is_ok().then(Instant::now);
        result
    }
}

impl<C: Connector> Manager for Connections<C> {
    type Type = Connected<C>;
    type Error = anyhow::Error;

    async fn create(&self) -> Result<Connected<C>> {
        Ok(Connected { inner: self.0.connect().await?, succeeded: None })
    }

    async fn recycle(
        &self,
        connection: &mut Connected<C>,
        _: &Metrics,
    ) -> RecycleResult<anyhow::Error> {
        let is_fresh = connection.succeeded.is_some_and(|since| since.elapsed() <= FRESH_FOR);
        if is_fresh || C::stands(&mut connection.inner).await {
            Ok(())
        } else {
            Err(RecycleError::message("the connection is broken"))
        }
    }
}

impl<C: Connector> Pool<C> {
    /// Opens all connections, and has `registry` show them.
    pub(crate) async fn open(plan: Plan<C>, registry: Option<&Registry>) -> Result<Self> {
        let timeouts = Timeouts {
            wait: Some(QUEUE_LIMIT),
            create: Some(plan.connect_limit),
            recycle: Some(plan.connect_limit),
        };
        let connections = managed::Pool::builder(Connections(plan.connector))
            .max_size(plan.connections as usize)
            // The last that was used: its memory is still in the cache.
            .queue_mode(QueueMode::Lifo)
            .timeouts(timeouts)
            .runtime(deadpool::Runtime::Tokio1)
            .build()?;
        let meter = match registry {
            Some(registry) => Some(meter(registry, plan.name, connections.clone())?),
            None => None,
        };
        let gone = Notify::new();
        let pool = Pool { connections, connect_limit: plan.connect_limit, gone, meter };
        let mut all = Vec::new();
        for _ in 0..plan.connections {
            let mut connection = pool.turn().await?;
            connection.succeeded = Some(Instant::now());
            all.push(connection);
        }
        drop(all);
        Ok(pool)
    }

    /// A connection, when it is the caller's turn.
    pub(crate) async fn take(&self) -> Result<PooledConnection<C>> {
        let mut connection = match &self.meter {
            Some(meter) => meter.acquire(self.turn()).await?,
            None => self.turn().await?,
        };
        connection.succeeded = None;
        Ok(connection)
    }

    async fn turn(&self) -> Result<PooledConnection<C>> {
        let taken = tokio::select! {
            biased;
            () = self.gone.notified() => bail!("no connection can be made"),
            taken = self.connections.get() => taken,
        };
        taken.map_err(|error| match error {
            PoolError::Timeout(TimeoutType::Wait) => {
                anyhow!("no connection was free within {} s", QUEUE_LIMIT.as_secs())
            }
            PoolError::Closed => anyhow!("the database is being closed"),
            error => {
                // Each of those who wait would find out the same, a few at a time.
                self.gone.notify_waiters();
                self.not_made(error)
            }
        })
    }

    fn not_made(&self, error: PoolError<anyhow::Error>) -> anyhow::Error {
        match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => {
                anyhow!("no connection was made within {} s", self.connect_limit.as_secs())
            }
            error => anyhow!("{error}"),
        }
    }

    /// Sets the peak of those who wait to who waits now.
    pub(crate) fn reset_peak(&self) {
        if let Some(meter) = &self.meter {
            meter.reset_peak();
        }
    }

    /// Ends all connections; one that is used ends with its use.
    pub(crate) async fn close(&self) {
        let idle = self.connections.retain(|_, _| false).removed;
        self.connections.close();
        for connection in idle {
            C::close(connection.inner).await;
        }
    }
}

fn meter<C: Connector>(
    registry: &Registry,
    name: &str,
    connections: managed::Pool<Connections<C>>,
) -> Result<PoolMeter, talea::Error> {
    PoolMeter::register(registry, name, move || {
        let status = connections.status();
        let (open, idle) = (status.size as u64, status.available as u64);
        PoolStatus { used: open - idle, idle, max: status.max_size as u64 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicU32};

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
        let mut connection = pool.take().await?;
        let result = connection.inner.query();
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

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_asked_after_an_error_and_after_a_query_that_was_left() {
        let database = Database::default();
        let pool = pool(&database).await;
        let asked = || database.0.questions.load(SeqCst);
        for _ in 0..2 * CONNECTIONS {
            query(&pool).await.unwrap();
        }
        assert_eq!(asked(), 0);
        drop(pool.take().await.unwrap()); // in the middle of a query
        query(&pool).await.unwrap();
        assert_eq!(asked(), 1);
        pool.take().await.unwrap().finish(Err::<(), _>(())).unwrap_err();
        query(&pool).await.unwrap();
        assert_eq!(asked(), 2);
        query(&pool).await.unwrap();
        assert_eq!(asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_pool_refuses_those_who_wait_and_those_who_come() {
        let pool = pool(&Database::default()).await;
        let mut used = Vec::new();
        for _ in 0..CONNECTIONS {
            used.push(pool.take().await.unwrap());
        }
        let (waited, ()) = tokio::join!(query(&pool), pool.close());
        for refused in [waited, query(&pool).await] {
            assert_eq!(refused.unwrap_err().to_string(), "the database is being closed");
        }
    }
}
