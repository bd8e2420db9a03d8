//! The text of many series in one piece of memory, as a snapshot has it.

use crate::hash::words_of;
use crate::layout::{Span, WORD};

/// Texts behind each other, each filled up with zeros to whole words: so they are
/// copied a word at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(super) words: Vec<u64>,
}

impl Texts {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: words in a row are eight times as many bytes in a row.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 8) }
    }

    #[inline]
    pub(crate) fn at(&self, packed: u64) -> &[u8] {
        let Span { at, len } = Span::unpack(packed);
        &self.bytes()[at as usize..(at + len) as usize]
    }

    /// Appends a text by its words, the last one padded with zeros. Returns its span, packed.
    #[inline]
    pub(crate) fn push_words(&mut self, words: impl Iterator<Item = u64>, len: u64) -> u64 {
        let at = self.len();
        self.words.extend(words.map(u64::to_le));
        Span { at, len }.pack()
    }

    /// Appends texts that lie behind each other in this way.
    pub(crate) fn push_whole(&mut self, words: &[u64]) {
        self.words.extend_from_slice(words);
    }

    /// Appends a text. Returns its span, packed. A text that is too long for a span is cut; no
    /// label text of Talea is.
    pub(crate) fn push(&mut self, text: &[u8]) -> u64 {
        let text = &text[..text.len().min(Span::MAX_LEN as usize)];
        self.push_words(words_of(text), text.len() as u64)
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.words.len() as u64 * WORD
    }

    pub(crate) fn reserve(&mut self, len: u64) {
        self.words.reserve(len.div_ceil(WORD) as usize);
    }

    pub(crate) fn truncate(&mut self, len: u64) {
        self.words.truncate((len / WORD) as usize);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were() {
        let mut texts = Texts::default();
        let all: Vec<Vec<u8>> = (0..40_u8).map(|len| (1..=len).collect()).collect();
        let places: Vec<u64> = all.iter().map(|text| texts.push(text)).collect();
        for (text, place) in all.iter().zip(&places) {
            assert_eq!(texts.at(*place), text);
        }
        let before = texts.len();
        texts.push(b"gone");
        texts.truncate(before);
        assert_eq!((texts.len(), texts.at(places[39])), (before, &all[39][..]));
        assert!(texts.bytes().iter().filter(|&&byte| byte == 0).count() > 0, "filled with zeros");
    }
}
