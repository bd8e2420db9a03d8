//! Families of metrics, read from a page in any format.
//!
//! All formats become the messages of [`protobuf`]: that has the most, native histograms among them.

mod durations;
mod endpoint;
mod native_durations;
#[cfg(any(test, feature = "pages"))]
pub mod pages;
pub mod protobuf;
mod summaries;
mod text;
mod times;

pub use self::durations::{Between, Durations};
pub use self::endpoint::{endpoint_of, is_of_endpoint, outcome_of, status_of};
pub use self::text::utf8;
pub use self::times::{Quantiles, Times};

use talea::{Escaping, Format, Snapshot};

use self::protobuf::MetricFamily;

/// Asks for protobuf, which has native histograms, or for the text format.
pub const ACCEPT: &str = "application/vnd.google.protobuf;\
    proto=io.prometheus.client.MetricFamily;encoding=delimited, text/plain;version=0.0.4;q=0.5";

/// The families of a page in protobuf, OpenMetrics or Prometheus' text format. An error says why it
/// is none of them: of a page that is not protobuf, what is wrong with it as a text.
pub fn read(page: &[u8]) -> anyhow::Result<Vec<MetricFamily>> {
    let families = match protobuf::families(page) {
        Some(families) => families,
        None => text::families(page)?,
    };
    Ok(families.into_iter().flat_map(summaries::samples).collect())
}

pub fn of_snapshot(snapshot: &Snapshot) -> anyhow::Result<Vec<MetricFamily>> {
    let page = snapshot.chunks(Format::Protobuf, Escaping::AllowUtf8, usize::MAX);
    read(&page.flatten().collect::<Vec<u8>>())
}
