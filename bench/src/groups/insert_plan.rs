//! The keys of the groups `insert-5m…`, the same in every run: each choice follows from its number.

use crate::randomness::{Key, Random, RandomText, mixed};
use crate::work::Setting;

/// Which keys a measurement inserts.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    kind: Kind,
    /// The number of keys that are drawn from, and the number of inserts.
    keys: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    New,
    Drawn,
    Refilled,
}

pub(super) enum KeyText {
    OneLength(Key),
    AnyLength(RandomText),
}

impl KeyText {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::OneLength(key) => key.as_str(),
            Self::AnyLength(text) => text.as_str(),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Expected {
    pub(super) key: u64,
    pub(super) value: u64,
}

impl Plan {
    /// Each key is new, and all have one length.
    pub(super) fn new(setting: &Setting) -> Self {
        Self { kind: Kind::New, keys: setting.inserts }
    }

    /// As many draws as there are keys, with repeats. Keys have 8 to 60 bytes.
    pub(super) fn drawn(setting: &Setting) -> Self {
        Self { kind: Kind::Drawn, keys: setting.inserts }
    }

    /// As [`drawn`](Self::drawn), after another such draw of which half of the series were removed
    /// in random order. Half of the keys are new to the family.
    pub(super) fn refilled(setting: &Setting) -> Self {
        Self { kind: Kind::Refilled, keys: setting.inserts }
    }

    pub(super) fn text(self, key: u64) -> KeyText {
        match self.kind {
            Kind::New => KeyText::OneLength(Key::of(key)),
            Kind::Drawn | Kind::Refilled => KeyText::AnyLength(RandomText::of(key, 8..=60)),
        }
    }

    /// The key of an insert that is measured.
    pub(super) fn insert(self, n: u64) -> u64 {
        match self.kind {
            Kind::New => n,
            Kind::Drawn => mixed(1, n) % self.keys,
            Kind::Refilled => self.keys / 2 + mixed(2, n) % self.keys,
        }
    }

    /// The keys of the inserts before the measurement.
    pub(super) fn before(self) -> impl Iterator<Item = u64> {
        let inserts = if self.kind == Kind::Refilled { self.keys } else { 0 };
        (0..inserts).map(move |n| mixed(1, n) % self.keys)
    }

    /// The keys of the series that are removed before the measurement.
    pub(super) fn removed(self) -> Vec<u32> {
        let values = self.values_of(self.before());
        let mut keys: Vec<_> = (0..).zip(values).filter(|&(_, value)| value > 0).collect();
        Random::seeded(3).shuffle(&mut keys);
        keys.truncate(keys.len() / 2);
        keys.into_iter().map(|(key, _)| key).collect()
    }

    /// The series that are there after so many inserts.
    pub(super) fn series(self, inserts: u64) -> Vec<Expected> {
        let mut values = self.values_of(self.before());
        self.removed().into_iter().for_each(|key| values[key as usize] = 0);
        let measured = self.values_of((0..inserts).map(|n| self.insert(n)));
        let values = values.into_iter().zip(measured).map(|(one, other)| u64::from(one + other));
        let all = (0..).zip(values).map(|(key, value)| Expected { key, value });
        all.filter(|expected| expected.value > 0).collect()
    }

    /// How often each key was inserted.
    fn values_of(self, inserts: impl Iterator<Item = u64>) -> Vec<u32> {
        let mut values = vec![0; (self.keys + self.keys / 2) as usize];
        inserts.for_each(|key| values[key as usize] += 1);
        values
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn half_of_the_series_are_removed_and_others_are_made() {
        let plan = Plan::refilled(&Setting { inserts: 10_000, target: Duration::ZERO });
        let made = plan.values_of(plan.before()).into_iter().filter(|&value| value > 0).count();
        let left = plan.series(0).len();
        assert_eq!(left, made - made / 2);
        let series = plan.series(10_000);
        assert!(series.len() > made, "{} series of {made}", series.len());
        let before: u64 = plan.series(0).iter().map(|series| series.value).sum();
        assert_eq!(series.iter().map(|series| series.value).sum::<u64>(), before + 10_000);
    }
}
