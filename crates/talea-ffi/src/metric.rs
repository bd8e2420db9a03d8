//! The kinds of metrics: the updates that each has, its families and its kept series.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea::{
    Bytes, Count, Counter, DynamicLabels, FloatCounter, FloatGauge, Floats, Gauge, Histogram,
    Metric, SampledSummary, Seconds, Summary, UpDownCounter,
};

use crate::boundary::guarded;
use crate::definition::{Definition, Kind, Unit};
use crate::number::{Number, NumberKind};
use crate::status::Status;
use crate::text::{self, Text, Value};

/// What a number does to a metric.
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

/// A counter's amount.
macro_rules! adding {
    ($metric:ty, $amount:ty, $of:expr) => {
        impl Updates for $metric {
            type Update = $amount;

            #[inline(always)]
            fn update(operation: u32, number: Number) -> Result<$amount, Status> {
                expect(operation, ADD)?;
                $of(number)
            }

            #[inline(always)]
            fn apply(&self, amount: $amount) {
                self.add(amount);
            }
        }
    };
}
adding!(Counter, u64, Number::to_unsigned);
adding!(UpDownCounter, i64, Number::to_signed);
adding!(FloatCounter, f64, |number: Number| {
    let x = number.to_double()?;
    if (0.0..f64::INFINITY).contains(&x) { Ok(x) } else { Err(Status::WrongValue) }
});

/// A gauge's amount or value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<T> {
    Add(T),
    Set(T),
}

macro_rules! changing {
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
changing!(Gauge, i64, Number::to_signed);
changing!(FloatGauge, f64, Number::to_double);

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

macro_rules! observing {
    ($($metric:ident)*) => {$(
        impl<U: Measured<Value: Copy>> Updates for $metric<U> {
            type Update = U::Value;

            #[inline(always)]
            fn update(operation: u32, number: Number) -> Result<U::Value, Status> {
                expect(operation, OBSERVE)?;
                U::observation(number)
            }

            #[inline(always)]
            fn apply(&self, value: U::Value) {
                self.observe(value);
            }
        }
    )*};
}
observing!(Histogram Summary);

/// A time in milliseconds since 1970; far ones become the last that every system can represent.
pub(crate) fn time_of(unix_millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_millis.min(1 << 53))
}

