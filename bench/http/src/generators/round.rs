//! One measurement: a service is started and loaded, and it is looked at what that took.

use anyhow::{Result, ensure};

use super::generator::{Generator, Load};
use crate::cores::Pair;
use crate::round::{Look, calmest};
use crate::server::Server;
use crate::variants::{ALL, METERED};

/// The result of one measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) per_second: f64,
    /// The generator's CPU time, in microseconds a request.
    pub(super) user: f64,
    pub(super) system: f64,
    /// Bytes of memory that it had at most.
    pub(super) memory: u64,
    /// The share of the cores' time that other programs had.
    pub(super) others: f64,
}

impl Found {
    /// All of its CPU time, in microseconds a request.
    pub(super) fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

/// Measures a generator until it is not disturbed, or takes the least disturbed measurement.
pub(super) async fn measure(
    name: &str,
    generator: Generator,
    connections: u64,
    seconds: u32,
    cores: Pair,
) -> Result<Found> {
    let once = async || measure_once(generator, connections, seconds, cores).await;
    calmest(name, once, |found| found.others).await
}

/// The service is one that counts what it receives.
pub(super) async fn measure_once(
    generator: Generator,
    connections: u64,
    seconds: u32,
    cores: Pair,
) -> Result<Found> {
    let server = Server::start(&ALL[METERED], 1, Some(cores.server)).await?;
    let before = Look::at(&server, &[cores.server, cores.generator])?;
    let load = Load { server: server.address, connections, seconds };
    let made = generator.run(load, cores.generator).await?;
    let spent = Look::at(&server, &[cores.server, cores.generator])? - before;

    let received = server.stop().await?.unwrap_or_default();
    let expected = made.requests..=made.requests + generator.unreported(connections);
    ensure!(
        expected.contains(&received),
        "{generator:?} reports {} answered requests, {received} were received",
        made.requests
    );
    let per_request = |seconds: f64| seconds * 1e6 / made.requests as f64;
    let wall = made.requests as f64 / made.per_second;
    Ok(Found {
        per_second: made.per_second,
        user: per_request(spent.children.user),
        system: per_request(spent.children.system),
        memory: made.memory,
        others: spent.share_of_others(2, wall),
    })
}
