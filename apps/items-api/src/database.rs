//! Where the items are kept, by the scheme of a URL.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::PostgresServer;
pub use sqlite::SqliteFile;

use anyhow::{Result, bail};

/// A place for the items.
#[derive(Debug)]
pub enum Database {
    /// A file on this machine.
    Sqlite(SqliteFile),
    /// A server.
    #[cfg(feature = "postgres")]
    Postgres(PostgresServer),
}

impl Database {
    /// The one that `url` names; without a URL, or when it is empty, a temporary file.
    /// Fails when the URL's scheme is not known, or the place of its scheme cannot be
    /// used. No error repeats a password.
    pub fn of(url: Option<&str>) -> Result<Database> {
        let Some(url) = url.filter(|url| !url.is_empty()) else {
            return Ok(Database::Sqlite(SqliteFile::temporary()?));
        };
        let scheme = url.split_once(':').map(|(scheme, _)| scheme);
        match scheme {
            Some("sqlite") => Ok(Database::Sqlite(SqliteFile::at(url)?)),
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => Ok(Database::Postgres(PostgresServer::at(url)?)),
            #[cfg(not(feature = "postgres"))]
            Some("postgres" | "postgresql") => bail!(
                "DATABASE_URL names a server of PostgreSQL, and this program was built without it: \
                 build it with its default features (`make build`), or leave DATABASE_URL out for a \
                 temporary file"
            ),
            _ => bail!(
                "DATABASE_URL has {}, expected sqlite or postgres: name a file as sqlite:PATH \
                 or a server as postgres://USER:PASSWORD@HOST:PORT/DATABASE, or leave \
                 DATABASE_URL out for a temporary file",
                scheme.unwrap_or("no scheme")
            ),
        }
    }
}
