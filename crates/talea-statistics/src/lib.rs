//! Means, medians and ratios over the rounds of an experiment, with their intervals; [`figures`] writes
//! numbers as people read them.
//!
//! An interval holds the true value in 95 of 100 such experiments.

pub mod figures;
mod memory_growth;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::memory_growth::{MemoryGrowth, share_of_growth};

/// A mean over rounds, with the interval that holds the true one in 95 of 100 such experiments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The arithmetic mean; NaN of no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The median; NaN of no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => f64::NAN,
        (len, half) if len % 2 == 1 => values[half],
        (_, half) => (values[half - 1] + values[half]) / 2.0,
    }
}

impl Mean {
    /// The mean of some values, with an interval by Student's t distribution; none of fewer than two.
    pub fn of(values: &[f64]) -> Option<Self> {
        let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
        let (mean, variance) = moments(values);
        let half = students_t(degrees as f64) * (variance / values.len() as f64).sqrt();
        Some(Self { mean, low: mean - half, high: mean + half })
    }

    /// The mean of values that are each known within a share of themselves: the interval is no
    /// narrower than that. Rounds that agree show no more, since they may all be wrong alike.
    #[must_use]
    pub fn known_within(self, share: f64) -> Self {
        let least = self.mean.abs() * share;
        let (low, high) = (self.low.min(self.mean - least), self.high.max(self.mean + least));
        Self { low, high, ..self }
    }
}

/// How many times as much there was of something as of something else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio: the geometric mean over rounds.
    pub ratio: f64,
    /// The interval that holds the true one in 95 of 100 such experiments; none of a single round.
    pub interval: Option<(f64, f64)>,
}

impl Ratio {
    /// Of rounds that were run side by side: each pair has a ratio of its own, so that what changes
    /// from round to round for both is not counted. None where a number is not above 0, or there
    /// are none.
    pub fn paired(of: &[f64], to: &[f64]) -> Option<Self> {
        let (of, to) = (logarithms(of)?, logarithms(to)?);
        if of.len() != to.len() {
            return None;
        }
        let differences: Vec<f64> = of.iter().zip(&to).map(|(of, to)| of - to).collect();
        Some(Self {
            ratio: moments(&differences).0.exp(),
            interval: Mean::of(&differences).map(|mean| (mean.low.exp(), mean.high.exp())),
        })
    }

    /// Of rounds that were run apart, perhaps on other days: by Welch's test on the logarithms. None
    /// where a number is not above 0, or there are none.
    pub fn unpaired(of: &[f64], to: &[f64]) -> Option<Self> {
        let (of, to) = (logarithms(of)?, logarithms(to)?);
        let ((mean_of, variance_of), (mean_to, variance_to)) = (moments(&of), moments(&to));
        let difference = mean_of - mean_to;
        let both_repeat = of.len() > 1 && to.len() > 1;
        let interval = both_repeat.then(|| {
            let (n, m) = (of.len() as f64, to.len() as f64);
            let (a, b) = (variance_of / n, variance_to / m);
            if a + b == 0.0 {
                return (difference.exp(), difference.exp());
            }
            // Welch and Satterthwaite's degrees of freedom.
            let degrees = (a + b) * (a + b) / (a * a / (n - 1.0) + b * b / (m - 1.0));
            let half = students_t(degrees) * (a + b).sqrt();
            ((difference - half).exp(), (difference + half).exp())
        });
        Some(Self { ratio: difference.exp(), interval })
    }

    /// The ratio of values that are each known within a share of themselves: the interval, if there
    /// is one, is no narrower than that.
    #[must_use]
    pub fn known_within(self, share: f64) -> Self {
        let most = (1.0 + share) / (1.0 - share);
        Self {
            interval: self
                .interval
                .map(|(low, high)| (low.min(self.ratio / most), high.max(self.ratio * most))),
            ..self
        }
    }
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let logarithms: Vec<f64> = values
        .iter()
        .map(|value| (value.is_finite() && *value > 0.0).then(|| value.ln()))
        .collect::<Option<_>>()?;
    (!logarithms.is_empty()).then_some(logarithms)
}

