//! A counter with two labels of 3 and 6 values, looked up by its labels each
//! time. The 3 are an enum; the 6 are routes, fixed at run time and given as
//! text.

use std::sync::LazyLock;

use anyhow::Result;
use measured::CounterVec;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Counter, Family, Opts, Registry};

use super::counters::{Draw, counted};
use super::failures::{self, ClientFailure, Failure, Kind, MeasuredFailure, ROUTES};
use crate::randomness::Sequence;
use crate::recorder;
use crate::work::{Group, Place, Setting, Subject, TIME, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-fixed18",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", |_| {
            let family = CounterVec::with_label_set(failures::measured_set());
            counted(family, |(kind, route): Failed| Some(MeasuredFailure { kind, route }))
        }),
        Subject::new("prometheus", |_| {
            let opts = prometheus::Opts::new("failures_total", "Failed requests.");
            let family = prometheus::IntCounterVec::new(opts, &["kind", "route"])?;
            counted(family, |(kind, route): Failed| Some([kind.as_str(), route]))
        }),
        Subject::new("prometheus-client", |_| {
            let family = ClientFamily::<ClientFailure, ClientCounter>::default();
            counted(family, |(kind, route): Failed| Some(ClientFailure { kind, route }))
        }),
        Subject::new("metrics", metrics),
    ],
    place: Place::Here,
    note: TIME,
};

type Failed = (Kind, &'static str);

static FAILURES: LazyLock<Sequence<Failed>> =
    LazyLock::new(|| Sequence::of(2, |random| (random.pick(&Kind::ALL), random.pick(&ROUTES))));

impl Draw for Failed {
    #[inline]
    fn walk(thread: usize, n: u64, with: impl FnMut(Self)) {
        FAILURES.walk(thread, n, with);
    }

    fn all() -> impl Iterator<Item = Self> {
        failures::all()
    }
}

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    failures::fix_routes()?;
    let opts = Opts::new("failures", "Failed requests.");
    let family: Family<Failure, Counter> = Registry::new()?.register(opts)?;
    counted(family, |(kind, route): Failed| Failure::of(kind, route))
}

fn metrics(_: &Setting) -> Result<Box<dyn Work>> {
    recorder::installed();
    work(
        (),
        |(), thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                metrics::counter!("failures_total", "kind" => kind.as_str(), "route" => route)
                    .increment(1);
            });
        },
        |()| recorder::total("failures_total"),
    )
}
