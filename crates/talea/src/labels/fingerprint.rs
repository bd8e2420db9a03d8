//! Keys of the lookup cache for label values that are too long to be copied into one.
//!
//! A universal hash (Carter and Wegman, "Universal classes of hash functions", 1979): the values are
//! written as numbers of 56 bits, each is multiplied by a random number of 61 bits, and the sum is
//! taken modulo the prime 2⁶¹ − 1; this is done twice, with other random numbers.
//!
//! ```text
//!   text       its length, then its bytes, seven in each number, of 8 to 28 bytes four numbers; the
//!              last one has the last bytes, and may overlap with the one before
//!   integer    its lower and its upper 32 bits
//! ```
//!
//! **Collisions.** Two different combinations of values of one family differ in at least one number:
//! the length of each text precedes it, so none of the two sequences begins with the other. The
//! difference of their sums is then a sum in which one random number has a factor that is not 0 modulo
//! the prime, so it is 0 for one value of that random number alone. Both pairs of sums are equal with
//! a probability of (2⁶¹ − 1)⁻², about 2⁻¹²², for any two combinations that do not depend on the random
//! numbers. These are drawn once for each process, and nothing shows them: the keys never leave the
//! process's memory. A thousand million lookups a second, each compared with four entries, for a hundred
//! years meet one with a probability below 2⁻⁵⁸.

use std::hash::{BuildHasher, RandomState};

use talea_region::{AtomicRef, Key};

use super::key::{Combination, KeyWriter};
use super::table::word;

/// The prime 2⁶¹ − 1, which is also the mask of its bits.
const P: u64 = (1 << 61) - 1;

/// Bytes of a text in one number, and the mask of their bits.
const BYTES: usize = 7;
const PIECE: u64 = (1 << (8 * BYTES)) - 1;

/// The most numbers: 441 bytes of one text. Their products have 117 bits, so the sum has 123.
const MOST: usize = 64;

/// The random numbers, two for each number of a combination.
type Factors = [[u64; 2]; MOST];

/// Those of this process, once they were drawn.
static FACTORS: AtomicRef<Factors> = AtomicRef::new();

/// Draws the random numbers of this process, unless it has some. Without them, there are no
/// fingerprints. SipHash draws them with keys from the system.
pub(crate) fn draw_factors() {
    if FACTORS.get().is_some() {
        return;
    }
    let random = RandomState::new();
    let mut drawn = (0..).map(|n: u64| random.hash_one(n) & P).filter(|&factor| factor != P);
    let factors = std::array::from_fn(|_| [(); 2].map(|()| drawn.next().unwrap_or(0)));
    FACTORS.get_or_set(Box::leak(Box::new(factors)));
}

/// The bit of a tag that the lengths of a [`LabelKey`](super::LabelKey) leave free.
const IS_FINGERPRINT: u16 = 1 << 15;

/// The key of values that do not fit into a [`LabelKey`](super::LabelKey): the number of the fixed ones,
/// and a fingerprint of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint {
    fixed: Combination,
    sums: [u128; 2],
    /// Those that are not used yet.
    factors: &'static [[u64; 2]],
    fits: bool,
}

impl Fingerprint {
    /// A fingerprint of no values yet, if this process has drawn its random numbers.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        FACTORS.get().map(Self::with)
    }

    #[inline]
    fn with(factors: &'static Factors) -> Self {
        Self { fixed: Combination::new(), sums: [0; 2], factors, fits: true }
    }

    /// The key, unless a value has nothing but a text, or all are longer than 64 numbers.
    #[inline]
    pub(crate) fn done(&self) -> Option<Key> {
        let Combination { combinations, number } = self.fixed;
        let [a, b] = self.sums.map(modulo);
        self.fits.then(|| Key::new(number as u16, combinations, IS_FINGERPRINT, [a, b, 0]))
    }

    /// Adds numbers, each by its factors.
    #[inline]
    fn add<const N: usize>(&mut self, numbers: [u64; N]) {
        let Some((factors, others)) = self.factors.split_first_chunk::<N>() else {
            self.fits = false;
            return;
        };
        self.factors = others;
        numbers.into_iter().zip(factors).for_each(|(number, factor)| self.put(number, factor));
    }

    /// With a text of more than 28 bytes, whose length was added.
    #[inline(never)]
    fn with_long(mut self, text: &[u8]) -> Self {
        let (last, count) = (text.len() - 8, text.len().div_ceil(BYTES));
        let Some((factors, others)) = self.factors.split_at_checked(count) else {
            self.fits = false;
            return self;
        };
        self.factors = others;
        for (n, factor) in factors.iter().enumerate() {
            let is_last = n + 1 == count;
            let number =
                if is_last { word(text, last) >> 8 } else { word(text, n * BYTES) & PIECE };
            self.put(number, factor);
        }
        self
    }

    #[inline]
    fn put(&mut self, number: u64, factor: &[u64; 2]) {
        self.sums[0] += u128::from(number) * u128::from(factor[0]);
        self.sums[1] += u128::from(number) * u128::from(factor[1]);
    }
}

