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

#[derive(Labels)]
struct Number {
    n: u64,
}

type ByNumber = Family<Number, Histogram<Seconds>>;

/// The handle, which is all that a service keeps, and the number of its series: several subjects of a group
/// may have this type.
pub(crate) struct TaleaClassic(Histogram<Seconds>, u64);
pub(crate) struct TaleaNative(Histogram<Seconds>, u64);
pub(crate) struct TaleaDual(Histogram<Seconds>, u64);

fn register(name: &str, bucketing: Bucketing) -> ByNumber {
    // Striped, as without labels or with fixed ones.
    let opts = Opts::new(name, "Time.").bucketing(bucketing).striped(true);
    let opts = if bucketing == Bucketing::Native { opts } else { opts.buckets(&THRESHOLDS) };
    REGISTRY.register(opts).expect("its name is free")
}

fn series(name: &str, n: u64) -> Result<HistogramSnapshot> {
    let snapshot = REGISTRY.snapshot_of(|other| other == name);
    snapshot.histogram(name, &[("n", &n.to_string())]).context("there is no such histogram")
}

macro_rules! latencies {
    ($($histogram:ident $name:literal $seconds:literal $bucketing:ident,)+) => {$(
        impl Latencies for $histogram {
            const NAME: &'static str = $name;
            type Value = Duration;

            fn new() -> Result<Self> {
                static FAMILY: LazyLock<ByNumber> =
                    LazyLock::new(|| register($seconds, Bucketing::$bucketing));
                static NEXT: AtomicU64 = AtomicU64::new(0);
                let n = NEXT.fetch_add(1, Relaxed);
                Ok(Self(FAMILY.with(Number { n }).keep(), n))
            }

            fn observe_each<const LEN: usize>(&self, thread: usize, n: u64, values: &Sequence<Duration, LEN>) {
                values.walk(thread, n, |value| self.0.observe(value));
            }

            fn count(&self) -> Result<u64> {
                Ok(series($seconds, self.1)?.count())
            }

            fn quantile(&self, q: f64) -> Result<Option<f64>> {
                Ok(series($seconds, self.1)?.quantile(q))
            }
        }
    )+};
}

latencies! {
    TaleaClassic "talea-classic" "classic_seconds" Classic,
    TaleaNative "talea-native" "native_seconds" Native,
    TaleaDual "talea-dual" "dual_seconds" Dual,
}
