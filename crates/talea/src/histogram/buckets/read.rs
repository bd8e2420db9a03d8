//! Reads the cells of a series as classic buckets and as native ones, of the same counts.

use talea_region::{SegmentView, SeriesView};

use super::grid::{Grid, INFINITY, MINUS_INFINITY, NAN, ZERO};
use super::layout::{FLOAT_ZERO, Numbers};
use super::native::{COARSEST, bucket_of, coarser};
use super::octaves::{Octave, Octaves};
use crate::histogram::native_buckets::{NativeBuckets, join};
use crate::histogram::snapshot::NonFinite;

/// The native bucket that an observation was counted in.
#[derive(Clone, Copy, Debug)]
enum Native {
    Zero,
    Nan,
    Infinite { negative: bool },
    In { schema: i8, bucket: i32, negative: bool },
}

impl Octaves {
    /// The segments of octaves.
    fn segments<'a>(
        &self,
        series: &SeriesView<'a>,
    ) -> impl Iterator<Item = (Octave, SegmentView<'a>)> + use<'a, '_> {
        series.segments().filter_map(|segment| {
            let octave = self.octave_of(segment.n.into(), segment.tag)?;
            Some((octave, segment))
        })
    }
}

impl Grid {
    /// Puts the classic buckets, one more than thresholds, into `out`.
    pub(crate) fn classic(&self, series: &SeriesView<'_>, out: &mut Vec<u64>) {
        out.clear();
        out.resize(self.layout.thresholds.len() + 1, 0);
        self.each(series, |_, classic, count| {
            if let Some(bucket) = out.get_mut(classic) {
                *bucket = bucket.wrapping_add(count);
            }
        });
    }

    pub(crate) fn count(&self, series: &SeriesView<'_>) -> u64 {
        let mut all = 0_u64;
        self.each_of_base(series, |_, _, count| all = all.wrapping_add(count));
        if let Some(octaves) = &self.octaves {
            for (octave, segment) in octaves.segments(series) {
                let cells = octaves.cells(octave, segment.tag);
                all = segment.values.iter().take(cells).fold(all, |all, n| all.wrapping_add(*n));
            }
        }
        all
    }

    pub(crate) fn native(&self, series: &SeriesView<'_>) -> Option<NativeBuckets> {
        let mut native = NativeBuckets::default();
        self.native_into(series, &mut native).then_some(native)
    }

    /// Reads the native buckets into memory that is reused; false if there are none.
    pub(crate) fn native_into(&self, series: &SeriesView<'_>, native: &mut NativeBuckets) -> bool {
        let Some(layout) = self.layout.native else { return false };
        let schema = self.coarsest_found(series, layout.schema);
        // The format's default, which holds no whole number but 0. Some scrapers recognize native
        // buckets by it.
        native.clear(schema, FLOAT_ZERO);
        self.each(series, |place, _, count| {
            let (bucket, negative) = match place {
                Native::Zero => {
                    native.zero = native.zero.wrapping_add(count);
                    return;
                }
                Native::Nan => {
                    native.nan = native.nan.wrapping_add(count);
                    return;
                }
                // NonFinite the largest float.
                Native::Infinite { negative } => (bucket_of(f64::MAX, schema) + 1, negative),
                Native::In { schema: fine, bucket, negative } => {
                    (coarser(i64::from(bucket), fine - schema), negative)
                }
            };
            let side = if negative { &mut native.negative } else { &mut native.positive };
            side.push((bucket, count));
        });
        join(&mut native.positive);
        join(&mut native.negative);
        native.fit(layout.most as usize, layout.widest_zero);
        true
    }

    /// The coarsest schema among `finest` and the schemas of all segments with counts: all can be shown
    /// in it.
    fn coarsest_found(&self, series: &SeriesView<'_>, finest: i8) -> i8 {
        let mut schema = finest;
        self.each_of_base(series, |place, _, _| {
            if let Native::In { schema: found, .. } = place {
                schema = schema.min(found);
            }
        });
        let Some(octaves) = &self.octaves else { return schema };
        for (octave, segment) in octaves.segments(series) {
            let found = octaves.schema(segment.tag);
            if found < schema {
                let cells = octaves.cells(octave, segment.tag);
                if segment.values.iter().take(cells).any(|&count| count != 0) {
                    schema = found;
                }
            }
        }
        schema
    }

    /// How many are no finite numbers.
    pub(crate) fn beyond(&self, series: &SeriesView<'_>) -> NonFinite {
        let count = |cell| series.values.get(cell).copied().unwrap_or(0);
        match self.layout.numbers {
            Numbers::Whole => NonFinite::default(),
            Numbers::Floats => NonFinite {
                nan: count(NAN),
                minus_infinity: count(MINUS_INFINITY),
                infinity: count(INFINITY),
            },
        }
    }

    /// Calls `each` with every count that is not 0, its native bucket and its classic bucket.
    fn each(&self, series: &SeriesView<'_>, mut each: impl FnMut(Native, usize, u64)) {
        self.each_of_base(series, &mut each);
        let Some(octaves) = &self.octaves else { return };
        for (octave, SegmentView { tag, values, .. }) in octaves.segments(series) {
            let schema = octaves.schema(tag);
            octaves.each_count(octave, tag, values, &self.layout, |bucket, negative, at, count| {
                each(Native::In { schema, bucket, negative }, at, count);
            });
        }
    }

    #[inline]
    fn each_of_base(&self, series: &SeriesView<'_>, mut each: impl FnMut(Native, usize, u64)) {
        let own = series.values.split_last().map_or(&[][..], |(_, own)| own);
        let made = self.octaves.as_ref().and_then(|octaves| {
            series.segments().find(|segment| usize::from(segment.n) == octaves.base_segment())
        });
        let made = made.map_or(&[][..], |segment| segment.values);
        // Mostly all is in other segments, which is seen sooner if all are looked at.
        if own.iter().chain(made).fold(0, |any, count| any | count) == 0 {
            return;
        }
        let base = own.iter().chain(made).enumerate();
        for (cell, &count) in base.filter(|(_, count)| **count != 0) {
            let native = match cell {
                _ if cell >= self.specials() => match self.coarse_of_base(cell) {
                    Some((negative, bucket)) => Native::In { schema: COARSEST, bucket, negative },
                    None => Native::Zero,
                },
                ZERO => Native::Zero,
                NAN => Native::Nan,
                MINUS_INFINITY => Native::Infinite { negative: true },
                INFINITY => Native::Infinite { negative: false },
                _ => continue,
            };
            each(native, self.classic_of_base(cell), count);
        }
    }
}
