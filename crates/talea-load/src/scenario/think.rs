//! How long a client thinks after a response.

use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;

/// A distribution of times.
#[derive(Clone, Debug, PartialEq)]
pub enum Think {
    /// Evenly between two.
    Between(RangeInclusive<Duration>),
    /// Exponential, with this mean: as between arrivals at random.
    Exponential(Duration),
    /// Normal, with this mean and standard deviation; a negative one is drawn again.
    Normal(Duration, Duration),
}

impl Think {
    pub(crate) fn draw(&self, random: &mut Rng) -> Duration {
        match self {
            Self::Between(range) => {
                let [least, most] = [range.start(), range.end()]
                    .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                Duration::from_nanos(random.u64(least..=most))
            }
            Self::Exponential(mean) => mean.mul_f64(-(1.0 - random.f64()).ln()),
            Self::Normal(mean, deviation) => loop {
                // Box and Muller.
                let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
                let factor = radius * (std::f64::consts::TAU * random.f64()).cos();
                let seconds = mean.as_secs_f64() + factor * deviation.as_secs_f64();
                if seconds >= 0.0 {
                    break Duration::from_secs_f64(seconds);
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_times_have_the_mean_of_their_distribution_and_are_not_negative() {
        let ms = Duration::from_millis;
        for (think, mean) in [
            (Think::Between(ms(10)..=ms(30)), 0.02),
            (Think::Exponential(ms(20)), 0.02),
            (Think::Normal(ms(20), ms(2)), 0.02),
            // The mean of the positive half is √(2 ÷ π) deviations.
            (Think::Normal(ms(0), ms(20)), 0.02 * (2.0 / std::f64::consts::PI).sqrt()),
        ] {
            let mut random = Rng::with_seed(7);
            let drawn: f64 = (0..20_000).map(|_| think.draw(&mut random).as_secs_f64()).sum();
            assert!((drawn / 20_000.0 / mean - 1.0).abs() < 0.03, "{think:?}: {drawn}");
        }
    }
}
