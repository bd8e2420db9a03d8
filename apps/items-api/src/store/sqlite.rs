//! The items in SQLite.
//!
//! One connection writes, a few read. With write-ahead logging readers never
//! wait for the writer, and writers queue for its connection, in order, rather than
//! meet in the database and find it busy.

use super::{Item, Row, migrations};
use crate::database::SqliteFile;
use crate::pool::{Plan, Pool};
use crate::pool_metrics::{PoolMetrics, PoolName};
use anyhow::{Result, anyhow};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Sqlite};
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

const TABLES: &str = include_str!("../../migrations/sqlite/0001_items.sql");

const LIST: &str = r#"
    SELECT json_group_array(
        json_object('id', id, 'value', json(iif(value, 'true', 'false')))
        ORDER BY id
    )
    FROM items
"#;

/// How long SQLite itself waits when another process holds the file.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

/// How long opening the file may take, another process's hold on it included.
const CONNECT_LIMIT: Duration = Duration::from_secs(70);

/// Items in a file.
#[derive(Debug)]
pub struct SqliteItems {
    writer: Pool<Sqlite>,
    readers: Pool<Sqlite>,
}

impl SqliteItems {
    pub(super) async fn open(file: &SqliteFile, metrics: Option<&PoolMetrics>) -> Result<Self> {
        Self::connect(file.options(), metrics).await.map_err(|error| {
            anyhow!(
                "cannot open the database {}: {error}; see that its folder exists and that it \
                 is an items database that may be written, or leave DATABASE_URL out for a \
                 temporary one",
                file.path().display()
            )
        })
    }

    async fn connect(
        options: SqliteConnectOptions,
        metrics: Option<&PoolMetrics>,
    ) -> sqlx::Result<Self> {
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_LIMIT)
            .disable_statement_logging();
        let plan = |name, connections, options| Plan {
            name,
            connections,
            connect_limit: CONNECT_LIMIT,
            remote: false,
            options,
        };
        let writer: Pool<Sqlite> =
            Pool::open(plan(PoolName::Writer, 1, options.clone()), metrics).await?;
        let mut connection = writer.take().await?;
        // Hidden: `run` of a connection gives a future that the compiler does not take for `Send`.
        let migrated = migrations(TABLES).run_direct(&mut *connection).await;
        connection.finish(migrated.map_err(sqlx::Error::from))?;
        let cores = available_parallelism().map_or(2, NonZero::get);
        let reading = options.pragma("query_only", "on");
        let reading = plan(PoolName::Readers, cores.clamp(2, 8) as u32, reading);
        Ok(SqliteItems { writer, readers: Pool::open(reading, metrics).await? })
    }

    pub(super) async fn list(&self) -> sqlx::Result<String> {
        let mut connection = self.readers.take().await?;
        let outcome = sqlx::query_scalar(LIST).fetch_one(&mut *connection).await;
        connection.finish(outcome)
    }

    pub(super) async fn find(&self, id: i64) -> sqlx::Result<Option<Item>> {
        let mut connection = self.readers.take().await?;
        let outcome = sqlx::query_as::<_, Row>("SELECT id, value FROM items WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *connection)
            .await;
        Ok(connection.finish(outcome)?.map(Item::from))
    }

    pub(super) async fn create(&self, value: bool) -> sqlx::Result<Item> {
        // Not RETURNING: its row is there before the commit, which may fail.
        let mut connection = self.writer.take().await?;
        let created = sqlx::query("INSERT INTO items (value) VALUES (?)")
            .bind(value)
            .execute(&mut *connection)
            .await;
        let created = connection.finish(created)?;
        Ok(Item { id: created.last_insert_rowid(), value })
    }

    pub(super) async fn update(&self, id: i64, value: bool) -> sqlx::Result<Option<Item>> {
        let mut connection = self.writer.take().await?;
        let updated = sqlx::query("UPDATE items SET value = ? WHERE id = ?")
            .bind(value)
            .bind(id)
            .execute(&mut *connection)
            .await;
        let updated = connection.finish(updated)?;
        Ok((updated.rows_affected() > 0).then_some(Item { id, value }))
    }

    pub(super) async fn delete(&self, id: i64) -> sqlx::Result<bool> {
        let mut connection = self.writer.take().await?;
        let deleted =
            sqlx::query("DELETE FROM items WHERE id = ?").bind(id).execute(&mut *connection).await;
        let deleted = connection.finish(deleted)?;
        Ok(deleted.rows_affected() > 0)
    }

    /// Empties the write-ahead log too, so that what comes next starts as if nothing had
    /// been before.
    pub(super) async fn clear(&self) -> sqlx::Result<()> {
        let mut writer = self.writer.take().await?;
        sqlx::query("DELETE FROM items").execute(&mut *writer).await?;
        let emptied = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *writer).await;
        writer.finish(emptied.map(|_| ()))
    }

    pub(super) fn reset_peaks(&self) {
        self.writer.reset_peak();
        self.readers.reset_peak();
    }

    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}
