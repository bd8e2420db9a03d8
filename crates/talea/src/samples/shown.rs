//! Fills the quantiles of stored samples into a snapshot.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use talea_region::SeriesView;

use super::recent::RecentObservations;
use super::window::{Window, millis};
use crate::snapshot::{Samples, SeriesSnapshot, Snapshot};

impl Snapshot {
    /// Shows [`SampledSummary`](crate::SampledSummary)s as of windows that end at `now` instead of
    /// the time of the snapshot, for tests that move the clock. Observations up to a quarter of the
    /// window later are shown too.
    pub fn show_samples(&mut self, now: SystemTime) {
        let (now, mut found) = (millis(now), RecentObservations::default());
        let count = self.families().len();
        for n in 0..count {
            self.fill_samples(n, |family, samples, quantiles, window_totals| {
                let Some(recent) = family.recent() else { return };
                let window = Window::of(Duration::from_secs(recent.seconds.into()));
                let mut samples = ByText::new(samples);
                for series in family.all_series() {
                    match samples.of(&series) {
                        Some(samples) => {
                            found.fill(&samples, window, now);
                            quantiles.extend(
                                recent
                                    .quantiles
                                    .iter()
                                    .map(|&q| found.quantile(q).unwrap_or(f64::NAN)),
                            );
                            window_totals.push((found.count(), found.sum()));
                        }
                        // There was no room for samples, so recent observations are not known.
                        None => {
                            quantiles.extend(recent.quantiles.iter().map(|_| f64::NAN));
                            window_totals.push((series.histogram().count(), series.sum()));
                        }
                    }
                }
            });
        }
    }
}

/// Finds the samples of series, which are mostly in the same order.
struct ByText<'a, I> {
    all: Samples<'a>,
    rest: I,
    /// Once they were not.
    by_text: Option<HashMap<&'a [u8], SeriesView<'a>>>,
}

impl<'a> ByText<'a, ()> {
    fn new(all: Samples<'a>) -> ByText<'a, impl Iterator<Item = SeriesView<'a>>> {
        ByText { all, rest: all.series(), by_text: None }
    }
}

impl<'a, I: Iterator<Item = SeriesView<'a>>> ByText<'a, I> {
    fn of(&mut self, series: &SeriesSnapshot<'_>) -> Option<SeriesView<'a>> {
        let text = series.label_bytes();
        if self.by_text.is_none() {
            if let Some(next) = self.rest.next().filter(|next| next.text == text) {
                return Some(next);
            }
        }
        let all = self.all;
        let by_text =
            self.by_text.get_or_insert_with(|| all.series().map(|it| (it.text, it)).collect());
        by_text.get(text).copied()
    }
}
