//! A PostgreSQL server for the items, as a URL names it.

use anyhow::{Context, Result, bail};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::str::FromStr;

const NOT_UNDERSTOOD: &str = "DATABASE_URL is not understood, expected \
    postgres://USER:PASSWORD@HOST:PORT/DATABASE, other characters than letters and digits as %XX";

/// A server of PostgreSQL's, and a database there. It is shown without the password.
#[derive(Clone)]
pub struct PostgresServer {
    /// In a box, as they are large.
    options: Box<PgConnectOptions>,
}

impl PostgresServer {
    /// The one that `url` names: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. For
    /// parts that it leaves out PGHOST and so on count, as for `psql`, or its defaults.
    /// Fails when the URL is none. The error does not repeat it.
    pub(super) fn at(url: &str) -> Result<PostgresServer> {
        let (_, after_scheme) = url.split_once("://").context(NOT_UNDERSTOOD)?;
        let (place, path) = after_scheme.split_once(['/', '?', '#']).unwrap_or((after_scheme, ""));
        // The rest of the password would be taken for the name of a database, and shown.
        if path.contains('@') && !place.contains('@') {
            bail!(
                "DATABASE_URL has a '/', '?' or '#' in its user or password: write %2F, %3F or \
                 %23 instead"
            );
        }
        let options = PgConnectOptions::from_str(url).context(NOT_UNDERSTOOD)?;
        Ok(PostgresServer {
            options: Box::new(options.application_name("items-api").disable_statement_logging()),
        })
    }

    /// How to connect.
    pub(crate) fn options(&self) -> PgConnectOptions {
        (*self.options).clone()
    }
}

/// As host, port and database, so that an error names what to look at.
impl fmt::Display for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.options.get_database().unwrap_or(self.options.get_username());
        match self.options.get_socket() {
            Some(socket) => write!(f, "{database} at {}", socket.display()),
            None => {
                let (host, port) = (self.options.get_host(), self.options.get_port());
                write!(f, "{database} at {host}, port {port}")
            }
        }
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresServer").field(&self.to_string()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_with_host_and_port_and_without_the_password() {
        let server = PostgresServer::at("postgres://me:secret@db.example:6543/shop").unwrap();
        assert_eq!(server.to_string(), "shop at db.example, port 6543");
        assert!(!format!("{server:?}").contains("secret"));
    }

    #[test]
    fn a_url_that_is_none_is_refused_without_the_password() {
        for url in ["postgres:", "postgres://me:sec ret@:host:/", "postgres://me:12/secret@host/x"]
        {
            let said = format!("{:#}", PostgresServer::at(url).unwrap_err());
            assert!(said.contains("DATABASE_URL"), "{said}");
            assert!(!said.contains("sec") && !said.contains("12"), "{said}");
        }
    }
}
