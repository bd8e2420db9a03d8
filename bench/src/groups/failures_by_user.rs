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
use talea::{Counter, Family, Labels, Opts, Registry};

use super::counters::{Draw, filled};
use super::failures::{self, Kind, ROUTES, Route};
use crate::randomness::{Key, Sequence};

pub(super) const SERIES: usize = Kind::ALL.len() * ROUTES.len() * USERS;

const USERS: usize = 1000;

/// The names of users: 8 to 20 bytes.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    (0..USERS)
        .map(|n| {
            let digits = [n, n + USERS].map(|n| Key::of(n as u64).as_str().to_owned()).concat();
            digits[..8 + n % 13].to_owned()
        })
        .collect()
});

/// A failure, small enough that many of them leave room in the caches.
#[derive(Clone, Copy)]
struct Numbers {
    kind: Kind,
    route: u8,
    user: u16,
}

/// The failures to count: enough for nearly every combination.
static FAILURES: LazyLock<Sequence<Numbers, 65_536>> = LazyLock::new(|| {
    let routes: [u8; ROUTES.len()] = std::array::from_fn(|n| n as u8);
    let users: [u16; USERS] = std::array::from_fn(|n| n as u16);
    Sequence::of(4, |random| Numbers {
        kind: random.pick(&Kind::ALL),
        route: random.pick(&routes),
        user: random.pick(&users),
    })
});

/// The kind, the route and the user.
pub(super) type Failed = (Kind, &'static str, &'static str);

impl Draw for Failed {
    #[inline]
    fn walk(thread: usize, n: u64, mut with: impl FnMut(Self)) {
        let (failures, names) = (&*FAILURES, NAMES.as_slice());
        failures.walk(thread, n, |Numbers { kind, route, user }| {
            with((kind, ROUTES[usize::from(route)], &names[usize::from(user)]));
        });
    }

    fn all() -> impl Iterator<Item = Self> {
        failures::all()
            .flat_map(|(kind, route)| NAMES.iter().map(move |user| (kind, route, user.as_str())))
    }
}

#[derive(Labels)]
pub(super) struct Failure<'a> {
    kind: Kind,
    route: Route,
    user: &'a str,
}

impl Failure<'static> {
    /// `None` for an unknown route.
    #[inline]
    pub(super) fn of((kind, route, user): Failed) -> Option<Self> {
        Some(Self { kind, route: Route::find(route)?, user })
    }
}

pub(super) fn filled_talea() -> Result<Family<Failure<'static>, Counter>> {
    failures::fix_routes()?;
    Ok(filled(Registry::new()?.register(opts())?, Failure::of))
}

/// The labels for subjects without fixed routes.
#[derive(Labels)]
pub(super) struct TextFailure<'a> {
    kind: Kind,
    route: &'a str,
    user: &'a str,
}

impl TextFailure<'static> {
    #[inline]
    pub(super) fn of((kind, route, user): Failed) -> Option<Self> {
        Some(Self { kind, route, user })
    }
}

pub(super) fn filled_talea_text() -> Result<Family<TextFailure<'static>, Counter>> {
    Ok(filled(Registry::new()?.register(opts())?, TextFailure::of))
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
    kind: Kind,
    #[label(fixed_with = RodeoReader<Spur, ahash::RandomState>)]
    route: &'a str,
    #[label(dynamic_with = ParaCord)]
    user: &'a str,
}

impl MeasuredFailure<'static> {
    #[inline]
    pub(super) fn of((kind, route, user): Failed) -> Option<Self> {
        Some(Self { kind, route, user })
    }
}

pub(super) fn filled_measured() -> Measured {
    let (kind, route) = (StaticLabelSet::new(), failures::measured_routes());
    let group = Measured::new(MeasuredSet { kind, route, user: ParaCord::default() });
    Measured { failures: filled(group.failures, MeasuredFailure::of) }
}

pub(super) fn filled_prometheus() -> Result<prometheus::IntCounterVec> {
    let opts = prometheus::Opts::new("failures_by_user_total", "Failed requests.");
    Ok(filled(prometheus::IntCounterVec::new(opts, &["kind", "route", "user"])?, texts))
}

#[inline]
pub(super) fn texts((kind, route, user): Failed) -> Option<[&'static str; 3]> {
    Some([kind.as_str(), route, user])
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClientFailure {
    kind: Kind,
    route: &'static str,
    user: String,
}

impl ClientFailure {
    #[inline]
    pub(super) fn of((kind, route, user): Failed) -> Option<Self> {
        Some(Self { kind, route, user: user.to_owned() })
    }
}

pub(super) fn filled_prometheus_client() -> ClientFamily<ClientFailure, ClientCounter> {
    filled(ClientFamily::default(), ClientFailure::of)
}

pub(super) fn fill_metrics() {
    metrics::describe_counter!("failures_by_user_total", "Failed requests.");
    Failed::all().for_each(count_by_metrics);
}

#[inline]
pub(super) fn count_by_metrics((kind, route, user): Failed) {
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
        Failed::walk(0, 65_536, |failed| {
            met.insert(failed);
        });
        assert_eq!(Failed::all().count(), SERIES);
        assert!((SERIES * 95 / 100..=SERIES).contains(&met.len()), "{}", met.len());
    }
}
