//! Thresholds by their octave. A search among all of them for the first and the last of an octave takes most
//! of the time of an observation.

/// Ascending thresholds, found by the number of their octave.
#[derive(Debug)]
pub(super) struct ByOctave {
    pub(super) all: Vec<u64>,
    /// The octave of the first.
    first: usize,
    /// How many are below that octave, below each further one, and below the one after the last.
    before: Vec<usize>,
}

impl ByOctave {
    pub(super) fn new(all: Vec<u64>, octave: impl Fn(u64) -> usize) -> Self {
        let (first, last) = match all[..] {
            [first, .., last] => (octave(first), octave(last)),
            [only] => (octave(only), octave(only)),
            [] => return Self { all, first: 0, before: Vec::new() },
        };
        let before = (first..=last + 1)
            .map(|n| all.partition_point(|&threshold| octave(threshold) < n))
            .collect();
        Self { all, first, before }
    }

    /// The thresholds in an octave.
    #[inline]
    pub(super) fn of(&self, octave: usize) -> &[u64] {
        let place = octave.wrapping_sub(self.first);
        match self.before.get(place..place.saturating_add(2)) {
            Some(&[from, to]) => &self.all[from..to],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thresholds_of_an_octave_are_those_that_a_search_finds() {
        let octave = |kept: u64| kept.ilog2() as usize;
        for all in [&[][..], &[1], &[6], &[4, 5, 7, 8, 100, 1 << 40], &[1, 1 << 63, u64::MAX]] {
            let thresholds = ByOctave::new(all.to_vec(), octave);
            for n in (0..70).chain([usize::MAX - 1, usize::MAX]) {
                let expected: Vec<u64> =
                    all.iter().copied().filter(|&threshold| octave(threshold) == n).collect();
                assert_eq!(thresholds.of(n), expected, "{n} of {all:?}");
            }
        }
    }
}
