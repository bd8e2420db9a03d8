//! The labels that several groups share: 3 kinds, which are an enum, and 6 routes,
//! which are fixed at run time and given as text.

use anyhow::Result;
use lasso::{Rodeo, RodeoReader, Spur};
use measured::label::StaticLabelSet;
use measured::{FixedCardinalityLabel, LabelGroup};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use talea::{LabelValue, Labels};

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

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Internal => "internal",
            Self::Network => "network",
        }
    }
}

/// The routes of measured's own benchmark.
pub(super) const ROUTES: [&str; 6] = [
    "/api/v1/users",
    "/api/v1/users/:id",
    "/api/v1/products",
    "/api/v1/products/:id",
    "/api/v1/products/:id/owner",
    "/api/v1/products/:id/purchase",
];

/// Every combination.
pub(super) fn all() -> impl Iterator<Item = (Kind, &'static str)> {
    Kind::ALL.into_iter().flat_map(|kind| ROUTES.map(|route| (kind, route)))
}

talea::label_set! {
    pub(super) struct Route;
}

/// Fixes the routes, as a program does when it starts.
pub(super) fn fix_routes() -> Result<()> {
    Ok(Route::fix(ROUTES)?)
}

#[derive(Labels)]
pub(super) struct Failure {
    kind: Kind,
    route: Route,
}

impl Failure {
    /// `None` for an unknown route. The groups skip it, so their checked counts are too low then.
    #[inline]
    pub(super) fn of(kind: Kind, route: &str) -> Option<Self> {
        Some(Self { kind, route: Route::find(route)? })
    }
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = FailureSet)]
pub(super) struct MeasuredFailure<'a> {
    pub(super) kind: Kind,
    #[label(fixed_with = RodeoReader<Spur, ahash::RandomState>)]
    pub(super) route: &'a str,
}

pub(super) fn measured_set() -> FailureSet {
    FailureSet { kind: StaticLabelSet::new(), route: measured_routes() }
}

pub(super) fn measured_routes() -> RodeoReader<Spur, ahash::RandomState> {
    let routes: Rodeo<Spur, ahash::RandomState> = Rodeo::from_iter(ROUTES);
    routes.into_reader()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClientFailure {
    pub(super) kind: Kind,
    pub(super) route: &'static str,
}
