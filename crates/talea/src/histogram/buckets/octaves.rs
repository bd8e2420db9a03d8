//! Segments: the octaves of a family's values, and the cells of each.

use super::by_octave::ByOctave;
use super::cuts::Cuts;
use super::layout::{FLOAT_ZERO, Layout, NativeLayout, Numbers, float};
use super::native::{FINEST, Level, Starts};

/// How a family's octaves are divided.
#[derive(Debug)]
pub(crate) struct Octaves {
    numbers: Numbers,
    usual: Usual,
    /// By schema, from 0 to the family's.
    levels: Vec<Level>,
    /// The most native buckets.
    most: u32,
    /// Up to where, in the shown unit, values may count as zero.
    widest_zero: f64,
    per_unit: f64,
    /// The thresholds of positive and of negative values, each by how far from 0.
    thresholds: [ByOctave; 2],
}

/// The fields that nearly all observations read, on one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Usual {
    /// The tag of nearly all segments of whole numbers: they were made for the family's own
    /// schema. If an octave has many thresholds, a tag that no segment has.
    tag: u16,
    /// The shift of that schema.
    shift: u32,
    starts: Starts,
    /// The thresholds of whole numbers; none if an octave has many.
    cuts: Cuts,
}

/// An octave, in a slot that its segment may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Octave {
    /// Its place among all octaves.
    pub(crate) slot: usize,
    /// The distinction between octaves of one slot: how often the numbering has gone round all
    /// slots, and by which step the slot was reached.
    turn: u16,
    step: u16,
}

/// Octaves of floats that have a first slot of their own, of either sign. There are more
/// octaves, so that a series may have several with one first slot: those that come later
/// go to others.
const FLOAT_SLOTS: usize = 64;
/// The exponent, as bits have it, of the first slot: 2⁻¹². A region has little memory for all slots
/// but the first 16, so these are of what is mostly observed: 0.25 ms to 16 s.
const FIRST_EXPONENT: usize = 1023 - 12;
/// How many slots an octave of floats may be in.
const STEPS: u16 = 8;
/// Cells of a series, by its own schema, for each native bucket that is shown at most: of
/// an octave only some are used.
const CELLS: usize = 4;

impl Octaves {
    pub(super) fn new(layout: &Layout, native: NativeLayout) -> Self {
        let finest = native.schema.clamp(0, FINEST as i8) as u8;
        let levels: Vec<_> =
            (0..=finest).map(|schema| Level::new(schema, layout.per_unit)).collect();
        let thresholds = match layout.numbers {
            Numbers::Whole => [layout.thresholds.clone(), Vec::new()]
                .map(|all| ByOctave::new(all, |kept: u64| Self::of_whole(kept).slot)),
            Numbers::Floats => {
                let all = layout.thresholds.iter().map(|&threshold| float(threshold));
                let beyond = |x: f64| (x > FLOAT_ZERO).then(|| x.to_bits());
                let positive = all.clone().filter_map(beyond).collect();
                // A negative value equal to a threshold is below the cut: the other way
                // round, seen from 0.
                let negative = all.rev().filter_map(|x| beyond(-x).map(|bits| bits - 1)).collect();
                [positive, negative]
                    .map(|all| ByOctave::new(all, |bits: u64| (bits >> 52) as usize))
            }
        };
        let cuts = match layout.numbers {
            Numbers::Whole => Cuts::new(&layout.thresholds),
            Numbers::Floats => None,
        };
        let usual = Usual {
            tag: if cuts.is_some() { u16::from(finest) } else { u16::MAX },
            shift: Starts::shift(u32::from(finest)),
            starts: Starts::new(&levels),
            cuts: cuts.unwrap_or_default(),
        };
        Self {
            numbers: layout.numbers,
            usual,
            levels,
            most: native.most,
            widest_zero: native.widest_zero,
            per_unit: layout.per_unit,
            thresholds,
        }
    }

    /// Segments that a series may have.
    pub(super) fn slots(&self) -> usize {
        match self.numbers {
            Numbers::Whole => 64,
            Numbers::Floats => 2 * FLOAT_SLOTS,
        }
    }

    /// The number of the segment of base cells. A region finds it as fast as those before it, which are
    /// of nearly all octaves that are observed; the segments of further octaves are behind it.
    #[inline]
    pub(crate) fn base_segment(&self) -> usize {
        match self.numbers {
            Numbers::Whole => 36,
            Numbers::Floats => 16,
        }
    }

