//! One quantity of an endpoint, and whether it became greater than it usually is.

use std::collections::VecDeque;

use super::cusum::{Alarm, Cusum, Recovery};
use super::usual::{Classes, Counts, Packed, Usual, packed};

/// In milliseconds by a clock that is never set.
pub(super) type Millis = i64;

/// What was observed becomes usual after so long: before, it may be a change that is not found yet.
pub(super) const RECENT: Millis = 60_000;
/// A quantity is watched for so long before anything is a change.
const LEARNS: Millis = 60_000;
/// How often it is forgotten, and which part is kept then: of half an hour ago, a third.
const FORGETS_EVERY: Millis = 60_000;
const KEPT: f64 = 0.967;
/// How often the classes follow what is usual.
const FOLLOWS_EVERY: Millis = 10_000;
/// A change that lasts so long is usual.
const ADOPTED_AFTER: Millis = 3_600_000;

/// How a quantity is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// A value is greater than another if it is so many times as large.
    pub(super) factor: f64,
    /// The least observations that say what is usual.
    pub(super) least: f64,
    /// Observations are not forgotten if fewer would remain.
    pub(super) kept: f64,
}

#[derive(Debug)]
pub(super) struct Watch {
    settings: Settings,
    usual: Usual,
    /// What is not usual yet: the last minute.
    recent: VecDeque<(Millis, Packed)>,
    classes: Classes,
    cusum: Cusum,
    changed: Option<Changed>,
    began: Millis,
    followed: Millis,
    forgot: Millis,
}

#[derive(Debug)]
struct Changed {
    recovery: Recovery,
    /// All since the change but the last minute.
    after: Usual,
}

/// What a step brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is greater since then.
    Changed(Millis),
    /// It is as it was before.
    Back,
    /// It stays as it became, so that this is usual now.
    Adopted,
}

impl Watch {
    pub(super) fn new(settings: Settings, now: Millis) -> Self {
        Self {
            settings,
            usual: Usual::default(),
            recent: VecDeque::new(),
            classes: Classes::default(),
            cusum: Cusum::default(),
            changed: None,
            began: now,
            followed: now,
            forgot: now,
        }
    }

    /// Adds what was observed in a step that began then.
    pub(super) fn add(&mut self, time: Millis, counts: Counts, threshold: f64) -> Option<Turn> {
        let turn = self.test(time, &counts, threshold);
        self.recent.push_back((time, packed(counts)));
        while self.recent.front().is_some_and(|first| time - first.0 >= RECENT) {
            let Some((_, counts)) = self.recent.pop_front() else { break };
            match &mut self.changed {
                Some(changed) => changed.after.add(&counts),
                None => self.usual.add(&counts),
            }
        }
        if self.changed.is_none() {
            self.follow(time);
        }
        turn
    }

    fn test(&mut self, time: Millis, counts: &Counts, threshold: f64) -> Option<Turn> {
        if counts.is_empty() || self.classes.are_one() {
            return None;
        }
        let classes = self.classes.count(counts);
        let ratios = &self.classes.ratios;
        let Some(changed) = &mut self.changed else {
            let alarm = self.cusum.add(time, &classes, ratios, threshold)?;
            self.begin(alarm);
            return Some(Turn::Changed(alarm.since));
        };
        let is_adopted = time - changed.recovery.since() >= ADOPTED_AFTER;
        if !changed.recovery.add(&classes, ratios, threshold) && !is_adopted {
            return None;
        }
        let after = self.changed.take().map(|changed| changed.after).unwrap_or_default();
        self.cusum = Cusum::default();
        if !is_adopted {
            self.recent.clear();
            return Some(Turn::Back);
        }
        self.usual = after;
        Some(Turn::Adopted)
    }

    /// What was observed since the change is no part of what is usual.
    fn begin(&mut self, alarm: Alarm) {
        while self.recent.front().is_some_and(|first| first.0 < alarm.since) {
            if let Some((_, counts)) = self.recent.pop_front() {
                self.usual.add(&counts);
            }
        }
        self.changed = Some(Changed { recovery: Recovery::from(alarm), after: Usual::default() });
    }

    fn follow(&mut self, time: Millis) {
        if time - self.forgot >= FORGETS_EVERY {
            self.forgot = time;
            self.usual.forget(KEPT, self.settings.kept);
        }
        let is_known = self.usual.total() >= self.settings.least && time - self.began >= LEARNS;
        if is_known && (time - self.followed >= FOLLOWS_EVERY || self.classes.are_one()) {
            self.followed = time;
            self.classes = self.usual.classes(self.settings.factor);
        }
    }

    /// Since when it is changed.
    pub(super) fn since(&self) -> Option<Millis> {
        self.changed.as_ref().map(|changed| changed.recovery.since())
    }

    pub(super) fn usual(&self) -> &Counts {
        self.usual.counts()
    }

    /// What was observed in the last steps, a minute of them at most.
    pub(super) fn recent(&self, last: Millis) -> Counts {
        let mut all = Usual::default();
        let now = self.recent.back().map_or(0, |last| last.0);
        self.recent
            .iter()
            .filter(|(time, _)| now - time < last)
            .for_each(|(_, counts)| all.add(counts));
        all.into_counts()
    }
}