/// Mean and sample variance; of one value the variance is 0.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (mean, squares / (count - 1.0).max(1.0))
}

/// The 97.5 % quantile of Student's t. Source: any table of it, to three decimals. Of degrees of
/// freedom that lie between two, the smaller is used, and from 31 on the value for 30: both are
/// wider than need be.
fn students_t(degrees: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let whole = degrees.floor().clamp(1.0, TABLE.len() as f64);
    TABLE[whole as usize - 1]
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.ratio)?;
        match self.interval {
            Some((low, high)) => write!(f, " ({low:.3} to {high:.3})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 0.001, "{found}, expected {expected}");
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert!(median([].into_iter()).is_nan());
    }

    #[test]
    fn an_interval_is_students() {
        // Mean 5, standard deviation 2.138, eight values: 2.365 · 2.138 / √8 = 1.788.
        let mean = Mean::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(mean.mean, 5.0);
        close(mean.high, 6.788);
        close(mean.low, 3.212);
        assert_eq!(Mean::of(&[1.0]), None);
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[3.0, 3.0]), Some(Mean { mean: 3.0, low: 3.0, high: 3.0 }));
    }

    #[test]
    fn a_paired_ratio_does_not_see_what_changes_for_both() {
        // The rounds differ a hundredfold; in each the one is twice the other.
        let ratio = Ratio::paired(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]).unwrap();
        close(ratio.ratio, 2.0);
        let (low, high) = ratio.interval.unwrap();
        close(low, 2.0);
        close(high, 2.0);
        let apart = Ratio::unpaired(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]).unwrap();
        close(apart.ratio, 2.0);
        let (low, high) = apart.interval.unwrap();
        assert!(low < 0.1 && high > 20.0, "{apart}");
    }

    #[test]
    fn welchs_interval_is_that_of_the_textbook() {
        // Logarithms 0, 1, 2 and 4, 5, 6: variances 1, four degrees of freedom, 2.776 · √(2/3).
        let of: Vec<f64> = [4f64, 5.0, 6.0].iter().map(|value| value.exp()).collect();
        let to: Vec<f64> = [0f64, 1.0, 2.0].iter().map(|value| value.exp()).collect();
        let (low, high) = Ratio::unpaired(&of, &to).unwrap().interval.unwrap();
        close(low.ln(), 4.0 - 2.2666);
        close(high.ln(), 4.0 + 2.2666);
    }

    #[test]
    fn a_single_round_has_a_ratio_and_no_interval() {
        let ratio = Ratio::paired(&[3.0], &[2.0]).unwrap();
        close(ratio.ratio, 1.5);
        assert_eq!(ratio.interval, None);
        assert_eq!(Ratio::unpaired(&[3.0], &[2.0]).unwrap().interval, None);
    }

    #[test]
    fn an_interval_is_no_narrower_than_its_values_are_known() {
        let alike = Mean::of(&[100.0, 100.0]).unwrap();
        assert_eq!(alike.known_within(0.01), Mean { mean: 100.0, low: 99.0, high: 101.0 });
        let spread = Mean::of(&[90.0, 110.0]).unwrap();
        assert_eq!(spread.known_within(0.01), spread);
        let ratio = Ratio::paired(&[102.0, 102.0], &[100.0, 100.0]).unwrap().known_within(0.01);
        let (low, high) = ratio.interval.unwrap();
        close(ratio.ratio, 1.02);
        close(low, 1.02 * 0.99 / 1.01);
        close(high, 1.02 * 1.01 / 0.99);
        let single = Ratio::paired(&[102.0], &[100.0]).unwrap();
        assert_eq!(single.known_within(0.01), single);
        assert_eq!(ratio.known_within(0.0), ratio);
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(Ratio::paired(&[1.0], &[0.0]), None);
        assert_eq!(Ratio::paired(&[], &[]), None);
        assert_eq!(Ratio::paired(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(Ratio::unpaired(&[f64::NAN], &[1.0]), None);
    }
}
