//! Slices: how many of the observations that have left the ring lie in which bucket.
//!
//! Time is divided in slices of a quarter of the window. Slice `n` begins `n` lengths after 1970.
//! A series has five *places* for slices, and slice `n` uses place `n % 5`, so that a window has
//! a place for each slice that has a part of it. The buckets are the native ones of schema 4
//! (`buckets/native.rs`), 16 for each factor of two.
//!
//! A word counts the observations of one bucket in one place, and names their slice:
//!
//! ```text
//!   slice, its lowest 32 bits : 32 | count : 32
//! ```
//!
//! An observation that finds the name of an earlier slice begins the word anew, with 1. If it finds the
//! next slice of its place, it comes late, and no window has it any more. So nothing
//! is ever cleared, no writer waits for another, and a writer that is killed leaves each word
//! whole.
//!
//! # Where the words are
//!
//! ```text
//!   ring's first segment   behind the samples, for each place: lost, zero, −∞, +∞
//!   near, 32 segments      an octave each: for each place 16 buckets
//!   far, 84 segments       51 octaves each, of one sign
//! ```
//!
//! A near segment may be any octave's; its `tag` names it. An octave looks at four of them, the
//! first by its number, and takes the first that is free. So 32 neighbouring octaves each have one.
//! An octave that finds all four taken is counted in the far segment that has its place. Segments
//! stay as long as their series, so an octave finds the same one each time.
//!
//! # Invariants
//!
//! 1. Every finite float has an octave, and every octave a far segment: no range of values makes
//!    buckets wider, and none takes more steps to count.
//! 2. A word that counts for a slice never counts for an earlier one later, unless the clock was
//!    set back. A reader counts a word if its slice is among the latest five, or is the next one.
//! 3. An observation that cannot be counted, because the region has no room for its segment or its
//!    word is full, is counted as lost: a window that lost any has no quantiles, rather than wrong
//!    ones.

use talea_region::{Cell, Segment, Segments};

use super::storage::{KINDS, RING_SEGMENTS, mark, segment};
use super::window::SLICES as PLACES;
use crate::histogram::buckets::{bucket_of, upper_bound};

/// The schema of the buckets: a bucket's middle is within 2.17 % of all values in it.
const SCHEMA: i8 = 4;
/// Buckets of an octave.
const BUCKETS: usize = 1 << SCHEMA;
/// Words of an octave.
const OCTAVE: usize = PLACES * BUCKETS;

/// The octave of the smallest float, 2^−1074: an octave n holds (2^n, 2^(n+1)].
const FIRST_OCTAVE: i32 = -1075;
/// The octave of the largest float.
const LAST_OCTAVE: i32 = 1023;
const OCTAVES: usize = (LAST_OCTAVE - FIRST_OCTAVE) as usize + 1;

/// The segments that any octave may have.
const NEAR: usize = 32;
/// How many of these an octave looks at.
const TRIES: usize = 4;
/// The first octave that may have one: the octave of the smallest normal float. The numbers of these
/// octaves, of either sign, fit into the `tag` of a segment.
const FIRST_NEAR: i32 = -1022;
const NEAR_OCTAVES: usize = (LAST_OCTAVE - FIRST_NEAR) as usize + 1;
/// Octaves of a far segment: as many as a segment has room for.
const SPAN: usize = 4095 / OCTAVE;
/// Far segments of one sign.
const SPANS: usize = OCTAVES.div_ceil(SPAN);

const FIRST_NEAR_SEGMENT: usize = RING_SEGMENTS.len();
const FIRST_FAR_SEGMENT: usize = FIRST_NEAR_SEGMENT + NEAR;
/// Segments of a series, with the segments of the ring.
pub(super) const SEGMENTS: usize = FIRST_FAR_SEGMENT + 2 * SPANS;

/// The segments that an octave each has.
#[cfg(test)]
pub(super) fn near_segments() -> std::ops::Range<usize> {
    FIRST_NEAR_SEGMENT..FIRST_FAR_SEGMENT
}

/// The word of a place that counts what could not be counted elsewhere.
const LOST: usize = 0;

pub(super) fn add(segments: Segments, slice: u64, value: f64) {
    let place = (slice % PLACES as u64) as usize;
    let mark = |kind| mark(segments, place * KINDS + kind);
    let cell = match Bucket::of(value) {
        Bucket::Mark(kind) => mark(kind),
        Bucket::Native(octave, bucket) => octave.cell(segments, place * BUCKETS + bucket),
    };
    if !cell.is_some_and(|cell| count(cell, slice)) {
        mark(LOST).map(|lost| count(lost, slice));
    }
}

