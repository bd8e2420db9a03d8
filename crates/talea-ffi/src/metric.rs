//! The updates that each kind of metric supports.

use talea::{
    Bytes, Count, Counter, DynamicLabels, FloatCounter, FloatGauge, Floats, Gauge, Histogram,
    Seconds, Summary, UpDownCounter,
};

use crate::status::Status;

/// Durations as [`Seconds`] has them, given as the nanoseconds that are kept.
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
    /// In the shown unit; `None` of what cannot be one.
    fn of_double(shown: f64) -> Option<Self::Value>;
    /// As it is kept.
    fn of_integer(kept: u64) -> Self::Value;
}

macro_rules! measured_whole {
    ($($unit:ty)*) => {$(
        impl Measured for $unit {
            #[inline]
            fn of_double(shown: f64) -> Option<u64> {
                // Not for NaN. What is too large is the largest.
                (shown >= 0.0).then(|| (shown * <Self as talea::Unit>::PER_UNIT).round() as u64)
            }

            #[inline]
            fn of_integer(kept: u64) -> u64 {
                kept
            }
        }
    )*};
}
measured_whole!(Nanoseconds Bytes Count);

impl Measured for Floats {
    #[inline]
    fn of_double(shown: f64) -> Option<f64> {
        Some(shown)
    }

    #[inline]
    fn of_integer(kept: u64) -> f64 {
        kept as f64
    }
}

/// The update that a number becomes if it fits a metric: it cannot fail any more. So a number that
/// does not fit costs no look-up.
pub(crate) type Step<S> = Result<S, Status>;

/// The updates that a metric supports: each is a step, or a status if the kind or number is wrong.
pub(crate) trait Updates: Sized {
    fn add(_: u64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
    fn add_signed(_: i64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
    fn add_double(_: f64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
    fn set(_: f64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
    fn set_integer(_: i64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
    fn observe(_: f64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
    fn observe_integer(_: u64) -> Step<impl FnOnce(&Self)> {
        Err::<fn(&Self), _>(Status::WrongKind)
    }
}

/// A whole number that is given as a double.
#[inline]
fn whole(x: f64) -> Result<i64, Status> {
    let is_whole = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x)
        && (x as i64) as f64 == x;
    if is_whole { Ok(x as i64) } else { Err(Status::WrongValue) }
}

#[inline]
fn signed(n: u64) -> Result<i64, Status> {
    i64::try_from(n).map_err(|_| Status::WrongValue)
}

#[inline]
fn unsigned(n: i64) -> Result<u64, Status> {
    u64::try_from(n).map_err(|_| Status::WrongValue)
}

/// An amount that a total can go up by.
#[inline]
fn amount(x: f64) -> Result<f64, Status> {
    if (0.0..f64::INFINITY).contains(&x) { Ok(x) } else { Err(Status::WrongValue) }
}

impl Updates for Counter {
    #[inline]
    fn add(n: u64) -> Step<impl FnOnce(&Self)> {
        Ok(move |counter: &Self| counter.add(n))
    }
    #[inline]
    fn add_signed(n: i64) -> Step<impl FnOnce(&Self)> {
        let n = unsigned(n)?;
        Ok(move |counter: &Self| counter.add(n))
    }
    #[inline]
    fn add_double(x: f64) -> Step<impl FnOnce(&Self)> {
        let n = unsigned(whole(x)?)?;
        Ok(move |counter: &Self| counter.add(n))
    }
}

impl Updates for FloatCounter {
    #[inline]
    fn add(n: u64) -> Step<impl FnOnce(&Self)> {
        Ok(move |counter: &Self| counter.add(n as f64))
    }
    #[inline]
    fn add_signed(n: i64) -> Step<impl FnOnce(&Self)> {
        let x = amount(n as f64)?;
        Ok(move |counter: &Self| counter.add(x))
    }
    #[inline]
    fn add_double(x: f64) -> Step<impl FnOnce(&Self)> {
        let x = amount(x)?;
        Ok(move |counter: &Self| counter.add(x))
    }
}

impl Updates for FloatGauge {
    #[inline]
    fn add(n: u64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| gauge.add(n as f64))
    }
    #[inline]
    fn add_signed(n: i64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| gauge.add(n as f64))
    }
    #[inline]
    fn add_double(x: f64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| gauge.add(x))
    }
    #[inline]
    fn set(x: f64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| gauge.set(x))
    }
    #[inline]
    fn set_integer(n: i64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| gauge.set(n as f64))
    }
}

impl Updates for Gauge {
    #[inline]
    fn add(n: u64) -> Step<impl FnOnce(&Self)> {
        Self::add_signed(signed(n)?)
    }
    #[inline]
    fn add_signed(n: i64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| {
            gauge.add(n);
        })
    }
    #[inline]
    fn add_double(x: f64) -> Step<impl FnOnce(&Self)> {
        Self::add_signed(whole(x)?)
    }
    #[inline]
    fn set(x: f64) -> Step<impl FnOnce(&Self)> {
        Self::set_integer(whole(x)?)
    }
    #[inline]
    fn set_integer(n: i64) -> Step<impl FnOnce(&Self)> {
        Ok(move |gauge: &Self| gauge.set(n))
    }
}

