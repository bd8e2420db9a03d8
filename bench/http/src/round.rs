//! One measurement: a server is started, loaded, and looked at before and after.

use std::ops::Sub;

use anyhow::{Result, ensure};

use crate::accounting::{self, CpuTime, Ended};
use crate::cores;
use crate::experiment::Setup;
use crate::server::Server;
use crate::variants::Variant;
use crate::wrk::{self, PERCENTILES};

/// The share of the cores' time that other programs may have, and how often we try to get
/// as much.
pub(crate) const CALM: f64 = 0.03;
const TRIES: u32 = 3;

/// The result of one measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) per_second: f64,
    /// In microseconds, of [`PERCENTILES`].
    pub(crate) latency: [f64; PERCENTILES.len()],
    /// The server's CPU time, in microseconds a request.
    pub(crate) user: f64,
    pub(crate) system: f64,
    /// The share of the cores' time that other programs had.
    pub(crate) others: f64,
}

/// Measures a variant until it is not disturbed, or takes the least disturbed measurement.
pub(crate) async fn measure(variant: &Variant, setup: &Setup) -> Result<Found> {
    let once = async || measure_once(variant, setup).await;
    calmest(variant.name, once, |found| found.others).await
}

/// Measures until others have not much of the cores, or takes the measurement in which they had
/// least.
pub(crate) async fn calmest<T>(
    name: &str,
    once: impl AsyncFn() -> Result<T>,
    others: fn(&T) -> f64,
) -> Result<T> {
    let mut best = once().await?;
    for _ in 1..TRIES {
        if others(&best) <= CALM {
            break;
        }
        eprintln!("{name}: others had {:.0} % of the cores; again", others(&best) * 100.0);
        let again = once().await?;
        if others(&again) < others(&best) {
            best = again;
        }
    }
    Ok(best)
}

async fn measure_once(variant: &Variant, setup: &Setup) -> Result<Found> {
    let (server_core, wrk_core) = setup.cores.map(|pair| (pair.server, pair.generator)).unzip();
    let cores = match setup.cores {
        Some(pair) => vec![pair.server, pair.generator],
        None => cores::allowed()?,
    };
    let server = Server::start(variant, setup.threads, server_core).await?;

    let before = Look::at(&server, &cores)?;
    let seen = wrk::load(server.address, setup.threads, wrk_core, setup.seconds).await?;
    let spent = Look::at(&server, &cores)? - before;

    if let Some(counted) = server.stop().await? {
        // Those that were in flight when wrk ended are counted by the server alone.
        let requests = seen.requests..=seen.requests + wrk::CONNECTIONS;
        ensure!(
            requests.contains(&counted),
            "{}: {} requests were answered, {counted} were counted",
            variant.name,
            seen.requests
        );
    }
    let per_request = |seconds: f64| seconds * 1e6 / seen.requests as f64;
    let wall = seen.requests as f64 / seen.per_second;
    Ok(Found {
        per_second: seen.per_second,
        latency: seen.latency,
        user: per_request(spent.server.user()),
        system: per_request(spent.server.system()),
        others: spent.share_of_others(cores.len(), wall),
    })
}

/// The kernel's accounting until now, or between two readings.
pub(crate) struct Look {
    pub(crate) server: CpuTime,
    /// Of this process's children that ended: each generator so far, and each earlier server.
    pub(crate) children: Ended,
    /// Of all processes on the cores.
    cores: f64,
}

impl Look {
    pub(crate) fn at(server: &Server, cores: &[usize]) -> Result<Self> {
        Ok(Self {
            server: CpuTime::of_process(server.id)?,
            children: Ended::by_now()?,
            cores: accounting::busy(cores)?,
        })
    }

    /// The share of so many cores that other programs had, in so many seconds.
    pub(crate) fn share_of_others(&self, cores: usize, wall: f64) -> f64 {
        let others = self.cores - self.server.both() - self.children.both();
        (others / (cores as f64 * wall)).max(0.0)
    }
}

impl Sub for Look {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            server: self.server - earlier.server,
            children: self.children - earlier.children,
            cores: self.cores - earlier.cores,
        }
    }
}
