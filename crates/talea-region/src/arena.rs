//! The label arena: bytes that are written once, before anybody can find them.

use std::sync::atomic::Ordering::Relaxed;

use crate::hash;
use crate::layout::{M_ARENA, Span, WORD};
use crate::region::Region;

impl Region {
    /// Copies `bytes` into the arena; `None` where there is no room.
    pub(crate) fn store_text(&self, bytes: &[u8]) -> Option<Span> {
        let len = bytes.len() as u64;
        if len > Span::MAX_LEN {
            return None;
        }
        if len == 0 {
            return Some(Span { at: 0, len });
        }
        let at = self.take(M_ARENA, self.s.arena, self.s.arena_len, len.next_multiple_of(WORD))?;
        let words = self.map.words(self.s.arena + at, len.div_ceil(WORD))?;
        let whole = bytes.chunks_exact(8);
        if !whole.remainder().is_empty() {
            words.last()?.store(hash::last_word(bytes), Relaxed);
        }
        words.iter().zip(whole).for_each(|(word, bytes)| word.store(hash::word(bytes), Relaxed));
        Some(Span { at, len })
    }

    /// Returns what [`store_text`](Self::store_text) took, if nobody took more
    /// since.
    pub(crate) fn drop_text(&self, span: Span) {
        if span.len > 0 {
            self.give_back(M_ARENA, span.at, span.len.next_multiple_of(WORD));
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

    #[inline]
    fn text_words(&self, span: Span) -> Option<&'static [std::sync::atomic::AtomicU64]> {
        let end = span.at.checked_add(span.len)?;
        if end > self.s.arena_len {
            return None;
        }
        self.map.words(self.s.arena + span.at, span.len.div_ceil(WORD))
    }
}
