//! The items in PostgreSQL.

use super::Item;
use crate::database::PostgresServer;
use crate::pool::{Connector, Plan, Pool};
use anyhow::{Result, anyhow};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{ConnectOptions, Connection, Error, PgConnection};
use std::io::ErrorKind;
use std::time::Duration;
use talea::Registry;
use tokio::time::sleep;

const TABLES: &str = include_str!("../../migrations/postgres/0001_items.sql");

/// Byte for byte what SQLite makes of the same items; json_agg would add spaces, and
/// take longer.
const LIST: &str = r#"
    SELECT '[' || coalesce(
        string_agg('{"id":' || id || ',"value":' || value || '}', ',' ORDER BY id),
        ''
    ) || ']'
    FROM items
"#;

/// How long a request tries to connect to a server that is gone. Longer than a busy one
/// takes to accept.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The pause before a refused connection is tried again; each is twice the one before, to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Items on a server.
#[derive(Debug)]
pub struct PostgresItems {
    pool: Pool<PostgresServer>,
}

impl Connector for PostgresServer {
    type Connection = PgConnection;

    /// A server that refuses it, or that is just starting, is tried again.
    async fn connect(&self) -> Result<PgConnection> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.options().connect().await {
                Err(error) if is_passing(&error) => sleep(pause).await,
                connected => return Ok(connected?),
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn stands(connection: &mut PgConnection) -> bool {
        connection.ping().await.is_ok()
    }

    /// Also if the server does not answer.
    async fn close(connection: PgConnection) {
        let _ = connection.close().await;
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

type Row = (i64, bool);

impl From<Row> for Item {
    fn from((id, value): Row) -> Item {
        Item { id, value }
    }
}

/// Runs a query by a connection of the pool, when it is the caller's turn.
macro_rules! run {
    ($items:expr, $query:expr, $run:ident) => {{
        let mut connection = $items.pool.take().await?;
        let outcome = $query.$run(&mut connection.inner).await;
        connection.finish(outcome)?
    }};
}

impl PostgresItems {
    pub(super) async fn open(
        server: &PostgresServer,
        connections: u32,
        registry: Option<&Registry>,
    ) -> Result<Self> {
        // The pool would try again and again.
        reach(server).await.map_err(|error| {
            anyhow!(
                "cannot reach the database {server}: {error}; see that PostgreSQL runs there and \
                 that DATABASE_URL names its user, password and database, or leave DATABASE_URL \
                 out for a temporary file"
            )
        })?;
        let plan = Plan {
            name: "postgres",
            connections,
            connect_limit: CONNECT_LIMIT,
            connector: server.clone(),
        };
        let pool = Pool::open(plan, registry).await.map_err(|error| {
            anyhow!(
                "cannot open {connections} connections to the database {server}: {error}; see \
                 that its max_connections allows so many, or choose fewer with --pool"
            )
        })?;
        migrate(&pool).await.map_err(|error| {
            anyhow!(
                "cannot make the tables in the database {server}: {error}; see that those that \
                 are there are this program's and that its user may change them"
            )
        })?;
        Ok(PostgresItems { pool })
    }

    pub(super) async fn list(&self) -> Result<String> {
        Ok(run!(self, sqlx::query_scalar(LIST), fetch_one))
    }

    pub(super) async fn find(&self, id: i64) -> Result<Option<Item>> {
        let find = sqlx::query_as::<_, Row>("SELECT id, value FROM items WHERE id = $1");
        Ok(run!(self, find.bind(id), fetch_optional).map(Item::from))
    }

    pub(super) async fn create(&self, value: bool) -> Result<Item> {
        let create = "INSERT INTO items (value) VALUES ($1) RETURNING id, value";
        let create = sqlx::query_as::<_, Row>(create).bind(value);
        Ok(run!(self, create, fetch_one).into())
    }

    pub(super) async fn update(&self, id: i64, value: bool) -> Result<Option<Item>> {
        let update = "UPDATE items SET value = $1 WHERE id = $2 RETURNING id, value";
        let update = sqlx::query_as::<_, Row>(update).bind(value).bind(id);
        Ok(run!(self, update, fetch_optional).map(Item::from))
    }

    pub(super) async fn delete(&self, id: i64) -> Result<bool> {
        let delete = sqlx::query("DELETE FROM items WHERE id = $1").bind(id);
        Ok(run!(self, delete, execute).rows_affected() > 0)
    }

    pub(super) async fn clear(&self) -> Result<()> {
        run!(self, sqlx::query("TRUNCATE items"), execute);
        Ok(())
    }

    pub(super) fn reset_peaks(&self) {
        self.pool.reset_peak();
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

async fn migrate(pool: &Pool<PostgresServer>) -> Result<()> {
    let first = Migration::new(1, "items".into(), MigrationType::Simple, TABLES.into(), false);
    let migrator = Migrator { migrations: vec![first].into(), ..Migrator::DEFAULT };
    let mut connection = pool.take().await?;
    // Hidden: `run` of a connection gives a future that the compiler does not take for `Send`.
    let migrated = migrator.run_direct(&mut connection.inner).await;
    Ok(connection.finish(migrated)?)
}

async fn reach(server: &PostgresServer) -> sqlx::Result<()> {
    server.options().connect().await?.close().await
}
