//! The values of the labels of several groups: 3 kinds, which are an enum, and 6 routes, which are text
//! or an enum.

use measured::FixedCardinalityLabel;
use prometheus_client::encoding::EncodeLabelValue;
use talea::LabelValue;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, LabelValue, FixedCardinalityLabel, EncodeLabelValue,
)]
pub(crate) enum Kind {
    User,
    Internal,
    Network,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::User, Self::Internal, Self::Network];
}

/// The routes of measured's own benchmark.
pub(crate) const ROUTES: [&str; 6] = [
    "/api/v1/users",
    "/api/v1/users/:id",
    "/api/v1/products",
    "/api/v1/products/:id",
    "/api/v1/products/:id/owner",
    "/api/v1/products/:id/purchase",
];

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, LabelValue, FixedCardinalityLabel, EncodeLabelValue,
)]
pub(crate) enum RouteName {
    Users,
    User,
    Products,
    Product,
    Owner,
    Purchase,
}

impl RouteName {
    pub(crate) const ALL: [Self; 6] =
        [Self::Users, Self::User, Self::Products, Self::Product, Self::Owner, Self::Purchase];
}