/// A text of 8 to 28 bytes as four numbers, which overlap if it is shorter: most are that long, and the
/// same steps for all of them cost less than mispredicted branches.
#[inline]
fn four_pieces(text: &[u8]) -> Option<[u64; 4]> {
    let last = text.len().checked_sub(8).filter(|&last| last < 3 * BYTES)?;
    let piece = |n: usize| word(text, last.min(n * BYTES)) & PIECE;
    Some([piece(0), piece(1), piece(2), word(text, last) >> 8])
}

/// A sum modulo the prime.
#[inline]
fn modulo(sum: u128) -> u64 {
    // 2⁶¹ is 1 modulo the prime, so the higher bits are added to the lower ones.
    let folded = (sum as u64 & P) + ((sum >> 61) as u64 & P) + (sum >> 122) as u64;
    let folded = (folded & P) + (folded >> 61);
    if folded >= P { folded - P } else { folded }
}

/// A text of at most seven bytes as a number.
#[inline]
fn short_piece(text: &[u8]) -> u64 {
    let len = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let [first, last] = [first, last].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        return first | last << (8 * (len - 4));
    }
    let byte = |at: usize| text.get(at).map_or(0, |&byte| u64::from(byte) << (8 * at));
    byte(0) | byte(1) | byte(2)
}

impl KeyWriter for Fingerprint {
    #[inline]
    fn digit(&mut self, values: usize, digit: usize) {
        self.fits &= self.fixed.push(values, digit);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.add([word & 0xFFFF_FFFF, word >> 32]);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        let text = text.as_bytes();
        self.add([text.len() as u64]);
        match four_pieces(text) {
            Some(pieces) => self.add(pieces),
            None if text.len() <= BYTES => self.add([short_piece(text)]),
            // By value, so that the others are added in registers.
            None => *self = self.with_long(text),
        }
    }

    fn other(&mut self) {
        self.fits = false;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    fn fingerprint(factors: &'static Factors, add: impl Fn(&mut Fingerprint)) -> Fingerprint {
        let mut fingerprint = Fingerprint::with(factors);
        add(&mut fingerprint);
        fingerprint
    }

    /// Those of this process.
    fn drawn() -> &'static Factors {
        draw_factors();
        FACTORS.get().unwrap()
    }

    /// Factors that leave one number of a combination as it is, and nothing of the others.
    static SINGLE: LazyLock<[Factors; MOST]> =
        LazyLock::new(|| std::array::from_fn(|n| std::array::from_fn(|m| [u64::from(n == m); 2])));

    /// The numbers of a combination.
    fn numbers(add: impl Fn(&mut Fingerprint)) -> Vec<u64> {
        let single: &'static [Factors; MOST] = &SINGLE;
        let made = fingerprint(&single[0], &add);
        assert!(made.fits);
        let used = MOST - made.factors.len();
        single[..used].iter().map(|factors| fingerprint(factors, &add).sums[0] as u64).collect()
    }

    /// Texts that a careless reading of bytes takes for one another.
    fn near_texts() -> Vec<String> {
        let mut texts = vec![String::new()];
        for len in 1..=40 {
            texts.push("\0".repeat(len));
            texts.push("x".repeat(len));
            for at in 0..len {
                let mut text = "\0".repeat(len);
                text.replace_range(at..=at, "\u{1}");
                texts.push(text);
            }
        }
        texts
    }

