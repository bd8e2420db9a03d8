//! Metrics that live in shared memory: an increment takes 0.7 to 0.9 of the time of an
//! uncontended atomic add, on any number of threads and processes, and anyone can
//! scrape them, even after a crash.
//!
//! ```toml
//! [dependencies]
//! talea = "0.1"      # cargo add talea
//! talea-http = "0.1" # cargo add talea-http: serves the metrics; meters HTTP services
//! ```
//!
//! ```
//! use talea::{Counter, Family, Histogram, LabelValue, Labels, Metrics, Registry, Seconds};
//!
//! #[derive(LabelValue)]
//! enum Method { Card, Transfer }
//!
//! #[derive(Labels)]
//! struct Sale<'a> { method: Method, country: &'a str }
//!
//! #[derive(Metrics)]
//! #[metrics(prefix = "shop")]
//! pub struct Shop {
//!     /// Orders accepted.
//!     orders: Family<Sale<'static>, Counter>,
//!     /// Time to price a basket.
//!     pricing: Histogram<Seconds>,
//! }
//!
//! pub static SHOP: Shop = Shop::new();
//!
//! fn main() -> Result<(), talea::Error> {
//!     let registry = Registry::new()?;
//!     talea::install(&registry, &[&SHOP])?;
//!
//!     let country = String::from("pe");
//!     SHOP.orders.with(Sale { method: Method::Card, country: &country }).inc();
//!     {
//!         let _timer = SHOP.pricing.start_timer();
//!     }
//!     let snapshot = registry.snapshot();
//!     let labels = [("method", "card"), ("country", "pe")];
//!     assert_eq!(snapshot.value("shop_orders_total", &labels), Some(1.0));
//!     assert_eq!(snapshot.histogram("shop_pricing_seconds", &[]).unwrap().count(), 1);
//!     print!("{}", snapshot.to_text());
//!     Ok(())
//! }
//! ```
//!
//! The crate `talea-http` serves a registry at `/metrics` (`talea_http::MetricsServer`, or
//! `talea_http::serve` for the [default registry](default_registry)) and meters HTTP endpoints. With
//! `TALEA_REGION=/dev/shm/shop.talea`, [`Registry::from_env`] keeps the metrics in a file, which
//! `talea serve` answers for from outside.
//!
//! The [`guide`] goes through all of it, with examples. It begins with metrics that are statics and
//! register themselves, by [`#[register]`](macro@register).
//!
//! - **Statics or values.** [`#[derive(Metrics)]`](derive@Metrics) makes a set that can
//!   be a `static`: a library owns metrics and no registry, the application
//!   [`install`]s them. [`Registry::register`] makes one metric under a name known at
//!   run time, [`Registry::family`] one with such label names.
//! - **Types.** [`Counter`], [`FloatCounter`], [`Gauge`], [`FloatGauge`], [`UpDownCounter`],
//!   [`Histogram`] of [`Seconds`], [`Bytes`] or [`Count`], [`Info`], [`StateSet`]; observable
//!   values, which are read at each scrape, by [`Registry::observable_gauge`] and its like.
//! - **Labels** are structs by [`#[derive(Labels)]`](derive@Labels). Labels with fixed values are
//!   looked up by arithmetic: enums by [`#[derive(LabelValue)]`](derive@LabelValue), bools,
//!   [`StatusClass`], [`HttpMethod`], a [`label_set!`] whose values are set at startup. Dynamic
//!   labels are text, borrowed or not, numbers, or any type with `Display` ([`Displayed`]).
//! - **Handles.** [`Family::with`] finds a series, [`SeriesGuard::keep`] keeps it, [`Lazy`]
//!   is a `static` that does both when it is first used.
//! - **Threads and processes** share a registry without locks; see [`Registry::new`],
//!   [`Registry::open`] and [`Registry::from_env`]. [`Combine`] chooses how the gauges of several
//!   processes are aggregated.
//! - **Bounded.** By default a family has at most 2,000 series; any further label combination is
//!   counted under `otel_metric_overflow="true"`. Idle series expire, and [`Family::remove`],
//!   [`remove_matching`](Family::remove_matching), [`wipe`](Family::wipe) and
//!   [`Registry::unregister`] remove or reset series at once.
//! - **Tests** make a set and a registry of their own, `Shop::for_test()`, and ask
//!   a [`Snapshot`]: [`value`](Snapshot::value), [`total`](Snapshot::total),
//!   [`histogram`](Snapshot::histogram), [`select`](Snapshot::select), and assertions
//!   that show the nearest series when they fail.
//! - **Scrapes** are [`Snapshot::to_text`], or [`Registry::scraper`], which reuses its buffers;
//!   [`Scraper::families`] gives the same values in the types of [`model`], without an encoding.
//!
//! No operation of a metric fails, blocks, panics or logs. Opening a registry and registering can
//! fail; the [`Error`] says how to correct the fault.

