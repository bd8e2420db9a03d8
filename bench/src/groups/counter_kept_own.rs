//! A counter with a fixed label of eight values: a series for each thread, its
//! handle kept.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use measured::label::StaticLabelSet;
use measured::{CounterVec, FixedCardinalityLabel, LabelGroup};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter as ClientCounter;
use talea::{Counter, Family, LabelValue, Labels, Opts, Registry};

use super::counter_kept;
use crate::recorder;
use crate::work::{Group, Place, Setting, Subject, TIME, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-kept-own",
    threads: &[1, 2, 8],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
        Subject::new("atomic-own", counter_kept::atomic_own),
    ],
    place: Place::Here,
    note: TIME,
};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, LabelValue, FixedCardinalityLabel, EncodeLabelValue,
)]
enum Lane {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
}

const LANES: [(Lane, &str); 8] = [
    (Lane::A, "a"),
    (Lane::B, "b"),
    (Lane::C, "c"),
    (Lane::D, "d"),
    (Lane::E, "e"),
    (Lane::F, "f"),
    (Lane::G, "g"),
    (Lane::H, "h"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Labels, EncodeLabelSet)]
struct ByLane {
    lane: Lane,
}

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let family: Family<ByLane, Counter> = Registry::new()?.register(Opts::new("own", "Adds."))?;
    work(
        LANES.map(|(lane, _)| family.with(ByLane { lane }).keep()),
        |kept, thread, n| {
            let own = &kept[thread];
            (0..n).for_each(|_| own.inc());
        },
        |kept| Ok(kept.iter().map(Counter::get).sum()),
    )
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = LaneSet)]
struct MeasuredLane {
    lane: Lane,
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let family = CounterVec::with_label_set(LaneSet { lane: StaticLabelSet::new() });
    let kept = LANES.map(|(lane, _)| family.with_labels(MeasuredLane { lane }));
    work(
        (family, kept),
        |(family, kept), thread, n| {
            let own = kept[thread];
            (0..n).for_each(|_| family.get_metric(own).inc());
        },
        |(family, kept)| {
            Ok(kept.iter().map(|&own| family.get_metric(own).count.load(Relaxed)).sum())
        },
    )
}

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = prometheus::Opts::new("own_total", "Adds.");
    let family = prometheus::IntCounterVec::new(opts, &["lane"])?;
    prometheus::Registry::new().register(Box::new(family.clone()))?;
    work(
        LANES.map(|(_, lane)| family.with_label_values(&[lane])),
        |kept, thread, n| {
            let own = &kept[thread];
            (0..n).for_each(|_| own.inc());
        },
        |kept| Ok(kept.iter().map(|own| own.get()).sum()),
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = prometheus_client::metrics::family::Family::<ByLane, ClientCounter>::default();
    prometheus_client::registry::Registry::default().register("own", "Adds.", family.clone());
    work(
        LANES.map(|(lane, _)| family.get_or_create_owned(&ByLane { lane })),
        |kept, thread, n| {
            let own = &kept[thread];
            (0..n).for_each(|_| {
                own.inc();
            });
        },
        |kept| Ok(kept.iter().map(|own| own.get()).sum()),
    )
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    work(
        LANES.map(|(_, lane)| metrics::counter!("own_total", "lane" => lane)),
        |kept, thread, n| {
            let own = &kept[thread];
            (0..n).for_each(|_| own.increment(1));
        },
        |_| recorder::total("own_total"),
    )
}
