//! A summary that keeps samples.

use std::time::SystemTime;

use talea_region::{FamilySpec, Registered, Storage};

use super::names::{KIND, own_name};
use super::window::{Window, millis};
use super::{ring, slices};
use crate::definition::names::OVERFLOW;
use crate::definition::opts::Opts;
use crate::definition::unit::Floats;
use crate::error::Error;
use crate::family::Family;
use crate::family::values::{self, DynamicLabels};
use crate::labels::LabelText;
use crate::metric::Summary;
use crate::registry::Registry;
use crate::registry::register::{Refusal, SERIES_LIMIT, idle_minutes};

/// The bytes of the region that a series takes for its ring and its directory. Its slices take
/// more.
const SERIES: u64 = 2816;
/// A family's rings may take this fraction of a region's cells: one part in this number.
const SHARE: u64 = 4;

/// A family of [`Summary`]s whose quantiles any reader can compute, however short it lives: recent
/// observations are stored in the region. For services whose processes live for only some requests,
/// where a [`Summary`] would show only what one of them saw.
///
/// The latest 128 observations are kept as they are. While a window has no more, its quantiles are
/// exact: the nearest rank, the smallest value that no smaller share of all is above. Older ones
/// are counted in native buckets of schema 4, for each quarter of the window. Then a quantile is that
/// of the observations since a time between 1 and 1.25 windows ago, so no observation leaves before its
/// window is over, and within 2.17 % of the exact one, whatever the values are and
/// in whatever order they come; so are the sum and, of values of one sign, the mean. The count is
/// exact.
///
/// Memory of the region, for each series: 1.5 KiB for 16 observations in a window, 3.2 KiB for 128;
/// then 640 bytes for each octave (factor of two) of the values, whatever their number: 12 KiB in
/// all for values between 1 ms and 10 s. Beyond 32 octaves, 32 KiB for 51 more; for all floats
/// there are, 2.7 MiB. A series that the region has no room for has a count and a sum, and NaN for
/// quantiles; so has one, for the length of a window, after an observation whose octave the region
/// had no room for. NaN is counted in the count of all, and in no window.
///
/// Threading: any number of threads and processes may observe at once, without locks. A
/// process that is killed in the middle may take one observation with it out of the window;
/// the count and the sum of all have it. When the clock is set back, the window begins anew.
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
    summary: Family<DynamicLabels, Summary<Floats>>,
    samples: talea_region::Family,
    window: Window,
    openings: &'static [String],
}

impl Registry {
    /// Registers a summary whose label names are known at run time, and that stores recent
    /// observations in the region; or finds the one with an equal definition.
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
            segments: slices::SEGMENTS as u16,
            limit: opts.limit.unwrap_or(SERIES_LIMIT).min(most) + 1,
            idle_minutes: idle_minutes(&opts),
            // Its limit counts all of its series.
            beyond_limit: Some(b""),
            ..FamilySpec::default()
        };
        let Registered { family: samples, .. } =
            self.region.family(spec).map_err(|error| Refusal::from(error).error(opts.name))?;
        let openings = summary.bound().map_or(&[][..], |bound| bound.openings);
        Ok(SampledSummary { summary, samples, window, openings })
    }
}

impl SampledSummary {
    /// The summary itself. An observation that is recorded directly there is in its count and sum,
    /// and in no window.
    pub fn family(&self) -> &Family<DynamicLabels, Summary<Floats>> {
        &self.summary
    }

