//! Means over rounds with their intervals of 95 %, by `talea_statistics`.

use serde::Serialize;
use talea_statistics::{Mean, Ratio, mean};

/// An estimate and its interval. The interval is unknown if there is only one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Estimate {
    /// The mean of each round's difference, this less that.
    pub(crate) fn of_differences(this: &[f64], that: &[f64]) -> Self {
        let differences: Vec<_> = this.iter().zip(that).map(|(this, that)| this - that).collect();
        let interval = Mean::of(&differences).map(|mean| (mean.low, mean.high)).unzip();
        Self { value: mean(&differences), low: interval.0, high: interval.1 }
    }

    /// The geometric mean of each round's ratio, this to that; NaN if a figure is not above 0.
    pub(crate) fn of_ratios(this: &[f64], that: &[f64]) -> Self {
        let ratio = Ratio::paired(this, that);
        let (low, high) = ratio.and_then(|ratio| ratio.interval).unzip();
        Self { value: ratio.map_or(f64::NAN, |ratio| ratio.ratio), low, high }
    }

    /// How far from 0 the truth may be.
    pub(crate) fn farthest(&self) -> Option<f64> {
        Some(self.low?.abs().max(self.high?.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_paired() {
        // The part that a round's figures share cancels out: 1, 2 and 3 are left.
        let found = Estimate::of_differences(&[101.0, 12.0, 1003.0], &[100.0, 10.0, 1000.0]);
        let half = 4.303 / 3f64.sqrt();
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-3;
        assert!(found.value == 2.0 && near(found.low, 2.0 - half), "{found:?}");
        assert!(near(found.high, 2.0 + half) && near(found.farthest(), 2.0 + half), "{found:?}");
    }

    #[test]
    fn one_round_has_no_interval() {
        let found = [Estimate::of_ratios(&[3.0], &[2.0]), Estimate::of_differences(&[3.5], &[2.0])];
        for found in found {
            assert!((found.value - 1.5).abs() < 1e-9, "{found:?}");
            assert!(found.low.is_none() && found.high.is_none() && found.farthest().is_none());
        }
    }
}
