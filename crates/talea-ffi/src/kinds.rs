//! Families and kept series of any kind of metric.

use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use talea::{
    Bytes, Count, Counter, DynamicLabels, FloatCounter, FloatGauge, Floats, Gauge, HeldSeries,
    Histogram, Hold, LentPlane, SampledSummary, Summary, UpDownCounter,
};

use crate::boundary::guarded;
use crate::definition::{Definition, Kind, Unit};
use crate::number::Number;
use crate::status::Status;
use crate::text::{self, Text, Value};
use crate::updates::{Nanoseconds, Updates};

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

fn sampled(
    summary: &SampledSummary,
    kept: Summary<Floats>,
    values: &[impl AsRef<str>],
) -> AnyMetric {
    let values = values.iter().map(|value| value.as_ref().to_owned()).collect();
    AnyMetric::Sampled(Box::new((summary.clone(), kept, values)))
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

            /// Keeps the series of some label values for as long as the process lives; if there is no
            /// room for a new one, the overflow series.
            pub(crate) fn keep(&self, values: &[impl AsRef<str>]) -> AnyMetric {
                match self {
                    $(Self::$name(family) => AnyMetric::$name(family.with_values(values).keep()),)*
                    Self::Sampled(summary) => {
                        sampled(summary, summary.family().with_values(values).keep(), values)
                    }
                }
            }

            /// Keeps the series of some label values until the hold is dropped. `None` if there is no room
            /// for a new one.
            pub(crate) fn hold(
                &self,
                values: &[impl AsRef<str>],
            ) -> Option<(AnyMetric, Option<Hold>)> {
                Some(match self {
                    $(Self::$name(family) => {
                        let HeldSeries { metric, hold } = family.hold_values(values).ok()?;
                        (AnyMetric::$name(metric), hold)
                    })*
                    Self::Sampled(summary) => {
                        let held = summary.family().hold_values(values).ok()?;
                        (sampled(summary, held.metric, values), held.hold)
                    }
                })
            }

            /// Removes the series of some label values; whether it existed.
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
            /// The words of its value for the atomic adds of others, at most so many; `None` if it has
            /// none for that.
            pub(crate) fn words(&self, most: usize) -> Option<Vec<&'static AtomicU64>> {
                let words = match self {
                    Self::Counter(metric) => metric.words(most),
                    Self::FloatCounter(metric) => metric.words(most),
                    Self::Gauge(metric) => metric.words(most),
                    Self::IntegerGauge(metric) => metric.words(most),
                    Self::UpDownCounter(metric) => metric.words(most),
                    _ => return None,
                };
                Some(words).filter(|words| most == 0 || !words.is_empty())
            }

            /// The word of a plane that its owner adds to; `None` if there is none.
            pub(crate) fn word_in(&self, plane: &LentPlane) -> Option<&'static AtomicU64> {
                let index = match self {
                    Self::Counter(metric) => metric.index_in(plane),
                    Self::FloatCounter(metric) => metric.index_in(plane),
                    _ => None,
                };
                plane.words().get(index?)
            }

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