    /// The number of an octave's segment.
    #[inline]
    pub(crate) fn segment_of(&self, octave: Octave) -> usize {
        octave.slot + usize::from(octave.slot >= self.base_segment())
    }

    /// The octave of a segment that was made with this tag, if it is one of an octave.
    pub(super) fn octave_of(&self, n: usize, tag: u16) -> Option<Octave> {
        let base = self.base_segment();
        (n != base).then(|| Octave::of(n - usize::from(n > base), tag))
    }

    /// The octave of a whole number that is not 0.
    #[inline]
    pub(crate) fn of_whole(kept: u64) -> Octave {
        let slot = kept.checked_ilog2().unwrap_or(0) as usize;
        Octave { slot, turn: 0, step: 0 }
    }

    /// The octave of a finite float beyond zero, in each slot that it may be in. Other floats have
    /// no slot.
    pub(crate) fn of_float(x: f64) -> impl Iterator<Item = Octave> {
        let has_octave = x.is_finite() && x.abs() > FLOAT_ZERO;
        let exponent = (x.to_bits() >> 52 & 0x7FF) as usize;
        let turn = (exponent / FLOAT_SLOTS) as u16;
        (0..if has_octave { STEPS } else { 0 }).map(move |step| {
            let beyond_first =
                exponent + distance(step) + FLOAT_SLOTS - FIRST_EXPONENT % FLOAT_SLOTS;
            let slot = beyond_first % FLOAT_SLOTS + FLOAT_SLOTS * usize::from(x < 0.0);
            Octave { slot, turn, step }
        })
    }

    /// The cell of a whole number in the segment of its octave.
    pub(crate) fn cell_of_whole(&self, kept: u64, tag: u16) -> Option<usize> {
        let octave = Self::of_whole(kept);
        let Usual { tag: usual, starts, cuts, .. } = &self.usual;
        let cut = match *usual {
            u16::MAX => self.thresholds_of(octave).partition_point(|&cut| cut < kept),
            _ => cuts.within(kept),
        };
        let shift = Starts::shift(schema_of(tag));
        Some(starts.below(shift, kept << (63 - octave.slot))? + cut)
    }

    /// The `tag` of the segments that [`usual_cell`](Self::usual_cell) is for.
    #[inline]
    pub(crate) fn usual(&self) -> u16 {
        self.usual.tag
    }

    /// The cell in a segment with the usual `tag`, so that it does not depend on a load from the
    /// segment.
    // Always inlined, with its callees: calls would double the time.
    #[inline(always)]
    pub(crate) fn usual_cell(&self, kept: u64) -> Option<usize> {
        let Usual { shift, starts, cuts, .. } = &self.usual;
        let shifted = kept << (63 - Self::of_whole(kept).slot);
        Some(starts.below(*shift, shifted)? + cuts.within(kept))
    }

    /// The cell of a float in a segment, if the segment belongs to its octave.
    pub(crate) fn cell_of_float(&self, x: f64, octave: Octave, tag: u16) -> Option<usize> {
        let bits = x.abs().to_bits();
        let shift = Starts::shift(schema_of(tag));
        let below = self.usual.starts.below(shift, bits << 11 | 1 << 63)?;
        let cut = self.thresholds_of(octave).partition_point(|&cut| cut < bits);
        (Octave::of(octave.slot, tag) == octave).then_some(below + cut)
    }

    /// With what an octave's segment is made, for a series that has these segments, each
    /// with what is said of it, and whose own number is `level`: how many cells and what is
    /// said of them; or the next number of the series, if it would have too many cells.
    pub(crate) fn segment(
        &self,
        octave: Octave,
        made: impl Iterator<Item = (usize, u16)>,
        level: u64,
    ) -> Result<(usize, u16), u64> {
        let finest = self.levels.len() - 1;
        let schema = finest.saturating_sub(level as usize);
        let others = made.filter_map(|(n, tag)| self.octave_of(n, tag));
        let others = others.filter(|&other| !self.may_be_zero(other));
        if schema > 0
            && !self.may_be_zero(octave)
            && (others.count() + 1) << schema > CELLS.saturating_mul(self.most as usize)
        {
            return Err((finest - schema) as u64 + 1);
        }
        let cells = (1 << schema) + 1 + self.thresholds_of(octave).len();
        Ok((cells, schema as u16 | octave.turn << 4 | octave.step << 9))
    }

