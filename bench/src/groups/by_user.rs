//! The label of the groups with one dynamic label, as each library declares it.

use measured::LabelGroup;
use paracord::ParaCord;
use prometheus_client::encoding::EncodeLabelSet;
use talea::Labels;

#[derive(Labels)]
pub(super) struct User<'a> {
    pub(super) user: &'a str,
}

#[derive(Clone, Copy, LabelGroup)]
#[label(set = UserSet)]
pub(super) struct MeasuredUser<'a> {
    #[label(dynamic_with = ParaCord, default)]
    pub(super) user: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClientUser {
    user: String,
}

impl ClientUser {
    pub(super) fn of(user: &str) -> Self {
        Self { user: user.to_owned() }
    }
}
