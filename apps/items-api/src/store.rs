//! The items in SQLite.
//!
//! One connection writes, a few read. With write-ahead logging readers never
//! wait for the writer, and writers queue in the pool, in order, rather than
//! meet in the database and find it busy.

use crate::database::Database;
use anyhow::{Result, anyhow};
use serde::Serialize;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, FromRow};
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

const LIST: &str = r#"
    SELECT json_group_array(
        json_object('id', id, 'value', json(iif(value, 'true', 'false')))
        ORDER BY id
    )
    FROM items
"#;

/// How long a request may wait for a connection. Long, since a wait under load
/// is what a study measures, and must not turn into an error.
const QUEUE_LIMIT: Duration = Duration::from_secs(600);

/// How long SQLite itself waits when another process holds the file.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

/// An item, as stored and as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, FromRow)]
pub struct Item {
    /// Given by the database, never given twice.
    pub id: i64,
    /// What the item says.
    pub value: bool,
}

/// The items. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Store {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Store {
    /// Opens the database and brings its tables up to date.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be opened, is no database, or has tables that
    /// this program does not know. The error names the file.
    pub async fn open(database: &Database) -> Result<Store> {
        Store::connect(database.options()).await.map_err(|error| {
            anyhow!(
                "cannot open the database {}: {error}; see that its folder exists and that it \
                 is an items database that may be written, or leave DATABASE_URL out for a \
                 temporary one",
                database.path().display()
            )
        })
    }

    async fn connect(options: SqliteConnectOptions) -> sqlx::Result<Store> {
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_LIMIT)
            .disable_statement_logging();
        let writer = pool(1).connect_with(options.clone()).await?;
        MIGRATIONS.run(&writer).await?;
        let cores = available_parallelism().map_or(2, NonZero::get);
        let readers =
            pool(cores.clamp(2, 8) as u32).connect_with(options.pragma("query_only", "on")).await?;
        Ok(Store { writer, readers })
    }

    /// All items, ordered by id, as the JSON text `[{"id":1,"value":true}]`.
    ///
    /// The database renders them: a row that crosses from its thread to ours costs
    /// several times its text, and under load this is most of the service's work.
    pub async fn list(&self) -> sqlx::Result<String> {
        sqlx::query_scalar(LIST).fetch_one(&self.readers).await
    }

    /// The item `id`, if there is one.
    pub async fn find(&self, id: i64) -> sqlx::Result<Option<Item>> {
        sqlx::query_as("SELECT id, value FROM items WHERE id = ?")
            .bind(id)
            .fetch_optional(&self.readers)
            .await
    }

    /// Adds an item.
    pub async fn create(&self, value: bool) -> sqlx::Result<Item> {
        // Not RETURNING: its row is there before the commit, which may fail.
        let created = sqlx::query("INSERT INTO items (value) VALUES (?)")
            .bind(value)
            .execute(&self.writer)
            .await?;
        Ok(Item { id: created.last_insert_rowid(), value })
    }

    /// Changes the item `id`, if there is one; without a value it stays as it is.
    pub async fn update(&self, id: i64, value: Option<bool>) -> sqlx::Result<Option<Item>> {
        let Some(value) = value else {
            return self.find(id).await;
        };
        let updated = sqlx::query("UPDATE items SET value = ? WHERE id = ?")
            .bind(value)
            .bind(id)
            .execute(&self.writer)
            .await?;
        Ok((updated.rows_affected() > 0).then_some(Item { id, value }))
    }

    /// Removes the item `id`; false if there was none.
    pub async fn delete(&self, id: i64) -> sqlx::Result<bool> {
        let deleted =
            sqlx::query("DELETE FROM items WHERE id = ?").bind(id).execute(&self.writer).await?;
        Ok(deleted.rows_affected() > 0)
    }

    /// Removes all items, and empties the write-ahead log, so that what comes
    /// next starts as if nothing had been before. Ids go on counting.
    pub async fn clear(&self) -> sqlx::Result<()> {
        sqlx::query("DELETE FROM items").execute(&self.writer).await?;
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.writer).await?;
        Ok(())
    }

    /// Ends all connections, once what they do is done.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(QUEUE_LIMIT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}
