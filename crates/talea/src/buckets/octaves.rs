//! Segments: the octaves of a family's values, and the cells of each.

use super::FINEST;
use super::cuts::Cuts;
use super::grid::{FLOAT_ZERO, Layout, NativeLayout, Numbers, float};
use super::native::Level;

/// How a family's octaves are divided.
#[derive(Debug)]
pub(crate) struct Octaves {
    numbers: Numbers,
    /// By schema, from 0 to the family's.
    levels: Vec<Level>,
    /// The most native buckets.
    most: u32,
    /// The thresholds of positive and of negative values, each by how far from 0.
    thresholds: [Vec<u64>; 2],
    /// The same of whole numbers, where no octave has many.
    cuts: Option<Cuts>,
}

/// Where a value lies among the octaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Octave {
    /// Which segment may be that of its octave.
    pub(crate) slot: usize,
    /// What tells octaves of one slot apart.
    pub(crate) turn: u16,
}

/// Octaves of floats that have slots of their own, of either sign.
const FLOAT_SLOTS: usize = 64;

impl Octaves {
    pub(super) fn new(layout: &Layout, native: NativeLayout) -> Self {
        let finest = native.schema.clamp(0, FINEST as i8) as u8;
        let levels = (0..=finest).map(|schema| Level::new(schema, layout.per_unit)).collect();
        let thresholds = match layout.numbers {
            Numbers::Whole => [layout.thresholds.clone(), Vec::new()],
            Numbers::Floats => {
                let all = layout.thresholds.iter().map(|&threshold| float(threshold));
                let beyond = |x: f64| (x > FLOAT_ZERO).then(|| x.to_bits());
                let positive = all.clone().filter_map(beyond).collect();
                // A negative value equal to a threshold is below the cut: the other way
                // round, seen from 0.
                let negative = all.rev().filter_map(|x| beyond(-x).map(|bits| bits - 1)).collect();
                [positive, negative]
            }
        };
        let cuts = match layout.numbers {
            Numbers::Whole => Cuts::new(&layout.thresholds),
            Numbers::Floats => None,
        };
        Self { numbers: layout.numbers, levels, most: native.most, thresholds, cuts }
    }

    /// Segments that a series may have.
    pub(super) fn slots(&self) -> usize {
        match self.numbers {
            Numbers::Whole => 64,
            Numbers::Floats => 2 * FLOAT_SLOTS,
        }
    }

    /// The octave of a whole number that is not 0.
    #[inline]
    pub(crate) fn of_whole(kept: u64) -> Octave {
        Octave { slot: (kept | 1).ilog2() as usize, turn: 0 }
    }

    /// The octave of a finite float beyond zero.
    pub(crate) fn of_float(x: f64) -> Octave {
        let exponent = (x.to_bits() >> 52 & 0x7FF) as usize;
        let slot = exponent % FLOAT_SLOTS * 2 + usize::from(x < 0.0);
        Octave { slot, turn: (exponent / FLOAT_SLOTS) as u16 }
    }

    /// The cell of a whole number in the segment of its octave.
    pub(crate) fn cell_of_whole(&self, kept: u64, what: u16) -> Option<usize> {
        let cut = self.thresholds_of(Self::of_whole(kept)).partition_point(|&cut| cut < kept);
        Some(self.below(kept, what)? + cut)
    }

    /// The same, if no octave has many thresholds.
    #[inline]
    pub(crate) fn cell_among_few(&self, kept: u64, what: u16) -> Option<usize> {
        let cuts = self.cuts.as_ref()?;
        Some(self.below(kept, what)? + cuts.within(kept))
    }

    /// How many native bounds of its octave are below a whole number.
    #[inline]
    fn below(&self, kept: u64, what: u16) -> Option<usize> {
        let level = self.levels.get(usize::from(schema_of(what)))?;
        Some(level.below(kept << (63 - Self::of_whole(kept).slot)))
    }

