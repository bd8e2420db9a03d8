//! A real PostgreSQL for the tests.

use sqlx::{Connection, Executor, PgConnection};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::runtime::Builder;

pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");

/// A server that ends with this, and also when the process that has it ends.
pub(crate) struct Postgres {
    url: String,
    /// The commands that stop and start it, for a shell.
    ctl: String,
    databases: AtomicU32,
    input: Option<ChildStdin>,
    script: Child,
}

impl Postgres {
    pub(crate) fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    pub(crate) fn start() -> Postgres {
        // The server is there until the end of input.
        let until = r#"echo "$DATABASE_URL"; echo "$POSTGRES_CTL"; exec cat"#;
        let mut script = Command::new(SCRIPT)
            .args(["sh", "-c", until])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/postgres runs");
        let mut lines = BufReader::new(script.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("PostgreSQL starts; see above").expect("text");
        Postgres {
            url: line(),
            ctl: line(),
            databases: AtomicU32::new(0),
            input: script.stdin.take(),
            script,
        }
    }

    /// Makes an empty database, and returns its URL.
    pub(crate) fn new_database(&self) -> String {
        let name = format!("items_{}", self.databases.fetch_add(1, Relaxed));
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut connection = PgConnection::connect(&self.url).await.expect("a connection");
            let make = format!("CREATE DATABASE {name} TEMPLATE template0");
            connection.execute(&*make).await.expect("a database");
            connection.close().await.expect("the connection ends");
        });
        let (server, _) = self.url.rsplit_once('/').expect("a URL with a path");
        format!("{server}/{name}")
    }

    /// Stops the server as a crash does, or starts it again.
    pub(crate) fn ctl(&self, what: &str) {
        let done = Command::new("sh").arg("-c").arg(format!("{} {what}", self.ctl)).status();
        assert!(done.expect("a shell").success(), "{} {what}", self.ctl);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.script.wait();
    }
}
