//! The ring of the latest samples.
//!
//! A writer takes the next place, and moves the sample that was there to a slice. Readers copy the
//! words of a place one after the other, so they may see the stamp of one sample with the value of
//! the next: that sample then counts as older than it is.

use talea_region::{Cell, Segments};

use super::slices;
use super::storage::{FIRST_PLACES, PLACE, RING_SEGMENTS, first_segment, segment};
use super::window::Window;

/// Samples that it has room for.
pub(super) const PLACES: usize = 128;
/// Words of the others.
const OTHERS: usize = (PLACES - FIRST_PLACES) * PLACE;
/// A writer is writing, or was killed while it wrote; readers skip such a place.
pub(super) const BUSY: u64 = 1;
/// The first stamp. A stamp of 0 says that the place was never used.
const FIRST: u64 = 2;
/// How many places are tried.
const TRIES: usize = 4;

/// A sample: when it was observed, in milliseconds since 1970, and what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) at: u64,
    pub(super) value: f64,
}

/// Puts a sample in, and the one that it takes the place of into its slice. Nothing is done
/// if the region has no room.
pub(super) fn put(next: Cell, segments: Segments, window: Window, sample: Sample) {
    if first_segment(segments).is_none() {
        return;
    }
    let evicted = (0..TRIES).find_map(|_| {
        let place = next.add_and_get(1).wrapping_sub(1) as usize % PLACES;
        exchange(segments, place, sample)
    });
    let leaving = match evicted {
        Some(Exchanged::Empty) => return,
        Some(Exchanged::Full(before)) => before,
        // All of them are being written to.
        None => sample,
    };
    let slice = window.slice_of(leaving.at);
    // A sample older than the window is dropped. They come in any order.
    if slices::has(slice, slice.max(window.slice_of(sample.at))) {
        slices::add(segments, slice, leaving.value);
    }
}

/// The cells of a place, or if there is no room for it, of one among the first.
pub(super) fn cells(segments: Segments, place: usize) -> Option<[Cell; 2]> {
    let beyond = place.checked_sub(FIRST_PLACES);
    let found =
        beyond.and_then(|place| Some((segment(segments, RING_SEGMENTS[1], OTHERS, 0)?, place)));
    let (segment, place) = match found {
        Some(found) => found,
        None => (first_segment(segments)?, place % FIRST_PLACES),
    };
    let at = place * PLACE;
    Some([segments.cell(segment, at)?, segments.cell(segment, at + 1)?])
}

enum Exchanged {
    Empty,
    Full(Sample),
}

/// Puts a sample in a place; `None` if another writer is doing so.
fn exchange(segments: Segments, place: usize, new: Sample) -> Option<Exchanged> {
    let [stamp, value] = cells(segments, place)?;
    let (mut before, mut old) = (BUSY, 0);
    stamp.update(|seen| {
        before = seen;
        (seen != BUSY).then_some(BUSY)
    });
    if before == BUSY {
        return None;
    }
    value.update(|seen| {
        old = seen;
        Some(new.value.to_bits())
    });
    stamp.set(new.at + FIRST);
    Some(match before.checked_sub(FIRST) {
        Some(at) => Exchanged::Full(Sample { at, value: f64::from_bits(old) }),
        None => Exchanged::Empty,
    })
}

/// The samples in a copied segment of the ring, and the words behind them.
pub(super) fn read(words: &[u64]) -> (impl Iterator<Item = Sample>, &[u64]) {
    let samples = match words.len() {
        OTHERS => OTHERS,
        len => len.min(FIRST_PLACES * PLACE),
    };
    let (samples, rest) = words.split_at(samples);
    let samples = samples.chunks_exact(PLACE).filter_map(|place| {
        let at = place[0].checked_sub(FIRST)?;
        Some(Sample { at, value: f64::from_bits(place[1]) })
    });
    (samples, rest)
}
