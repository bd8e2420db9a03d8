//! The ring of the latest samples.
//!
//! Who observes takes the next place, and the sample that was there out of it. Readers copy
//! a place's words one after the other, so they may see the stamp of one sample with the
//! value of the next: that one then counts as some time older than it is.

use talea_region::{Cell, Segments};

use super::Window;
use super::slices::Slice;

/// Samples that it has room for.
pub(super) const PLACES: usize = 128;
/// Words of a place: its stamp and its value.
pub(super) const PLACE: usize = 2;
/// How many places come first.
const FIRST_PLACES: usize = 16;
/// Which segment has these, and which the others.
pub(super) const SEGMENTS: [usize; 2] = [0, 7];
/// Somebody is writing, or was killed in the middle; such a place is passed over.
pub(super) const BUSY: u64 = 1;
/// What stamps are counted from: 0 says that nothing was ever there.
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
/// where the region has no room.
pub(super) fn put(next: Cell, segments: Segments, window: Window, sample: Sample) {
    if cells(segments, 0).is_none() {
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
    // One that the window has left is forgotten.
    if leaving.at >= window.begin(sample.at) {
        if let Some(slice) = Slice::of(segments, window, leaving.at) {
            slice.add(leaving.value);
        }
    }
}

/// The cells of a place, or where there is no room for it, of one among the first.
pub(super) fn cells(segments: Segments, place: usize) -> Option<[Cell; 2]> {
    let make = |n: usize, places| segments.make(SEGMENTS[n], places * PLACE, 0);
    let beyond = place.checked_sub(FIRST_PLACES);
    let found = beyond.and_then(|place| Some((make(1, PLACES - FIRST_PLACES)?, place)));
    let (segment, place) = match found {
        Some(found) => found,
        None => (make(0, FIRST_PLACES)?, place % FIRST_PLACES),
    };
    let at = place * PLACE;
    Some([segments.cell(segment, at)?, segments.cell(segment, at + 1)?])
}

enum Exchanged {
    Empty,
    Full(Sample),
}

/// Puts a sample in a place; `None` where somebody else is doing so.
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

/// The samples of a ring that was copied.
pub(super) fn samples(words: &[u64]) -> impl Iterator<Item = Sample> {
    words.chunks_exact(PLACE).filter_map(|place| {
        let at = place[0].checked_sub(FIRST)?;
        Some(Sample { at, value: f64::from_bits(place[1]) })
    })
}
