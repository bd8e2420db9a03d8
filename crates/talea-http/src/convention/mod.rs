//! Conventions: the names and labels of metrics.

mod caddy;
#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "grpc")]
pub(crate) mod grpc;
mod instrumentator;
pub(crate) mod metric_set;
pub(crate) mod opentelemetry;
mod prometheus;
mod servant;
mod starlette_exporter;

use self::metric_set::MetricSet;

/// The names and labels of the metrics, so that existing dashboards and alerts keep working.
/// Each variant documents its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Convention {
    /// Names that Prometheus users expect, for all that is recorded.
    ///
    #[doc = include_str!("prometheus.md")]
    #[default]
    Prometheus,
    /// The semantic conventions of OpenTelemetry, named as its exporter for Prometheus
    /// names them.
    ///
    #[doc = include_str!("opentelemetry.md")]
    OpenTelemetry,
    /// The metrics of Haskell's servant-prometheus.
    ///
    #[doc = include_str!("servant.md")]
    Servant,
    /// The metrics of Caddy's web server.
    ///
    #[doc = include_str!("caddy.md")]
    Caddy,
    /// The metrics of Python's prometheus-fastapi-instrumentator.
    ///
    #[doc = include_str!("instrumentator.md")]
    FastapiInstrumentator,
    /// The metrics of Python's starlette_exporter.
    ///
    #[doc = include_str!("starlette_exporter.md")]
    StarletteExporter,
}

/// Whether calls come in or go out.
#[cfg(feature = "grpc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

impl Convention {
    pub(crate) fn metric_set(self) -> MetricSet {
        match self {
            Self::Prometheus => prometheus::METRIC_SET,
            Self::OpenTelemetry => opentelemetry::METRIC_SET,
            Self::Servant => servant::METRIC_SET,
            Self::Caddy => caddy::METRIC_SET,
            Self::FastapiInstrumentator => instrumentator::METRIC_SET,
            Self::StarletteExporter => starlette_exporter::METRIC_SET,
        }
    }
}
