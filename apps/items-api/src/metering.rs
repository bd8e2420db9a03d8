//! How much of the service is metered, for measuring what metering costs.

use clap::ValueEnum;
use talea::{Error, Registry};
use talea_collectors::tasks::TaskMeter;
use talea_http::{Endpoints, Opts};
use tokio::runtime::Handle;

/// Of the last ten minutes' requests, where they are asked for.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Thresholds of durations in seconds: the usual ones, and some below for a service that answers
/// within a millisecond.
const DURATIONS: [f64; 15] =
    [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The extent of metering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Metering {
    /// Only the process: no request, task or connection is metered
    Off,
    /// Requests, tasks, connections and the runtime
    #[default]
    On,
    /// Requests, tasks, connections and the runtime, with quantiles of the last ten minutes' requests
    Quantiles,
}

/// The meters of the parts of the service; none if they are not metered.
#[derive(Debug, Default)]
pub(crate) struct ServiceMeters {
    pub(crate) endpoints: Option<Endpoints>,
    pub(crate) tasks: Option<TaskMeter>,
    /// Where pools of connections show themselves.
    pub(crate) pools: Option<Registry>,
}

impl ServiceMeters {
    /// Makes those that `metering` asks for.
    /// Fails when a metric cannot be registered.
    /// Panics when called outside a tokio runtime.
    pub(crate) fn register(
        metering: Metering,
        registry: &Registry,
    ) -> Result<ServiceMeters, Error> {
        talea_collectors::build::register(registry, talea_collectors::build_info!())?;
        talea_collectors::process::register(registry)?;
        let opts = Opts::new().detailed().durations(&DURATIONS);
        let opts = match metering {
            Metering::Off => return Ok(ServiceMeters::default()),
            Metering::On => opts,
            Metering::Quantiles => opts.quantiles(&QUANTILES),
        };
        talea_collectors::tokio::register(registry, "main", Handle::current())?;
        Ok(ServiceMeters {
            endpoints: Some(opts.register(registry)?),
            tasks: Some(TaskMeter::register(registry, "server")?),
            pools: Some(registry.clone()),
        })
    }
}
