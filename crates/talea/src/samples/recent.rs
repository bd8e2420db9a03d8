//! The observations in a window, computed from a copy of a series' samples.

use talea_region::SeriesView;

use super::storage::RING_SEGMENTS;
use super::window::Window;
use super::{ring, slices};
use crate::histogram::native_buckets::rank;

/// The observations of a window: values, each with how many there are of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentObservations {
    values: Vec<(f64, u64)>,
    count: u64,
    sum: f64,
    /// Observations that the region had no room for. Their values are not known.
    lost: u64,
}

impl RecentObservations {
    /// Reads the samples of a series, in place of the previous content.
    pub(crate) fn fill(&mut self, series: &SeriesView<'_>, window: Window, now: u64) {
        let Self { values, count, sum, lost } = self;
        values.clear();
        (*count, *sum, *lost) = (0, 0.0, 0);
        let (begin, latest) = (window.begin(now), window.slice_of(now));
        let mut add = |value, n| {
            values.push((value, n));
            *count += n;
            *sum += value * n as f64;
        };
        let mut in_slices = 0;
        for segment in series.segments() {
            let n = usize::from(segment.n);
            let mut add = |value, n| {
                add(value, n);
                in_slices += n;
            };
            if RING_SEGMENTS.contains(&n) {
                *lost += slices::read_marks(ring::read(segment.values).1, latest, &mut add);
            } else {
                slices::read((n, segment.tag), segment.values, latest, &mut add);
            }
        }
        // Beside slices, the ring has the part of the window that they begin with.
        let is_whole = in_slices + *lost == 0;
        for segment in series.segments().filter(|it| RING_SEGMENTS.contains(&it.n.into())) {
            ring::read(segment.values)
                .0
                .filter(|sample: &ring::Sample| match window.slice_of(sample.at) {
                    slice if is_whole => sample.at >= begin && slices::has_come(slice, latest),
                    slice => slices::has(slice, latest),
                })
                .for_each(|sample| add(sample.value, 1));
        }
        values.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count + self.lost
    }

    /// Their sum: NaN if the region had no room for some.
    pub(crate) fn sum(&self) -> f64 {
        if self.lost > 0 { f64::NAN } else { self.sum }
    }

    /// The smallest value that a share `q` of them is not above (the nearest rank); `None` if
    /// there are none, or the region had no room for some.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        if self.lost > 0 || self.count == 0 {
            return None;
        }
        let (rank, mut before) = (rank(q, self.count), 0);
        let found = self.values.iter().find(|(_, count)| {
            before += count;
            before >= rank
        });
        found.map(|(value, _)| *value)
    }
}
