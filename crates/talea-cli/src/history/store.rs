//! The ticks of one step, in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::record::{Encoder, Time, time_of};
use super::stretch::{Part, Stretch};
use crate::families::protobuf::MetricFamily;

/// How many ticks a block has. Reading one tick means reading those of its block before it.
const BLOCK: usize = 60;
/// A tick may come so much too soon: timers are late by some milliseconds, and then on time again.
const EARLY: Duration = Duration::from_millis(500);

/// What a record is: the first tick of a block, or a later one.
const FIRST: u8 = 1;
const LATER: u8 = 0;

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
    /// Whether the next tick begins a block.
    begins: bool,
}

/// Records that belong together, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
    /// When each tick was.
    times: Vec<Time>,
}

impl Block {
    /// When a tick was.
    pub(super) fn time(&self, tick: usize) -> Time {
        self.times.get(tick).copied().unwrap_or_default()
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }

    fn push(&mut self, record: &[u8]) {
        let before = self.times.last().copied().unwrap_or_default();
        self.times.push(record.get(1..).and_then(|tick| time_of(tick, before)).unwrap_or(before));
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }
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
            begins: true,
        }
    }

    /// Adds what a page shows, if the next tick is due: its record.
    pub(super) fn add(&mut self, time: Time, families: &[MetricFamily]) -> Option<&[u8]> {
        let is_due = |last: Time| time.steady.saturating_sub(last.steady) + EARLY >= self.step;
        // After the machine was booted again, that clock begins at 0.
        if !self.last.is_none_or(|last| is_due(last) || time.steady < last.steady) {
            return None;
        }
        self.last = Some(time);
        let is_full = self.blocks.back().is_none_or(|block| block.ends.len() >= BLOCK);
        let is_first = self.begins || is_full;
        if is_first {
            self.encoder = Encoder::default();
            self.begins = false;
        }
        let mut record = vec![if is_first { FIRST } else { LATER }];
        record.append(&mut self.encoder.tick(time, families));
        self.take_record(&record);
        let block = self.blocks.back()?;
        block.records().last()
    }

    /// Takes a record that another process wrote. One that cannot be read is left out, and what belongs
    /// to it.
    pub(super) fn take(&mut self, record: &[u8]) {
        self.begins = true;
        self.take_record(record);
    }

    fn take_record(&mut self, record: &[u8]) {
        match record.first() {
            Some(&FIRST) => {
                self.blocks.push_back(Arc::default());
                self.drop_oldest();
            }
            Some(&LATER) => {}
            _ => return,
        }
        if let Some(block) = self.blocks.back_mut() {
            Arc::make_mut(block).push(record);
        }
    }

    /// Drops blocks of which nothing need be kept; the last one always stays.
    fn drop_oldest(&mut self) {
        let mut ticks: usize = self.blocks.iter().map(|block| block.ends.len()).sum();
        let mut bytes = self.bytes();
        while let Some(first) = self.blocks.front().filter(|_| self.blocks.len() > 1) {
            let (of_it, len) = (first.ends.len(), first.bytes.len());
            if ticks - of_it < self.ticks && bytes <= self.limit {
                return;
            }
            (ticks, bytes) = (ticks - of_it, bytes - len);
            self.blocks.pop_front();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes.len()).sum()
    }

    /// All records, in their order.
    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().flat_map(|block| block.records())
    }

    /// The ticks of so much time, up to the last one: each stands for a step, however much lies between
    /// them.
    pub(super) fn last(&self, last: Duration) -> Stretch {
        let wanted = usize::try_from(last.as_millis().div_ceil(self.step.as_millis().max(1)));
        let all: usize = self.blocks.iter().map(|block| block.ends.len()).sum();
        let mut left_out = all.saturating_sub(wanted.unwrap_or(usize::MAX));
        let part = |block: &Arc<Block>| {
            let first = left_out.min(block.ends.len());
            left_out -= first;
            Part { block: Arc::clone(block), ticks: (first..block.ends.len()).collect() }
        };
        Stretch::new(self.blocks.iter().map(part).collect())
    }

    /// The ticks whose times are wanted.
    pub(super) fn parts(&self, is_wanted: impl Fn(Time) -> bool) -> Vec<Part> {
        let part = |block: &Arc<Block>| {
            let ticks = block.times.iter().enumerate().filter(|(_, time)| is_wanted(**time));
            Part { block: Arc::clone(block), ticks: ticks.map(|(tick, _)| tick).collect() }
        };
        self.blocks.iter().map(part).collect()
    }

    /// The times of all ticks, in their order.
    pub(super) fn times(&self) -> impl DoubleEndedIterator<Item = Time> {
        self.blocks.iter().flat_map(|block| block.times.iter().copied())
    }
}
