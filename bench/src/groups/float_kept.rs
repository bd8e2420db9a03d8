//! A float counter without labels, its handle kept: one series that all threads
//! contend for. (measured and metrics have no float counter.)

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use talea::{FloatCounter, Opts, Registry};

use super::counter_kept::PaddedAtomic;
use crate::work::{Group, Place, Setting, Subject, Work, looped, work};

pub(super) const GROUP: Group = Group {
    name: "float-kept",
    threads: &[1, 2, 8],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("atomic", atomic),
        Subject::new("atomic-own", atomic_own),
    ],
    place: Place::Here,
    note: "ns: time of a thread for one add; CPU time where threads outnumber \
           cores. atomic adds by compare-and-swap, as there is no atomic add of \
           floats.",
};

/// The value of an add. Its multiples are not rounded, so the sum gives the count.
const STEP: f64 = 0.25;

fn steps(sum: f64) -> u64 {
    (sum / STEP) as u64
}

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let counter: FloatCounter = Registry::new()?.register(Opts::new("kept_seconds", "Time."))?;
    looped(counter, |counter| counter.add(STEP), |counter| Ok(steps(counter.get())))
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let counter = prometheus::Counter::new("kept_seconds_total", "Time.")?;
    prometheus::Registry::new().register(Box::new(counter.clone()))?;
    looped(counter, |counter| counter.inc_by(STEP), |counter| Ok(steps(counter.get())))
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let counter = ClientCounter::<f64, AtomicU64>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("kept_seconds", "Time.", counter.clone());
    looped(counter, |counter| counter.inc_by(STEP), |counter| Ok(steps(counter.get())))
}

fn atomic(_: &Setting) -> Result<Box<dyn Work>> {
    looped(PaddedAtomic::default(), add, |line| Ok(steps(f64::from_bits(line.0.load(Relaxed)))))
}

fn atomic_own(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        <[PaddedAtomic; 8]>::default(),
        |lines, thread, n| {
            let own = &lines[thread];
            (0..n).for_each(|_| add(own));
        },
        |lines| Ok(lines.iter().map(|line| steps(f64::from_bits(line.0.load(Relaxed)))).sum()),
    )
}

fn add(PaddedAtomic(word): &PaddedAtomic) {
    let mut seen = word.load(Relaxed);
    while let Err(now) =
        word.compare_exchange_weak(seen, (f64::from_bits(seen) + STEP).to_bits(), Relaxed, Relaxed)
    {
        seen = now;
    }
}
