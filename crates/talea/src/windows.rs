//! Windows: what was observed in the last minutes.
//!
//! Observations only ever add. So what a reader needs to tell what there was lately is
//! what there was before: it keeps, of each series, the buckets at the beginning of the
//! window and what came in each of its steps, of which there are sixty, of ten seconds at
//! most. Steps are of time and not of scrapes, so that however many scrapers there are,
//! they see the same.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use crate::definition::Recent;
use crate::native_buckets::NativeBuckets;
use crate::snapshot::{FamilySnapshot, SeriesSnapshot, Snapshot};

/// Steps of a window.
const STEPS: u32 = 60;
/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(10);
/// The shortest.
const SHORTEST_STEP: Duration = Duration::from_secs(1);

/// The windows of the summaries that a reader knows.
///
/// A [`Registry`](crate::Registry) has its own. Keep one where snapshots come from
/// elsewhere, and give it every snapshot before that is shown.
///
/// Memory for each series: its buckets, and at most 61 steps of 100 bytes and 16 for each
/// bucket that was counted in during the step.
#[derive(Debug, Default)]
pub struct Windows {
    /// By the family's name, then by the series' label text.
    families: HashMap<String, Rings>,
    /// The latest time that it was told.
    now: Duration,
    /// How many snapshots it was given.
    round: u64,
}

/// The windows of a family's series, by their label text, and how long a step of them is.
#[derive(Debug)]
struct Rings {
    step: Duration,
    series: HashMap<Vec<u8>, Ring>,
}

/// The window of one series.
#[derive(Debug)]
struct Ring {
    /// What there was when the window began.
    before: NativeBuckets,
    /// What came in each step since, where anything did, and when the step ended.
    steps: VecDeque<(Duration, NativeBuckets)>,
    /// What there was at the end of the last step.
    latest: NativeBuckets,
    ended: Duration,
    /// When the series began to count.
    created: Option<SystemTime>,
    /// The last round that it was there.
    seen: u64,
}

impl Windows {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the quantiles of its summaries into a snapshot, and notes what they hold where
    /// a step is over. `now` is a time since any instant, the same for all calls; one that
    /// is before the last counts as that one. A series that was there before the first
    /// call, and is older than its window, counts from that call on.
    ///
    /// Cost: a look at each bucket of each summary.
    pub fn show(&mut self, snapshot: &mut Snapshot, now: Duration) {
        self.now = self.now.max(now);
        self.round += 1;
        for n in 0.. {
            let Some(family) = snapshot.family_at(n) else { return };
            // What keeps samples shows them by itself.
            let Some(recent) = family.recent().filter(|it| !it.sampled) else { continue };
            let shown = self.family(&family, recent);
            snapshot.set_quantiles(n, shown);
        }
    }

    /// The summaries that it has seen: their names, and how often each should be shown at
    /// least, so that nothing of its window is lost.
    pub fn summaries(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.families.iter().map(|(name, rings)| (name.as_str(), rings.step))
    }

    /// The quantiles of each series of a family, one series after the other.
    fn family(&mut self, family: &FamilySnapshot<'_>, recent: &Recent) -> Vec<f64> {
        let Self { families, now, round } = self;
        if !families.contains_key(family.name()) {
            let rings = Rings { step: recent.step(), series: HashMap::new() };
            families.insert(family.name().to_owned(), rings);
        }
        let Some(Rings { step, series: rings }) = families.get_mut(family.name()) else {
            return Vec::new();
        };
        *step = recent.step();
        let mut shown = Vec::new();
        for series in family.all_series() {
            let Some(buckets) = series.native() else { continue };
            let text = series.label_bytes();
            if !rings.contains_key(text) {
                rings.insert(text.to_vec(), Ring::new(&series, &buckets, recent, *now));
            }
            let Some(ring) = rings.get_mut(text) else { continue };
            ring.seen = *round;
            ring.move_on(&series, &buckets, recent, *now);
            let lately = buckets.diff(&ring.before);
            let quantile = |&q| lately.as_ref().and_then(|lately| lately.quantile(q));
            shown.extend(recent.quantiles.iter().map(|q| quantile(q).unwrap_or(f64::NAN)));
        }
        rings.retain(|_, ring| ring.seen == *round);
        shown
    }
}

impl Recent {
    /// The time that its quantiles are of.
    fn window(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// How long a step of the window is.
    pub(crate) fn step(&self) -> Duration {
        (self.window() / STEPS).clamp(SHORTEST_STEP, LONGEST_STEP)
    }
}

impl Ring {
    fn new(
        series: &SeriesSnapshot<'_>,
        buckets: &NativeBuckets,
        recent: &Recent,
        now: Duration,
    ) -> Self {
        let created = series.created();
        // All that a young one holds is of its window.
        let age = created.and_then(|created| SystemTime::now().duration_since(created).ok());
        let is_young = age.is_none_or(|age| age <= recent.window());
        let before = if is_young { buckets.emptied() } else { buckets.clone() };
        let latest = before.clone();
        Self { before, steps: VecDeque::new(), latest, ended: now, created, seen: 0 }
    }

    /// Ends the step, if it is over, and forgets those that the window has left.
    fn move_on(
        &mut self,
        series: &SeriesSnapshot<'_>,
        buckets: &NativeBuckets,
        recent: &Recent,
        now: Duration,
    ) {
        // Counted from 0 again.
        if self.created != series.created() || buckets.diff(&self.latest).is_none() {
            self.before = buckets.emptied();
            self.latest = buckets.emptied();
            self.steps.clear();
            self.created = series.created();
        }
        if now >= self.ended + recent.step() {
            if let Some(came) = buckets.diff(&self.latest).filter(|came| came.count() > 0) {
                self.steps.push_back((now, came));
            }
            self.latest = buckets.clone();
            self.ended = now;
        }
        let begin = now.saturating_sub(recent.window());
        while self.steps.front().is_some_and(|(ended, _)| *ended <= begin) {
            if let Some((_, left)) = self.steps.pop_front() {
                self.before.merge(&left);
            }
        }
    }
}
