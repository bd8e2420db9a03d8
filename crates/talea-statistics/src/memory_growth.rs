//! How the memory of a service grows during a load.
//!
//! The line through the samples is that of Theil and Sen: its slope is the median of the slopes of all pairs, so
//! that single peaks, such as those before a garbage collection, do not move it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::figures::{bytes, measured};
use crate::median;

/// Fewer samples say nothing.
const FEWEST: usize = 10;
/// The line is drawn through the medians of at most this many parts of the time.
const PARTS: usize = 100;

/// The growth of a service's memory, by a straight line through its samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryGrowth {
    /// From the first sample to the last, as a share of the memory at the begin; negative if it shrank.
    pub share: f64,
    /// Negative if it shrank.
    pub bytes_per_hour: f64,
}

impl MemoryGrowth {
    /// The growth by samples, each its time in seconds and the bytes, in the order of their times. `None` of fewer
    /// than ten, or of no memory.
    pub fn of(samples: &[(f64, f64)]) -> Option<Self> {
        if samples.len() < FEWEST {
            return None;
        }
        let parts: Vec<(f64, f64)> = samples
            .chunks(samples.len().div_ceil(PARTS))
            .map(|part| (median(part.iter().map(|it| it.0)), median(part.iter().map(|it| it.1))))
            .collect();
        let slope = median(slopes(&parts));
        let at_0 = median(parts.iter().map(|(at, memory)| memory - slope * at));
        let (begin, end) = (samples.first()?.0, samples.last()?.0);
        let share = slope * (end - begin) / (at_0 + slope * begin);
        let growth = Self { share, bytes_per_hour: slope * 3600.0 };
        Some(growth).filter(|it| it.share.is_finite())
    }
}

impl fmt::Display for MemoryGrowth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.bytes_per_hour < 0.0 { "−" } else { "+" };
        let per_hour = bytes(self.bytes_per_hour.abs().round() as u64);
        write!(f, "{}, {sign}{per_hour} an hour", share_of_growth(self.share))
    }
}

/// A growth by a share, as it is shown: `+12.0 %`.
pub fn share_of_growth(share: f64) -> String {
    match (share == 0.0, share < 0.0) {
        (true, _) => "+0 %".to_owned(),
        (_, true) => format!("−{} %", measured(-share * 100.0)),
        (_, false) => format!("+{} %", measured(share * 100.0)),
    }
}

/// The slopes of all pairs of points at different times.
fn slopes(points: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    let pairs = points
        .iter()
        .enumerate()
        .flat_map(|(n, from)| points[n + 1..].iter().map(move |to| (to.0 - from.0, to.1 - from.1)));
    pairs.filter(|(time, _)| *time > 0.0).map(|(time, memory)| memory / time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1024.0 * 1024.0;

    fn growth(samples: usize, memory: impl Fn(f64) -> f64) -> Option<MemoryGrowth> {
        let times = (0..samples).map(|n| n as f64 * 0.1);
        MemoryGrowth::of(&times.map(|at| (at, memory(at))).collect::<Vec<_>>())
    }

    #[test]
    fn a_leak_is_a_slope_and_what_comes_and_goes_is_none() {
        for (name, expected, memory) in [
            ("a leak", 0.2, (|at| 100.0 * MIB + at * MIB / 3.0) as fn(f64) -> f64),
            ("nothing", 0.0, |_| 100.0 * MIB),
            ("a leak with peaks", 0.2, |at| {
                let peak = if at.fract() < 0.15 { 900.0 } else { 0.0 };
                (100.0 + peak) * MIB + at * MIB / 3.0
            }),
            ("less", -0.3, |at| 100.0 * MIB - at * MIB / 2.0),
        ] {
            let found = growth(601, memory).unwrap();
            assert!((found.share - expected).abs() < 0.01, "{name}: {found:?}");
            let per_hour = expected * 100.0 * MIB * 60.0;
            assert!((found.bytes_per_hour - per_hour).abs() < 0.05 * 100.0 * MIB * 60.0, "{name}");
        }
        let found = growth(601, |at| (100.0 + 30.0 * (at / 7.0).fract()) * MIB).unwrap();
        assert!(found.share.abs() < 0.05, "a collector: {found:?}");
    }

    #[test]
    fn too_little_is_no_growth() {
        assert_eq!(growth(FEWEST - 1, |_| MIB), None);
        assert_eq!(growth(600, |_| 0.0), None, "of nothing there is no share");
        assert_eq!(growth(FEWEST, |_| MIB).map(|it| it.share), Some(0.0));
    }

    #[test]
    fn a_growth_is_shown_with_its_sign() {
        for (share, bytes_per_hour, shown) in [
            (0.12, 3.0 * MIB, "+12.0 %, +3.0 MiB an hour"),
            (-0.5, -2048.0, "−50.0 %, −2.0 KiB an hour"),
            (0.0, 0.0, "+0 %, +0 bytes an hour"),
        ] {
            assert_eq!(MemoryGrowth { share, bytes_per_hour }.to_string(), shown);
        }
    }
}
