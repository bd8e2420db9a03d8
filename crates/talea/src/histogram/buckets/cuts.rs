//! Whole numbers among ascending ones that cut their range: found by their octave, of
//! which few cuts lie in each, rather than searched.

/// More cuts than this in an octave are searched.
const FEW: usize = 4;
/// So many are usual: thresholds as 1, 2.5, 5 and 10 have no more.
const USUAL: usize = 2;

#[derive(Debug)]
pub(super) struct Cuts {
    /// The thresholds in each octave, padded with numbers that are above all values.
    octaves: Box<[Within; 64]>,
    /// How many are below each octave.
    before: Box<[usize; 64]>,
    /// Whether an octave has more than the usual number.
    are_dense: bool,
}

/// On one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Within([u64; FEW]);

impl Default for Cuts {
    fn default() -> Self {
        let none = Within([u64::MAX; FEW]);
        Self { octaves: Box::new([none; 64]), before: Box::new([0; 64]), are_dense: false }
    }
}

impl Cuts {
    /// `None` if there are many in an octave.
    pub(super) fn new(all: &[u64]) -> Option<Self> {
        let mut cuts = Self::default();
        for ((octave, before), n) in cuts.octaves.iter_mut().zip(&mut *cuts.before).zip(0..) {
            *before = all.partition_point(|&cut| cut < 1 << n);
            let within = all[*before..].iter().take_while(|&&cut| (cut | 1).ilog2() == n);
            for (at, &cut) in within.enumerate() {
                *octave.0.get_mut(at)? = cut;
            }
        }
        cuts.are_dense = cuts.octaves.iter().any(|octave| octave.0[USUAL] != u64::MAX);
        Some(cuts)
    }

    #[inline]
    pub(super) fn below(&self, kept: u64) -> usize {
        self.before[octave(kept)] + self.within(kept)
    }

    /// How many of its octave are below a number.
    #[inline]
    pub(super) fn within(&self, kept: u64) -> usize {
        let Within([usual @ .., third, fourth]) = &self.octaves[octave(kept)];
        let is_below = |cut: &u64| usize::from(*cut < kept);
        let below: usize = usual.iter().map(is_below).sum();
        if self.are_dense { below + is_below(third) + is_below(fourth) } else { below }
    }
}

#[inline]
fn octave(kept: u64) -> usize {
    kept.checked_ilog2().unwrap_or(0) as usize % 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_that_a_search_finds() {
        let all = [1, 5, 6, 7, 8, 9, 100, 1 << 40, u64::MAX - 1, u64::MAX];
        let cuts = Cuts::new(&all).unwrap();
        let near = all.iter().flat_map(|&cut| [cut - 1, cut, cut.saturating_add(1)]);
        for kept in near.chain([0, 50, 1 << 63]) {
            let below = all.partition_point(|&cut| cut < kept);
            assert_eq!(cuts.below(kept), below, "{kept}");
            let octave = (kept | 1).ilog2();
            let within = all.iter().filter(|&&cut| cut.ilog2() == octave && cut < kept).count();
            assert_eq!(cuts.within(kept), within, "{kept}");
        }
    }

    #[test]
    fn many_of_an_octave_are_left_to_a_search() {
        assert!(Cuts::new(&[8, 9, 10, 11]).is_some());
        assert!(Cuts::new(&[8, 9, 10, 11, 12]).is_none());
    }
}
