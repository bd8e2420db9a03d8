//! The ticks of one step, in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::block::{Block, FIRST, LATER, PACKED};
use super::record::{Encoder, Time};
use super::stretch::{Part, Stretch};
use talea_page::Family;

/// How many ticks a block has. Reading one tick means reading those of its block before it.
const BLOCK: usize = 60;
/// A tick may come so much too soon: timers are late by some milliseconds, and then on time again.
const EARLY: Duration = Duration::from_millis(500);

/// Ticks of one step, the oldest first.
#[derive(Debug)]
pub(super) struct Store {
    step: Duration,
    /// The most ticks, and the most bytes.
    ticks: usize,
    limit: usize,
    /// Readers keep those that they need.
    blocks: VecDeque<Arc<Block>>,
    encoder: Encoder,
    last: Option<Time>,
    /// The number of the next tick. They count from a random one: of two ticks with consecutive numbers, the second
    /// says what changed since the first.
    next: u64,
    /// Whether the next tick begins a block.
    begins: bool,
}

impl Store {
    pub(super) fn new(step: Duration, keep: Duration, limit: usize) -> Self {
        let ticks = keep.as_millis().div_ceil(step.as_millis().max(1));
        Self {
            step,
            ticks: usize::try_from(ticks).unwrap_or(usize::MAX).max(1),
            limit,
            blocks: VecDeque::new(),
            encoder: Encoder::default(),
            last: None,
            next: fastrand::u64(..1 << 63),
            begins: true,
        }
    }

    /// Adds what a page shows, if the next tick is due: the records that are to be written, each with the number of
    /// its first tick.
    pub(super) fn add(&mut self, time: Time, families: &[Family]) -> Vec<(u64, Vec<u8>)> {
        if let Some(last) = self.last {
            let is_due = time.steady.saturating_sub(last.steady) + EARLY >= self.step;
            // After the machine was booted again, that clock begins at 0.
            if !is_due && time.steady >= last.steady {
                return Vec::new();
            }
        }
        self.last = Some(time);
        let is_full = self.blocks.back().is_none_or(|block| block.len() >= BLOCK);
        let is_first = self.begins || is_full;
        let mut records = Vec::new();
        if is_first {
            self.encoder = Encoder::default();
            self.begins = false;
            records.extend(self.pack_last());
        }
        let mut record = vec![if is_first { FIRST } else { LATER }];
        record.append(&mut self.encoder.tick(time, families));
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.take_record(number, &record);
        records.push((number, record));
        records
    }

    /// Compresses the last block, to which nothing will be added: the record that stands for all of its own.
    fn pack_last(&mut self) -> Option<(u64, Vec<u8>)> {
        let last = self.blocks.back_mut()?;
        *last = Arc::new(last.packed()?);
        let (first, record) = last.records().into_iter().next()?;
        Some((first, record.to_vec()))
    }

    /// Takes a record that was written before, maybe by another process. One that cannot be read is left out, and what
    /// belongs to it; false then.
    pub(super) fn take(&mut self, number: u64, record: &[u8]) -> bool {
        self.begins = true;
        self.take_record(number, record)
    }

    /// Counts the time to the next tick from where another store is.
    pub(super) fn goes_on_after(&mut self, other: &Self) {
        self.last = other.last;
    }

    fn take_record(&mut self, number: u64, record: &[u8]) -> bool {
        match record.first() {
            Some(&FIRST) => self.blocks.push_back(Arc::new(Block::new(number))),
            Some(&LATER) => {}
            Some(&PACKED) => {
                let Some(packed) = Block::of_packed(number, record) else { return false };
                if self.blocks.back().is_some_and(|last| last.is_replaced_by(&packed)) {
                    self.blocks.pop_back();
                }
                self.blocks.push_back(Arc::new(packed));
                self.drop_oldest();
                return true;
            }
            _ => return false,
        }
        let Some(block) = self.blocks.back_mut() else { return false };
        let is_taken = Arc::make_mut(block).push(number, record);
        self.drop_oldest();
        is_taken
    }

    /// Drops blocks of which nothing need be kept; the last one always stays.
    fn drop_oldest(&mut self) {
        let mut ticks: usize = self.blocks.iter().map(|block| block.len()).sum();
        let mut bytes = self.bytes();
        while let Some(first) = self.blocks.front().filter(|_| self.blocks.len() > 1) {
            let (of_it, len) = (first.len(), first.bytes());
            if ticks - of_it < self.ticks && bytes <= self.limit {
                return;
            }
            (ticks, bytes) = (ticks - of_it, bytes - len);
            self.blocks.pop_front();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes()).sum()
    }

    /// What a file has of it, each record with the number of its first tick.
    pub(super) fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.blocks.iter().flat_map(|block| block.records())
    }

    /// The ticks of so much time, up to the last one: each stands for a step, however much lies between
    /// them.
    pub(super) fn last(&self, last: Duration) -> Stretch {
        let wanted = usize::try_from(last.as_millis().div_ceil(self.step.as_millis().max(1)));
        let all: usize = self.blocks.iter().map(|block| block.len()).sum();
        let mut left_out = all.saturating_sub(wanted.unwrap_or(usize::MAX));
        Stretch::new(
            self.blocks
                .iter()
                .map(|block| {
                    let first = left_out.min(block.len());
                    left_out -= first;
                    Part { block: Arc::clone(block), ticks: (first..block.len()).collect() }
                })
                .collect(),
        )
    }

    pub(super) fn parts(&self, is_wanted: impl Fn(Time) -> bool) -> Vec<Part> {
        self.blocks
            .iter()
            .map(|block| {
                let ticks = block.times().iter().enumerate().filter(|(_, time)| is_wanted(**time));
                Part { block: Arc::clone(block), ticks: ticks.map(|(tick, _)| tick).collect() }
            })
            .collect()
    }

    pub(super) fn times(&self) -> impl DoubleEndedIterator<Item = Time> {
        self.blocks.iter().flat_map(|block| block.times().iter().copied())
    }
}
