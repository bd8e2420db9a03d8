//! Talea's histograms, in one registry: with classic buckets, with native ones, and with both,
//! which is the default.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use talea::{
    Bucketing, Config, Family, Histogram, HistogramSnapshot, Labels, Opts, Registry, Seconds,
};

use super::latencies::Latencies;
use crate::randomness::Sequence;
use crate::thresholds::THRESHOLDS;

/// It has room for the series that `latencies.rs` makes.
static REGISTRY: LazyLock<Registry> =
    LazyLock::new(|| Registry::with_config(Config::with_len(256 << 20)).expect("there is memory"));

static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Labels)]
struct Number {
    n: u64,
}

pub(crate) struct TaleaClassic(Kept);
pub(crate) struct TaleaNative(Kept);
pub(crate) struct TaleaDual(Kept);

struct Kept {
    histogram: Histogram<Seconds>,
    name: &'static str,
    n: String,
}

impl Kept {
    fn new(name: &'static str, bucketing: Bucketing) -> Result<Self> {
        // Striped, as without labels or with fixed ones.
        let opts = Opts::new(name, "Time.").bucketing(bucketing).striped(true);
        let opts = if bucketing == Bucketing::Native { opts } else { opts.buckets(&THRESHOLDS) };
        let family: Family<Number, Histogram<Seconds>> = REGISTRY.register(opts)?;
        let n = NEXT.fetch_add(1, Relaxed);
        let histogram = family.with(Number { n }).keep();
        Ok(Self { histogram, name, n: n.to_string() })
    }

    fn snapshot(&self) -> Result<HistogramSnapshot> {
        let snapshot = REGISTRY.snapshot_of(|name| name == self.name);
        snapshot.histogram(self.name, &[("n", &self.n)]).context("there is no such histogram")
    }
}

macro_rules! latencies {
    ($($histogram:ident $name:literal $seconds:literal $bucketing:ident,)+) => {$(
        impl Latencies for $histogram {
            const NAME: &'static str = $name;
            type Value = Duration;

            fn new() -> Result<Self> {
                Ok(Self(Kept::new($seconds, Bucketing::$bucketing)?))
            }

            fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<Duration, LEN>) {
                values.walk(thread, n, |value| self.0.histogram.observe(value));
            }

            fn count(&self) -> Result<u64> {
                Ok(self.0.snapshot()?.count())
            }

            fn quantile(&self, q: f64) -> Result<Option<f64>> {
                Ok(self.0.snapshot()?.quantile(q))
            }
        }
    )+};
}

latencies! {
    TaleaClassic "talea-classic" "classic_seconds" Classic,
    TaleaNative "talea-native" "native_seconds" Native,
    TaleaDual "talea-dual" "dual_seconds" Dual,
}
