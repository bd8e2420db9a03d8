//! The choice of buckets for each histogram.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::names;

/// Matches histograms by their name, as metrics-exporter-prometheus does: characters that
/// Prometheus does not have count as `_`, in the name and here. If several match, `Full` comes
/// before `Prefix` and that before `Suffix`; of two of one kind the first in alphabetical order is
/// used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Matcher {
    /// The whole name.
    Full(String),
    /// The beginning of the name.
    Prefix(String),
    /// The end of the name.
    Suffix(String),
}

impl Matcher {
    fn with_names_replaced(self) -> Self {
        match self {
            Self::Full(name) => Self::Full(names::metric(&name)),
            // Names that begin so have their first character replaced too.
            Self::Prefix(name) if !name.is_empty() => Self::Prefix(names::metric(&name)),
            Self::Prefix(name) => Self::Prefix(name),
            Self::Suffix(name) => Self::Suffix(names::part_of_metric(&name)),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Full(full) => name == full,
            Self::Prefix(prefix) => name.starts_with(prefix),
            Self::Suffix(suffix) => name.ends_with(suffix),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets {
    all: Option<Vec<f64>>,
    // Sorted as they count.
    some: BTreeMap<Matcher, Vec<f64>>,
}

impl Buckets {
    pub(crate) fn set(&mut self, matcher: Option<Matcher>, buckets: &[f64]) {
        match matcher {
            Some(matcher) => {
                drop(self.some.insert(matcher.with_names_replaced(), buckets.to_vec()))
            }
            None => self.all = Some(buckets.to_vec()),
        }
    }

    /// The buckets of a histogram; `None` leaves them to its unit.
    pub(crate) fn of(&self, name: &str) -> Option<&[f64]> {
        let chosen = self.some.iter().find(|(matcher, _)| matcher.matches(name));
        chosen.map(|(_, buckets)| buckets).or(self.all.as_ref()).map(Vec::as_slice)
    }

    /// Finds what no histogram can have before there is one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for buckets in self.some.values().chain(&self.all) {
            let ascend = buckets.windows(2).all(|pair| pair[0] < pair[1]);
            if !(1..=1024).contains(&buckets.len())
                || !ascend
                || !buckets.iter().all(|bucket| bucket.is_finite() && *bucket > 0.0)
            {
                let reason = format!(
                    "found the buckets {buckets:?}; expected 1 to 1,024 that are finite, positive \
                     and ascending (+Inf is added)"
                );
                return Err(Error::Buckets { reason });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_that_cannot_be_are_found_before_they_are_needed() {
        let few = [
            &[][..],
            &[1.0, 1.0],
            &[2.0, 1.0],
            &[0.0],
            &[-1.0],
            &[f64::NAN],
            &[1.0, f64::INFINITY],
        ];
        for wrong in few.into_iter().chain([&[1.0; 1025][..]]) {
            let mut buckets = Buckets::default();
            buckets.set(Some(Matcher::Full("x".into())), wrong);
            assert!(buckets.check().is_err(), "{wrong:?}");
        }
    }
}
