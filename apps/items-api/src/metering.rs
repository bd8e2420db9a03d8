//! How much of the service is metered, for measuring what metering costs.

use crate::pool_metrics::PoolMetrics;
use clap::ValueEnum;
use talea::{Error, Registry};
use talea_collectors::tasks::TaskMeter;
use talea_http::{Endpoints, Opts};
use tokio::runtime::Handle;

/// Of the last ten minutes' requests, where they are asked for.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// What is metered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Metering {
    /// The process alone: no request, task or connection meets a meter
    Off,
    /// Requests, tasks, connections and the runtime
    #[default]
    On,
    /// The same, and quantiles of the last ten minutes' requests are shown
    Quantiles,
}

/// What meters the parts of the service; nothing where they are not metered.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    pub(crate) endpoints: Option<Endpoints>,
    pub(crate) tasks: Option<TaskMeter>,
    pub(crate) pools: Option<PoolMetrics>,
}

impl Meters {
    /// Makes those that `metering` asks for.
    ///
    /// # Errors
    ///
    /// A metric cannot be registered.
    ///
    /// # Panics
    ///
    /// Panics when called outside a tokio runtime.
    pub(crate) fn register(metering: Metering, registry: &Registry) -> Result<Meters, Error> {
        talea_collectors::build::register(registry, talea_collectors::build_info!())?;
        talea_collectors::process::register(registry)?;
        let opts = match metering {
            Metering::Off => return Ok(Meters::default()),
            Metering::On => Opts::new(),
            Metering::Quantiles => Opts::new().quantiles(&QUANTILES),
        };
        talea_collectors::tokio::register(registry, "main", Handle::current())?;
        Ok(Meters {
            endpoints: Some(opts.register(registry)?),
            tasks: Some(TaskMeter::register(registry, "server")?),
            pools: Some(PoolMetrics::register(registry)?),
        })
    }
}
