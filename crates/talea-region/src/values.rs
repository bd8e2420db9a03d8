//! Values: how cells store them, what they count in, and how several of them combine.

/// How the cells of a family are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Storage {
    /// One word, added to atomically. For values that are set, and for many series that are each
    /// updated seldom.
    Single = 0,
    /// A copy in each CPU's plane; the value is their sum. For series that are updated often.
    Striped = 1,
    /// A copy in each process's own block; the value combines the copies of living processes. The
    /// copy of a process that died no longer counts.
    Owned = 2,
    /// Four copies in cache lines of their own, each added to atomically; the value is their sum.
    /// For series that are updated often when the planes are full.
    Stripes = 3,
}

impl Storage {
    #[inline]
    pub(crate) fn from_u8(n: u8) -> Option<Self> {
        match n {
            0 => Some(Self::Single),
            1 => Some(Self::Striped),
            2 => Some(Self::Owned),
            3 => Some(Self::Stripes),
            _ => None,
        }
    }
}

/// The number type of a family's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Number {
    /// Unsigned integers; sums wrap, so that adding `n.wrapping_neg()` takes away.
    #[default]
    Integer = 0,
    /// 64-bit floats.
    Float = 1,
    /// Unsigned integers, and in the last cell of a series a float that may also go down.
    FloatLast = 2,
}

impl Number {
    pub(crate) fn from_u64(n: u64) -> Option<Self> {
        [Self::Integer, Self::Float, Self::FloatLast].into_iter().find(|number| *number as u64 == n)
    }

    /// The number type of cell `n` of a series with `cells` cells.
    #[inline]
    pub(crate) fn of_cell(self, n: u64, cells: u64) -> Self {
        match self {
            Self::FloatLast if n + 1 < cells => Self::Integer,
            number => number,
        }
    }

    /// The value that readers show of a cell whose copies sum up to `sum`, and that held `base`
    /// when its series was last wiped.
    pub(crate) fn since(self, sum: u64, base: u64) -> u64 {
        let float = || f64::from_bits(sum) - f64::from_bits(base);
        match self {
            // A reader may see less than the base while another thread wipes.
            Self::Integer if sum != base && !self.is_later(sum, base) => 0,
            Self::Integer => sum.wrapping_sub(base),
            Self::Float => float().max(0.0).to_bits(),
            Self::FloatLast => float().to_bits(),
        }
    }

    pub(crate) fn add(self, one: u64, other: u64) -> u64 {
        match self {
            Self::Integer => one.wrapping_add(other),
            Self::Float | Self::FloatLast => {
                (f64::from_bits(one) + f64::from_bits(other)).to_bits()
            }
        }
    }

    /// Whether a sum is later than one that was read before, as far as that can be known.
    pub(crate) fn is_later(self, sum: u64, before: u64) -> bool {
        match self {
            // Sums wrap.
            Self::Integer => sum > before || sum.wrapping_sub(before) as i64 > 0,
            Self::Float => f64::from_bits(sum) > f64::from_bits(before),
            Self::FloatLast => sum != before,
        }
    }
}

/// How the value of a series follows from the values that threads and processes wrote.
///
/// If each process has its own value, it no longer counts when the process ends. If the region has
/// no room for a value for each process, the latest write counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Combine {
    /// The sum of all additions; of owned values, the sum over living processes.
    #[default]
    Sum = 0,
    /// The value that any process set last. Not for cells that are striped.
    Latest = 1,
    /// The largest that a living process set; none where none did. Integers are signed
    /// here, and for the next two, which are for owned cells as well.
    Max = 2,
    /// The smallest.
    Min = 3,
    /// Each living process's own: a series for each.
    Each = 4,
}

impl Combine {
    pub(crate) fn from_u8(n: u8) -> Option<Self> {
        [Self::Sum, Self::Latest, Self::Max, Self::Min, Self::Each]
            .into_iter()
            .find(|combine| *combine as u8 == n)
    }

    /// The larger or the smaller of two values.
    pub(crate) fn choose(self, number: Number, one: u64, other: u64) -> u64 {
        let greater = match number {
            Number::Integer => one as i64 > other as i64,
            Number::Float | Number::FloatLast => f64::from_bits(one) > f64::from_bits(other),
        };
        if greater == (self == Self::Max) { one } else { other }
    }

    /// Whether a process that wrote nothing has no value, rather than 0.
    pub(crate) fn may_be_absent(self) -> bool {
        matches!(self, Self::Max | Self::Min | Self::Each)
    }
}

/// The bit that distinguishes a value from no value.
const PRESENT: u64 = 1 << 63;

/// The word that stands for a value in an owned cell that may have none. An owned cell that its
/// process never wrote to holds 0, so values are stored with their first bit flipped. The value
/// that would become 0, the smallest integer, is stored as its neighbour.
pub(crate) fn pack_present(value: u64) -> u64 {
    (value ^ PRESENT).max(1)
}

/// The value of an owned cell that may have none.
pub(crate) fn unpack_present(word: u64) -> Option<u64> {
    (word != 0).then_some(word ^ PRESENT)
}
