//! What a snapshot shows of samples.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use super::{Lately, Window, millis};
use crate::definition::Recent;
use crate::snapshot::{FamilySnapshot, Snapshot};

impl Snapshot {
    /// Has what [`SampledSummary`](crate::SampledSummary)s show be that of windows which end at
    /// another time than that of the snapshot: for tests of what time does. Of what was observed
    /// later nothing is left out.
    pub fn show_samples(&mut self, now: SystemTime) {
        for n in 0.. {
            let Some(family) = self.family_at(n) else { return };
            let Some(recent) = family.recent().filter(|recent| recent.sampled) else { continue };
            let (quantiles, lately) = shown(self, &family, recent, millis(now));
            self.set_lately(n, quantiles, lately);
        }
    }
}

/// The quantiles of each series of a family, one series after the other; and how many samples
/// each has in its window, and their sum.
fn shown(
    snapshot: &Snapshot,
    family: &FamilySnapshot<'_>,
    recent: &Recent,
    now: u64,
) -> (Vec<f64>, Vec<(u64, f64)>) {
    let (mut quantiles, mut lately) = (Vec::new(), Vec::new());
    let window = Window::of(Duration::from_secs(recent.seconds.into()));
    let samples = snapshot.samples_of(family).into_iter().flatten();
    let samples: HashMap<_, _> = samples.map(|series| (series.text, series)).collect();
    let mut found = Lately::default();
    for series in family.all_series() {
        match samples.get(series.label_bytes()) {
            Some(samples) => {
                found.fill(samples, window, now);
                let of = |&q| found.quantile(q).unwrap_or(f64::NAN);
                quantiles.extend(recent.quantiles.iter().map(of));
                lately.push((found.count(), found.sum()));
            }
            // There was no room for them: all that there ever was.
            None => {
                let all = series.native();
                let of = |&q| all.as_ref().and_then(|all| all.quantile(q)).unwrap_or(f64::NAN);
                quantiles.extend(recent.quantiles.iter().map(of));
                lately.push((series.histogram().count(), series.sum()));
            }
        }
    }
    (quantiles, lately)
}
