//! A counter with two labels of 3 and 6 values, looked up by its labels each
//! time. The 3 are an enum; the 6 are routes, fixed at run time and given as
//! text.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use lasso::{Rodeo, RodeoReader, Spur};
use measured::label::StaticLabelSet;
use measured::{CounterVec, FixedCardinalityLabel, LabelGroup};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Counter, Family, LabelValue, Labels, Opts, Registry};

use super::recorder;
use crate::randomness::Sequence;
use crate::work::{Group, Place, Setting, Subject, Work, work};

pub(super) const GROUP: Group = Group {
    name: "counter-fixed18",
    threads: &[1, 2],
    subjects: &[
        Subject::new("talea", talea),
        Subject::talea_atomic(talea),
        Subject::new("measured", measured),
        Subject::new("prometheus", prometheus),
        Subject::new("prometheus-client", prometheus_client),
        Subject::new("metrics", metrics),
    ],
    place: Place::Here,
    note: super::TIME,
};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, LabelValue, FixedCardinalityLabel, EncodeLabelValue,
)]
pub(super) enum Kind {
    User,
    Internal,
    Network,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::User, Self::Internal, Self::Network];

    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Internal => "internal",
            Self::Network => "network",
        }
    }
}

/// Those of measured's own benchmark.
const ROUTES: [&str; 6] = [
    "/api/v1/users",
    "/api/v1/users/:id",
    "/api/v1/products",
    "/api/v1/products/:id",
    "/api/v1/products/:id/owner",
    "/api/v1/products/:id/purchase",
];

/// What comes.
static FAILURES: LazyLock<Sequence<(Kind, &str)>> =
    LazyLock::new(|| Sequence::of(2, |random| (random.pick(&Kind::ALL), random.pick(&ROUTES))));

/// Every combination.
fn all() -> impl Iterator<Item = (Kind, &'static str)> {
    Kind::ALL.into_iter().flat_map(|kind| ROUTES.map(|route| (kind, route)))
}

#[derive(Labels)]
struct Failure<'a> {
    kind: Kind,
    route: &'a str,
}

/// The routes are few, so the family is striped as a fixed one would be.
fn talea(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = Opts::new("failures", "Failed requests.").striped(true);
    let family: Family<Failure<'static>, Counter> = Registry::new()?.register(opts)?;
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
struct MeasuredFailure<'a> {
    kind: Kind,
    #[label(fixed_with = RodeoReader<Spur, ahash::RandomState>)]
    route: &'a str,
}

fn measured(_: &Setting) -> Result<Box<dyn Work>> {
    let routes: Rodeo<Spur, ahash::RandomState> = Rodeo::from_iter(ROUTES);
    let set = FailureSet { kind: StaticLabelSet::new(), route: routes.into_reader() };
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

fn prometheus(_: &Setting) -> Result<Box<dyn Work>> {
    let opts = prometheus::Opts::new("failures_total", "Failed requests.");
    let family = prometheus::IntCounterVec::new(opts, &["kind", "route"])?;
    prometheus::Registry::new().register(Box::new(family.clone()))?;
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                family.with_label_values(&[kind.as_str(), route]).inc();
            });
        },
        |family| {
            let get = |(kind, route): (Kind, _)| family.with_label_values(&[kind.as_str(), route]);
            Ok(all().map(|combination| get(combination).get()).sum())
        },
    )
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClientFailure {
    kind: Kind,
    route: &'static str,
}

fn prometheus_client(_: &Setting) -> Result<Box<dyn Work>> {
    let family = ClientFamily::<ClientFailure, ClientCounter>::default();
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register("failures", "Failed requests.", family.clone());
    work(
        family,
        |family, thread, n| {
            FAILURES.walk(thread, n, |(kind, route)| {
                family.get_or_create(&ClientFailure { kind, route }).inc();
            });
        },
        |family| {
            let get = |(kind, route)| family.get_or_create(&ClientFailure { kind, route }).get();
            Ok(all().map(get).sum())
        },
    )
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
