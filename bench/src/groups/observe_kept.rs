//! A histogram of durations, its handle kept. Each observation differs from the last, and
//! libraries that keep a sum keep it too.

use std::time::Duration;

use anyhow::Result;

use super::counter_kept;
use crate::histograms::{
    ByMetrics, ByPrometheus, ClientClassic, ClientDual, ClientNative, DdSketch, Digest, H2, Hdr,
    Latencies, Measured, Metriken, Observation, TaleaClassic, TaleaDual, TaleaNative,
};
use crate::randomness::{Random, Sequence};
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "observe-kept",
    threads: &[1, 2],
    subjects: &[
        of::<TaleaDual>(),
        of::<TaleaClassic>(),
        of::<TaleaNative>(),
        Subject::talea_atomic(kept::<TaleaDual>),
        of::<Measured>(),
        of::<ByPrometheus>(),
        of::<ClientClassic>(),
        of::<ClientNative>(),
        of::<ClientDual>(),
        Subject { loses: 0.01, ..of::<ByMetrics>() },
        of::<DdSketch>(),
        of::<Digest>(),
        of::<Hdr>(),
        of::<H2>(),
        of::<Metriken>(),
        Subject::new("atomic", counter_kept::atomic_own),
    ],
    place: Place::Here,
    note: "ns: time of a thread for one observation; ratios are to talea-dual. talea-atomic is \
           dual. metrics includes its deferred work, the upkeep. hdrhistogram, histogram and \
           metriken keep no sum. atomic is one add on a line of the thread's own. The budget of \
           talea-dual is 2.5 of those, so `to talea` of atomic should be at least 0.40.",
};

/// From 1 ms to 20 s, as many in each octave.
pub(super) fn duration(random: &mut Random) -> Duration {
    Duration::from_secs_f64(0.001 * 20_000_f64.powf(random.fraction()))
}

const fn of<H: Latencies>() -> Subject {
    Subject::new(H::NAME, kept::<H>)
}

struct Kept<H: Latencies> {
    histogram: H,
    durations: Sequence<H::Value>,
}

fn kept<H: Latencies>(_: &Setting) -> Result<Box<dyn Work>> {
    let durations = Sequence::of(1, |random| H::Value::of(duration(random)));
    work(
        Kept { histogram: H::new()?, durations },
        |kept, thread, n| kept.histogram.observe_each(thread, n, &kept.durations),
        |kept| kept.histogram.count(),
    )
}
