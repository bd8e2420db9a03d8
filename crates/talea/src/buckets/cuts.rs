//! Whole numbers among ascending ones that cut their range: found by their octave, of
//! which few cuts lie in each, rather than searched.

/// More cuts than this in an octave are searched.
const FEW: usize = 4;
/// So many are usual: thresholds as 1, 2.5, 5 and 10 have no more.
const USUAL: usize = 2;

/// Cuts, by octave.
#[derive(Debug)]
pub(super) struct Cuts {
    octaves: Box<[Octave; 64]>,
    /// That an octave has more than is usual.
    are_dense: bool,
}

#[derive(Debug)]
struct Octave {
    /// How many cuts are below the octave.
    before: usize,
    /// Those in it, then numbers that are above all.
    within: [u64; FEW],
}

/// None.
impl Default for Cuts {
    fn default() -> Self {
        const NONE: Octave = Octave { before: 0, within: [u64::MAX; FEW] };
        Self { octaves: Box::new([NONE; 64]), are_dense: false }
    }
}

impl Cuts {
    /// `None` where there are many in an octave.
    pub(super) fn new(all: &[u64]) -> Option<Self> {
        let Self { mut octaves, .. } = Self::default();
        for (octave, n) in octaves.iter_mut().zip(0..) {
            octave.before = all.partition_point(|&cut| cut < 1 << n);
            let within = all[octave.before..].iter().take_while(|&&cut| (cut | 1).ilog2() == n);
            for (at, &cut) in within.enumerate() {
                *octave.within.get_mut(at)? = cut;
            }
        }
        let are_dense = octaves.iter().any(|octave| octave.within[USUAL] != u64::MAX);
        Some(Self { octaves, are_dense })
    }

    /// How many are below a number.
    #[inline]
    pub(super) fn below(&self, kept: u64) -> usize {
        self.octave(kept).before + self.within(kept)
    }

    /// How many of its octave are below a number.
    #[inline]
    pub(super) fn within(&self, kept: u64) -> usize {
        let [usual @ .., third, fourth] = &self.octave(kept).within;
        let is_below = |cut: &u64| usize::from(*cut < kept);
        let below: usize = usual.iter().map(is_below).sum();
        if self.are_dense { below + is_below(third) + is_below(fourth) } else { below }
    }

    #[inline]
    fn octave(&self, kept: u64) -> &Octave {
        &self.octaves[kept.checked_ilog2().unwrap_or(0) as usize % 64]
    }
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
