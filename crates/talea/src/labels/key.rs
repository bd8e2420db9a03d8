//! Keys of the lookup cache: label values as the caller passes them, before any of them is written
//! as text.

use talea_region::Key;

use super::table::short;

/// Takes the values of a group of labels, one after the other, for a key. Different values make
/// different keys.
pub trait KeyWriter {
    /// A fixed value, one of several.
    fn digit(&mut self, values: usize, digit: usize);
    /// An integer.
    fn word(&mut self, word: u64);
    /// A text.
    fn text(&mut self, text: &str);
    /// A value that has nothing but a text: there is no key.
    fn other(&mut self);
}

/// The number of a combination of fixed values, whose digits they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination {
    /// The number of combinations of the fixed values so far.
    pub(super) combinations: u32,
    pub(super) number: u32,
}

impl Combination {
    /// The most combinations of fixed values that a key can represent.
    const MOST: u32 = 1 << 16;

    #[inline]
    pub(super) fn new() -> Self {
        Self { combinations: 1, number: 0 }
    }

    /// Appends a digit; false if there are too many combinations.
    #[inline]
    pub(super) fn push(&mut self, values: usize, digit: usize) -> bool {
        let all =
            u32::try_from(values).ok().and_then(|values| self.combinations.checked_mul(values));
        match all {
            Some(all @ ..=Self::MOST) if digit < values => {
                self.combinations = all;
                self.number = self.number * values as u32 + digit as u32;
                true
            }
            _ => false,
        }
    }
}

/// The key of short values: fixed values are the digits of a number, and dynamic values are copied
/// whole, with their length.
///
/// ```text
///   number   of the fixed values, 16 bits
///   tag      lengths of texts, 15 bits
///   words    texts and integers, at most 24 bytes
/// ```
///
/// Values that do not fit have a [`Fingerprint`](super::Fingerprint) for a key.
#[derive(Debug)]
pub(crate) struct LabelKey {
    fixed: Combination,
    texts: u32,
    lengths: u32,
    /// All that changes is a number by itself and none is found by a number, so that a key
    /// is made in registers.
    words: (u64, u64, u64),
    used: usize,
    fits: bool,
}

impl LabelKey {
    /// Texts that it has room for the lengths of, in five bits each.
    const TEXTS: u32 = 3;

    #[inline]
    pub(crate) fn new() -> Self {
        let words = (0, 0, 0);
        Self { fixed: Combination::new(), texts: 0, lengths: 0, words, used: 0, fits: true }
    }

    /// The key, if all fits.
    #[inline]
    pub(crate) fn done(&self) -> Option<Key> {
        let (number, lengths) = (self.fixed.number as u16, self.lengths as u16);
        self.fits.then(|| Key::new(number, self.fixed.combinations, lengths, self.words.into()))
    }

    /// Appends words, of which the first `count` are valid; the next call overwrites the others.
    /// Words beyond the end of the key are left out.
    #[inline]
    fn put(&mut self, (a, b, c): (u64, u64, u64), count: usize) {
        let (first, second, third) = self.words;
        self.words = match self.used {
            0 => (a, b, c),
            1 => (first, a, b),
            2 => (first, second, a),
            _ => (first, second, third),
        };
        self.used += count;
        self.fits &= self.used <= Key::WORDS;
    }
}

impl KeyWriter for LabelKey {
    #[inline]
    fn digit(&mut self, values: usize, digit: usize) {
        self.fits &= self.fixed.push(values, digit);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.put((word, 0, 0), 1);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        let text = text.as_bytes();
        let len = text.len();
        self.fits &= self.texts < Self::TEXTS;
        self.texts += 1;
        self.lengths = self.lengths << 5 | len as u32;
        let words = words_of(text).unwrap_or_else(|| (short(text), 0, 0));
        self.put(words, len.div_ceil(8));
    }

    #[inline]
    fn other(&mut self) {
        self.fits = false;
    }
}

/// A text of 8 to 24 bytes as three words, which overlap if it is shorter. With the length they
/// determine it, by the same steps for each length.
#[inline]
fn words_of(text: &[u8]) -> Option<(u64, u64, u64)> {
    let last = text.len().checked_sub(8)?;
    let word = |at: usize| Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?));
    Some((word(0)?, word(last.min(8))?, word(last)?))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{LabelValue, StatusClass};

    type AddToKey<'a> = &'a dyn Fn(&mut LabelKey);

    fn key_of(values: &[AddToKey<'_>]) -> Option<Key> {
        let mut key = LabelKey::new();
        values.iter().for_each(|add| add(&mut key));
        key.done()
    }

    #[test]
    fn texts_that_differ_have_keys_that_differ() {
        let mut texts: Vec<String> = Vec::new();
        for len in 0..=24 {
            texts.push("\0".repeat(len));
            for at in 0..len {
                texts.extend(["\u{1}", "x"].map(|other| {
                    let mut text = "\0".repeat(len);
                    text.replace_range(at..=at, other);
                    text
                }));
            }
        }
        let mut seen = HashMap::new();
        for first in &texts {
            for second in ["", "\0", "x", "\0\0\0\0\0\0\0\0", "x\0\0\0\0\0\0\0\0"] {
                for maybe in [None, Some(""), Some("\0"), Some("x")] {
                    let values: [AddToKey<'_>; 3] =
                        [&|key| key.text(first), &|key| key.text(second), &|key| {
                            maybe.add_to_key(key)
                        }];
                    let Some(key) = key_of(&values) else { continue };
                    let words = format!("{key:?}");
                    let values = (first.clone(), second, maybe);
                    if let Some(other) = seen.insert(words, values.clone()) {
                        panic!("{other:?} and {values:?} have one key");
                    }
                }
            }
        }
        assert!(seen.len() > 4_000, "{}", seen.len());
    }

    #[test]
    fn numbers_and_fixed_values_have_different_keys() {
        let mut seen = HashMap::new();
        for class in StatusClass::ALL {
            for flag in [false, true] {
                for n in [0, 1, 255, u64::MAX] {
                    for sign in [-1_i8, 0, 1] {
                        let values: [AddToKey<'_>; 4] = [
                            &|key| class.add_to_key(key),
                            &|key| n.add_to_key(key),
                            &|key| flag.add_to_key(key),
                            &|key| sign.add_to_key(key),
                        ];
                        let words = format!("{:?}", key_of(&values).unwrap());
                        assert_eq!(seen.insert(words, ()), None);
                    }
                }
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_have_no_key() {
        let long = "x".repeat(25);
        let cases: [(&str, AddToKey<'_>); 6] = [
            ("a long text", &|key| key.text(&long)),
            ("texts that are long together", &|key| {
                (0..2).for_each(|_| key.text("0123456789abcdefg"));
            }),
            ("many texts", &|key| (0..4).for_each(|_| key.text(""))),
            ("many integers", &|key| (0..4).for_each(|n| key.word(n))),
            ("many combinations", &|key| (0..17).for_each(|_| key.digit(2, 1))),
            ("a value that displays itself", &|key| crate::Displayed(1).add_to_key(key)),
        ];
        for (what, add) in cases {
            assert!(key_of(&[add]).is_none(), "{what}");
        }
        assert!(key_of(&[&|key| key.text(&long[1..])]).is_some());
        assert!(key_of(&[&|key| (0..16).for_each(|_| key.digit(2, 1))]).is_some());
    }
}
