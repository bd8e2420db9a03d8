//! A counter without labels, its handle kept: one series that all threads contend for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::Result;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use talea::{Counter, Opts, Registry};

use crate::recorder;
use crate::work::{Group, Place, Setting, Subject, TIME, Work, looped, work};

pub(super) const GROUP: Group = Group {
    name: "counter-kept",
    threads: &[1, 2, 8],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
        Subject::new("atomic", atomic),
        Subject::new("atomic-own", atomic_own),
    ],
    place: Place::Here,
    note: TIME,
};

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let counter: Counter = Registry::new()?.register(Opts::new("kept", "Adds."))?;
    looped(counter, Counter::inc, |counter| Ok(counter.get()))
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let counter = measured::Counter::new();
    looped(counter, |one| one.inc(), |one| Ok(one.get_metric().count.load(Relaxed)))
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let counter = prometheus::IntCounter::new("kept_total", "Adds.")?;
    prometheus::Registry::new().register(Box::new(counter.clone()))?;
    looped(counter, |counter| counter.inc(), |counter| Ok(counter.get()))
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let counter = ClientCounter::<u64>::default();
    prometheus_client::registry::Registry::default().register("kept", "Adds.", counter.clone());
    looped(counter, |counter| counter.inc(), |counter| Ok(counter.get()))
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    let counter = metrics::counter!("kept_total");
    looped(counter, |counter| counter.increment(1), |_| recorder::total("kept_total"))
}

fn atomic(_: &Setting) -> Result<Box<dyn Work>> {
    looped(
        PaddedAtomic::default(),
        |line| line.0.fetch_add(1, Relaxed),
        |line| Ok(line.0.load(Relaxed)),
    )
}

pub(super) fn atomic_own(_: &Setting) -> Result<Box<dyn Work>> {
    work(
        <[PaddedAtomic; 8]>::default(),
        |lines, thread, n| {
            let own = &lines[thread];
            (0..n).for_each(|_| {
                own.0.fetch_add(1, Relaxed);
            })
        },
        |lines| Ok(lines.iter().map(|line| line.0.load(Relaxed)).sum()),
    )
}

/// An atomic with two cache lines to itself, since processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct PaddedAtomic(pub(super) AtomicU64);
