//! Numbers that look random and are the same in every run.

use std::ops::RangeInclusive;

/// The splitmix64 generator (Steele, Lea, Flood: Fast Splittable Pseudorandom
/// Number Generators, 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finished(self.0)
    }

    /// From 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of these values; there must be one.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }

    /// Puts values into a random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for n in (1..values.len()).rev() {
            values.swap(n, (self.next() % (n as u64 + 1)) as usize);
        }
    }
}

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The last step of the generator, which mixes a state.
fn finished(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Number `n` of a generator, without those before it.
pub(crate) fn mixed(seed: u64, n: u64) -> u64 {
    finished(finished(seed).wrapping_add(n.wrapping_mul(STEP)))
}

/// Values in no order. The default length is enough that the branch predictor does
/// not learn them, and short enough that the caches hold them.
pub(crate) struct Sequence<T, const LEN: usize = 4096>(Box<[T; LEN]>);

impl<T: Copy, const LEN: usize> Sequence<T, LEN> {
    pub(crate) fn of(seed: u64, mut value: impl FnMut(&mut Random) -> T) -> Self {
        let mut random = Random::seeded(seed);
        Self(Box::new(std::array::from_fn(|_| value(&mut random))))
    }

    /// These values, converted.
    pub(crate) fn map<U>(&self, into: impl FnMut(T) -> U) -> Sequence<U, LEN> {
        Sequence(Box::new(self.0.map(into)))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = T> {
        self.0.iter().copied()
    }

    /// Goes through `n` values, from the start again after the last. Each thread begins elsewhere.
    #[inline]
    pub(crate) fn walk(&self, thread: usize, n: u64, mut with: impl FnMut(T)) {
        let from = thread as u64 * 97;
        (from..from + n).for_each(|at| with(self.0[at as usize % LEN]));
    }
}

/// A key that differs for each number: twelve hexadecimal digits in no order.
pub(crate) struct Key([u8; 12]);

impl Key {
    pub(crate) fn of(n: u64) -> Self {
        // Each step can be undone within 48 bits, so no two numbers meet.
        const BITS: u64 = (1 << 48) - 1;
        let mut x = n.wrapping_mul(0x9E37_79B9_7F4B) & BITS;
        x ^= x >> 23;
        x = x.wrapping_mul(0x94D0_49BB_1331) & BITS;
        x ^= x >> 25;
        Self(std::array::from_fn(|at| b"0123456789abcdef"[(x >> (4 * at) & 15) as usize]))
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// A text of random length that differs for each number below 2^32: eight hexadecimal digits in no
/// order, then others.
pub(crate) struct RandomText {
    bytes: [u8; 64],
    len: usize,
}

impl RandomText {
    /// The text of a number, with a length in a range within 8 to 64.
    pub(crate) fn of(n: u64, lens: RangeInclusive<u64>) -> Self {
        // Each step can be undone within 32 bits.
        let mut x = (n as u32).wrapping_mul(0x9E37_79B1);
        x ^= x >> 15;
        x = x.wrapping_mul(0x85EB_CA6B);
        let mut random = Random::seeded(n);
        let len = lens.start() + random.next() % (lens.end() - lens.start() + 1);
        let mut bytes = [0; 64];
        let mut word = u64::from(x);
        for (at, eight) in bytes.chunks_exact_mut(8).enumerate() {
            if at as u64 * 8 >= len {
                break;
            }
            for (nibble, byte) in eight.iter_mut().enumerate() {
                *byte = b"0123456789abcdef"[(word >> (4 * nibble) & 15) as usize];
            }
            word = random.next();
        }
        Self { bytes, len: len.min(64) as usize }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_keys_are_alike() {
        let keys: HashSet<_> = (0..100_000).map(|n| Key::of(n).0).collect();
        assert_eq!(keys.len(), 100_000);
    }

    #[test]
    fn no_two_texts_are_alike_and_all_lengths_come_up() {
        let texts: HashSet<_> =
            (0..100_000).map(|n| RandomText::of(n, 8..=60).as_str().to_owned()).collect();
        assert_eq!(texts.len(), 100_000);
        let lens: HashSet<_> = texts.iter().map(String::len).collect();
        assert_eq!(lens, (8..=60).collect());
    }

    #[test]
    fn every_one_is_picked_and_fractions_fill_the_range() {
        let mut random = Random::seeded(1);
        let picked: HashSet<_> = (0..1000).map(|_| random.pick(&[1, 2, 3])).collect();
        assert_eq!(picked.len(), 3);
        let fractions: Vec<f64> = (0..1000).map(|_| random.fraction()).collect();
        assert!(fractions.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(fractions.iter().any(|&x| x < 0.1) && fractions.iter().any(|&x| x > 0.9));
    }
}