    /// The cell of a float in a segment, if that is the one of its octave.
    pub(crate) fn cell_of_float(&self, x: f64, what: u16) -> Option<usize> {
        let level = self.levels.get(usize::from(schema_of(what)))?;
        let octave = Self::of_float(x);
        let bits = x.abs().to_bits();
        let below = level.below(bits << 11 | 1 << 63);
        let cut = self.thresholds_of(octave).partition_point(|&cut| cut < bits);
        (turn_of(what) == octave.turn).then_some(below + cut)
    }

    /// With what an octave's segment is made, for a series that has so many segments and
    /// whose own number is `level`: how many cells and what is said of them; or the next
    /// number of the series, where there would be too many buckets.
    pub(crate) fn segment(
        &self,
        octave: Octave,
        made: usize,
        level: u64,
    ) -> Result<(usize, u16), u64> {
        let finest = self.levels.len() - 1;
        let schema = finest.saturating_sub(level as usize);
        if schema > 0 && (made + 1) << schema > self.most as usize {
            return Err((finest - schema) as u64 + 1);
        }
        let cells = (1 << schema) + 1 + self.thresholds_of(octave).len();
        Ok((cells, schema as u16 | octave.turn << 4))
    }

    /// Thresholds within an octave.
    fn thresholds_of(&self, octave: Octave) -> &[u64] {
        let Octave { slot, turn } = octave;
        let (sign, first) = match self.numbers {
            Numbers::Whole => (0, 1 << slot.min(63)),
            Numbers::Floats => (slot % 2, exponent_of(slot, turn) << 52),
        };
        let end = match self.numbers {
            Numbers::Whole => first << 1,
            Numbers::Floats => first + (1 << 52),
        };
        let all = &self.thresholds[sign];
        let from = all.partition_point(|&cut| cut < first);
        // The last octave of whole numbers has no end.
        let to = if end == 0 { all.len() } else { all.partition_point(|&cut| cut < end) };
        &all[from..to]
    }

    /// Calls `each` for the cells of a segment, in order, with the schema and the native
    /// bucket, whether that is one of negative values, and the classic bucket.
    pub(super) fn each_cell(
        &self,
        slot: usize,
        what: u16,
        layout: &Layout,
        mut each: impl FnMut(u8, i32, bool, usize),
    ) {
        let schema = schema_of(what);
        let Some(level) = self.levels.get(usize::from(schema)) else { return };
        let octave = Octave { slot, turn: turn_of(what) };
        let cuts = self.thresholds_of(octave);
        let (number, is_negative) = match self.numbers {
            Numbers::Whole => (slot as i64, false),
            Numbers::Floats => (exponent_of(slot, octave.turn) as i64 - 1023, slot % 2 == 1),
        };
        let unshifted = |bound: u64| match self.numbers {
            Numbers::Whole => bound >> (63 - slot.min(63)),
            Numbers::Floats => {
                (bound >> 11) & ((1 << 52) - 1) | exponent_of(slot, octave.turn) << 52
            }
        };
        let all = &self.thresholds[usize::from(is_negative)];
        let before = cuts.first().map_or_else(
            || all.partition_point(|&cut| cut < unshifted(1 << 63)),
            |first| all.partition_point(|cut| cut < first),
        );
        // Positive values go up through the thresholds, negative ones down.
        let negative_thresholds = layout.thresholds.len() - self.thresholds[0].len();
        let classic = |passed: usize| match is_negative {
            false if self.numbers == Numbers::Whole => passed,
            false => negative_thresholds + passed,
            true => self.thresholds[1].len() - passed,
        };
        let (mut below, mut cut) = (0, 0);
        loop {
            each(schema, level.bucket(number, below), is_negative, classic(before + cut));
            match (level.bounds().get(below).map(|&bound| unshifted(bound)), cuts.get(cut)) {
                (None, None) => return,
                (Some(bound), Some(next)) if *next < bound => cut += 1,
                (None, Some(_)) => cut += 1,
                _ => below += 1,
            }
        }
    }
}

/// The exponent of floats of an octave, as their bits have it.
fn exponent_of(slot: usize, turn: u16) -> u64 {
    (usize::from(turn) % 32 * FLOAT_SLOTS + slot / 2) as u64
}

fn schema_of(what: u16) -> u8 {
    (what & 0xF) as u8
}

fn turn_of(what: u16) -> u16 {
    what >> 4
}
