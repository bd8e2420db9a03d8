//! A recorder for the [`metrics`] facade, so that a program full of `counter!`,
//! `gauge!` and `histogram!` moves to Talea in one line:
//!
//! ```
//! use metrics::{Unit, counter, describe_counter, describe_histogram, gauge, histogram};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let registry = talea::Registry::new()?;
//!     talea_metrics::install(&registry)?;
//!
//!     describe_counter!("shop.orders", "Orders accepted.");
//!     describe_histogram!("shop.pricing", Unit::Seconds, "Time to price a basket.");
//!     counter!("shop.orders", "method" => "card", "country" => "pe").increment(1);
//!     gauge!("shop.baskets").set(3.0);
//!     histogram!("shop.pricing").record(0.020);
//!
//!     let snapshot = registry.snapshot();
//!     let labels = [("method", "card"), ("country", "pe")];
//!     snapshot.assert_value("shop_orders_total", &labels, 1.0);
//!     assert!(snapshot.to_text().contains("# HELP shop_orders_total Orders accepted."));
//!     Ok(())
//! }
//! ```
//!
//! [`Recorder::builder`] sets buckets, limits and labels that all metrics have. Serve the
//! registry as any other: by `talea_http::MetricsServer`, or by
//! [`Registry::scraper`](talea::Registry::scraper). Metrics that Talea's own types declare
//! live beside these.
//!
//! # How calls are mapped
//!
//! | call | in Talea |
//! |---|---|
//! | `counter!` | a counter of whole numbers; `absolute` raises it to at least the number |
//! | `gauge!` | a gauge of floats |
//! | `histogram!` | a histogram with buckets; there are no summaries |
//! | `describe_*!` | the help, and of a histogram the scale and the default buckets |
//! | targets and levels | nothing |
//!
//! Describe a metric before its first use, since its definition is fixed from then on. A later
//! description changes nothing, and a line on standard error says so. Of several descriptions the
//! first is used. Without one, the help names the metric.
//!
//! # Names
//!
//! Characters that Prometheus does not have become `_`, each one, as metrics-exporter-prometheus
//! has it: `shop.orders` is `shop_orders`, `2xx` is `_xx`. Beyond that,
//!
//! - a counter ends in `_total`;
//! - several underscores at the beginning become one, since Prometheus reserves such names
//!   (OpenMetrics reserves those with one too, and `talea check` says so), and
//!   the labels `le` and `quantile` are `exported_le` and `exported_quantile`;
//! - a name of underscores alone is not recorded;
//! - two metrics of one type whose names become one, such as `a.b` and `a-b`, or the counters `jobs` and
//!   `jobs_total`, are one metric. A line on standard error names both;
//! - a name that cannot be used for its type, such as a gauge's name that ends in `_count`, or
//!   that another type of metric has already, gets the type's name: `rows_count_gauge`. A
//!   line on standard error says so.
//!
//! # Labels
//!
//! Each call may have other labels; their order does not matter. A label whose value is
//! empty is left out, which is the same to Prometheus. Of two labels that have one name
//! once characters are replaced, the latter counts, and a line on standard error names both. A metric with a label that is also a
//! [constant one](talea::Registry::set_constant_labels) of the registry is shown without the constant ones.
//!
//! # Values of histograms
//!
//! They are kept as whole multiples of a smallest step, rounded to the nearest, so that
//! adding is exact and a sum never drifts. The step comes from the unit in the
//! description; without one, from the end of the name (`_seconds`, `_milliseconds` or
//! `_ms`, `_microseconds` or `_us`, `_nanoseconds` or `_ns`, `_bytes`).
//!
//! | unit | kept in | a sum wraps at |
//! |---|---|---|
//! | `Seconds`, `Milliseconds`, `Microseconds`, `Nanoseconds` | nanoseconds | 584 years |
//! | `Bytes`, `Kibibytes`, `Mebibytes`, `Gibibytes`, `Tebibytes` | bytes | 2⁶⁴ bytes |
//! | `BitsPerSecond` to `TerabitsPerSecond` | bits a second | 2⁶⁴ |
//! | `Count`, `CountPerSecond` | thousandths | 1.8·10¹⁶ |
//! | `Percent`, and none | millionths | 1.8·10¹³ |
//!
//! A value that is negative, NaN, or more than a sum can hold is not recorded.
//! `talea_recorder_unusable_total` counts such values by metric.
//!
//! # Limits
//!
//! - A metric has at most 2,000 series; any further one is counted under
//!   `otel_metric_overflow="true"`, and `talea_series_dropped_total` counts how often.
//! - Series of counters and histograms expire after an hour without use, also if a handle is kept:
//!   with the next use they begin at 0, as after a restart. Gauges do not expire.
//! - At most 1,000 names of each type. Updates of further ones, and of those that the registry has
//!   no room for, are discarded; `talea_recorder_refused_total` counts each call by metric, and a
//!   line on standard error says why.
//! - A metric that [`Registry::unregister`](talea::Registry::unregister) removes is not registered
//!   again.
//! - The handles that macros return are cached, up to about 8,000 of each type.
//!
//! # Cost
//!
//! A macro whose handle is cached allocates only the key that the facade makes. Each operation on a
//! handle looks its series up: the labels were rendered once and are hashed and compared. A kept
//! handle saves the macro's part of that, not the look-up; if that is too much, use a kept handle
//! of Talea's own types. `record_many` takes about as long as three calls of `record`, whatever the count.
//!
//! # Processes and threads
//!
//! Any thread may use any handle. Processes that share a registry share its values. Two
//! that call `absolute` of one series at the same instant may raise it twice; threads of
//! one process do not. A process that described a metric and one that did not define it
//! otherwise, and then the newest definition is shown until the others end: describe
//! first.

mod buckets;
mod builder;
mod cache;
mod error;
mod family;
mod family_table;
mod handle;
mod labels;
mod losses;
mod names;
mod recorder;
mod scale;
mod settings;
mod spellings;
mod types;

pub use buckets::Matcher;
pub use builder::Builder;
pub use error::Error;
pub use recorder::Recorder;
use talea::Registry;

/// Has all macros of [`metrics`] record into a registry from now on, with the defaults of
/// [`Recorder::builder`].
///
/// # Errors
///
/// There is a global recorder already; the registry has no room for the recorder's own two
/// metrics.
pub fn install(registry: &Registry) -> Result<(), Error> {
    Recorder::builder().install(registry)
}
