//! A counter as in `counter-fixed18`, but the routes are an enum too. (prometheus and metrics take
//! text in either case.)

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use measured::label::StaticLabelSet;
use measured::{CounterVec, FixedCardinalityLabel, LabelGroup};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Counter, Family, LabelValue, Labels, Opts, Registry};

use super::failures::Kind;
use crate::randomness::Sequence;
use crate::work::{Group, Place, Setting, Subject, TIME, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-enum18",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", measured),
        Subject::new("prometheus-client", prometheus_client),
    ],
    place: Place::Here,
    note: TIME,
};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, LabelValue, FixedCardinalityLabel, EncodeLabelValue,
)]
enum Route {
    Users,
    User,
    Products,
    Product,
    Owner,
    Purchase,
}

impl Route {
    const ALL: [Self; 6] =
        [Self::Users, Self::User, Self::Products, Self::Product, Self::Owner, Self::Purchase];
}

/// The failures to count.
static FAILURES: LazyLock<Sequence<(Kind, Route)>> =
    LazyLock::new(|| Sequence::of(2, |random| (random.pick(&Kind::ALL), random.pick(&Route::ALL))));

/// Every combination.
fn all() -> impl Iterator<Item = (Kind, Route)> {
    Kind::ALL.into_iter().flat_map(|kind| Route::ALL.map(|route| (kind, route)))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Labels, EncodeLabelSet)]
struct Failure {
    kind: Kind,
    route: Route,
}

fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = Opts::new("failures", "Failed requests.");
    let family: Family<Failure, Counter> = Registry::new()?.register(opts)?;
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| family.with(Failure { kind, route }).inc());
        },
        |family| Ok(all().map(|(kind, route)| family.with(Failure { kind, route }).get()).sum()),
    )
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = FailureSet)]
struct MeasuredFailure {
    kind: Kind,
    route: Route,
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let set = FailureSet { kind: StaticLabelSet::new(), route: StaticLabelSet::new() };
    work(
        CounterVec::with_label_set(set),
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| family.inc(MeasuredFailure { kind, route }));
        },
        |family| {
            let get = |(kind, route)| {
                let id = family.with_labels(MeasuredFailure { kind, route });
                family.get_metric(id).count.load(Relaxed)
            };
            Ok(all().map(get).sum())
        },
    )
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<Failure, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("failures", "Failed requests.", family.clone());
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                family.get_or_create(&Failure { kind, route }).inc();
            });
        },
        |family| {
            let get = |(kind, route)| family.get_or_create(&Failure { kind, route }).get();
            Ok(all().map(get).sum())
        },
    )
}
