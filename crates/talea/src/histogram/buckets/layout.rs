//! A definition's buckets: classic thresholds and native ones, of whole numbers or of floats.

use talea_region::Number;

use super::native::{COARSEST, FINEST};

/// The type of a histogram's observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Integers: parts of the shown unit.
    Whole,
    /// Any floats.
    Floats,
}

impl Numbers {
    /// The type for a family whose cells hold such numbers.
    pub(crate) fn of(number: Number) -> Self {
        if number == Number::FloatLast { Self::Floats } else { Self::Whole }
    }
}

/// The buckets of a family, as its definition has them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) numbers: Numbers,
    pub(crate) per_unit: f64,
    /// As kept; of floats, [ordered](order). Ascending.
    pub(crate) thresholds: Vec<u64>,
    pub(crate) native: Option<NativeLayout>,
}

/// The layout of a metric without buckets.
impl Default for Layout {
    fn default() -> Self {
        Self { numbers: Numbers::Whole, per_unit: 1.0, thresholds: Vec::new(), native: None }
    }
}

impl Layout {
    /// Whether it can be one. A reader may find anything.
    pub(crate) fn is_sound(&self) -> bool {
        let native = self.native.is_none_or(|native| {
            (COARSEST..=FINEST as i8).contains(&native.schema)
                && native.most > 0
                && native.widest_zero >= 0.0
        });
        native
            && self.per_unit.is_normal()
            && self.per_unit > 0.0
            && self.thresholds.is_sorted_by(|one, next| one < next)
    }

    /// The thresholds in the shown unit.
    pub(crate) fn shown(&self) -> impl Iterator<Item = f64> + Clone + use<'_> {
        let Self { numbers, per_unit, .. } = *self;
        self.thresholds.iter().map(move |&threshold| match numbers {
            // Dividing rounds once, so 5,000,000 ns show as 0.005.
            Numbers::Whole => threshold as f64 / per_unit,
            Numbers::Floats => float(threshold),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NativeLayout {
    /// The finest schema, −4 to 8.
    pub(crate) schema: i8,
    /// The most buckets that are shown.
    pub(crate) most: u32,
    /// The largest distance from zero, in the shown unit, up to which values may count as zero if
    /// there are more buckets.
    pub(crate) widest_zero: f64,
}

/// The default zero threshold of the formats: a value whose absolute value is at most this counts
/// as zero.
pub(super) const FLOAT_ZERO: f64 = f64::from_bits((1023 - 128) << 52);

/// A number that is larger for a larger float.
pub(crate) fn order(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The float of an ordered number.
pub(crate) fn float(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & (u64::MAX >> 1) } else { !ordered })
}
