//! The label arena: texts are written before any process can find them, and given back when none
//! can find them any more.

use std::sync::atomic::Ordering::Relaxed;

use super::words::Memory;
use crate::hash;
use crate::layout::{Span, WORD};
use crate::primitive::Words;

impl Memory {
    /// Copies `bytes` into the arena; `None` where there is no room.
    pub(crate) fn store_text(&self, bytes: &[u8]) -> Option<Span> {
        let len = bytes.len() as u64;
        if len > Span::MAX_LEN {
            return None;
        }
        if len == 0 {
            return Some(Span { at: 0, len });
        }
        let at = self.take(&self.sections.arena, len.div_ceil(WORD))?;
        let words = self.map.words(self.sections.arena.at + at, len.div_ceil(WORD))?;
        let whole = bytes.chunks_exact(8);
        if !whole.remainder().is_empty() {
            words.last()?.store(hash::last_word(bytes), Relaxed);
        }
        words.iter().zip(whole).for_each(|(word, bytes)| word.store(hash::word(bytes), Relaxed));
        Some(Span { at, len })
    }

    /// Gives back what [`store_text`](Self::store_text) took.
    pub(crate) fn drop_text(&self, span: Span) {
        if let Some(words) = self.text_words(span).filter(|words| !words.is_empty()) {
            words.iter().for_each(|word| word.store(0, Relaxed));
            self.give_back(&self.sections.arena, span.at, words.len() as u64);
        }
    }

    /// Whether the arena holds `bytes` at `span`.
    #[inline]
    pub(crate) fn text_is(&self, span: Span, bytes: &[u8]) -> bool {
        if span.len != bytes.len() as u64 {
            return false;
        }
        let Some(words) = self.text_words(span) else { return false };
        let whole = bytes.chunks_exact(8);
        let over = !whole.remainder().is_empty();
        words.iter().zip(whole).all(|(word, bytes)| word.load(Relaxed) == hash::word(bytes))
            && (!over
                || words.last().is_some_and(|last| last.load(Relaxed) == hash::last_word(bytes)))
    }

    /// Appends the bytes at `span`.
    pub(crate) fn read_text(&self, span: Span, out: &mut Vec<u8>) {
        let end = out.len() + span.len as usize;
        if let Some(words) = self.text_words(span) {
            out.extend(words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()));
            out.truncate(end);
        }
    }

    #[inline]
    pub(crate) fn text_words(&self, span: Span) -> Option<Words> {
        let end = span.at.checked_add(span.len)?;
        if end > self.sections.arena.len {
            return None;
        }
        self.map.words(self.sections.arena.at + span.at, span.len.div_ceil(WORD))
    }
}
