//! What a response's status is told as.

use std::borrow::Cow;

/// What the label `status` holds, by the [`Prometheus`](crate::Convention::Prometheus)
/// convention. Others have a way of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusLabel {
    /// The class, `1xx` to `5xx`. All series are there from the start.
    #[default]
    Class,
    /// The code, `100` to `599`. A series is there from the first answer of its
    /// code on, so an endpoint has as many as it has answered with.
    Code,
}

/// How a convention tells statuses. Each has a place from 0: those that it tells apart,
/// then one for what is none from 100 to 599 (`odd`), then one for requests that ended
/// without (`none`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statuses {
    /// `1xx` to `5xx`; one name for all else.
    Classes,
    /// The code.
    Codes { odd: &'static str, none: &'static str },
    /// `2XX`, `4XX`, `5XX`, and `XXX` for all else.
    Servant,
}

/// The name of what has no status, or one outside 100 to 599.
pub(crate) const OTHER: &str = "_OTHER";

const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", OTHER];
const SERVANT: [&str; 4] = ["2XX", "4XX", "5XX", "XXX"];
const CODES: usize = 500;

impl Statuses {
    /// How many places there are.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Classes => CLASSES.len(),
            Self::Codes { .. } => CODES + 2,
            Self::Servant => SERVANT.len(),
        }
    }

    /// Whether each has a series from the start.
    pub(crate) fn are_few(self) -> bool {
        !matches!(self, Self::Codes { .. })
    }

    /// The place of a status.
    #[inline]
    pub(crate) fn place(self, status: Option<u16>) -> usize {
        match (self, status) {
            (Self::Classes, Some(status @ 100..=599)) => usize::from(status / 100 - 1),
            (Self::Classes, _) => CLASSES.len() - 1,
            (Self::Codes { .. }, Some(status @ 100..=599)) => usize::from(status - 100),
            (Self::Codes { .. }, Some(_)) => CODES,
            (Self::Codes { .. }, None) => CODES + 1,
            (Self::Servant, Some(200..=299)) => 0,
            (Self::Servant, Some(400..=499)) => 1,
            (Self::Servant, Some(500..=599)) => 2,
            (Self::Servant, _) => 3,
        }
    }

    /// What the status of a place is told as.
    pub(crate) fn text(self, place: usize) -> Cow<'static, str> {
        match self {
            Self::Classes => CLASSES.get(place).copied().unwrap_or(OTHER).into(),
            Self::Servant => SERVANT.get(place).copied().unwrap_or("XXX").into(),
            Self::Codes { .. } if place < CODES => (place + 100).to_string().into(),
            Self::Codes { odd, .. } if place == CODES => odd.into(),
            Self::Codes { none, .. } => none.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_statuses_have_one_name() {
        let codes = Statuses::Codes { odd: "odd", none: "none" };
        for (status, class, code, servant) in [
            (Some(100), "1xx", "100", "XXX"),
            (Some(204), "2xx", "204", "2XX"),
            (Some(304), "3xx", "304", "XXX"),
            (Some(499), "4xx", "499", "4XX"),
            (Some(599), "5xx", "599", "5XX"),
            (Some(600), "_OTHER", "odd", "XXX"),
            (Some(999), "_OTHER", "odd", "XXX"),
            (Some(99), "_OTHER", "odd", "XXX"),
            (None, "_OTHER", "none", "XXX"),
        ] {
            for (statuses, text) in
                [(Statuses::Classes, class), (codes, code), (Statuses::Servant, servant)]
            {
                assert_eq!(statuses.text(statuses.place(status)), text, "{status:?}");
            }
        }
    }

    #[test]
    fn every_place_is_some_statuss() {
        for statuses in
            [Statuses::Classes, Statuses::Codes { odd: "", none: "" }, Statuses::Servant]
        {
            let all = (0..=u16::MAX).map(Some).chain([None]);
            let mut places: Vec<_> = all.map(|status| statuses.place(status)).collect();
            places.sort_unstable();
            places.dedup();
            assert!(places.into_iter().eq(0..statuses.count()));
        }
    }
}
