//! Tables: a word for each segment of a series, of which most are 0.
//!
//! ```text
//!   up to 37 segments    a word each
//!   up to 65             a word for each of the first 37, then, for each 16 of the others, the offset
//!                        of a block of 16 words, or 0
//!   more                 the same with 17 in place of 37
//! ```
//!
//! A block is made when one of its words is first needed, and stays as long as the table. So a
//! series that may have many segments, and has few, takes little memory. The layers above choose
//! which segments come first: to find the word of a later one takes two more loads.
//!
//! A process that is killed between taking a block and publishing it leaks that block.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::words::Memory;
use crate::layout::*;
use crate::primitive::{Word, Words};
use crate::source::Source;

/// The number of words that are in place, and of offsets of blocks behind them.
pub(crate) fn shape(segments: u64) -> (u64, u64) {
    let near = if segments <= TABLE_MIDDLE { TABLE_WHOLE } else { TABLE_NEAR };
    let near = near.min(segments);
    (near, (segments - near).div_ceil(TABLE_BLOCK))
}

/// The words of a table.
pub(crate) fn table_len(segments: u64) -> u64 {
    let (near, blocks) = shape(segments);
    near + blocks
}

/// A table, in the memory. The number of segments is rounded up to whole blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// The words that are in place.
    pub(crate) near: Words,
    /// The offsets of blocks.
    pub(crate) blocks: Words,
}

impl Table {
    pub(crate) fn new(words: Words, segments: u64) -> Option<Self> {
        let (near, blocks) = shape(segments);
        let (near, rest) = words.split_at_checked(near as usize)?;
        Some(Self { near, blocks: rest.get(..blocks as usize)? })
    }

    /// How many segments have a word.
    pub(crate) fn len(&self) -> usize {
        self.near.len() + self.blocks.len() * TABLE_BLOCK as usize
    }

    /// A word that is in no place, by its block and its place in that.
    fn beyond(&self, n: usize) -> Option<(Word, usize)> {
        let n = n.checked_sub(self.near.len())?;
        let block = self.blocks.get(n / TABLE_BLOCK as usize)?;
        Some((block, n % TABLE_BLOCK as usize))
    }
}

impl Memory {
    /// The word of a segment, if it was made. Cost: one comparison, and two loads of those that are
    /// not in place.
    #[inline]
    pub(crate) fn table_word(&self, table: Table, n: usize) -> Option<Word> {
        match table.near.get(n) {
            Some(word) => Some(word),
            None => self.word_of_block(table, n),
        }
    }

    #[inline(never)]
    fn word_of_block(&self, table: Table, n: usize) -> Option<Word> {
        let (block, n) = table.beyond(n)?;
        self.singles(block.load(Acquire), TABLE_BLOCK)?.get(n)
    }

    /// The word of a segment, made if it does not exist; `None` if there is no room for its block.
    pub(crate) fn table_word_or_new(&self, table: Table, n: usize) -> Option<Word> {
        if let Some((block, _)) = table.beyond(n) {
            self.get_or_make_run(block, TABLE_BLOCK)?;
        }
        self.table_word(table, n)
    }

    /// The words that were made, each with the number of its segment.
    pub(crate) fn table_words(&self, table: Table) -> impl Iterator<Item = (usize, Word)> {
        let blocks = table.blocks.iter().zip(0..).flat_map(|(block, n)| {
            let words = self.singles(block.load(Acquire), TABLE_BLOCK).unwrap_or(&[]);
            words.iter().zip(n * TABLE_BLOCK as usize..)
        });
        let beyond = blocks.map(move |(word, n)| (table.near.len() + n, word));
        table.near.iter().enumerate().chain(beyond)
    }

    /// Gives back the blocks of a table whose words are all 0.
    pub(crate) fn drop_blocks(&self, table: Table) {
        for block in table.blocks {
            self.drop_singles(block.swap(0, AcqRel), TABLE_BLOCK);
        }
    }
}

/// The words of a table that begins at an offset, for a reader: those that are not 0, each with
/// the number of its segment. `None` where the table is not there.
pub(crate) fn entries(
    source: &impl Source,
    at: u64,
    segments: u64,
    into: &mut Vec<(u64, u64)>,
) -> Option<()> {
    let (near, blocks) = shape(segments);
    push_entries(source, at, near, 0, into)?;
    for n in 0..blocks {
        let block = source.word(at + (near + n) * WORD);
        if source.sections().lies_in_singles(block, TABLE_BLOCK) {
            push_entries(source, block, TABLE_BLOCK, near + n * TABLE_BLOCK, into)?;
        }
    }
    Some(())
}

/// Pushes the words that are not 0 of a row of words. The first is that of segment `n`.
#[inline]
fn push_entries(
    source: &impl Source,
    at: u64,
    count: u64,
    n: u64,
    into: &mut Vec<(u64, u64)>,
) -> Option<()> {
    /// The words of a cache line.
    const TOGETHER: u64 = 8;
    // Most are 0, so several are looked at together.
    let mut first = 0;
    while first + TOGETHER <= count {
        let words: [u64; TOGETHER as usize] = source.block(at + first * WORD, TOGETHER)?;
        if words.iter().fold(0, |any, word| any | word) != 0 {
            into.extend((n + first..).zip(words).filter(|&(_, word)| word != 0));
        }
        first += TOGETHER;
    }
    let rest = source.words(at + first * WORD, count - first)?;
    into.extend((n + first..).zip(rest).filter(|&(_, word)| word != 0));
    Some(())
}

/// The word of one segment, for a reader; 0 where there is none.
pub(crate) fn entry(source: &impl Source, at: u64, segments: u64, n: u64) -> u64 {
    let (near, _) = shape(segments);
    let place = match n.checked_sub(near) {
        None => at.saturating_add(n * WORD),
        Some(beyond) => {
            let block = at.saturating_add((near + beyond / TABLE_BLOCK) * WORD);
            match source.sections().lies_in_singles(block, 1).then(|| source.word(block)) {
                Some(block @ 1..) => block.saturating_add(beyond % TABLE_BLOCK * WORD),
                _ => return 0,
            }
        }
    };
    if source.sections().lies_in_singles(place, 1) { source.word(place) } else { 0 }
}

/// Words of the blocks of a table, for a reader.
#[cfg(all(target_os = "linux", not(loom), feature = "outside"))]
pub(crate) fn words_of_blocks(source: &impl Source, at: u64, segments: u64) -> u64 {
    let (near, blocks) = shape(segments);
    let blocks = (0..blocks).map(|n| source.word(at + (near + n) * WORD));
    let made = blocks.filter(|&block| source.sections().lies_in_singles(block, TABLE_BLOCK));
    TABLE_BLOCK * made.count() as u64
}
