//! A counter as in `counter-fixed18`, but the routes are an enum too. (prometheus and metrics take
//! text in either case.)

use std::sync::LazyLock;

use anyhow::Result;
use measured::label::StaticLabelSet;
use measured::{CounterVec, LabelGroup};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Counter, Family, Labels, Opts, Registry};

use super::counters::{Draw, counted};
use super::labels::{Kind, RouteName};
use crate::randomness::Sequence;
use crate::work::{Group, Place, Setting, Subject, TIME, Work};

pub(super) const GROUP: Group = Group {
    name: "counter-enum18",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", |_| {
            let set = FailureSet { kind: StaticLabelSet::new(), route: StaticLabelSet::new() };
            let family = CounterVec::with_label_set(set);
            counted(family, |(kind, route): Failed| Some(MeasuredFailure { kind, route }))
        }),
        Subject::new("prometheus-client", |_| {
            let family = ClientFamily::<Failure, ClientCounter>::default();
            counted(family, |(kind, route): Failed| Some(Failure { kind, route }))
        }),
    ],
    place: Place::Here,
    note: TIME,
};

type Failed = (Kind, RouteName);

static FAILURES: LazyLock<Sequence<Failed>> = LazyLock::new(|| {
    Sequence::of(2, |random| (random.pick(&Kind::ALL), random.pick(&RouteName::ALL)))
});

impl Draw for Failed {
    #[inline]
    fn walk(thread: usize, n: u64, with: impl FnMut(Self)) {
        FAILURES.walk(thread, n, with);
    }

    fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.into_iter().flat_map(|kind| RouteName::ALL.map(|route| (kind, route)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Labels, EncodeLabelSet)]
struct Failure {
    kind: Kind,
    route: RouteName,
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = FailureSet)]
struct MeasuredFailure {
    kind: Kind,
    route: RouteName,
}

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = Opts::new("failures", "Failed requests.");
    let family: Family<Failure, Counter> = Registry::new()?.register(opts)?;
    counted(family, |(kind, route): Failed| Some(Failure { kind, route }))
}
