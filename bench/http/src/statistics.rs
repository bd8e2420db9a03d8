//! How sure a difference is: the mean over rounds and its 95 % interval, by Student's t
//! on paired differences. (Student, "The probable error of a mean", Biometrika 6, 1908.)
//!
//! The mean, as what is left to chance is mostly how ticks fall, which is symmetric, and
//! the mean makes use of all of them.

use serde::Serialize;

/// An estimate and its interval. The interval is unknown if there is only one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Estimate {
    /// Of each round's difference, this less that.
    pub(crate) fn of_differences(this: &[f64], that: &[f64]) -> Self {
        mean(&this.iter().zip(that).map(|(this, that)| this - that).collect::<Vec<_>>())
    }

    /// Of each round's ratio, this to that: the geometric mean, so that the ratio of that
    /// to this is its inverse.
    pub(crate) fn of_ratios(this: &[f64], that: &[f64]) -> Self {
        let logarithms: Vec<_> =
            this.iter().zip(that).map(|(this, that)| (this / that).ln()).collect();
        let Self { value, low, high } = mean(&logarithms);
        Self { value: value.exp(), low: low.map(f64::exp), high: high.map(f64::exp) }
    }

    /// How far from 0 the truth may be.
    pub(crate) fn farthest(&self) -> Option<f64> {
        Some(self.low?.abs().max(self.high?.abs()))
    }
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        0 => (values[half - 1] + values[half]) / 2.0,
        _ => values[half],
    }
}

fn mean(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return Estimate { value, low: None, high: None };
    }
    let variance = values.iter().map(|x| (x - value).powi(2)).sum::<f64>() / (n - 1.0);
    let reach = t(values.len() - 1) * (variance / n).sqrt();
    Estimate { value, low: Some(value - reach), high: Some(value + reach) }
}

/// The value that Student's t stays within, on both sides, with a probability of 95 %.
fn t(freedom: usize) -> f64 {
    const FEW: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if let Some(&known) = freedom.checked_sub(1).and_then(|place| FEW.get(place)) {
        return known;
    }
    // Abramowitz and Stegun, 26.7.5, from the normal distribution's quantile.
    let (x, n) = (1.959_964_f64, freedom as f64);
    let first = (x.powi(3) + x) / 4.0;
    let second = (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0;
    let third = (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0;
    x + first / n + second / n.powi(2) + third / n.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-3)
    }

    #[test]
    fn quantiles_of_t_are_those_of_the_tables() {
        for (freedom, expected) in
            [(1, 12.706), (10, 2.228), (11, 2.201), (19, 2.093), (39, 2.023), (120, 1.980)]
        {
            assert!(near(Some(t(freedom)), expected), "{freedom}: {}", t(freedom));
        }
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[9.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn differences_are_paired() {
        // What all rounds share cancels out: 1, 2 and 3 are left.
        let found = Estimate::of_differences(&[101.0, 12.0, 1003.0], &[100.0, 10.0, 1000.0]);
        assert!(near(Some(found.value), 2.0));
        assert!(near(found.low, 2.0 - 4.303 / 3f64.sqrt()), "{found:?}");
        assert!(near(found.high, 2.0 + 4.303 / 3f64.sqrt()), "{found:?}");
        assert!(near(found.farthest(), 2.0 + 4.303 / 3f64.sqrt()));
    }

    #[test]
    fn a_ratio_is_the_inverse_of_its_inverse() {
        let (this, that) = ([1.0, 3.0, 2.0], [2.0, 2.0, 2.5]);
        let (found, inverse) =
            (Estimate::of_ratios(&this, &that), Estimate::of_ratios(&that, &this));
        assert!(near(Some(found.value * inverse.value), 1.0));
        assert!(near(found.low.zip(inverse.high).map(|(low, high)| low * high), 1.0));
    }

    #[test]
    fn one_round_says_nothing_of_its_spread() {
        let found = Estimate::of_ratios(&[3.0], &[2.0]);
        assert!(near(Some(found.value), 1.5));
        assert!(found.low.is_none() && found.high.is_none() && found.farthest().is_none());
    }
}
