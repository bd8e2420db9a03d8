//! What was observed in a window, of what was copied of a series' samples.

use talea_region::SeriesView;

use super::{Window, ring, slices};

/// Samples of a window: values, each with how many there are of it. Of a slice that the
/// window has part of, as large a part is taken of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lately {
    values: Vec<(f64, f64)>,
    count: f64,
    sum: f64,
}

impl Lately {
    /// Those of a series in place of what was here before.
    pub(crate) fn fill(&mut self, series: &SeriesView<'_>, window: Window, now: u64) {
        self.values.clear();
        (self.count, self.sum) = (0.0, 0.0);
        for segment in series.segments() {
            match usize::from(segment.n) {
                n if ring::SEGMENTS.contains(&n) => self.add_ring(segment.values, window, now),
                _ => self.add_slice(segment.values, window, now),
            }
        }
        self.values.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
    }

    fn add_ring(&mut self, words: &[u64], window: Window, now: u64) {
        let begin = window.begin(now);
        for sample in ring::samples(words).filter(|sample| sample.at >= begin) {
            self.values.push((sample.value, 1.0));
            self.count += 1.0;
            self.sum += sample.value;
        }
    }

    fn add_slice(&mut self, words: &[u64], window: Window, now: u64) {
        let Some((number, sum, buckets)) = slices::read(words) else { return };
        let end = number.saturating_add(1).saturating_mul(window.slice());
        let within = end.saturating_sub(window.begin(now));
        let share = (within as f64 / window.slice() as f64).min(1.0);
        if share == 0.0 {
            return;
        }
        for (value, count) in buckets {
            self.values.push((value, count as f64 * share));
            self.count += count as f64 * share;
        }
        self.sum += sum * share;
    }

    /// How many samples there are.
    pub(crate) fn count(&self) -> u64 {
        self.count.round() as u64
    }

    /// Their sum.
    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    /// The smallest value that a share `q` of them is not above (the nearest rank); `None`
    /// where there are none.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let rank = self.count * q;
        let mut before = 0.0;
        let reaches = |(_, count): &&(f64, f64)| {
            before += count;
            before >= rank
        };
        let found = self.values.iter().find(reaches).or(self.values.last());
        found.map(|(value, _)| *value)
    }
}