/// Counts one in a word; false if that is full. One that is so late that the next slice of its place has the
/// word is dropped. A slice that is further ahead was counted before the clock was set back.
fn count(cell: Cell, slice: u64) -> bool {
    let name = slice << 32;
    let mut has_room = true;
    cell.update(|word| {
        let ahead = ((word >> 32) as u32).wrapping_sub(slice as u32);
        if ahead == PLACES as u32 && word & COUNT > 0 {
            return None;
        }
        let before = if word & !COUNT == name { word & COUNT } else { 0 };
        has_room = before < COUNT;
        has_room.then_some(name | (before + 1))
    });
    has_room
}

const COUNT: u64 = u32::MAX as u64;

/// How many observations of the slices that a window has a word counts.
fn counted(word: u64, latest: u64) -> u64 {
    // As `has`, of the lowest bits.
    let behind = (latest as u32).wrapping_sub((word >> 32) as u32) as i32;
    if (-1..PLACES as i32).contains(&behind) { word & COUNT } else { 0 }
}

/// Whether an observation of a slice is in the window, while a slice is the latest.
pub(super) fn has(slice: u64, latest: u64) -> bool {
    has_come(slice, latest) && slice.saturating_add(PLACES as u64) > latest
}

/// Whether a slice is not of a time to come, as it is after the clock was set back. One slice is
/// allowed for, since the clock of a reader may be a little behind the clock of a writer.
pub(super) fn has_come(slice: u64, latest: u64) -> bool {
    slice <= latest.saturating_add(1)
}

enum Bucket {
    Mark(usize),
    /// In which bucket of which octave.
    Native(Octave, usize),
}

/// The values of the marks that are no octave's, behind the mark of lost observations.
const MARKED: [f64; KINDS - 1] = [0.0, f64::NEG_INFINITY, f64::INFINITY];

