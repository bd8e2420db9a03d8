//! What a reader makes of the cells: classic buckets and native ones, of the same counts.

use talea_region::SeriesView;

use super::grid::{FLOAT_ZERO, INFINITY, MINUS_INFINITY, NAN, Numbers, ZERO};
use super::{COARSEST, Grid, bucket_of, coarser};
use crate::histogram_snapshot::Beyond;
use crate::native_buckets::NativeBuckets;

/// Where something was counted.
#[derive(Clone, Copy, Debug)]
enum Native {
    Zero,
    Nan,
    Infinite { negative: bool },
    In { schema: i8, bucket: i32, negative: bool },
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

    /// The native buckets, if there are any.
    pub(crate) fn native(&self, series: &SeriesView<'_>) -> Option<NativeBuckets> {
        let layout = self.layout.native?;
        let mut found = Vec::new();
        let mut schema = layout.schema;
        self.each(series, |place, _, count| {
            if let Native::In { schema: found, .. } = place {
                schema = schema.min(found);
            }
            found.push((place, count));
        });
        let mut native = NativeBuckets {
            schema,
            // The format's default, which holds no whole number but 0. Some scrapers tell by it
            // that there are native buckets.
            zero_threshold: FLOAT_ZERO,
            ..NativeBuckets::default()
        };
        for (place, count) in found {
            let (bucket, negative) = match place {
                Native::Zero => {
                    native.zero = native.zero.wrapping_add(count);
                    continue;
                }
                Native::Nan => {
                    native.nan = native.nan.wrapping_add(count);
                    continue;
                }
                // Beyond the largest float.
                Native::Infinite { negative } => (bucket_of(f64::MAX, schema) + 1, negative),
                Native::In { schema: fine, bucket, negative } => {
                    (coarser(i64::from(bucket), fine - schema), negative)
                }
            };
            let side = if negative { &mut native.negative } else { &mut native.positive };
            side.push((bucket, count));
        }
        native.positive = joined(std::mem::take(&mut native.positive));
        native.negative = joined(std::mem::take(&mut native.negative));
        native.fit(layout.most as usize, layout.widest_zero);
        Some(native)
    }

    /// How many are no finite numbers.
    pub(crate) fn beyond(&self, series: &SeriesView<'_>) -> Beyond {
        let count = |cell| series.values.get(cell).copied().unwrap_or(0);
        match self.layout.numbers {
            Numbers::Whole => Beyond::default(),
            Numbers::Floats => Beyond {
                nan: count(NAN),
                minus_infinity: count(MINUS_INFINITY),
                infinity: count(INFINITY),
            },
        }
    }

    /// Calls `each` with every count that is not 0, where it is and its classic bucket.
    fn each(&self, series: &SeriesView<'_>, mut each: impl FnMut(Native, usize, u64)) {
        let base = series.values.split_last().map_or(&[][..], |(_, base)| base);
        for (cell, &count) in base.iter().enumerate().filter(|(_, count)| **count != 0) {
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
        let Some(octaves) = &self.octaves else { return };
        for segment in series.segments() {
            let mut counts = segment.values.iter();
            octaves.each_cell(
                usize::from(segment.n),
                segment.what,
                &self.layout,
                |schema, bucket, negative, classic| {
                    let count = counts.next().copied().unwrap_or(0);
                    if count != 0 {
                        each(Native::In { schema: schema as i8, bucket, negative }, classic, count);
                    }
                },
            );
        }
    }
}

/// Sorted, each bucket once.
pub(crate) fn joined(mut buckets: Vec<(i32, u64)>) -> Vec<(i32, u64)> {
    buckets.sort_unstable_by_key(|&(bucket, _)| bucket);
    buckets.dedup_by(|next, one| {
        let same = next.0 == one.0;
        if same {
            one.1 = one.1.wrapping_add(next.1);
        }
        same
    });
    buckets
}
