//! The updates of each kind of metric.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea::{
    Bytes, Count, Counter, FloatCounter, FloatGauge, Floats, Gauge, Histogram, Metric, Seconds,
    Summary, UpDownCounter,
};

use crate::number::{Number, NumberKind};
use crate::status::Status;

/// The effect of a number on a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// The number is added.
    Add = 1,
    /// The number becomes the value.
    Set = 2,
    /// The number is one observation. A double is in the shown unit (seconds, bytes), and rounded
    /// if the unit is kept whole. A whole number is in the unit of storage: nanoseconds, bytes,
    /// things. Units that are kept whole take nothing negative and no NaN.
    Observe = 3,
}

const ADD: u32 = Operation::Add as u32;
const SET: u32 = Operation::Set as u32;
const OBSERVE: u32 = Operation::Observe as u32;

/// The status of an operation that a kind of metric does not have.
#[cold]
fn refused(operation: u32) -> Status {
    if (ADD..=OBSERVE).contains(&operation) { Status::WrongKind } else { Status::WrongOption }
}

#[inline(always)]
fn expect(operation: u32, only: u32) -> Result<(), Status> {
    if operation == only { Ok(()) } else { Err(refused(operation)) }
}

/// A metric that numbers are recorded in, in two steps: a number that is refused costs no look-up
/// and creates no series.
pub(crate) trait Updates: Metric {
    type Update: Copy;

    fn update(operation: u32, number: Number) -> Result<Self::Update, Status>;

    fn apply(&self, update: Self::Update);
}

/// Metrics with one operation.
macro_rules! one_operation {
    ($metric:ty $(, $unit:ident)?; $update:ty; $only:ident; $of:expr; $apply:expr) => {
        impl $(<$unit: Measured<Value: Copy>>)? Updates for $metric {
            type Update = $update;

            #[inline(always)]
            fn update(operation: u32, number: Number) -> Result<$update, Status> {
                expect(operation, $only)?;
                $of(number)
            }

            #[inline(always)]
            fn apply(&self, update: $update) {
                $apply(self, update);
            }
        }
    };
}
one_operation!(Counter; u64; ADD; Number::to_unsigned; Counter::add);
one_operation!(UpDownCounter; i64; ADD; Number::to_signed; UpDownCounter::add);
one_operation!(FloatCounter; f64; ADD; float_amount; FloatCounter::add);
one_operation!(Histogram<U>, U; U::Value; OBSERVE; U::observation; Histogram::observe);
one_operation!(Summary<U>, U; U::Value; OBSERVE; U::observation; Summary::observe);

#[inline(always)]
fn float_amount(number: Number) -> Result<f64, Status> {
    let x = number.to_double()?;
    // Finite and not negative: two instructions, where comparisons of doubles become sixteen.
    let is_amount = x.to_bits() < f64::INFINITY.to_bits() || x == 0.0;
    if is_amount { Ok(x) } else { Err(Status::WrongValue) }
}

/// A gauge's amount or value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<T> {
    Add(T),
    Set(T),
}

/// Metrics that numbers are added to and set in.
macro_rules! add_and_set {
    ($metric:ty, $value:ty, $of:expr) => {
        impl Updates for $metric {
            type Update = Change<$value>;

            #[inline(always)]
            fn update(operation: u32, number: Number) -> Result<Change<$value>, Status> {
                match operation {
                    ADD => Ok(Change::Add($of(number)?)),
                    SET => Ok(Change::Set($of(number)?)),
                    other => Err(refused(other)),
                }
            }

            #[inline(always)]
            fn apply(&self, change: Change<$value>) {
                match change {
                    Change::Add(amount) => drop(self.add(amount)),
                    Change::Set(value) => self.set(value),
                }
            }
        }
    };
}
add_and_set!(Gauge, i64, Number::to_signed);
add_and_set!(FloatGauge, f64, Number::to_double);

/// Durations in [`Seconds`], given as the nanoseconds that are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nanoseconds {}

impl talea::Unit for Nanoseconds {
    type Value = u64;
    const SUFFIX: &'static str = Seconds::SUFFIX;
    const PER_UNIT: f64 = Seconds::PER_UNIT;
    const BUCKETS: &'static [f64] = Seconds::BUCKETS;

    #[inline]
    fn kept(nanoseconds: u64) -> u64 {
        nanoseconds
    }
}

/// A unit whose observations come from C.
pub(crate) trait Measured: talea::Unit {
    fn observation(number: Number) -> Result<Self::Value, Status>;
}

macro_rules! measured_whole {
    ($($unit:ty)*) => {$(
        impl Measured for $unit {
            #[inline(always)]
            fn observation(number: Number) -> Result<u64, Status> {
                if number.kind != NumberKind::Double as u64 {
                    return number.to_unsigned();
                }
                let shown = f64::from_bits(number.bits);
                // Not for NaN. A number that is too large becomes the largest.
                let is_valid = shown >= 0.0;
                let kept = (shown * <Self as talea::Unit>::PER_UNIT).round() as u64;
                if is_valid { Ok(kept) } else { Err(Status::WrongValue) }
            }
        }
    )*};
}
measured_whole!(Nanoseconds Bytes Count);

impl Measured for Floats {
    #[inline(always)]
    fn observation(number: Number) -> Result<f64, Status> {
        number.to_double()
    }
}

/// A time in milliseconds since 1970; far ones become the last that every system can represent.
pub(crate) fn time_of(unix_millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_millis.min(1 << 53))
}
