//! Numbers that look random and are the same in every run.

/// The splitmix64 generator (Steele, Lea, Flood: Fast Splittable Pseudorandom
/// Number Generators, 2014).
pub(crate) struct Random(u64);

impl Random {
    fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// From 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of these values; there must be one.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
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
    fn every_one_is_picked_and_fractions_fill_the_range() {
        let mut random = Random::seeded(1);
        let picked: HashSet<_> = (0..1000).map(|_| random.pick(&[1, 2, 3])).collect();
        assert_eq!(picked.len(), 3);
        let fractions: Vec<f64> = (0..1000).map(|_| random.fraction()).collect();
        assert!(fractions.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(fractions.iter().any(|&x| x < 0.1) && fractions.iter().any(|&x| x > 0.9));
    }
}
