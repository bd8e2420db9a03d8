//! Families, and series that are kept.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::boundary::{guarded, place, required};
use crate::fork;
use crate::kinds::{AnyFamily, AnyMetric, Record, RecordIn};
use crate::status::Status;
use crate::text::{Text, Value, values};

/// A family: metrics of one name. It stays until the process ends.
pub struct Family {
    /// Of its kind.
    pub(crate) record: RecordIn,
    pub(crate) family: AnyFamily,
    pub(crate) labels: usize,
    /// Kept series, by their label values.
    kept: Mutex<HashMap<Vec<String>, &'static Series>>,
    overflow: OnceLock<&'static Series>,
}

/// A series of a family: one combination of label values, kept. It stays until the process
/// ends.
pub struct Series {
    /// Of its kind.
    pub(crate) record: Record,
    pub(crate) metric: AnyMetric,
}

impl Family {
    pub(crate) fn new(family: AnyFamily, labels: usize) -> Self {
        let (record, kept, overflow) = (family.recorder(), Mutex::default(), OnceLock::new());
        Self { record, family, labels, kept, overflow }
    }

    /// The label values of a call, as many as there are labels.
    ///
    /// # Safety
    ///
    /// As [`values`].
    #[inline]
    pub(crate) unsafe fn values<'a>(
        &self,
        first: *const Text,
        count: usize,
    ) -> Result<&'a [Value], Status> {
        if count != self.labels {
            return Err(Status::WrongLabels);
        }
        // SAFETY: as the caller promises.
        unsafe { values(first, count) }
    }

    /// Keeps a series; if there is no room for a new one, the overflow series.
    fn keep(&self, values: &[Value]) -> &'static Series {
        let _inside = fork::enter();
        if values.is_empty() {
            return self.overflow();
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = values.iter().map(|value| value.as_ref().to_owned()).collect();
        if let Some(series) = kept.get(&key) {
            return series;
        }
        let Some(metric) = self.family.keep(values, false) else { return self.overflow() };
        let series: &Series = Box::leak(Box::new(Series::new(metric)));
        kept.insert(key, series);
        series
    }

    /// The overflow series; of a family without labels its only one.
    fn overflow(&self) -> &'static Series {
        self.overflow.get_or_init(|| {
            // More values than labels belong to no series.
            let values = if self.labels == 0 { Vec::new() } else { vec![""; self.labels + 1] };
            let metric = self.family.keep(&values, true);
            Box::leak(Box::new(Series::new(metric.expect("the overflow series is there"))))
        })
    }
}

impl Series {
    fn new(metric: AnyMetric) -> Self {
        Self { record: metric.recorder(), metric }
    }
}

/// Finds or creates the series of some label values, in the order of the family's labels, and
/// keeps it: recording in it costs no look-up. The same values give the same pointer.
///
/// For few series that are known beforehand: a kept series stays in memory until the process
/// ends, and does not expire. If there is no room for a new one, it is the family's overflow
/// series; if the series exists and the region has no room even for the 48 bytes that note that it
/// is kept, its updates are discarded. So keep series early.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_keep(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    series: *mut *const Series,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let (family, place) = (required(family)?, place(series)?);
        let values = family.values(values, value_count)?;
        place.write(family.keep(values));
        Ok(())
    })
}

/// Writes the addresses of up to `capacity` words of a kept series, and their number to `count`. Code
/// in any language may add to each of them without a call, by its own atomic instruction on 64 bits
/// (relaxed), beside all other recording; never by a plain one. The words are aligned, and valid until
/// the process ends: they count from 0 after the series is removed or wiped, and what is added while
/// the family has ended is discarded.
///
/// | kind | a word holds | update |
/// |---|---|---|
/// | counter | a whole number | add |
/// | float counter | the bits of a double | add, by compare and swap |
/// | integer gauge | a whole number, in two's complement | add, or store |
/// | gauge | the bits of a double | add, by compare and swap, or store |
/// | up-down counter | a whole number, in two's complement | add |
///
/// A counter without dynamic labels has a word for each CPU, and its value is the sum: word n is for
/// threads that run on CPU n, so that they do not wait for each other; any other is as right. So give the
/// capacity that is the number of CPUs, or 1 if few threads add. Others have one word, or a few of
/// which any may be used. The word of an up-down counter, or of a gauge that is combined over
/// processes, belongs to this process: a child made by fork has to ask for its own.
///
/// TALEA_STATUS_NULL; _WRONG_KIND of histograms and summaries, and of gauges that a process may leave
/// without a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_words(
    series: *const Series,
    words: *mut *mut u64,
    capacity: usize,
    count: *mut usize,
) -> Status {
    // SAFETY: the header demands valid pointers, and room for so many words.
    guarded(|| unsafe {
        let (series, count) = (required(series)?, place(count)?);
        if capacity > 0 && words.is_null() {
            return Err(Status::Null);
        }
        let found = series.metric.words(capacity).ok_or(Status::WrongKind)?;
        for (n, word) in found.iter().enumerate() {
            words.add(n).write(word.as_ptr());
        }
        count.write(found.len());
        Ok(())
    })
}

/// Removes a series with all its values; the next update creates it anew. A series that a living
/// process keeps is left out of scrapes until its next update, and counts from 0. `removed`, which
/// may be null, receives whether the series existed.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_remove(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    removed: *mut bool,
) -> Status {
    // SAFETY: the header demands valid pointers.
    guarded(|| unsafe {
        let family = required(family)?;
        let existed = family.family.remove(family.values(values, value_count)?);
        place(removed).map(|place| place.write(existed)).ok();
        Ok(())
    })
}

/// Whether any process unregistered the family, so that its updates are discarded until it is
/// registered again with the same options. True for null. Cost: a load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_is_ended(family: *const Family) -> bool {
    // SAFETY: the header demands a valid pointer, or null.
    unsafe { family.as_ref() }.is_none_or(|family| family.family.is_ended())
}