    /// Counts one observation of a label combination, by its values in the order of the names,
    /// made at a time: mostly now.
    ///
    /// If there is no room for a new combination, or there are more values than names or fewer, the
    /// family's overflow series counts it.
    ///
    /// Cost: [`Family::with_values`], twice, and some atomic operations, the same for all
    /// values.
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
        if value.is_nan() {
            return;
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
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// The series of the label value, as a writer has it.
    fn segments(summary: &SampledSummary) -> talea_region::Segments {
        let series = summary.samples.series(b"country=\"pe\"").unwrap();
        series.segments().unwrap()
    }

    fn shown(registry: &Registry) -> (u64, f64) {
        let snapshot = registry.snapshot();
        let family = snapshot.families().next().unwrap();
        family.series().next().and_then(|series| series.window_totals()).unwrap()
    }

    #[test]
    fn places_that_a_killed_writer_left_half_written_block_nobody() {
        let registry = Registry::for_test().unwrap();
        let summary = registry.sampled_summary(Opts::new("took", "Time."), &["country"]).unwrap();
        let now = SystemTime::now();
        summary.observe(&["pe"], 1.0, now);
        // Seven places in a row.
        let segments = segments(&summary);
        let places = (10..17).map(|place| ring::cells(segments, place).unwrap());
        places.for_each(|[stamp, _]| stamp.set(ring::BUSY));
        (1..1000).for_each(|_| summary.observe(&["pe"], 1.0, now));
        let (count, sum) = shown(&registry);
        assert_eq!(count, 1000);
        assert!((sum / 1000.0 - 1.0).abs() < 0.0217, "{sum}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        /// Observations of 3 windows, of which some come late, and in the end all at once.
        #[test]
        fn a_window_is_never_shorter_than_asked_and_at_most_a_quarter_longer(
            seconds in 1..900_u64,
            phase in 0..900_000_u64,
            made in prop::collection::vec((0..3000_u64, 0..1000_u64, 1..1000_u32), 1..600),
            looks in prop::collection::vec(0..5000_u64, 1..12),
        ) {
            let registry = Registry::for_test().unwrap();
            let opts = Opts::new("took", "Time.").window(Duration::from_secs(seconds)).quantiles(&[1.0]);
            let summary = registry.sampled_summary(opts, &["country"]).unwrap();
            // In thousandths of a window: when it was made, and when it came.
            let at = |thousandths: u64| {
                let millis = 1_000_000_000_000 + phase + thousandths * seconds;
                SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
            };
            let mut made: Vec<_> =
                made.into_iter().map(|(at, late, value)| (at + late, at, f64::from(value))).collect();
            made.sort_by_key(|one| one.0);
            let mut looks = looks;
            looks.sort_unstable();
            let mut come = 0;
            for look in looks {
                while let Some(&(_, made_at, value)) = made.get(come).filter(|it| it.0 <= look) {
                    summary.observe(&["pe"], value, at(made_at));
                    come += 1;
                }
                if come == 0 {
                    continue;
                }
                let mut snapshot = registry.snapshot();
                snapshot.show_samples(at(look));
                let family = snapshot.families().next().unwrap();
                let series = family.series().next().unwrap();
                let (count, _) = series.window_totals().unwrap();
                let since = |length: u64| {
                    let came = made[..come].iter();
                    came.filter(move |it| it.1 + length > look).map(|it| it.2)
                };
                let (least, most) = (since(1000).count() as u64, since(1251).count() as u64);
                prop_assert!(least <= count && count <= most, "{least} to {most}: {count} at {look}");
                let greatest = since(1000).fold(0.0, f64::max);
                let (_, found) = series.quantiles().next().unwrap();
                prop_assert!(least == 0 || found >= greatest * (1.0 - 0.0217), "{found}, {greatest}");
            }
        }
    }

    #[test]
    fn a_window_that_lost_an_observation_has_no_quantiles_until_it_has_passed() {
        let registry = Registry::for_test().unwrap();
        let opts = Opts::new("took", "Time.").window(Duration::from_secs(60));
        let summary = registry.sampled_summary(opts, &["country"]).unwrap();
        let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_020 + second);
        let quantiles = |second| {
            let mut snapshot = registry.snapshot();
            snapshot.show_samples(at(second));
            let family = snapshot.families().next().unwrap();
            let series = family.series().next().unwrap();
            let quantiles: Vec<f64> = series.quantiles().map(|(_, value)| value).collect();
            (quantiles, series.window_totals().unwrap())
        };
        (0..300).for_each(|_| summary.observe(&["pe"], 1.0, at(0)));
        assert!(quantiles(0).0.iter().all(|value| (value - 1.0).abs() < 0.0217));

        // A word that is full, which takes no more.
        let segments = segments(&summary);
        let slice = summary.window.slice_of(millis(at(0)));
        for octave in slices::near_segments() {
            let Some(segment) = segments.get(octave) else { continue };
            for cell in (0..80).filter_map(|n| segments.cell(segment, n)) {
                cell.update(|word| (word != 0).then_some(slice << 32 | u64::from(u32::MAX)));
            }
        }
        (0..200).for_each(|_| summary.observe(&["pe"], 1.0, at(1)));
        let (found, (count, sum)) = quantiles(1);
        assert!(found.iter().all(|value| value.is_nan()), "{found:?}");
        assert!(count > u64::from(u32::MAX) && sum.is_nan());
        assert!(quantiles(47).0.iter().all(|value| value.is_nan()));
        (0..128).for_each(|_| summary.observe(&["pe"], 1.0, at(40)));
        let (found, (count, _)) = quantiles(75);
        assert_eq!((&*found, count), (&[1.0; 3][..], 128), "of the ring");
    }
}