mod definition;
mod error;
mod exemplar;
mod expose;
mod family;
mod histogram;
mod labels;
#[cfg(feature = "derive")]
mod macros;
mod metric;
mod notice;
#[cfg(feature = "outside")]
pub mod outside;
mod page;
mod registry;
mod samples;
mod scraper;
mod snapshot;
mod testing;
#[cfg(feature = "tracing")]
mod trace;

pub use definition::kind::Kind;
pub use definition::names::is_usable_as_part_label;
pub use definition::opts::{Bucketing, Opts};
pub use definition::unit::{Bytes, Count, Floats, Seconds, Unit};
pub use error::{Error, SeriesError};
pub use exemplar::{Exemplar, ExemplarError};
#[doc(hidden)]
pub use expose::write_canonical;
pub use expose::{Escaping, Format, TEXT_CONTENT_TYPE};
pub use family::lazy::Lazy;
pub use family::timers::Labelled;
pub use family::unguarded::Unguarded;
pub use family::values::DynamicLabels;
#[doc(hidden)]
pub use family::values::HeldSeries;
pub use family::{Family, SeriesGuard};
pub use histogram::native_buckets::NativeBuckets;
pub use histogram::snapshot::HistogramSnapshot;
pub use histogram::thresholds::{exponential_buckets, linear_buckets};
pub use histogram::windows::Windows;
pub use labels::{Displayed, HttpMethod, LabelText, LabelValue, Labels, StatusClass};
#[cfg(feature = "derive")]
pub use macros::{LabelValue, Labels, Metrics, counted, register, timed};
#[doc(hidden)]
pub use metric::LentHistogram;
pub use metric::{
    Counter, DynamicStateSet, FloatCounter, FloatGauge, Gauge, Histogram, InFlightGuard, Info,
    Metric, ObserveDuration, StateSet, Summary, Timer, UpDownCounter,
};
#[doc(hidden)]
pub use notice::notice;
pub use page::{Conflict, Loss, Page, Scrapable};
pub use registry::Registry;
pub use registry::declared::default_registry;
pub use registry::install::{Metrics, install};
pub use registry::observable::Observation;
pub use registry::register::Registrable;
pub use samples::SampledSummary;
pub use scraper::Scraper;
pub use snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot, SummarySnapshot, Value};
/// The model of a page, which [`Snapshot::to_families`] and [`Page::to_families`] fill.
pub use talea_page as model;
pub use talea_region::{AddPath, Combine, Config, LivingProcess, OpenError, Overflow, Part, Usage};
#[doc(hidden)]
pub use talea_region::{Hold, LentPlane, fork_generation, forks};

#[doc = include_str!("../guide.md")]
pub mod guide {}

/// Items that only code generated by the macros uses.
#[doc(hidden)]
pub mod derived {
    pub use crate::labels::mixed_radix::{pop, product, push};
    pub use crate::labels::{KeyWriter, LabelSet, Member};
    #[cfg(feature = "derive")]
    pub use crate::macros::Outcome;
    #[cfg(feature = "derive")]
    pub use crate::registry::declared::DeclaredStatic;
    pub use crate::registry::set_fields::SetFields;
    #[cfg(feature = "derive")]
    pub use inventory;
}
