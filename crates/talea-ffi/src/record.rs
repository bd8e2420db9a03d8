//! Recording: the calls of the hot path. Nothing here locks or blocks, and nothing allocates for a
//! series that exists.

use crate::boundary::{guarded, required};
use crate::family::{Family, Series};
use crate::number::Number;
use crate::status::Status;
use crate::text::Text;
use crate::updates::{Operation, time_of};

/// Records a number in the series of some label values, which are in the order of the family's
/// labels. A new series is created; if there is no room for it, the family's overflow series
/// counts, which is no error. If the call returns an error, nothing is recorded and no series is
/// created.
///
/// `operation` is a talea_operation. A kind of metric has these:
///
/// | kind | operations | numbers |
/// |---|---|---|
/// | counter | add | whole, not negative |
/// | float counter | add | finite, not negative |
/// | gauge | add, set | any |
/// | integer gauge | add, set | whole, from -2^63 to 2^63 - 1 |
/// | up-down counter | add | whole, from -2^63 to 2^63 - 1 |
/// | histogram, summary | observe | see talea_operation |
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS, _WRONG_KIND, _WRONG_VALUE;
/// _WRONG_OPTION of an operation or a kind of number that this library does not know.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_record(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    operation: u32,
    number: Number,
) -> Status {
    // The function of the family's kind guards itself, so this is a jump to it.
    // SAFETY: the header demands valid pointers.
    match unsafe { family.as_ref() } {
        None => Status::Null,
        Some(family) if value_count != family.labels => Status::WrongLabels,
        // SAFETY: as above.
        Some(family) => unsafe {
            (family.record)(&family.family, values, value_count, operation, number)
        },
    }
}

/// Records a number in a kept series, as talea_record does.
///
/// TALEA_STATUS_NULL, _WRONG_KIND, _WRONG_VALUE, _WRONG_OPTION.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_record(
    series: *const Series,
    operation: u32,
    number: Number,
) -> Status {
    // SAFETY: the header demands a valid pointer.
    match unsafe { series.as_ref() } {
        None => Status::Null,
        Some(series) => (series.record)(&series.metric, operation, number),
    }
}

/// Adds a whole number that is not negative to a kept series, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_add_u64(series: *const Series, number: u64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Add as u32, Number::unsigned(number)) }
}

/// Adds a whole number to a kept series, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_add_i64(series: *const Series, number: i64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Add as u32, Number::signed(number)) }
}

/// Adds a number to a kept series, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_add_f64(series: *const Series, number: f64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Add as u32, Number::double(number)) }
}

/// Sets a kept series of a gauge or an integer gauge to a whole number, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_set_i64(series: *const Series, number: i64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Set as u32, Number::signed(number)) }
}

/// Sets a kept series of a gauge or an integer gauge, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_set_f64(series: *const Series, number: f64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Set as u32, Number::double(number)) }
}

/// Records an observation, a whole number, in a kept series of a histogram or summary, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_observe_u64(series: *const Series, number: u64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Observe as u32, Number::unsigned(number)) }
}

/// Records an observation in a kept series of a histogram or summary, as talea_series_record does, and with its
/// statuses. Its arguments are plain numbers, which any language can pass.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_observe_f64(series: *const Series, number: f64) -> Status {
    // SAFETY: the header demands a valid pointer.
    unsafe { talea_series_record(series, Operation::Observe as u32, Number::double(number)) }
}

/// Records an observation at another time, in milliseconds since 1970, for tests of windows: in a
/// family with TALEA_FAMILY_SAMPLED; others answer TALEA_STATUS_WRONG_KIND.
///
/// Other statuses as of talea_record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_record_at(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    operation: u32,
    number: Number,
    unix_millis: u64,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let family = required(family)?;
        let values = family.values(values, value_count)?;
        family.family.record_at(values, operation, number, time_of(unix_millis))
    })
}
