//! The labels of several groups: the kinds, and the routes, fixed at run time and given as text.

use anyhow::Result;
use lasso::{Rodeo, RodeoReader, Spur};
use measured::LabelGroup;
use measured::label::StaticLabelSet;
use prometheus_client::encoding::EncodeLabelSet;
use talea::Labels;

pub(super) use super::labels::{Kind, ROUTES};

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Internal => "internal",
            Self::Network => "network",
        }
    }
}

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
