//! What a look-up is remembered by: label values as they are given, before any of them
//! is written as text.

use talea_region::Key;

use super::table::short;

/// Takes the values of a group of labels, one after the other. Values that differ make
/// keys that differ: the values that are fixed make a number, each a digit of it, and
/// what is dynamic is there whole, with its length.
///
/// ```text
///   numbers:  number of the fixed values:16 | lengths of texts:15
///   words:    texts and integers, at most 24 bytes
/// ```
///
/// What does not fit is no key, and is looked up by its text each time.
#[derive(Debug)]
pub struct LabelKey {
    /// Of how many combinations the number is one.
    combinations: u32,
    number: u32,
    texts: u32,
    lengths: u32,
    /// So that a text can be put at any place of the key as three words; what is beyond
    /// the key is not looked at.
    words: [u64; 2 * Key::WORDS],
    used: usize,
    fits: bool,
}

impl LabelKey {
    /// Combinations of fixed values that a key can tell apart.
    const COMBINATIONS: u32 = 1 << 16;
    /// Texts that it has room for the lengths of, in five bits each.
    const TEXTS: u32 = 3;

    /// A key of no values yet.
    #[inline]
    pub(crate) fn new() -> Self {
        let words = [0; 2 * Key::WORDS];
        Self { combinations: 1, number: 0, texts: 0, lengths: 0, words, used: 0, fits: true }
    }

    /// The key, if all fits.
    #[inline]
    pub(crate) fn done(&self) -> Option<Key> {
        let words = *self.words.first_chunk()?;
        self.fits.then(|| Key::new(self.number | self.lengths << 16, words))
    }

    /// One of some values that are fixed.
    #[inline]
    pub fn digit(&mut self, values: usize, digit: usize) {
        let all =
            u32::try_from(values).ok().and_then(|values| self.combinations.checked_mul(values));
        match all {
            Some(all @ ..=Self::COMBINATIONS) if digit < values => {
                self.combinations = all;
                self.number = self.number * values as u32 + digit as u32;
            }
            _ => self.fits = false,
        }
    }

    /// An integer.
    #[inline]
    pub fn word(&mut self, word: u64) {
        match self.words.get_mut(self.used) {
            Some(place) => *place = word,
            None => self.fits = false,
        }
        self.take(1);
    }

    /// A text of at most 24 bytes.
    #[inline]
    pub fn text(&mut self, text: &str) {
        let text = text.as_bytes();
        let len = text.len();
        let words = len.div_ceil(8);
        let place = self.words.get_mut(self.used..).and_then(<[u64]>::first_chunk_mut);
        let Some(place) = place.filter(|_| words <= Key::WORDS && self.texts < Self::TEXTS) else {
            self.fits = false;
            return;
        };
        match words_of(text) {
            Some(words) => *place = words,
            None => place[0] = short(text),
        }
        self.texts += 1;
        self.lengths = self.lengths << 5 | len as u32;
        self.take(words);
    }

    /// A value that only its text tells.
    #[inline]
    pub fn other(&mut self) {
        self.fits = false;
    }

    #[inline]
    fn take(&mut self, words: usize) {
        self.used += words;
        self.fits &= self.used <= Key::WORDS;
    }
}

/// A text of 8 to 24 bytes as three words, over each other where it is shorter: with the
/// length they say all of it, by the same steps for each length.
#[inline]
fn words_of(text: &[u8]) -> Option<[u64; Key::WORDS]> {
    let last = text.len().checked_sub(8)?;
    let word = |at: usize| Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?));
    Some([word(0)?, word(last.min(8))?, word(last)?])
}
