//! A sampled summary with one label, looked up by it for each observation, which has a time. Each
//! subject has another distribution of values.

use std::time::SystemTime;

use anyhow::Result;
use talea::{Config, Opts, Registry, SampledSummary, Value};

use crate::randomness::{Random, Sequence};
use crate::work::{Group, Place, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "observe-sampled",
    threads: &[1, 2],
    subjects: &[
        Subject::new("narrow", |_| summary(|random| 0.02 * (1.0 + 0.05 * random.fraction()))),
        Subject::new("log-normal-2", |_| summary(|random| 0.02 * (2.0 * normal(random)).exp())),
        Subject::new("outage", |_| summary(outage)),
        Subject::new("six-decades", |_| {
            summary(|random| 10_f64.powf(6.0 * random.fraction() - 5.0))
        }),
        Subject::new("bytes", |_| summary(|random| (40.0 * random.fraction()).exp2().floor())),
        Subject::new("all-floats", |_| summary(any_float)),
    ],
    place: Place::Here,
    note: "ns: time of a thread for one observation, the look-up by one label and the reading of \
           the clock included; both threads observe in one series. Values: within 5 %; log-normal \
           with sigma 2; some 20 ms, and every tenth 1 to 30 s; log-uniform in six decades; whole \
           numbers of bytes up to 2^40; floats of any exponent and sign. The budget of each is 300 ns \
           on one thread.",
};

fn outage(random: &mut Random) -> f64 {
    match random.fraction() < 0.1 {
        true => 1.0 + 29.0 * random.fraction(),
        false => 0.02 * (0.5 * normal(random)).exp(),
    }
}

fn any_float(random: &mut Random) -> f64 {
    let size = (2046.0 * random.fraction() - 1022.0).exp2();
    if random.fraction() < 0.5 { -size } else { size }
}

/// Nearly normal: the sum of twelve numbers in 0..1, less 6 (Irwin and Hall).
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0
}

fn summary(value: fn(&mut Random) -> f64) -> Result<Box<dyn Work>> {
    let registry = Registry::with_config(Config::with_len(64 << 20))?;
    let opts = Opts::new("pricing_seconds", "Time to price a basket.");
    let summary = registry.sampled_summary(opts, &["country"])?;
    work(
        (registry, summary, Sequence::of(7, value)),
        |(_, summary, values): &(Registry, SampledSummary, Sequence<f64>), thread, n| {
            values.walk(thread, n, |value| summary.observe(&["pe"], value, SystemTime::now()));
        },
        |(registry, ..)| {
            let snapshot = registry.snapshot();
            let counts =
                snapshot.select("pricing_seconds", &[]).map(|series| match series.value() {
                    Value::Summary(summary) => summary.count,
                    _ => 0,
                });
            Ok(counts.sum())
        },
    )
}