/// The function that records in one kind of family, with the arguments of talea_record. No panic
/// leaves it, so a caller can jump to it.
pub(crate) type RecordIn =
    unsafe extern "C" fn(&'static AnyFamily, *const Text, usize, u32, Number) -> Status;

/// The function that records in one kind of metric.
pub(crate) type Record = extern "C" fn(&AnyMetric, u32, Number) -> Status;

fn record_sample(
    summary: &SampledSummary,
    values: &[impl AsRef<str>],
    operation: u32,
    number: Number,
    at: SystemTime,
) -> Result<(), Status> {
    summary.observe(values, Summary::<Floats>::update(operation, number)?, at);
    Ok(())
}

/// Defines a family and a kept series of any kind: each variant with its kind, unit and metric.
macro_rules! kinds {
    ($($name:ident ($kind:ident, $unit:pat): $metric:ty,)*) => {
        #[derive(Debug)]
        pub(crate) enum AnyFamily {
            $($name(talea::Family<DynamicLabels, $metric>),)*
            /// A summary that keeps samples.
            Sampled(Box<SampledSummary>),
        }

        #[derive(Debug)]
        pub(crate) enum AnyMetric {
            $($name($metric),)*
            /// A summary that keeps samples, its kept series and the label values of that.
            Sampled(Box<(SampledSummary, Summary<Floats>, Vec<String>)>),
        }

        impl AnyFamily {
            /// Registers a family, or finds the one that is registered alike.
            pub(crate) fn register(
                registry: &talea::Registry,
                definition: &Definition<'_>,
            ) -> Result<Self, talea::Error> {
                let (opts, labels) = (definition.opts(), &definition.labels);
                if definition.is_sampled() {
                    let sampled = registry.sampled_summary(opts, labels);
                    return sampled.map(|summary| Self::Sampled(Box::new(summary)));
                }
                match (definition.kind, definition.unit) {
                    $((Kind::$kind, $unit) => registry.family(opts, labels).map(Self::$name),)*
                }
            }

            pub(crate) fn recorder(&self) -> RecordIn {
                match self {
                    $(Self::$name(_) => {
                        unsafe extern "C" fn record(
                            any: &'static AnyFamily,
                            values: *const Text,
                            count: usize,
                            operation: u32,
                            number: Number,
                        ) -> Status {
                            guarded(|| {
                                let AnyFamily::$name(family) = any else {
                                    return Err(Status::Panic);
                                };
                                // SAFETY: as the caller of talea_record promises.
                                let values = unsafe { text::values(values, count)? };
                                let update = <$metric>::update(operation, number)?;
                                match values {
                                    [] => family.only().apply(update),
                                    _ => family.with_values(values).apply(update),
                                }
                                Ok(())
                            })
                        }
                        record
                    })*
                    Self::Sampled(_) => {
                        unsafe extern "C" fn record(
                            any: &'static AnyFamily,
                            values: *const Text,
                            count: usize,
                            operation: u32,
                            number: Number,
                        ) -> Status {
                            guarded(|| {
                                // SAFETY: as above.
                                let values = unsafe { text::values(values, count)? };
                                any.record_at(values, operation, number, SystemTime::now())
                            })
                        }
                        record
                    }
                }
            }

            /// Keeps the series of some label values; `None` if there is no room for a new one.
            pub(crate) fn keep(&self, values: &[impl AsRef<str>]) -> Option<AnyMetric> {
                Some(match self {
                    $(Self::$name(family) => {
                        AnyMetric::$name(family.try_with_values(values).ok()?.keep())
                    })*
                    Self::Sampled(summary) => {
                        let kept = summary.family().try_with_values(values).ok()?.keep();
                        AnyMetric::sampled(summary, kept, values)
                    }
                })
            }

            /// Keeps the series of some label values, or the overflow series.
            pub(crate) fn keep_or_overflow(&self, values: &[impl AsRef<str>]) -> AnyMetric {
                match self {
                    $(Self::$name(family) => AnyMetric::$name(family.with_values(values).keep()),)*
                    Self::Sampled(summary) => {
                        let kept = summary.family().with_values(values).keep();
                        AnyMetric::sampled(summary, kept, values)
                    }
                }
            }

            /// Removes the series of some label values; whether there was one.
            pub(crate) fn remove(&self, values: &[impl AsRef<str>]) -> bool {
                match self {
                    $(Self::$name(family) => family.remove_values(values),)*
                    Self::Sampled(summary) => summary.remove_values(values),
                }
            }

            pub(crate) fn is_ended(&self) -> bool {
                match self {
                    $(Self::$name(family) => family.is_ended(),)*
                    Self::Sampled(summary) => summary.family().is_ended(),
                }
            }

            /// The family's number in the region.
            pub(crate) fn number(&self) -> Option<u32> {
                match self {
                    $(Self::$name(family) => family.number(),)*
                    Self::Sampled(summary) => summary.family().number(),
                }
            }
        }

        impl AnyMetric {
            pub(crate) fn recorder(&self) -> Record {
                match self {
                    $(Self::$name(_) => {
                        extern "C" fn record(any: &AnyMetric, operation: u32, number: Number) -> Status {
                            guarded(|| {
                                let AnyMetric::$name(metric) = any else {
                                    return Err(Status::Panic);
                                };
                                metric.apply(<$metric>::update(operation, number)?);
                                Ok(())
                            })
                        }
                        record
                    })*
                    Self::Sampled(_) => {
                        extern "C" fn record(any: &AnyMetric, operation: u32, number: Number) -> Status {
                            guarded(|| {
                                let AnyMetric::Sampled(sampled) = any else {
                                    return Err(Status::Panic);
                                };
                                let (summary, _, values) = &**sampled;
                                record_sample(summary, values, operation, number, SystemTime::now())
                            })
                        }
                        record
                    }
                }
            }
        }
    };
}
kinds! {
    Counter (Counter, _): Counter,
    FloatCounter (FloatCounter, _): FloatCounter,
    Gauge (Gauge, _): FloatGauge,
    IntegerGauge (IntegerGauge, _): Gauge,
    UpDownCounter (UpDownCounter, _): UpDownCounter,
    Histogram (Histogram, Unit::None): Histogram<Floats>,
    HistogramOfSeconds (Histogram, Unit::Seconds): Histogram<Nanoseconds>,
    HistogramOfBytes (Histogram, Unit::Bytes): Histogram<Bytes>,
    HistogramOfThings (Histogram, Unit::Things): Histogram<Count>,
    Summary (Summary, Unit::None): Summary<Floats>,
    SummaryOfSeconds (Summary, Unit::Seconds): Summary<Nanoseconds>,
    SummaryOfBytes (Summary, Unit::Bytes): Summary<Bytes>,
    SummaryOfThings (Summary, Unit::Things): Summary<Count>,
}

impl AnyFamily {
    /// Records an observation at a time, in a summary that keeps samples.
    pub(crate) fn record_at(
        &self,
        values: &[Value],
        operation: u32,
        number: Number,
        at: SystemTime,
    ) -> Result<(), Status> {
        match self {
            Self::Sampled(summary) => record_sample(summary, values, operation, number, at),
            _ => Err(Status::WrongKind),
        }
    }
}

impl AnyMetric {
    fn sampled(
        summary: &SampledSummary,
        kept: Summary<Floats>,
        values: &[impl AsRef<str>],
    ) -> Self {
        let values = values.iter().map(|value| value.as_ref().to_owned()).collect();
        Self::Sampled(Box::new((summary.clone(), kept, values)))
    }
}
