//! The items in SQLite.
//!
//! One connection writes, a few read. With write-ahead logging readers never
//! wait for the writer, and writers queue for its connection, in order, rather than
//! meet in the database and find it busy.
//!
//! A query runs on the thread of its request. It takes some microseconds, fewer than to hand it to
//! another thread and its answer back. One that another process keeps waiting frees the thread and
//! tries again.

use super::Item;
use crate::database::SqliteFile;
use crate::pool::{Connector, Plan, Pool};
use anyhow::{Result, anyhow, bail};
use rusqlite::ffi::{self, ErrorCode};
use rusqlite::{Connection, Error, OpenFlags, OptionalExtension, TransactionBehavior};
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use talea::Registry;
use tokio::time::sleep;

const TABLES: &str = include_str!("../../migrations/sqlite/0001_items.sql");
/// The version of the tables, which the file has as its `user_version`.
const VERSION: i64 = 1;

const LIST: &str = r#"
    SELECT json_group_array(
        json_object('id', id, 'value', json(iif(value, 'true', 'false')))
        ORDER BY id
    )
    FROM items
"#;

/// How long a query waits while another process holds the file.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

/// How long opening the file may take, another process's hold on it included.
const CONNECT_LIMIT: Duration = Duration::from_secs(70);

/// The pause before a query is tried again; each is twice the one before, to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// Items in a file.
#[derive(Debug)]
pub struct SqliteItems {
    writer: Pool<Opener>,
    readers: Pool<Opener>,
}

#[derive(Clone, Debug)]
struct Opener {
    path: PathBuf,
    flags: OpenFlags,
    only_reads: bool,
}

impl Opener {
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&self.path, self.flags)?;
        // It begins as the program does, when no request waits for the thread.
        connection.busy_timeout(BUSY_LIMIT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "query_only", self.only_reads)?;
        Ok(connection)
    }
}

impl Connector for Opener {
    type Connection = Connection;

    async fn connect(&self) -> Result<Connection> {
        let connection = self.open()?;
        connection.busy_timeout(Duration::ZERO)?;
        Ok(connection)
    }

    /// Always: each query is a transaction of its own, which ended with it.
    async fn stands(_: &mut Connection) -> bool {
        true
    }

    async fn close(connection: Connection) {
        drop(connection);
    }
}

impl SqliteItems {
    pub(super) async fn open(file: &SqliteFile, registry: Option<&Registry>) -> Result<Self> {
        Self::connect(file, registry).await.map_err(|error| {
            anyhow!(
                "cannot open the database {}: {error}; see that its folder exists and that it \
                 is an items database that may be written, or leave DATABASE_URL out for a \
                 temporary one",
                file.path().display()
            )
        })
    }

    async fn connect(file: &SqliteFile, registry: Option<&Registry>) -> Result<Self> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, !file.must_exist);
        let writing = Opener { path: file.path().to_owned(), flags, only_reads: false };
        migrate(&mut writing.open()?)?;
        let reading = Opener { only_reads: true, ..writing.clone() };
        let plan = |name, connections, connector| Plan {
            name,
            connections,
            connect_limit: CONNECT_LIMIT,
            connector,
        };
        let cores = available_parallelism().map_or(2, NonZero::get);
        let readers = plan("readers", cores.clamp(2, 8) as u32, reading);
        Ok(SqliteItems {
            writer: Pool::open(plan("writer", 1, writing), registry).await?,
            readers: Pool::open(readers, registry).await?,
        })
    }

    pub(super) async fn list(&self) -> Result<String> {
        run(&self.readers, |connection| {
            connection.prepare_cached(LIST)?.query_row([], |row| row.get(0))
        })
        .await
    }

    pub(super) async fn find(&self, id: i64) -> Result<Option<Item>> {
        run(&self.readers, |connection| {
            let mut find = connection.prepare_cached("SELECT id, value FROM items WHERE id = ?")?;
            find.query_row([id], |row| Ok(Item { id: row.get(0)?, value: row.get(1)? })).optional()
        })
        .await
    }

    pub(super) async fn create(&self, value: bool) -> Result<Item> {
        run(&self.writer, |connection| {
            // Not RETURNING: its row is there before the commit, which may fail.
            let mut insert = connection.prepare_cached("INSERT INTO items (value) VALUES (?)")?;
            Ok(Item { id: insert.insert([value])?, value })
        })
        .await
    }

    pub(super) async fn update(&self, id: i64, value: bool) -> Result<Option<Item>> {
        run(&self.writer, |connection| {
            let mut update =
                connection.prepare_cached("UPDATE items SET value = ? WHERE id = ?")?;
            Ok((update.execute((value, id))? > 0).then_some(Item { id, value }))
        })
        .await
    }

    pub(super) async fn delete(&self, id: i64) -> Result<bool> {
        run(&self.writer, |connection| {
            let mut delete = connection.prepare_cached("DELETE FROM items WHERE id = ?")?;
            Ok(delete.execute([id])? > 0)
        })
        .await
    }

    /// Empties the write-ahead log too, so that what comes next starts as if nothing had
    /// been before.
    pub(super) async fn clear(&self) -> Result<()> {
        run(&self.writer, |connection| {
            connection.execute("DELETE FROM items", [])?;
            let is_busy: bool =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            // A query that still reads from the log.
            if is_busy {
                return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None));
            }
            Ok(())
        })
        .await
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

/// Runs a query by a connection of the pool, when it is the caller's turn.
async fn run<T>(
    pool: &Pool<Opener>,
    query: impl Fn(&Connection) -> rusqlite::Result<T>,
) -> Result<T> {
    let mut connection = pool.take().await?;
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let outcome = query(&connection.inner);
        match outcome {
            Err(ref error) if is_busy(error) && began.elapsed() < BUSY_LIMIT => sleep(pause).await,
            _ => return Ok(connection.finish(outcome)?),
        }
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

fn is_busy(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Makes the tables that are not there.
fn migrate(connection: &mut Connection) -> Result<()> {
    let changing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match changing.pragma_query_value(None, "user_version", |row| row.get(0))? {
        VERSION => {}
        0 => {
            changing.execute_batch(TABLES)?;
            changing.pragma_update(None, "user_version", VERSION)?;
        }
        other => bail!("its tables have version {other}, and this program knows {VERSION}"),
    }
    Ok(changing.commit()?)
}
