//! The histograms of prometheus-client, behind its mutex: with thresholds, with native buckets of
//! the schema that is Talea's default, and with both. They have a sum.

use anyhow::Result;
use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig};
use prometheus_client::registry::Registry;

use super::latencies::Latencies;
use crate::randomness::Sequence;
use crate::recorder;
use crate::thresholds::{self, THRESHOLDS};

pub(crate) struct ClientClassic(Histogram);
pub(crate) struct ClientNative(Histogram);
pub(crate) struct ClientDual(Histogram);

/// Talea's default schema, and its highest number of buckets.
fn native() -> NativeHistogramConfig {
    NativeHistogramConfig::with_schema(3).max_buckets(160)
}

fn classic() -> Histogram {
    Histogram::new(THRESHOLDS)
}

fn only_native() -> Histogram {
    Histogram::new_native(native())
}

fn dual() -> Histogram {
    Histogram::new_classic_and_native(THRESHOLDS, native())
}

macro_rules! latencies {
    ($($histogram:ident $name:literal $new:ident $quantile:expr,)+) => {$(
        impl Latencies for $histogram {
            const NAME: &'static str = $name;
            type Value = f64;

            fn new() -> Result<Self> {
                Ok(Self($new()))
            }

            fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<f64, LEN>) {
                values.walk(thread, n, |value| self.0.observe(value));
            }

            fn count(&self) -> Result<u64> {
                Ok(self.0.count())
            }

            fn quantile(&self, q: f64) -> Result<Option<f64>> {
                $quantile(&self.0, q)
            }
        }
    )+};
}

latencies! {
    ClientClassic "prometheus-client" classic of_thresholds,
    ClientNative "prometheus-client-native" only_native of_native_buckets,
    ClientDual "prometheus-client-dual" dual of_native_buckets,
}

fn of_thresholds(histogram: &Histogram, q: f64) -> Result<Option<f64>> {
    let mut registry = Registry::default();
    registry.register("kept_seconds", "Time.", histogram.clone());
    thresholds::quantile_in_text(&text(&registry)?, "kept_seconds", &[], q)
}

/// Native buckets are in no text.
fn of_native_buckets(_: &Histogram, _: f64) -> Result<Option<f64>> {
    Ok(None)
}

/// The sum over all series of a name, as the text shows it.
pub(crate) fn count_in_text(registry: &Registry, name: &str) -> Result<u64> {
    recorder::sum_of(&text(registry)?, name)
}

fn text(registry: &Registry) -> Result<String> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}
