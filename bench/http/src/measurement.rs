//! One measurement: a service is started and loaded, and CPU times are read before and after.

use anyhow::{Result, ensure};

use crate::accounting::{self, CpuTime};
use crate::generator::{Generator, Load};
use crate::load_report::LoadReport;
use crate::server::Server;

/// The share of the cores' time that other programs may have.
pub(crate) const CALM: f64 = 0.03;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) load: LoadReport,
    pub(crate) generator: CpuUse,
    /// The share of the cores' time that other programs had.
    pub(crate) others: f64,
}

/// CPU time of a generator, in microseconds a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuUse {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) both: f64,
}

impl CpuUse {
    fn new(time: CpuTime, requests: u64) -> Self {
        let [user, system] =
            [time.user, time.system].map(|seconds| seconds * 1e6 / requests as f64);
        Self { user, system, both: user + system }
    }
}

/// Measures a generator that loads the service, which counts the requests that it receives.
pub(crate) async fn measure(generator: Generator, load: Load) -> Result<Measurement> {
    let cores = [load.cores.server, load.cores.generator];
    let server = Server::start(load.cores.server).await?;

    let read = || {
        let server = CpuTime::of_process(server.id)?;
        anyhow::Ok((server, CpuTime::of_ended_children()?, accounting::busy(&cores)?))
    };
    let before = read()?;
    let made = generator.run(server.address, load).await?;
    let after = read()?;
    let (of_server, of_generator) = (after.0 - before.0, after.1 - before.1);

    let received = server.stop().await?;
    let expected = made.requests..=made.requests + generator.unreported(load.connections);
    ensure!(
        expected.contains(&received),
        "{generator:?} reports {} answered requests, {received} were received",
        made.requests
    );
    let wall = made.requests as f64 / made.per_second;
    let others = after.2 - before.2 - of_server.both() - of_generator.both();
    Ok(Measurement {
        load: made,
        generator: CpuUse::new(of_generator, made.requests),
        others: (others / (cores.len() as f64 * wall)).max(0.0),
    })
}
