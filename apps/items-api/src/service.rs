//! Puts the parts together and runs them until somebody says stop.

use crate::arguments::Arguments;
use crate::database::Database;
use crate::metering::ServiceMeters;
use crate::stop::Stop;
use crate::store::Store;
use crate::{descriptors, items, server, study};
use anyhow::{Context, Result};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;
use talea::Registry;
use talea_http::{Exposition, MetricsServer};
use tokio::time::timeout;

/// The limit for closing the database. Committed data is safe in any case.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Runs the service; returns when it has been stopped and all is put away.
/// Fails when a port or the database cannot be had, with a message that names it.
pub async fn run(arguments: Arguments) -> Result<()> {
    descriptors::raise_limit();
    let stop = Stop::listen(arguments.study)?;

    let listener = server::bind(arguments.listen)?;
    let registry = Registry::from_env()?;
    let ServiceMeters { endpoints, tasks, pools } =
        ServiceMeters::register(arguments.metrics, &registry)?;
    let database = Database::of(arguments.database_url.as_deref())?;
    let store = Store::open(&database, arguments.pool, pools.as_ref()).await?;

    let app = items::router(store.clone(), endpoints.as_ref());
    let extra = match arguments.study {
        true => study::router(store.clone(), tasks.clone()),
        false => axum::Router::new(),
    };
    let metrics = MetricsServer::builder(Exposition::new(&registry))
        .routes(extra)
        .bind(arguments.metrics_listen)
        .map_err(|error| server::refused(arguments.metrics_listen, "--metrics-listen", &error))?;

    announce(listener.local_addr()?, metrics.local_addr())?;
    tokio::spawn(server::serve(listener, app, tasks, stop)).await.context("the server broke")?;
    let _ = timeout(CLOSE_LIMIT, store.close()).await;
    Ok(())
}

fn announce(items: SocketAddr, metrics: SocketAddr) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "items on http://{items}/api/items")
        .and_then(|()| writeln!(out, "metrics on http://{metrics}/metrics"))
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}
