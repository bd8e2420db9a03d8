//! The memory of a series of each histogram of `observe-kept`, and the error of its quantiles,
//! after 100,000 latencies: log-normal, their median 2 ms, σ 1.
//!
//! Each library makes 2,000 such series in a process of its own. Two threads, each on a core
//! of its own, observe half of a series' latencies each, so that copies for each thread or core
//! exist. Bytes are the memory that the system gave meanwhile, divided by the series. One more
//! series is made and observed before, for the memory that all share.

use std::f64::consts::TAU;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::histograms::{
    ByMetrics, ByPrometheus, ClientClassic, ClientDual, ClientNative, DdSketch, Digest, H2, Hdr,
    Latencies, Measured, Metriken, Observation, TaleaClassic, TaleaDual, TaleaNative,
};
use crate::measure;
use crate::memory;
use crate::process;
use crate::randomness::{Random, Sequence};
use crate::row::{LatencyFigures, Row};

/// The name in the results. It is run with the group of the same histograms.
pub(crate) const NAME: &str = "observe-kept/latencies";
pub(crate) const GROUP: &str = "observe-kept";

pub(crate) const NOTE: &str = "bytes: memory that the system gave for one series. The rest: the \
    error of each quantile, in per cent of the exact one. With thresholds, quantiles are \
    interpolated as Prometheus does; prometheus-client exposes its native buckets in no text.";

pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

const SERIES: usize = 2000;
/// Latencies of each of the two threads.
const HALF: usize = 50_000;

type Library = (&'static str, fn() -> Result<LatencyFigures>);

const ALL: [Library; 14] = [
    library::<TaleaDual>(),
    library::<TaleaClassic>(),
    library::<TaleaNative>(),
    library::<Measured>(),
    library::<ByPrometheus>(),
    library::<ClientClassic>(),
    library::<ClientNative>(),
    library::<ClientDual>(),
    library::<ByMetrics>(),
    library::<DdSketch>(),
    library::<Digest>(),
    library::<Hdr>(),
    library::<H2>(),
    library::<Metriken>(),
];

const fn library<H: Latencies>() -> Library {
    (H::NAME, measure_histogram::<H>)
}

/// Measures each library in a process of its own.
pub(crate) fn run() -> Result<Vec<Row>> {
    ALL.into_iter()
        .map(|(name, _)| {
            eprintln!("{NAME}: {name}");
            let found = process::ask(process::this_program()?.args(["--latencies", name]))?;
            Ok(Row { threads: 2, latencies: Some(found), ..Row::new(NAME, name) })
        })
        .collect()
}

/// Measures a library in this process, and prints the result.
pub(crate) fn answer(library: &str) -> Result<()> {
    let found = ALL.into_iter().find(|(name, _)| *name == library);
    let (_, measure) = found.with_context(|| format!("there is no library {library:?}"))?;
    process::answer(&measure()?)
}

fn measure_histogram<H: Latencies>() -> Result<LatencyFigures> {
    let latencies = [11, 12].map(|seed| Sequence::<Duration, HALF>::of(seed, latency));
    let values: [Sequence<H::Value, HALF>; 2] =
        latencies.each_ref().map(|half| half.map(H::Value::of));
    let first = [H::new()?];
    observe(&first, &values);
    // A list that grows would leave memory behind.
    let mut others = Vec::with_capacity(SERIES);
    let before = memory::held()?;
    for _ in 0..SERIES {
        others.push(H::new()?);
    }
    observe(&others, &values);
    let bytes = memory::held()?.saturating_sub(before) as f64 / SERIES as f64;

    let mut exact: Vec<Duration> = latencies.iter().flat_map(Sequence::values).collect();
    exact.sort_unstable();
    let mut errors = Vec::new();
    for q in QUANTILES {
        let exact = exact[(q * exact.len() as f64).ceil() as usize - 1].as_secs_f64();
        errors.extend(first[0].quantile(q)?.map(|found| (found / exact - 1.0).abs()));
    }
    Ok(LatencyFigures { bytes, has_sum: H::HAS_SUM, errors })
}

/// Each thread begins with another series, so that the threads seldom meet.
fn observe<H: Latencies>(series: &[H], values: &[Sequence<H::Value, HALF>; 2]) {
    thread::scope(|scope| {
        for (thread, values) in values.iter().enumerate() {
            scope.spawn(move || {
                measure::pin_by_number(thread);
                let (head, tail) = series.split_at(series.len() / 2 * thread);
                for one in tail.iter().chain(head) {
                    one.observe_each(thread, HALF as u64, values);
                }
            });
        }
    });
}

/// By the method of Box and Muller.
fn latency(random: &mut Random) -> Duration {
    let distance = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    let normal = distance * (TAU * random.fraction()).cos();
    Duration::from_secs_f64(0.002 * normal.exp())
}
