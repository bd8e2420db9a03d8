//! Tagged numbers: those that are recorded, and those that are read.

use crate::status::Status;

/// The type of a talea_number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NumberKind {
    /// A double.
    Double = 0,
    /// A uint64_t.
    Unsigned = 1,
    /// An int64_t.
    Signed = 2,
}

/// A number with its type. talea_double, talea_unsigned and talea_signed make one; talea_as_double
/// reads any, rounding whole numbers beyond 2^53.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Number {
    /// A talea_number_kind; 64 bits, so that there is no padding.
    pub kind: u64,
    /// The bits of the number: an int64_t in two's complement, a double as IEEE 754 has it.
    pub bits: u64,
}

const DOUBLE: u64 = NumberKind::Double as u64;
const UNSIGNED: u64 = NumberKind::Unsigned as u64;
const SIGNED: u64 = NumberKind::Signed as u64;

impl Number {
    /// A number of a double.
    pub fn double(x: f64) -> Self {
        Self { kind: DOUBLE, bits: x.to_bits() }
    }

    /// A number of a whole number that is not negative.
    pub fn unsigned(n: u64) -> Self {
        Self { kind: UNSIGNED, bits: n }
    }

    /// A number of a whole number.
    pub fn signed(n: i64) -> Self {
        Self { kind: SIGNED, bits: n as u64 }
    }

    /// The number, rounded if it is whole and beyond 2^53.
    #[inline(always)]
    pub(crate) fn to_double(self) -> Result<f64, Status> {
        if self.kind == DOUBLE { Ok(f64::from_bits(self.bits)) } else { self.whole_to_double() }
    }

    #[cold]
    fn whole_to_double(self) -> Result<f64, Status> {
        match self.kind {
            UNSIGNED => Ok(self.bits as f64),
            SIGNED => Ok(self.bits as i64 as f64),
            _ => Err(Status::WrongOption),
        }
    }

    /// The number, if it is whole and not negative. A double must be below 2^63.
    #[inline(always)]
    pub(crate) fn to_unsigned(self) -> Result<u64, Status> {
        if self.kind == UNSIGNED {
            return Ok(self.bits);
        }
        u64::try_from(self.to_signed()?).map_err(|_| Status::WrongValue)
    }

    /// The number, if it is whole and from -2^63 to 2^63 - 1.
    #[cold]
    pub(crate) fn to_signed(self) -> Result<i64, Status> {
        const END: f64 = 9_223_372_036_854_775_808.0;
        match self.kind {
            SIGNED => Ok(self.bits as i64),
            UNSIGNED => i64::try_from(self.bits).map_err(|_| Status::WrongValue),
            DOUBLE => {
                let x = f64::from_bits(self.bits);
                let is_whole = (-END..END).contains(&x) && (x as i64) as f64 == x;
                if is_whole { Ok(x as i64) } else { Err(Status::WrongValue) }
            }
            _ => Err(Status::WrongOption),
        }
    }
}
