//! The items, in whichever database they are kept.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use crate::database::Database;
use anyhow::Result;
#[cfg(feature = "postgres")]
use postgres::PostgresItems;
use serde::Serialize;
use sqlite::SqliteItems;
use std::sync::Arc;
use talea::Registry;

/// An item, as stored and as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Given by the database, never given twice.
    pub id: i64,
    /// The value of the item.
    pub value: bool,
}

/// The items. Clones share the connections.
#[derive(Debug, Clone)]
pub enum Store {
    /// In a file.
    Sqlite(Arc<SqliteItems>),
    /// On a server.
    #[cfg(feature = "postgres")]
    Postgres(Arc<PostgresItems>),
}

/// Calls a method of the items, wherever they are kept.
macro_rules! on_items {
    ($store:expr, $items:ident => $call:expr) => {
        match $store {
            Store::Sqlite($items) => $call,
            #[cfg(feature = "postgres")]
            Store::Postgres($items) => $call,
        }
    };
}

impl Store {
    /// Opens the database and brings its tables up to date. Of PostgreSQL it opens as many
    /// connections as `connections` says; of SQLite, as many as are of use.
    /// Fails when the database cannot be opened, is none, or has tables that this program
    /// does not know. The error names the file or the server.
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables))]
    pub(crate) async fn open(
        database: &Database,
        connections: u32,
        registry: Option<&Registry>,
    ) -> Result<Store> {
        Ok(match database {
            Database::Sqlite(file) => {
                Store::Sqlite(Arc::new(SqliteItems::open(file, registry).await?))
            }
            #[cfg(feature = "postgres")]
            Database::Postgres(server) => {
                let items = PostgresItems::open(server, connections, registry).await?;
                Store::Postgres(Arc::new(items))
            }
        })
    }

    /// All items, ordered by id, as the JSON text `[{"id":1,"value":true}]`.
    ///
    /// The database renders them: a row that crosses from there to here costs several
    /// times its text, and under load this is most of the service's work.
    pub async fn list(&self) -> Result<String> {
        on_items!(self, items => items.list().await)
    }

    /// The item `id`, if there is one.
    pub async fn find(&self, id: i64) -> Result<Option<Item>> {
        on_items!(self, items => items.find(id).await)
    }

    /// Adds an item.
    pub async fn create(&self, value: bool) -> Result<Item> {
        on_items!(self, items => items.create(value).await)
    }

    /// Changes the item `id`, if there is one; without a value it stays as it is.
    pub async fn update(&self, id: i64, value: Option<bool>) -> Result<Option<Item>> {
        let Some(value) = value else {
            return self.find(id).await;
        };
        on_items!(self, items => items.update(id, value).await)
    }

    /// Removes the item `id`; false if there was none.
    pub async fn delete(&self, id: i64) -> Result<bool> {
        on_items!(self, items => items.delete(id).await)
    }

    /// Removes all items. Ids go on counting.
    pub async fn clear(&self) -> Result<()> {
        on_items!(self, items => items.clear().await)
    }

    /// Sets the most requests that waited for a connection to those that wait now.
    pub fn reset_peaks(&self) {
        on_items!(self, items => items.reset_peaks())
    }

    /// Ends all connections, once what they do is done.
    pub async fn close(&self) {
        on_items!(self, items => items.close().await)
    }
}
