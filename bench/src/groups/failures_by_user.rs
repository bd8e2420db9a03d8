//! Failures with a third, dynamic label: the user, one of a thousand. All of these 18,000 series
//! exist before anything is measured.

use std::sync::LazyLock;

use anyhow::Result;
use lasso::{RodeoReader, Spur};
use measured::label::StaticLabelSet;
use measured::{CounterVec, LabelGroup, MetricGroup};
use paracord::ParaCord;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use prometheus_client::registry::Registry as ClientRegistry;
use talea::{Counter, Family, Labels, Opts, Registry};

use super::failures::{self, Kind, ROUTES, Route};
use crate::randomness::{Key, Sequence};

pub(super) const SERIES: usize = Kind::ALL.len() * ROUTES.len() * USERS;

const USERS: usize = 1000;

/// The names of users: 8 to 20 bytes.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let name = |n: usize| {
        let digits = [n, n + USERS].map(|n| Key::of(n as u64).as_str().to_owned()).concat();
        digits[..8 + n % 13].to_owned()
    };
    (0..USERS).map(name).collect()
});

/// A combination, small enough that many of them leave room in the caches.
#[derive(Clone, Copy)]
struct Failed {
    kind: Kind,
    route: u8,
    user: u16,
}

/// The failures to count: enough for nearly every combination.
static FAILURES: LazyLock<Sequence<Failed, 65_536>> = LazyLock::new(|| {
    let routes: [u8; ROUTES.len()] = std::array::from_fn(|n| n as u8);
    let users: [u16; USERS] = std::array::from_fn(|n| n as u16);
    Sequence::of(4, |random| Failed {
        kind: random.pick(&Kind::ALL),
        route: random.pick(&routes),
        user: random.pick(&users),
    })
});

/// Goes through `n` combinations in no order.
#[inline]
pub(super) fn walk(thread: usize, n: u64, mut with: impl FnMut(Kind, &'static str, &str)) {
    let (failures, names) = (&*FAILURES, NAMES.as_slice());
    failures.walk(thread, n, |Failed { kind, route, user }| {
        with(kind, ROUTES[usize::from(route)], &names[usize::from(user)]);
    });
}

/// Every combination.
pub(super) fn all() -> impl Iterator<Item = (Kind, &'static str, &'static str)> {
    let of = |(kind, route)| NAMES.iter().map(move |user| (kind, route, user.as_str()));
    failures::all().flat_map(of)
}

#[derive(Labels)]
pub(super) struct Failure<'a> {
    kind: Kind,
    route: Route,
    user: &'a str,
}

impl<'a> Failure<'a> {
    /// `None` for an unknown route.
    #[inline]
    pub(super) fn of(kind: Kind, route: &str, user: &'a str) -> Option<Self> {
        Some(Self { kind, route: Route::find(route)?, user })
    }
}

pub(super) fn filled_talea() -> Result<(Registry, Family<Failure<'static>, Counter>)> {
    failures::fix_routes()?;
    let (registry, opts) = (Registry::new()?, opts());
    let family: Family<Failure<'static>, Counter> = registry.register(opts)?;
    all()
        .filter_map(|(kind, route, user)| Failure::of(kind, route, user))
        .for_each(|failure| family.with(failure).inc());
    Ok((registry, family))
}

/// The labels for subjects without fixed routes.
#[derive(Labels)]
pub(super) struct TextFailure<'a> {
    pub(super) kind: Kind,
    pub(super) route: &'a str,
    pub(super) user: &'a str,
}

pub(super) fn filled_talea_text() -> Result<Family<TextFailure<'static>, Counter>> {
    let family: Family<TextFailure<'static>, Counter> = Registry::new()?.register(opts())?;
    all().for_each(|(kind, route, user)| family.with(TextFailure { kind, route, user }).inc());
    Ok(family)
}

fn opts() -> Opts<'static> {
    Opts::new("failures_by_user", "Failed requests.").limit(SERIES as u64)
}

#[derive(MetricGroup)]
#[metric(new(set: MeasuredSet))]
pub(super) struct Measured {
    /// Failed requests.
    #[metric(rename = "failures_by_user_total", init = CounterVec::with_label_set(set))]
    pub(super) failures: CounterVec<MeasuredSet>,
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = MeasuredSet)]
pub(super) struct MeasuredFailure<'a> {
    pub(super) kind: Kind,
    #[label(fixed_with = RodeoReader<Spur, ahash::RandomState>)]
    pub(super) route: &'a str,
    #[label(dynamic_with = ParaCord)]
    pub(super) user: &'a str,
}

pub(super) fn filled_measured() -> Measured {
    let group = Measured::new(MeasuredSet {
        kind: StaticLabelSet::new(),
        route: failures::measured_routes(),
        user: ParaCord::default(),
    });
    all().for_each(|(kind, route, user)| group.failures.inc(MeasuredFailure { kind, route, user }));
    group
}

pub(super) fn filled_prometheus() -> Result<(prometheus::Registry, prometheus::IntCounterVec)> {
    let registry = prometheus::Registry::new();
    let opts = prometheus::Opts::new("failures_by_user_total", "Failed requests.");
    let family = prometheus::IntCounterVec::new(opts, &["kind", "route", "user"])?;
    registry.register(Box::new(family.clone()))?;
    all().for_each(|(kind, route, user)| {
        family.with_label_values(&[kind.as_str(), route, user]).inc();
    });
    Ok((registry, family))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClientFailure {
    kind: Kind,
    route: &'static str,
    user: String,
}

impl ClientFailure {
    pub(super) fn of(kind: Kind, route: &'static str, user: &str) -> Self {
        Self { kind, route, user: user.to_owned() }
    }
}

pub(super) type ClientFailures = ClientFamily<ClientFailure, ClientCounter>;

pub(super) fn filled_prometheus_client() -> (ClientRegistry, ClientFailures) {
    let family = ClientFailures::default();
    let mut registry = ClientRegistry::default();
    registry.register("failures_by_user", "Failed requests.", family.clone());
    all().for_each(|(kind, route, user)| {
        family.get_or_create(&ClientFailure::of(kind, route, user)).inc();
    });
    (registry, family)
}

/// Fills the local recorder, else the installed one.
pub(super) fn fill_metrics() {
    metrics::describe_counter!("failures_by_user_total", "Failed requests.");
    all().for_each(|(kind, route, user)| count_by_metrics(kind, route, user));
}

#[inline]
pub(super) fn count_by_metrics(kind: Kind, route: &'static str, user: &str) {
    metrics::counter!(
        "failures_by_user_total",
        "kind" => kind.as_str(), "route" => route, "user" => user.to_owned()
    )
    .increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_users_have_one_name() {
        let names: HashSet<_> = NAMES.iter().collect();
        assert_eq!(names.len(), USERS);
        assert!(names.iter().all(|name| (8..=20).contains(&name.len())));
    }

    #[test]
    fn nearly_every_combination_comes() {
        let mut met = HashSet::new();
        walk(0, 65_536, |kind, route, user| {
            met.insert((kind, route, user.to_owned()));
        });
        assert_eq!(all().count(), SERIES);
        assert!((SERIES * 95 / 100..=SERIES).contains(&met.len()), "{}", met.len());
    }
}
