//! Counting: what is called all the time. Nothing here allocates, locks or blocks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talea::{DynamicLabels, Metric};

use crate::boundary::{guarded, required};
use crate::family::{Family, Series};
use crate::metric::{Updates, each_kind};
use crate::status::Status;
use crate::text::{Text, Value};

/// Records in the metric of some label values.
#[inline(always)]
fn tell<M: Metric>(
    family: &'static talea::Family<DynamicLabels, M>,
    values: &[Value],
    step: impl FnOnce(&M),
) {
    match values {
        [] => step(&family.only()),
        _ => step(&family.with_values(values)),
    }
}

/// Adds a whole number: to counters, gauges, up-down counters.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_add(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    amount: u64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        each_kind!(&family.family, AnyFamily, |family, M, make| {
            let step = <M as Updates>::add(amount)?;
            tell(family, values, step);
        });
        Ok(())
    })
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_add(series: *const Series, amount: u64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::add(amount)?(
            metric
        ));
        Ok(())
    })
}

/// Adds a whole number that may be negative: to gauges and up-down counters; to counters one
/// that is not.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_add_signed(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    amount: i64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        each_kind!(&family.family, AnyFamily, |family, M, make| {
            let step = <M as Updates>::add_signed(amount)?;
            tell(family, values, step);
        });
        Ok(())
    })
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_add_signed(series: *const Series, amount: i64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::add_signed(
            amount
        )?(metric));
        Ok(())
    })
}

/// Adds a number: to gauges; to float counters one that is finite and not negative; to others one
/// that is whole and fits.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_add_double(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    amount: f64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        each_kind!(&family.family, AnyFamily, |family, M, make| {
            let step = <M as Updates>::add_double(amount)?;
            tell(family, values, step);
        });
        Ok(())
    })
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_add_double(series: *const Series, amount: f64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::add_double(
            amount
        )?(metric));
        Ok(())
    })
}

/// Sets a gauge; one of whole numbers takes whole ones.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_set(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    value: f64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        each_kind!(&family.family, AnyFamily, |family, M, make| {
            let step = <M as Updates>::set(value)?;
            tell(family, values, step);
        });
        Ok(())
    })
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_set(series: *const Series, value: f64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::set(value)?(
            metric
        ));
        Ok(())
    })
}

/// Sets a gauge to a whole number.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_set_integer(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    value: i64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        each_kind!(&family.family, AnyFamily, |family, M, make| {
            let step = <M as Updates>::set_integer(value)?;
            tell(family, values, step);
        });
        Ok(())
    })
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_set_integer(series: *const Series, value: i64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::set_integer(
            value
        )?(metric));
        Ok(())
    })
}

/// Counts an observation of a histogram or a summary, in the shown unit: seconds, bytes. Units
/// that are kept whole are rounded, and take nothing negative and no NaN.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_observe(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    value: f64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        observe(family, values, value, SystemTime::now)
    })
}

/// Observes a value at another time, in milliseconds since 1970, for tests of windows. Only families
/// that keep samples use the time.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_observe_at(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    value: f64,
    unix_millis: u64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        observe(family, values, value, || time_of(unix_millis))
    })
}

/// A time; far ones are the last that there is.
pub(crate) fn time_of(unix_millis: u64) -> SystemTime {
    // Every system can represent a time of as many milliseconds as a double holds exactly.
    UNIX_EPOCH + Duration::from_millis(unix_millis.min(1 << 53))
}

#[inline]
fn observe(
    family: &'static Family,
    values: &[Value],
    value: f64,
    at: impl FnOnce() -> SystemTime,
) -> Result<(), Status> {
    if let Some(sampled) = &family.sampled {
        sampled.observe(values, value, at());
        return Ok(());
    }
    each_kind!(&family.family, AnyFamily, |family, M, make| {
        let step = <M as Updates>::observe(value)?;
        tell(family, values, step);
    });
    Ok(())
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_observe(series: *const Series, value: f64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        if let Some((sampled, values)) = series.sampled.as_deref() {
            sampled.observe(values, value, SystemTime::now());
            return Ok(());
        }
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::observe(value)?(
            metric
        ));
        Ok(())
    })
}

/// Observes a whole number in the unit of storage: nanoseconds, bytes, things.
///
/// The series is that of the label values, in the order of the family's labels; it is made where
/// it is new. Where there is no room for it, the family's overflow series counts, which is no
/// error.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_observe_integer(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    value: u64,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        if family.sampled.is_some() {
            return observe(family, values, value as f64, SystemTime::now);
        }
        each_kind!(&family.family, AnyFamily, |family, M, make| {
            let step = <M as Updates>::observe_integer(value)?;
            tell(family, values, step);
        });
        Ok(())
    })
}

/// As the call by label values, in a kept series.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_observe_integer(series: *const Series, value: u64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let series = unsafe { required(series)? };
        if let Some((sampled, values)) = series.sampled.as_deref() {
            sampled.observe(values, value as f64, SystemTime::now());
            return Ok(());
        }
        each_kind!(&series.metric, AnyMetric, |metric, M, make| <M as Updates>::observe_integer(
            value
        )?(metric));
        Ok(())
    })
}
