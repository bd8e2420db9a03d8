//! A family's base cells, and the mapping of observations to them.

use std::sync::{Mutex, PoisonError};

use talea_region::MadeSegment;

use super::cuts::Cuts;
use super::layout::{FLOAT_ZERO, Layout, Numbers, float, order};
use super::native::{COARSEST, bucket_of, upper_bound};
use super::octaves::Octaves;

/// How a family's observations lie in its cells.
#[doc(hidden)]
#[derive(Debug)]
pub struct Grid {
    pub(super) layout: Layout,
    /// Upper bounds of the base cells after the specials, ascending; one cell more than
    /// bounds.
    pub(super) bounds: Vec<u64>,
    /// The thresholds by octave, if the family has whole numbers without native buckets, and no
    /// octave has many thresholds.
    cuts: Option<Cuts>,
    pub(super) octaves: Option<Octaves>,
}

/// The base cells that come first, of whole numbers the first alone, and that where there
/// are native buckets.
pub(crate) const ZERO: usize = 0;
pub(super) const NAN: usize = 1;
pub(super) const MINUS_INFINITY: usize = 2;
pub(super) const INFINITY: usize = 3;

impl Grid {
    /// The grid of this layout, which lives as long as the program. Families of one layout share
    /// it, and so its cache lines.
    pub(crate) fn shared(layout: &Layout) -> &'static Self {
        static GRIDS: Mutex<Vec<&'static Grid>> = Mutex::new(Vec::new());
        let mut grids = GRIDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grid) = grids.iter().find(|grid| grid.layout == *layout) {
            return grid;
        }
        let grid = &*Box::leak(Box::new(Self::new(layout.clone())));
        grids.push(grid);
        grid
    }

    pub(crate) fn new(layout: Layout) -> Self {
        let mut bounds = layout.thresholds.clone();
        if layout.native.is_some() {
            bounds.extend(coarse_bounds(layout.numbers, layout.per_unit));
            bounds.sort_unstable();
            bounds.dedup();
        }
        let octaves = layout.native.map(|native| Octaves::new(&layout, native));
        let only_these = layout.numbers == Numbers::Whole && layout.native.is_none();
        let cuts = if only_these { Cuts::new(&bounds) } else { None };
        Self { layout, bounds, cuts, octaves }
    }

    /// The cells of a series itself: base cells and the sum.
    pub(crate) fn cells(&self) -> usize {
        self.specials() + self.bounds.len() + 2 - usize::from(self.made_segment().cells)
    }

    /// The segment with the other base cells, if there are segments.
    pub(crate) fn made_segment(&self) -> MadeSegment {
        self.octaves
            .as_ref()
            .map(|octaves: &Octaves| MadeSegment {
                n: octaves.base_segment() as u16,
                cells: self.bounds.len() as u16 + 1,
            })
            .unwrap_or_default()
    }

    /// Segments that a series may have.
    pub(crate) fn segments(&self) -> usize {
        self.octaves.as_ref().map_or(0, |octaves| octaves.slots() + 1)
    }

    /// Its thresholds in the shown unit.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = f64> + Clone + use<'_> {
        self.layout.shown()
    }

    /// How many stored parts make one shown unit.
    pub(crate) fn per_unit(&self) -> f64 {
        self.layout.per_unit
    }

    #[inline]
    pub(crate) fn octaves(&self) -> Option<&Octaves> {
        self.octaves.as_ref()
    }

    /// Something kept, in the shown unit.
    pub(crate) fn shown(&self, kept: u64) -> f64 {
        match self.layout.numbers {
            Numbers::Whole => kept as f64 / self.layout.per_unit,
            Numbers::Floats => f64::from_bits(kept),
        }
    }

    #[inline]
    pub(super) fn specials(&self) -> usize {
        match (self.layout.numbers, &self.octaves) {
            (Numbers::Whole, None) => 0,
            (Numbers::Whole, Some(_)) => 1,
            (Numbers::Floats, _) => 4,
        }
    }

    #[inline]
    pub(crate) fn base_of_whole(&self, kept: u64) -> usize {
        match &self.cuts {
            Some(cuts) => cuts.below(kept),
            None => self.searched_base_of_whole(kept),
        }
    }

    #[inline(never)]
    fn searched_base_of_whole(&self, kept: u64) -> usize {
        match &self.octaves {
            Some(_) if kept == 0 => ZERO,
            _ => self.specials() + self.bounds.partition_point(|&bound| bound < kept),
        }
    }

    pub(crate) fn base_of_float(&self, x: f64) -> usize {
        if x.is_nan() {
            NAN
        } else if x == 0.0 {
            ZERO
        } else if x.is_infinite() {
            if x > 0.0 { INFINITY } else { MINUS_INFINITY }
        } else {
            let x = order(x);
            self.specials() + self.bounds.partition_point(|&bound| bound < x)
        }
    }

    pub(crate) fn base_of(&self, kept: u64) -> usize {
        match self.layout.numbers {
            Numbers::Whole => self.base_of_whole(kept),
            Numbers::Floats => self.base_of_float(f64::from_bits(kept)),
        }
    }

    pub(crate) fn classic_of_base(&self, cell: usize) -> usize {
        let thresholds = &self.layout.thresholds;
        let up_to = |bound: u64| thresholds.partition_point(|&threshold| threshold < bound);
        let Some(n) = cell.checked_sub(self.specials()) else {
            return match (cell, self.layout.numbers) {
                (ZERO, Numbers::Floats) => up_to(order(0.0)),
                (ZERO | MINUS_INFINITY, _) => 0,
                _ => thresholds.len(),
            };
        };
        self.bounds.get(n).map_or(thresholds.len(), |&bound| up_to(bound))
    }

    /// The native bucket, of the coarsest schema, of a base cell that is no special, and whether it
    /// is one of negative values; `None` if those count as zero.
    pub(super) fn coarse_of_base(&self, cell: usize) -> Option<(bool, i32)> {
        let n = cell.saturating_sub(self.specials());
        match self.layout.numbers {
            Numbers::Whole => {
                let bound = self.bounds.get(n).copied().unwrap_or(u64::MAX);
                Some((false, bucket_of(bound as f64 / self.layout.per_unit, COARSEST)))
            }
            Numbers::Floats => {
                let upper = self.bounds.get(n).map_or(f64::MAX, |&bound| float(bound));
                if upper.abs() <= FLOAT_ZERO {
                    return None;
                }
                if upper > 0.0 {
                    return Some((false, bucket_of(upper, COARSEST)));
                }
                // The largest value of a negative bucket lies just above the bound before.
                let lower = n.checked_sub(1).and_then(|n| self.bounds.get(n));
                let lower = lower.map_or(f64::MAX, |&bound| -float(bound + 1));
                Some((true, bucket_of(lower, COARSEST)))
            }
        }
    }
}

/// Bounds of the coarsest native buckets.
fn coarse_bounds(numbers: Numbers, per_unit: f64) -> Vec<u64> {
    let bounds = (-68..=64).map(|bucket| upper_bound(bucket, COARSEST));
    match numbers {
        Numbers::Whole => {
            let kept = bounds.map(|bound| bound * per_unit);
            kept.filter(|kept| (1.0..u64::MAX as f64).contains(kept))
                .map(|kept| kept as u64)
                .collect()
        }
        Numbers::Floats => {
            // Beyond these a cell holds several.
            let inner = bounds.filter(|bound| (FLOAT_ZERO..=2_f64.powi(64)).contains(bound));
            // A bucket of negative values has its largest, but not its smallest.
            inner.flat_map(|bound| [order(bound), order(-bound) - 1]).collect()
        }
    }
}