    #[test]
    fn the_numbers_of_a_text_determine_it_and_begin_with_those_of_no_other() {
        let mut seen: HashMap<Vec<u64>, String> = HashMap::new();
        for text in near_texts() {
            let numbers = numbers(|key| key.text(&text));
            assert!(numbers.iter().all(|&number| number <= PIECE), "{text:?}: {numbers:?}");
            assert_eq!(numbers[0], text.len() as u64);
            let len = numbers.len();
            let of_its_length = seen.keys().find(|other| other[0] == numbers[0]);
            assert!(of_its_length.is_none_or(|other| other.len() == len), "{text:?}");
            if let Some(other) = seen.insert(numbers, text.clone()) {
                panic!("{other:?} and {text:?} have the same numbers");
            }
        }
    }

    #[test]
    fn every_byte_of_a_text_of_any_length_counts() {
        for len in (1..=60).chain([100, 255, BYTES * (MOST - 1)]) {
            let text = "a".repeat(len);
            let own = numbers(|key| key.text(&text));
            for at in (0..len).step_by(1 + len / 40).chain([len - 1]) {
                let mut other = text.clone();
                other.replace_range(at..=at, "b");
                assert_ne!(numbers(|key| key.text(&other)), own, "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn different_combinations_have_different_keys() {
        let mut seen = HashMap::new();
        for first in near_texts() {
            for second in ["", "\0", "x", "\0\0\0\0\0\0\0\0", &"long".repeat(20)] {
                for word in [0, 1, 1 << 32, u64::MAX] {
                    for digit in 0..2 {
                        let key = fingerprint(drawn(), |key| {
                            key.text(&first);
                            key.word(word);
                            key.digit(2, digit);
                            key.text(second);
                        });
                        let key = format!("{:?}", key.done().unwrap());
                        let values = (first.clone(), second.to_owned(), word, digit);
                        if let Some(other) = seen.insert(key, values.clone()) {
                            panic!("{other:?} and {values:?} have one key");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn values_that_are_too_many_or_only_a_text_have_no_key() {
        let longest = "x".repeat(BYTES * (MOST - 1));
        let has_key = |add: &dyn Fn(&mut Fingerprint)| fingerprint(drawn(), add).done().is_some();
        assert!(has_key(&|key| key.text(&longest)));
        assert!(!has_key(&|key| key.text(&format!("{longest}x"))));
        assert!(!has_key(&|key| [&longest, ""].into_iter().for_each(|text| key.text(text))));
        assert!(has_key(&|key| (0..MOST / 2).for_each(|_| key.word(u64::MAX))));
        assert!(!has_key(&|key| (0..=MOST / 2).for_each(|_| key.word(u64::MAX))));
        assert!(!has_key(&|key| key.other()));
        assert!(!has_key(&|key| (0..17).for_each(|_| key.digit(2, 1))));
    }

    #[test]
    fn the_greatest_numbers_and_factors_do_not_overflow() {
        static GREATEST: Factors = [[P - 1; 2]; MOST];
        let key = fingerprint(&GREATEST, |key| (0..MOST).for_each(|_| key.add([PIECE])));
        let sum = MOST as u128 * u128::from(PIECE) * u128::from(P - 1);
        assert_eq!(key.sums, [sum; 2]);
        assert_eq!(u128::from(modulo(sum)), sum % u128::from(P));
        assert!(drawn().iter().flatten().all(|&factor| factor < P));
    }

    proptest! {
        #[test]
        fn sums_are_taken_modulo_the_prime(high in 0..1_u64 << 59, low: u64, near in 0..3_u64) {
            let p = u128::from(P);
            let sum = u128::from(high) << 64 | u128::from(low);
            let multiple = sum / p * p;
            for sum in [sum, multiple + u128::from(near), multiple.saturating_sub(u128::from(near))] {
                prop_assert_eq!(u128::from(modulo(sum)), sum % p);
            }
        }
    }
}
