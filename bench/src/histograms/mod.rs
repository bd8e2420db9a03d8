//! Histograms of Talea and of other libraries, each as its documentation recommends, behind one
//! trait. `observe-kept` measures their time, `latencies.rs` their memory and their errors.
//!
//! Histograms with thresholds have the same ones. Histograms with buckets by a rule have their
//! default rule, or that of their documentation's example.

mod by_metrics;
mod by_prometheus;
mod by_prometheus_client;
mod by_talea;
mod hdr;
mod latencies;
mod measured;
mod of_two_powers;
mod sketches;

pub(crate) use by_metrics::ByMetrics;
pub(crate) use by_prometheus::ByPrometheus;
pub(crate) use by_prometheus_client::{ClientClassic, ClientDual, ClientNative, count_in_text};
pub(crate) use by_talea::{TaleaClassic, TaleaDual, TaleaNative};
pub(crate) use hdr::Hdr;
pub(crate) use latencies::{Latencies, Observation};
pub(crate) use measured::{Measured, count_of_measured};
pub(crate) use of_two_powers::{H2, Metriken};
pub(crate) use sketches::{DdSketch, Digest};
