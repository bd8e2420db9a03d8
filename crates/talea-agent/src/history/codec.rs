//! Numbers and texts as few bytes.

/// A number, seven bits a byte, the lowest first; the highest bit of a byte says that more follow.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A number that may be below zero: 0, -1, 1, -2 become 0, 1, 2, 3.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, zigzag(number));
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Integers up to here are exact in a float, and so are their differences.
const EXACT: f64 = (1u64 << 52) as f64;

fn as_exact(number: f64) -> Option<i64> {
    let whole = number as i64;
    // The sign of -0 would be lost.
    let is_whole = number.abs() < EXACT && (whole as f64).to_bits() == number.to_bits();
    is_whole.then_some(whole)
}

/// A value as its change. Of integers that is the difference; the lowest bit of its number is 0. Of others it
/// is the bytes that differ, as Gorilla has it: a byte says which, and its lowest bit is 1. Source: "Gorilla:
/// A Fast, Scalable, In-Memory Time Series Database", 2015, section 4.1.2.
pub(super) fn put_change(out: &mut Vec<u8>, before: f64, now: f64) {
    if let (Some(before), Some(now)) = (as_exact(before), as_exact(now)) {
        return put_number(out, zigzag(now - before) << 1);
    }
    let differing = before.to_bits() ^ now.to_bits();
    let leading = (differing.leading_zeros() / 8).min(7) as usize;
    let trailing = ((differing.trailing_zeros() / 8) as usize).min(7 - leading);
    out.push((1 | leading << 1 | trailing << 4) as u8);
    out.extend_from_slice(&differing.to_be_bytes()[leading..8 - trailing]);
}

/// Reads what was put. Bytes that are not such are `None`.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.0.get(..len)?;
        self.0 = &self.0[len..];
        Some(taken)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The number of things that follow, each of which takes a byte at least.
    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= self.0.len())
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let len = self.count()?;
        std::str::from_utf8(self.take(len)?).ok()
    }

    pub(super) fn change(&mut self, before: f64) -> Option<f64> {
        if self.0.first()? & 1 == 0 {
            let change = unzigzag(self.number()? >> 1);
            return Some(as_exact(before)?.checked_add(change)? as f64);
        }
        let which = usize::from(self.byte()?);
        let (leading, trailing) = (which >> 1 & 7, which >> 4 & 7);
        let bytes = self.take(8usize.checked_sub(leading + trailing)?)?;
        let mut differing = [0; 8];
        differing[leading..8 - trailing].copy_from_slice(bytes);
        Some(f64::from_bits(before.to_bits() ^ u64::from_be_bytes(differing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_read_back_to_the_bit() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.1,
            1e300,
            -5e-324,
            f64::NAN,
            f64::INFINITY,
            f64::MAX,
            EXACT,
            -EXACT,
            EXACT - 1.0,
            1.0 - EXACT,
            EXACT * 4.0,
            1e15 + 0.5,
            f64::from_bits(1),
            f64::from_bits(!0),
        ];
        for before in numbers {
            for now in numbers {
                let mut out = Vec::new();
                put_change(&mut out, before, now);
                let mut bytes = Bytes(&out);
                let found = bytes.change(before).unwrap();
                assert_eq!(found.to_bits(), now.to_bits(), "{before} to {now}");
                assert!(bytes.0.is_empty() && out.len() <= 9, "{before} to {now}: {out:?}");
                // A record that is cut off is refused, never read otherwise.
                (0..out.len()).for_each(|len| assert_eq!(Bytes(&out[..len]).change(before), None));
            }
        }
    }

    #[test]
    fn a_counter_that_grows_by_a_few_takes_a_byte() {
        let mut out = Vec::new();
        put_change(&mut out, 1e12, 1e12 + 30.0);
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn numbers_of_every_length_are_read_back() {
        for number in (0..64).flat_map(|bits| [1u64 << bits, (1 << bits) - 1, u64::MAX >> bits]) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            put_signed(&mut out, number as i64);
            let mut bytes = Bytes(&out);
            assert_eq!((bytes.number(), bytes.signed()), (Some(number), Some(number as i64)));
        }
        assert_eq!(Bytes(&[0x80; 11]).number(), None);
        assert_eq!(Bytes(&[5, b'a']).text(), None);
    }
}
