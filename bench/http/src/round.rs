//! One measurement: a server is started, loaded, and looked at before and after.

use anyhow::{Result, ensure};

use crate::accounting::{self, CpuTime};
use crate::cores;
use crate::experiment::Setup;
use crate::server::Server;
use crate::variants::Variant;
use crate::wrk::{self, PERCENTILES};

/// The share of the cores' time that other programs may have, and how often we try to get
/// as much.
pub(crate) const CALM: f64 = 0.03;
const TRIES: u32 = 3;

/// What one measurement found.
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
    let mut best = measure_once(variant, setup).await?;
    for _ in 1..TRIES {
        if best.others <= CALM {
            break;
        }
        eprintln!("{}: others had {:.0} % of the cores; again", variant.name, best.others * 100.0);
        let again = measure_once(variant, setup).await?;
        if again.others < best.others {
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
    let after = Look::at(&server, &cores)?;
    let spent = after.server - before.server;
    let others = (after.cores - before.cores) - spent.both() - (after.wrk - before.wrk);

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
        user: per_request(spent.user()),
        system: per_request(spent.system()),
        others: (others / (cores.len() as f64 * wall)).max(0.0),
    })
}

/// What the kernel has accounted for by now.
struct Look {
    server: CpuTime,
    /// Of this process's children that ended: each wrk so far, and each earlier server.
    wrk: f64,
    /// Of whoever ran on the cores.
    cores: f64,
}

impl Look {
    fn at(server: &Server, cores: &[usize]) -> Result<Self> {
        Ok(Self {
            server: CpuTime::of_process(server.id)?,
            wrk: accounting::of_ended_children()?,
            cores: accounting::busy(cores)?,
        })
    }
}
