//! The memory of a series of the histograms of `observe-kept`, and how well it shows
//! quantiles, after 100,000 latencies: log-normal ones, their median 2 ms, σ 1.
//!
//! Each library makes 500 such series in a process of its own. Two threads, each on a core
//! of its own, observe half of a series' latencies each, so that whatever is kept for each
//! thread or each core is there. Bytes are the memory that the system gave meanwhile, over
//! the series: a first one is made and observed before, for what they share.

use std::f64::consts::TAU;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::histograms::{
    ByMetrics, ByPrometheus, ClientClassic, ClientDual, ClientNative, DdSketch, Digest, H2, Hdr,
    Latencies, Measured, Metriken, TaleaClassic, TaleaDual, TaleaNative,
};
use crate::measure;
use crate::memory;
use crate::randomness::{Random, Sequence};
use crate::report::Row;

/// How the results call it. It is run with the group whose histograms it is about.
pub(crate) const NAME: &str = "observe-kept/latencies";
pub(crate) const GROUP: &str = "observe-kept";

pub(crate) const NOTE: &str = "bytes: memory that the system gave for one series. The rest: how \
    far the quantiles that it shows are off, in per cent of the exact ones. Of those with \
    thresholds they are interpolated as Prometheus does; prometheus-client gives its native \
    buckets out in no text.";

pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

const SERIES: usize = 500;
/// Of each of the two threads.
const HALF: usize = 50_000;

/// A library that is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    name: &'static str,
    ask: fn() -> Result<LatencyFigures>,
}

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
    Library { name: H::NAME, ask: ask::<H> }
}

impl FromStr for Library {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|library| library.name == text);
        found.ok_or_else(|| format!("there is no library {text:?}"))
    }
}

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LatencyFigures {
    pub(crate) bytes: f64,
    pub(crate) has_sum: bool,
    /// For each of the quantiles, as a share of the exact one; none if it shows none.
    pub(crate) errors: Vec<f64>,
}

/// Asks each library in a process of its own.
pub(crate) fn run() -> Result<Vec<Row>> {
    ALL.iter().map(|library| Ok(row(library, quantiles_of(library)?))).collect()
}

fn quantiles_of(library: &Library) -> Result<LatencyFigures> {
    eprintln!("{NAME}: {}", library.name);
    let program = std::env::current_exe().context("finding this program")?;
    let output = Command::new(program)
        .args(["--latencies", library.name])
        .stderr(Stdio::inherit())
        .output()
        .context("starting this program")?;
    ensure!(output.status.success(), "--latencies {}: {}", library.name, output.status);
    serde_json::from_slice(&output.stdout).context("reading what it says")
}

fn row(library: &Library, found: LatencyFigures) -> Row {
    Row {
        bench: NAME.to_owned(),
        threads: 2,
        subject: library.name.to_owned(),
        ns: None,
        allocs_per_op: None,
        bytes_per_op: None,
        ratio_to_talea: None,
        instructions: None,
        latencies: Some(found),
        more: None,
        takes: None,
    }
}

/// The work of the new process.
pub(crate) fn answer(library: Library) -> Result<()> {
    println!("{}", serde_json::to_string(&(library.ask)()?)?);
    Ok(())
}

fn ask<H: Latencies>() -> Result<LatencyFigures> {
    let latencies = [11, 12].map(|seed| Sequence::<Duration, HALF>::of(seed, latency));
    let values: [Sequence<H::Value, HALF>; 2] = latencies.each_ref().map(|half| half.map(H::value));
    let first = [H::new()?];
    observe(&first, &values);
    let before = memory::held()?;
    let others = (0..SERIES).map(|_| H::new()).collect::<Result<Vec<_>>>()?;
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

/// Each thread begins with another series, so that they seldom meet.
fn observe<H: Latencies>(series: &[H], values: &[Sequence<H::Value, HALF>; 2]) {
    thread::scope(|scope| {
        for (thread, values) in values.iter().enumerate() {
            scope.spawn(move || {
                measure::stay_on_core(thread);
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
