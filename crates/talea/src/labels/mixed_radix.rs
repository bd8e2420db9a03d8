//! The number of a label combination: each value's number is a digit of it, in the
//! radix of how many values its label has, the first label's digit the highest.
//!
//! The derive calls these one label after the other, with constants where the
//! labels are enums, and then all of it is some multiplications and additions. A
//! label whose values are not fixed has no radix and no digit; the number means
//! nothing where there is one.

/// The number of combinations, if each label has a fixed number of values; `usize::MAX` if there
/// are more than fit.
#[inline]
pub fn product(radices: &[Option<usize>]) -> Option<usize> {
    radices.iter().try_fold(1usize, |all, radix| Some(all.saturating_mul((*radix)?)))
}

/// The number with one more digit at its end. It wraps on overflow: families with that many
/// combinations are not looked up by it.
#[inline]
pub fn push(number: usize, radix: Option<usize>, digit: usize) -> usize {
    match radix {
        Some(radix) => number.wrapping_mul(radix).wrapping_add(digit),
        None => number,
    }
}

/// Takes the last digit off: the inverse of [`push`].
#[inline]
pub fn pop(number: &mut usize, radix: Option<usize>) -> usize {
    match radix {
        Some(radix @ 1..) => {
            let digit = *number % radix;
            *number /= radix;
            digit
        }
        _ => 0,
    }
}
