//! The layout of a series with samples: the ring's segments, and the slices' words behind its first
//! places.

use talea_region::{Cell, Segment, Segments};

use super::window::SLICES;

/// Words of a place: its stamp and its value.
pub(super) const PLACE: usize = 2;
pub(super) const FIRST_PLACES: usize = 16;
/// The segment of the first places, and the segment of the others.
pub(super) const RING_SEGMENTS: [usize; 2] = [0, 1];

/// The words of one slice behind the ring's first places.
pub(super) const KINDS: usize = 4;
/// Words of all slices there.
const MARKS: usize = SLICES * KINDS;

/// A segment of a series, made if it is not there; `None` if the region has no room for it.
#[inline]
pub(super) fn segment(segments: Segments, n: usize, cells: usize, tag: u16) -> Option<Segment> {
    segments.get(n).or_else(|| segments.make(n, cells, tag))
}

/// The segment of the first places, behind which the slices have some words.
pub(super) fn first_segment(segments: Segments) -> Option<Segment> {
    segment(segments, RING_SEGMENTS[0], FIRST_PLACES * PLACE + MARKS, 0)
}

/// One of the words that slices have behind the first places.
pub(super) fn mark(segments: Segments, n: usize) -> Option<Cell> {
    segments.cell(first_segment(segments)?, FIRST_PLACES * PLACE + n)
}