impl Bucket {
    fn of(value: f64) -> Self {
        if let Some(n) = MARKED.iter().position(|&marked| marked == value) {
            return Self::Mark(1 + n);
        }
        // One lower than Prometheus' numbers, so that an octave has 16 in a row.
        let bucket = bucket_of(value.abs(), SCHEMA) - 1;
        let (octave, bucket) = (bucket >> SCHEMA, bucket.rem_euclid(BUCKETS as i32) as usize);
        Self::Native(Octave { octave, is_negative: value < 0.0 }, bucket)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Octave {
    octave: i32,
    is_negative: bool,
}

impl Octave {
    fn cell(self, segments: Segments, n: usize) -> Option<Cell> {
        let (segment, n) = match self.near(segments) {
            Near::Has(segment) => (segment, n),
            Near::NoRoom => return None,
            Near::AllTaken => {
                let (far, nth) = self.far();
                (segment(segments, far, SPAN * OCTAVE, 0)?, nth * OCTAVE + n)
            }
        };
        segments.cell(segment, n)
    }

    /// Its near segment, made if there is a free one.
    fn near(self, segments: Segments) -> Near {
        let Some(tag) = self.tag() else { return Near::AllTaken };
        // The segments of negative values begin after half of all.
        let first = (self.octave - FIRST_NEAR) as usize + NEAR / 2 * usize::from(self.is_negative);
        for n in first..first + TRIES {
            let n = FIRST_NEAR_SEGMENT + n % NEAR;
            match segment(segments, n, OCTAVE, tag) {
                Some(segment) if segment.tag() == tag => return Near::Has(segment),
                Some(_) => {}
                None => return Near::NoRoom,
            }
        }
        Near::AllTaken
    }

    /// The `tag` of its near segment; `None` if it cannot have one.
    fn tag(self) -> Option<u16> {
        let n = usize::try_from(self.octave - FIRST_NEAR).ok()?;
        Some(1 + (n + NEAR_OCTAVES * usize::from(self.is_negative)) as u16)
    }

    fn of_tag(tag: u16) -> Option<Self> {
        let n = usize::from(tag).checked_sub(1).filter(|&n| n < 2 * NEAR_OCTAVES)?;
        let octave = FIRST_NEAR + (n % NEAR_OCTAVES) as i32;
        Some(Self { octave, is_negative: n >= NEAR_OCTAVES })
    }

    /// Its far segment, and which of the octaves there it is.
    fn far(self) -> (usize, usize) {
        let n = (self.octave - FIRST_OCTAVE) as usize;
        let far = FIRST_FAR_SEGMENT + SPANS * usize::from(self.is_negative) + n / SPAN;
        (far, n % SPAN)
    }

    fn of_far(segment: usize, nth: usize) -> Self {
        let n = segment - FIRST_FAR_SEGMENT;
        let octave = FIRST_OCTAVE + (n % SPANS * SPAN + nth) as i32;
        Self { octave, is_negative: n >= SPANS }
    }

    /// The value that stands for a bucket: within 2.17 % of each in it, as it is as far from the
    /// lower bound as from the upper one, relative to each.
    fn middle(self, bucket: usize) -> f64 {
        let bucket = self.octave * BUCKETS as i32 + bucket as i32 + 1;
        // The upper bound of the last one is 2^1024, the lower bound of the first one rounds to 0.
        let upper = upper_bound(bucket, SCHEMA).min(f64::MAX);
        let lower = upper_bound(bucket - 1, SCHEMA).max(f64::from_bits(1));
        let middle = lower + (upper - lower) / (1.0 + upper / lower);
        if self.is_negative { -middle } else { middle }
    }
}

enum Near {
    Has(Segment),
    /// The region has no room for it.
    NoRoom,
    AllTaken,
}

/// Calls `each` with the values of a segment that was copied, and how many observations of the
/// window each stands for. `latest` is the latest slice of the window.
pub(super) fn read(
    (n, tag): (usize, u16),
    words: &[u64],
    latest: u64,
    mut each: impl FnMut(f64, u64),
) {
    for (nth, words) in words.chunks_exact(OCTAVE).enumerate() {
        let octave = match n {
            FIRST_FAR_SEGMENT..SEGMENTS => Octave::of_far(n, nth),
            FIRST_NEAR_SEGMENT..FIRST_FAR_SEGMENT => match Octave::of_tag(tag) {
                Some(octave) => octave,
                None => return,
            },
            _ => return,
        };
        for bucket in 0..BUCKETS {
            match (0..PLACES).map(|place| counted(words[place * BUCKETS + bucket], latest)).sum() {
                0 => {}
                count => each(octave.middle(bucket), count),
            }
        }
    }
}

/// Reads the marks behind the ring's first samples. Returns how many observations were lost.
pub(super) fn read_marks(words: &[u64], latest: u64, mut each: impl FnMut(f64, u64)) -> u64 {
    let count = |kind| {
        let words = words.iter().skip(kind).step_by(KINDS);
        words.map(|&word| counted(word, latest)).sum()
    };
    for (n, value) in MARKED.into_iter().enumerate() {
        match count(1 + n) {
            0 => {}
            count => each(value, count),
        }
    }
    count(LOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_octave_has_its_own_name_and_place() {
        let mut names = std::collections::HashSet::new();
        for is_negative in [false, true] {
            for octave in FIRST_OCTAVE..=LAST_OCTAVE {
                let octave = Octave { octave, is_negative };
                let (far, nth) = octave.far();
                assert!(far < SEGMENTS && nth < SPAN);
                assert_eq!(Octave::of_far(far, nth), octave);
                assert!(names.insert((far, nth)));
                if let Some(tag) = octave.tag() {
                    assert!(tag < 1 << 12, "{tag}");
                    assert_eq!(Octave::of_tag(tag), Some(octave));
                }
            }
        }
        assert_eq!(Octave::of_tag(0), None);
        assert_eq!(Octave::of_tag(u16::MAX), None);
    }

    proptest! {
        #[test]
        fn the_middle_of_a_bucket_is_near_each_value_in_it(
            value in any::<f64>().prop_filter("finite, not 0", |x| x.is_finite() && *x != 0.0),
        ) {
            let Bucket::Native(octave, bucket) = Bucket::of(value) else { panic!("{value}") };
            let middle = octave.middle(bucket);
            // The smallest floats may not be closer than this.
            let step = f64::from_bits(1);
            prop_assert!((middle - value).abs() <= value.abs() * 0.0217 + step, "{middle}, {value}");
        }

        #[test]
        fn a_word_counts_for_one_slice(slices in prop::collection::vec(0..40_u64, 1..200)) {
            let mut word = 0_u64;
            let mut model = (0, 0);
            for slice in slices {
                let before = if word & !COUNT == slice << 32 { word & COUNT } else { 0 };
                word = slice << 32 | (before + 1);
                model = if model.0 == slice { (slice, model.1 + 1) } else { (slice, 1) };
                for latest in 0..50 {
                    let expected = if has(model.0, latest) { model.1 } else { 0 };
                    prop_assert_eq!(counted(word, latest), expected);
                }
            }
        }
    }

    #[test]
    fn the_largest_and_the_smallest_floats_are_within_the_error() {
        for value in [f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), -f64::MAX, 1.0, -1.0] {
            let Bucket::Native(octave, bucket) = Bucket::of(value) else { panic!("{value}") };
            let error = (octave.middle(bucket) / value - 1.0).abs();
            assert!(error <= 0.0217, "{value}: {error}");
        }
        for value in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY] {
            let Bucket::Mark(kind) = Bucket::of(value) else { panic!("{value}") };
            assert_eq!(MARKED[kind - 1], value);
        }
    }
}