    /// Whether all of an octave counts as zero if there are too many buckets.
    fn may_be_zero(&self, octave: Octave) -> bool {
        let end = match self.numbers {
            Numbers::Whole => 2_f64.powi(octave.slot as i32 + 1) / self.per_unit,
            Numbers::Floats => 2_f64.powi(octave.exponent() as i32 - 1022),
        };
        end <= self.widest_zero
    }

    fn thresholds_of(&self, octave: Octave) -> &[u64] {
        match self.numbers {
            Numbers::Whole => self.thresholds[0].of(octave.slot),
            Numbers::Floats => {
                let sign = usize::from(octave.is_negative());
                self.thresholds[sign].of(octave.exponent() as usize)
            }
        }
    }

    /// The schema that a segment was made for.
    pub(super) fn schema(&self, tag: u16) -> i8 {
        schema_of(tag) as i8
    }

    pub(super) fn cells(&self, octave: Octave, tag: u16) -> usize {
        let Some(level) = self.levels.get(schema_of(tag) as usize) else { return 0 };
        level.bounds().len() + 1 + self.thresholds_of(octave).len()
    }

    /// Calls `each` for the cells of a segment in which anything was counted, in order, with the
    /// native bucket, whether that is one of negative values, the classic bucket and the count.
    #[inline]
    pub(super) fn each_count(
        &self,
        octave: Octave,
        tag: u16,
        counts: &[u64],
        layout: &Layout,
        mut each: impl FnMut(i32, bool, usize, u64),
    ) {
        let Some(level) = self.levels.get(schema_of(tag) as usize) else { return };
        let slot = octave.slot;
        let cuts = self.thresholds_of(octave);
        let (number, is_negative) = match self.numbers {
            Numbers::Whole => (slot as i64, false),
            Numbers::Floats => (octave.exponent() as i64 - 1023, octave.is_negative()),
        };
        let unshifted = |bound: u64| match self.numbers {
            Numbers::Whole => bound >> (63 - slot.min(63)),
            Numbers::Floats => (bound >> 11) & ((1 << 52) - 1) | octave.exponent() << 52,
        };
        let all = &self.thresholds[usize::from(is_negative)].all;
        let before = cuts.first().map_or_else(
            || all.partition_point(|&cut| cut < unshifted(1 << 63)),
            |first| all.partition_point(|cut| cut < first),
        );
        // Positive values go up through the thresholds, negative ones down.
        let negative_thresholds = layout.thresholds.len() - self.thresholds[0].all.len();
        let classic = |passed: usize| match is_negative {
            false if self.numbers == Numbers::Whole => passed,
            false => negative_thresholds + passed,
            true => self.thresholds[1].all.len() - passed,
        };
        let mut visit = |below, cut, count| {
            if count != 0 {
                each(level.bucket(number, below), is_negative, classic(before + cut), count);
            }
        };
        let bounds = level.bounds();
        if cuts.is_empty() {
            // Each cell is a native bucket.
            let cells = counts.iter().take(bounds.len() + 1).enumerate();
            return cells.for_each(|(below, &count)| visit(below, 0, count));
        }
        let (mut below, mut cut) = (0, 0);
        for &count in counts {
            visit(below, cut, count);
            match (bounds.get(below).map(|&bound| unshifted(bound)), cuts.get(cut)) {
                (None, None) => return,
                (Some(bound), Some(next)) if *next < bound => cut += 1,
                (None, Some(_)) => cut += 1,
                _ => below += 1,
            }
        }
    }
}

impl Octave {
    /// The octave that a segment was made for.
    fn of(slot: usize, tag: u16) -> Self {
        Self { slot, turn: tag >> 4 & 0x1F, step: tag >> 9 }
    }

    /// The exponent of its floats, as their bits have it.
    fn exponent(self) -> u64 {
        let place = self.slot + FIRST_EXPONENT + FLOAT_SLOTS - distance(self.step);
        (usize::from(self.turn) * FLOAT_SLOTS + place % FLOAT_SLOTS) as u64
    }

    fn is_negative(self) -> bool {
        self.slot >= FLOAT_SLOTS
    }
}

/// How far behind its first slot an octave's next ones are, of the steps 0 to 7: 0, 32, 16,
/// 48, 8 and so on, since the octaves of most values follow each other.
fn distance(step: u16) -> usize {
    usize::from((step as u8).reverse_bits() >> 2)
}

fn schema_of(tag: u16) -> u32 {
    u32::from(tag & 0xF)
}
