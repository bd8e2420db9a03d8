//! Floats as whole multiples of a smallest step, which the unit decides.

use std::sync::Arc;

use metrics::Unit;
use talea::{Bytes, Count, Histogram, Seconds, Unit as _};

use crate::family::{FamilyRequest, Made};

/// Floats of which `STEPS` steps make one. They are shown under their own name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fixed<const STEPS: u64> {}

impl<const STEPS: u64> talea::Unit for Fixed<STEPS> {
    type Value = f64;
    const SUFFIX: &'static str = "";
    const PER_UNIT: f64 = STEPS as f64;
    const BUCKETS: &'static [f64] = ANY;

    /// Values that cannot be stored were refused before.
    #[inline]
    fn kept(value: f64) -> u64 {
        (value * Self::PER_UNIT).round() as u64
    }
}

impl<const STEPS: u64> Fixed<STEPS> {
    /// Whether a sum can hold it; false for NaN.
    #[inline]
    pub(crate) fn can_keep(value: f64) -> bool {
        value >= 0.0 && value * Self::PER_UNIT < u64::MAX as f64
    }
}

/// How a histogram's values are kept, and the buckets that suit them.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// Registers a histogram of that scale.
    pub(crate) open: fn(FamilyRequest<'_>) -> Made<metrics::Histogram>,
    pub(crate) buckets: &'static [f64],
}

impl Scale {
    /// By the unit, else by what the name ends in.
    pub(crate) fn of(unit: Option<Unit>, name: &str) -> Self {
        let Some(unit) = unit.or_else(|| implied_by(name)) else {
            return Self::with::<1_000_000>(ANY);
        };
        match unit {
            Unit::Seconds => Self::with::<1_000_000_000>(Seconds::BUCKETS),
            Unit::Milliseconds => Self::with::<1_000_000>(MILLISECONDS),
            Unit::Microseconds => Self::with::<1_000>(MICROSECONDS),
            Unit::Nanoseconds => Self::with::<1>(NANOSECONDS),
            Unit::Bytes => Self::with::<1>(Bytes::BUCKETS),
            Unit::Kibibytes => Self::with::<{ 1 << 10 }>(MANY_BYTES),
            Unit::Mebibytes => Self::with::<{ 1 << 20 }>(MANY_BYTES),
            Unit::Gibibytes => Self::with::<{ 1 << 30 }>(MANY_BYTES),
            Unit::Tebibytes => Self::with::<{ 1 << 40 }>(MANY_BYTES),
            Unit::BitsPerSecond => Self::with::<1>(Count::BUCKETS),
            Unit::KilobitsPerSecond => Self::with::<1_000>(Count::BUCKETS),
            Unit::MegabitsPerSecond => Self::with::<1_000_000>(Count::BUCKETS),
            Unit::GigabitsPerSecond => Self::with::<1_000_000_000>(Count::BUCKETS),
            Unit::TerabitsPerSecond => Self::with::<1_000_000_000_000>(Count::BUCKETS),
            Unit::Count | Unit::CountPerSecond => Self::with::<1_000>(Count::BUCKETS),
            Unit::Percent => Self::with::<1_000_000>(PERCENT),
        }
    }

    const fn with<const STEPS: u64>(buckets: &'static [f64]) -> Self {
        Self { open: open::<STEPS>, buckets }
    }
}

/// The unit that the ending of a name implies, if the metric has no description.
fn implied_by(name: &str) -> Option<Unit> {
    let (_, last) = name.rsplit_once('_')?;
    Some(match last {
        "seconds" => Unit::Seconds,
        "milliseconds" | "ms" => Unit::Milliseconds,
        "microseconds" | "us" => Unit::Microseconds,
        "nanoseconds" | "ns" => Unit::Nanoseconds,
        "bytes" => Unit::Bytes,
        _ => return None,
    })
}

/// The default buckets: a millisecond to three hours, if the values are seconds.
const ANY: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0,
    100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0,
];

// The buckets of seconds.
const MILLISECONDS: &[f64] = &[
    5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0,
    10000.0,
];

// Times in this unit are shorter.
const MICROSECONDS: &[f64] =
    &[5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 1e5, 1e6];

const NANOSECONDS: &[f64] =
    &[50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9];

const MANY_BYTES: &[f64] = &[0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];

/// Both of a whole and of a hundred.
const PERCENT: &[f64] =
    &[0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0];

/// Registers a histogram of one scale.
fn open<const STEPS: u64>(request: FamilyRequest<'_>) -> Made<metrics::Histogram> {
    Ok(Arc::new(request.family::<Histogram<Fixed<STEPS>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_to_the_nearest_step() {
        type Nanos = Fixed<1_000_000_000>;
        for (value, kept) in [(0.0, 0), (-0.0, 0), (1.4e-9, 1), (0.1, 100_000_000), (0.3e-9, 0)] {
            assert!(Nanos::can_keep(value));
            assert_eq!(Nanos::kept(value), kept);
        }
        assert!(Nanos::can_keep(1.8e10));
        for value in [-1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.9e10, f64::MAX] {
            assert!(!Nanos::can_keep(value), "{value}");
        }
    }

    #[test]
    fn a_name_shows_a_unit_that_is_not_described() {
        for (name, unit) in [
            ("pricing_seconds", Some(Unit::Seconds)),
            ("pricing_ms", Some(Unit::Milliseconds)),
            ("sent_bytes", Some(Unit::Bytes)),
            ("items", None),
            ("seconds_of_day", None),
        ] {
            assert_eq!(implied_by(name), unit, "{name}");
        }
    }
}
