//! One measurement: a service is started and loaded, and CPU times are read before and after.

use anyhow::{Result, ensure};

use crate::accounting::{self, CpuTime};
use crate::cores;
use crate::generator::{Generator, Load};
use crate::load_report::LoadReport;
use crate::server::Server;

/// The share of the cores' time that other programs may have.
pub(crate) const CALM: f64 = 0.03;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) load: LoadReport,
    pub(crate) server: CpuUse,
    pub(crate) generator: CpuUse,
    /// The share of the cores' time that other programs had.
    pub(crate) others: f64,
}

/// CPU time of a process, in microseconds a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuUse {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) both: f64,
}

impl CpuUse {
    fn new(time: CpuTime, requests: u64) -> Self {
        let per_request = |seconds: f64| seconds * 1e6 / requests as f64;
        let [user, system, both] = [time.user(), time.system(), time.both()].map(per_request);
        Self { user, system, both }
    }
}

/// Measures a variant of the service under a generator's load.
pub(crate) async fn measure(
    variant: &str,
    generator: Generator,
    load: Load,
) -> Result<Measurement> {
    let (server_core, generator_core) =
        load.cores.map(|pair| (pair.server, pair.generator)).unzip();
    let cores = match load.cores {
        Some(pair) => vec![pair.server, pair.generator],
        None => cores::allowed()?,
    };
    let server = Server::start(variant, load.threads, server_core).await?;

    let read = || {
        let server = CpuTime::of_process(server.id)?;
        anyhow::Ok((server, CpuTime::of_ended_children()?, accounting::busy(&cores)?))
    };
    let before = read()?;
    let made = generator.run(server.address, load, generator_core).await?;
    let after = read()?;
    let (of_server, of_generator) = (after.0 - before.0, after.1 - before.1);

    if let Some(received) = server.stop().await? {
        let expected = made.requests..=made.requests + generator.unreported(load.connections);
        ensure!(
            expected.contains(&received),
            "{variant}: {generator:?} reports {} answered requests, {received} were received",
            made.requests
        );
    }
    let wall = made.requests as f64 / made.per_second;
    let others = after.2 - before.2 - of_server.both() - of_generator.both();
    Ok(Measurement {
        load: made,
        server: CpuUse::new(of_server, made.requests),
        generator: CpuUse::new(of_generator, made.requests),
        others: (others / (cores.len() as f64 * wall)).max(0.0),
    })
}
