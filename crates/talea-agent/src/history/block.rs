//! Ticks that belong together: the first defines all series, the later ones say what changed.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::codec::{Bytes, put_number};
use super::record::{Time, time_of};

/// The steps of the two stores.
pub(super) const STEPS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The kinds of records, by their first byte: the first tick of a block, a later one, or a whole block. The last
/// has the lengths of its records, and then these, compressed by DEFLATE (RFC 1951).
pub(super) const LATER: u8 = 0;
pub(super) const FIRST: u8 = 1;
pub(super) const PACKED: u8 = 2;

const MOST_TICKS: usize = 1_000;

/// The most bytes that a block has which is packed into so many. One that would have more is not packed, so that a
/// file decides how much memory its reader takes by its own size only.
fn most_unpacked(packed: usize) -> usize {
    packed.saturating_mul(64).saturating_add(1 << 16)
}

/// Records that belong together, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// The records; or the one that stands for all of them, and where its compressed part begins.
    bytes: Vec<u8>,
    packed_at: Option<usize>,
    /// The number of the first tick.
    first: u64,
    ends: Vec<usize>,
    times: Vec<Time>,
}

impl Block {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of memory that it takes, but for some words a tick.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn times(&self) -> &[Time] {
        &self.times
    }

    /// A block without ticks, of which the first will have this number.
    pub(super) fn new(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// The records that a file has of it, each with the number of its first tick.
    pub(super) fn records(&self) -> Vec<(u64, &[u8])> {
        match self.packed_at {
            Some(_) => vec![(self.first, &self.bytes)],
            None => {
                let numbers = (0..).map(|tick| self.first.wrapping_add(tick));
                numbers.zip(split(&self.bytes, &self.ends)).collect()
            }
        }
    }

    /// Adds the tick of this number; false if that is not the next one, or the block is whole.
    pub(super) fn push(&mut self, number: u64, record: &[u8]) -> bool {
        if self.packed_at.is_some() || self.first.wrapping_add(self.len() as u64) != number {
            return false;
        }
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
        self.note_time(record);
        true
    }

    fn note_time(&mut self, record: &[u8]) {
        let before = self.times.last().copied().unwrap_or_default();
        self.times.push(record.get(1..).and_then(|tick| time_of(tick, before)).unwrap_or(before));
    }

    /// Hands all ticks to `show`, until that says to stop.
    pub(super) fn ticks(&self, mut show: impl FnMut(&[u8]) -> bool) {
        let bytes = match self.packed_at {
            None => Cow::Borrowed(&self.bytes[..]),
            // It was tried when it was read.
            Some(at) => {
                Cow::Owned(inflate(&self.bytes[at..], self.len_unpacked()).unwrap_or_default())
            }
        };
        for record in split(&bytes, &self.ends) {
            if !show(record.get(1..).unwrap_or_default()) {
                return;
            }
        }
    }

    fn len_unpacked(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Its ticks compressed; `None` if they are already, or would be too small for a reader.
    pub(super) fn packed(&self) -> Option<Self> {
        if self.packed_at.is_some() {
            return None;
        }
        let mut bytes = vec![PACKED];
        put_number(&mut bytes, self.ends.len() as u64);
        for record in split(&self.bytes, &self.ends) {
            put_number(&mut bytes, record.len() as u64);
        }
        let packed_at = Some(bytes.len());
        let mut encoder = DeflateEncoder::new(bytes, LEVEL);
        encoder.write_all(&self.bytes).ok()?;
        let bytes = encoder.finish().ok()?;
        if self.bytes.len() > most_unpacked(bytes.len()) {
            return None;
        }
        let (ends, times) = (self.ends.clone(), self.times.clone());
        Some(Self { bytes, packed_at, first: self.first, ends, times })
    }

    /// A block of the record that stands for all of its own; `None` if it is damaged.
    pub(super) fn of_packed(first: u64, record: &[u8]) -> Option<Self> {
        let mut head = Bytes(record.get(1..)?);
        let count = head.count().filter(|count| *count <= MOST_TICKS)?;
        let (mut ends, mut end) = (Vec::new(), 0usize);
        for _ in 0..count {
            end = end.checked_add(usize::try_from(head.number()?).ok()?)?;
            ends.push(end);
        }
        let packed_at = record.len() - head.0.len();
        if end > most_unpacked(record.len()) {
            return None;
        }
        let bytes = inflate(head.0, end)?;
        let (whole, packed_at) = (record.to_vec(), Some(packed_at));
        let mut block = Self { bytes: whole, packed_at, first, ends, times: Vec::new() };
        split(&bytes, &block.ends.clone()).for_each(|record| block.note_time(record));
        Some(block)
    }

    /// Whether it has the first ticks of a block that was packed later.
    pub(super) fn is_replaced_by(&self, packed: &Self) -> bool {
        self.packed_at.is_none() && packed.first == self.first && packed.len() >= self.len()
    }
}

/// It takes some milliseconds a block.
const LEVEL: Compression = Compression::new(3);

/// The bytes that were compressed, if they are so many.
fn inflate(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut all = Vec::with_capacity(len);
    DeflateDecoder::new(bytes).take(len as u64 + 1).read_to_end(&mut all).ok()?;
    (all.len() == len).then_some(all)
}

fn split<'a>(bytes: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let begins = [0].into_iter().chain(ends.iter().copied());
    begins.zip(ends).map(|(begin, end)| bytes.get(begin..*end).unwrap_or_default())
}