impl Updates for UpDownCounter {
    #[inline]
    fn add(n: u64) -> Step<impl FnOnce(&Self)> {
        Self::add_signed(signed(n)?)
    }
    #[inline]
    fn add_signed(n: i64) -> Step<impl FnOnce(&Self)> {
        Ok(move |counter: &Self| counter.add(n))
    }
    #[inline]
    fn add_double(x: f64) -> Step<impl FnOnce(&Self)> {
        Self::add_signed(whole(x)?)
    }
}

macro_rules! observing {
    ($($metric:ident)*) => {$(
        impl<U: Measured> Updates for $metric<U> {
            #[inline]
            fn observe(x: f64) -> Step<impl FnOnce(&Self)> {
                let value = U::of_double(x).ok_or(Status::WrongValue)?;
                Ok(move |metric: &Self| metric.observe(value))
            }
            #[inline]
            fn observe_integer(n: u64) -> Step<impl FnOnce(&Self)> {
                let value = U::of_integer(n);
                Ok(move |metric: &Self| metric.observe(value))
            }
        }
    )*};
}
observing!(Histogram Summary);

/// A family of any kind.
#[derive(Debug)]
pub(crate) enum AnyFamily {
    Counter(talea::Family<DynamicLabels, Counter>),
    FloatCounter(talea::Family<DynamicLabels, FloatCounter>),
    Gauge(talea::Family<DynamicLabels, FloatGauge>),
    IntegerGauge(talea::Family<DynamicLabels, Gauge>),
    UpDownCounter(talea::Family<DynamicLabels, UpDownCounter>),
    Histogram(talea::Family<DynamicLabels, Histogram<Floats>>),
    HistogramOfSeconds(talea::Family<DynamicLabels, Histogram<Nanoseconds>>),
    HistogramOfBytes(talea::Family<DynamicLabels, Histogram<Bytes>>),
    HistogramOfThings(talea::Family<DynamicLabels, Histogram<Count>>),
    Summary(talea::Family<DynamicLabels, Summary<Floats>>),
    SummaryOfSeconds(talea::Family<DynamicLabels, Summary<Nanoseconds>>),
    SummaryOfBytes(talea::Family<DynamicLabels, Summary<Bytes>>),
    SummaryOfThings(talea::Family<DynamicLabels, Summary<Count>>),
}

/// A metric of any kind, kept.
#[derive(Debug)]
pub(crate) enum AnyMetric {
    Counter(Counter),
    FloatCounter(FloatCounter),
    Gauge(FloatGauge),
    IntegerGauge(Gauge),
    UpDownCounter(UpDownCounter),
    Histogram(Histogram<Floats>),
    HistogramOfSeconds(Histogram<Nanoseconds>),
    HistogramOfBytes(Histogram<Bytes>),
    HistogramOfThings(Histogram<Count>),
    Summary(Summary<Floats>),
    SummaryOfSeconds(Summary<Nanoseconds>),
    SummaryOfBytes(Summary<Bytes>),
    SummaryOfThings(Summary<Count>),
}

/// Does the same with a family or a metric of whichever kind: `$found` is what it is, `$metric_type`
/// the type of its metrics, `$make` the kind of [`AnyMetric`] that this is.
macro_rules! each_kind {
    ($of:expr, $any:ident, |$found:ident, $metric_type:ident, $make:ident| $do:expr) => {
        each_kind!(@arms $of, $any, $found, $metric_type, $make, $do;
            Counter: talea::Counter,
            FloatCounter: talea::FloatCounter,
            Gauge: talea::FloatGauge,
            IntegerGauge: talea::Gauge,
            UpDownCounter: talea::UpDownCounter,
            Histogram: talea::Histogram<talea::Floats>,
            HistogramOfSeconds: talea::Histogram<crate::metric::Nanoseconds>,
            HistogramOfBytes: talea::Histogram<talea::Bytes>,
            HistogramOfThings: talea::Histogram<talea::Count>,
            Summary: talea::Summary<talea::Floats>,
            SummaryOfSeconds: talea::Summary<crate::metric::Nanoseconds>,
            SummaryOfBytes: talea::Summary<talea::Bytes>,
            SummaryOfThings: talea::Summary<talea::Count>,
        )
    };
    (@arms $of:expr, $any:ident, $found:ident, $metric_type:ident, $make:ident, $do:expr;
     $($kind:ident: $metric:ty,)*) => {
        match $of {
            $(crate::metric::$any::$kind($found) => {
                #[allow(dead_code)]
                type $metric_type = $metric;
                #[allow(unused_variables)]
                let $make = crate::metric::AnyMetric::$kind;
                $do
            })*
        }
    };
}
pub(crate) use each_kind;
