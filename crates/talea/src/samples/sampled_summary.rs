//! A summary that keeps samples.

use std::time::SystemTime;

use talea_region::{FamilySpec, Registered, Storage};

use super::{KIND, Window, millis, own_name, ring, slices};
use crate::error::Error;
use crate::family::Family;
use crate::labels::LabelText;
use crate::metric::Summary;
use crate::opts::Opts;
use crate::register::{OVERFLOW, Refusal, SERIES_LIMIT, idle_minutes};
use crate::registry::Registry;
use crate::unit::Floats;
use crate::values::{self, Values};

/// What a series takes of a region as long as its ring has all of a window, at most; it may come to
/// be six times as much.
const SERIES: u64 = 2560;
/// A family's rings may take one part of so many of a region's cells.
const SHARE: u64 = 4;

/// A family of [`Summary`]s whose quantiles any reader can tell, however short it lives: what
/// was observed lately is kept in the region. For services whose processes live for some
/// requests only, where a [`Summary`] would show what one of them saw.
///
/// The last 128 observations are kept as they are. While a window has no more, its quantiles
/// are exact: the nearest rank, the smallest value that no smaller share of all is above.
/// Earlier ones go to six slices of the window, with 232 buckets each. A quantile is then
/// within 1.1 % of one of them, where a slice's are within a factor of fifty; where they spread
/// more widely, those that come later are told half as finely, and so on. Of the slice that
/// the window has part of, as large a part is counted.
///
/// Memory of the region, for each series: 0.5 KiB for 16 observations in a window, 2.3 KiB for
/// 128, at most 13.5 KiB for more. A series whose samples there is no room for has a count and a
/// sum, and NaN for quantiles.
///
/// Threading: any number of threads and processes may observe at once, without locks. A
/// process that is killed in the middle may take one observation with it out of the window;
/// the count and the sum of all have it.
///
/// ```
/// use std::time::SystemTime;
/// use talea::{Opts, Registry};
///
/// let registry = Registry::for_test()?;
/// let opts = Opts::new("shop_pricing", "Time to price a basket.").quantiles(&[0.5, 0.99]);
/// let pricing = registry.sampled_summary(opts, &["country"])?;
/// for ms in 1..=100 {
///     pricing.observe(&["pe"], f64::from(ms), SystemTime::now());
/// }
/// let snapshot = registry.snapshot();
/// let labels = [("country", "pe"), ("quantile", "0.99")];
/// assert_eq!(snapshot.value("shop_pricing", &labels), Some(99.0));
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SampledSummary {
    summary: Family<Values, Summary<Floats>>,
    samples: talea_region::Family,
    window: Window,
    openings: &'static [String],
}

impl Registry {
    /// Registers a summary whose label names are known at run time, and that keeps what was
    /// observed lately in the region; or finds the one that is defined alike.
    ///
    /// # Errors
    ///
    /// As [`family`](Self::family).
    pub fn sampled_summary(
        &self,
        opts: Opts<'_>,
        labels: &[impl AsRef<str>],
    ) -> Result<SampledSummary, Error> {
        let opts = Opts { sampled: true, ..opts };
        let summary = self.family::<Summary<Floats>>(opts, labels)?;
        let window = Window::of(opts.window);
        let most = self.region.room_for_single_cells() / SHARE / SERIES;
        let (name, definition) = (own_name(opts.name), window.encode(labels));
        let spec = FamilySpec {
            name: name.as_bytes(),
            definition: &definition,
            kind: KIND,
            storage: Storage::Single,
            segments: 2 + slices::COUNT as u16,
            limit: opts.limit.unwrap_or(SERIES_LIMIT).min(most) + 1,
            idle_minutes: idle_minutes(&opts),
            ..FamilySpec::default()
        };
        let Registered { family: samples, .. } =
            self.region.family(spec).map_err(|error| Refusal::from(error).error(opts.name))?;
        let openings = summary.bound().map_or(&[][..], |bound| bound.openings);
        Ok(SampledSummary { summary, samples, window, openings })
    }
}

impl SampledSummary {
    /// The summary itself. What it is told directly is in its count and sum, and in no window.
    pub fn family(&self) -> &Family<Values, Summary<Floats>> {
        &self.summary
    }

    /// Counts one observation of a label combination, by its values in the order of the names,
    /// made at a time: mostly now.
    ///
    /// Where there is no room for a new combination, or there are more values than names or
    /// fewer, the family's overflow series counts it.
    ///
    /// Cost: that of [`Family::with_values`], twice, and some atomic operations.
    pub fn observe(&self, values: &[impl AsRef<str>], value: f64, at: SystemTime) {
        let mut text = LabelText::new();
        match self.summary.try_with_values(values) {
            Ok(summary) => {
                summary.observe(value);
                values::write(&mut text, self.openings, values);
            }
            Err(_) => {
                self.summary.with_values(values).observe(value);
                text.push_raw(OVERFLOW);
            }
        }
        let Ok(series) = self.samples.series(text.as_bytes()) else { return };
        if let Some(segments) = series.segments() {
            let sample = ring::Sample { at: millis(at), value };
            ring::put(series.at(0), segments, self.window, sample);
        }
    }

    /// Removes a label combination, as [`Family::remove_values`].
    pub fn remove_values(&self, values: &[impl AsRef<str>]) -> bool {
        let mut text = LabelText::new();
        values::write(&mut text, self.openings, values);
        self.samples.remove(text.as_bytes());
        self.summary.remove_values(values)
    }

    /// Has the family count from 0 again, as [`Family::wipe`].
    pub fn wipe(&self) -> bool {
        self.samples.wipe();
        self.summary.wipe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The series of the label value, as who writes has it.
    fn segments(summary: &SampledSummary) -> talea_region::Segments {
        let series = summary.samples.series(b"country=\"pe\"").unwrap();
        series.segments().unwrap()
    }

    fn shown(registry: &Registry) -> (u64, f64) {
        let snapshot = registry.snapshot();
        let family = snapshot.families().next().unwrap();
        family.series().next().and_then(|series| series.lately()).unwrap()
    }

    #[test]
    fn what_one_who_was_killed_left_half_written_stands_in_nobody_s_way() {
        let registry = Registry::for_test().unwrap();
        let summary = registry.sampled_summary(Opts::new("took", "Time."), &["country"]).unwrap();
        let now = SystemTime::now();
        summary.observe(&["pe"], 1.0, now);
        // Killed in the ring: seven places in a row.
        let segments = segments(&summary);
        let places = (10..17).map(|place| ring::cells(segments, place).unwrap());
        places.for_each(|[stamp, _]| stamp.set(ring::BUSY));
        (1..1000).for_each(|_| summary.observe(&["pe"], 1.0, now));
        assert_eq!(shown(&registry), (1000, 1000.0));

        // Killed while a slice was cleared: that one is used again for the next of its place.
        let slice = |n: u64| SystemTime::UNIX_EPOCH + summary.window.slice_len() * n as u32;
        let later = now + 100 * summary.window.slice_len();
        let number = summary.window.slice_of(millis(later));
        let n = 1 + (number % slices::COUNT as u64) as usize;
        let state = segments.make(n, slices::WORDS, 0).and_then(|it| segments.cell(it, 0)).unwrap();
        state.set((number - slices::COUNT as u64) << 1 | 1);
        (0..500).for_each(|_| summary.observe(&["pe"], 2.0, slice(number)));
        let mut snapshot = registry.snapshot();
        snapshot.show_samples(slice(number));
        let family = snapshot.families().next().unwrap();
        let lately = family.series().next().unwrap().lately();
        assert_eq!(lately, Some((500, 1000.0)));
    }
}
