//! Families of metrics, read from a page in any format.

mod durations;
mod endpoint;
mod native_durations;
#[cfg(any(test, feature = "pages"))]
pub mod pages;
mod times;

pub use self::durations::{Between, Durations, quantile_of};
pub use self::endpoint::{endpoint_of, is_of_endpoint, outcome_of, status_of};
pub use self::times::{Quantiles, Times};

/// Asks for protobuf, which has native histograms, or for the text format.
pub const ACCEPT: &str = "application/vnd.google.protobuf;\
    proto=io.prometheus.client.MetricFamily;encoding=delimited, text/plain;version=0.0.4;q=0.5";
