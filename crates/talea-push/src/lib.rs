//! Pushes metrics where they are not scraped: by Prometheus remote-write 2.0, or 1.0 where a receiver knows
//! no other, to Prometheus, Mimir, Thanos, VictoriaMetrics and the like; by OTLP to an OpenTelemetry
//! Collector.
//!
//! ```no_run
//! use talea_push::{Config, Pusher};
//!
//! let registry = talea::Registry::new()?;
//! let config = Config::remote_write("http://localhost:9090/api/v1/write")?
//!     .label("job", "shop")
//!     .queue_in("/var/lib/shop/push");
//! let _pusher = Pusher::start(&registry, config)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **In order.** One request at a time, oldest first, so that the samples of a series stay in order. A
//!   request that fails is repeated with growing pauses, as long as the receiver may take it.
//! - **Bounded.** What waits is bounded by bytes and by age, in memory or in a [folder](Config::queue_in).
//!   The oldest goes first, as the newest value of a counter holds all before it.
//! - **Counted.** Each sample is counted once, as sent, failed or dropped with the reason, or as waiting:
//!   `talea_push_samples_sent_total`, `…_failed_total`, `…_dropped_total`, `talea_push_queue_samples`.
//! - **Exact.** Start timestamps, exemplars (each once), classic and native buckets, metadata, and a stale
//!   marker when a series ends.
//!
//! The metered code does not wait for any of this: a thread of its own reads the registry and sends.

mod backoff;
mod client;
mod clock;
mod config;
mod error;
mod metrics;
mod otlp;
mod pusher;
mod queue;
mod record;
mod relabel;
mod remote_write;
mod response;
mod sender;
#[cfg(test)]
mod tests;
mod tls;
mod verdict;

pub use config::{Config, Temporality};
pub use error::Error;
pub use pusher::Pusher;
pub use relabel::{Action, Rule};
