//! Families, and series that are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use talea::Hold;

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
    /// Kept series, by their label values. Beside these references, each call that kept one has a reference.
    kept: Mutex<HashMap<Vec<String>, Arc<Series>>>,
    overflow: OnceLock<Arc<Series>>,
}

/// A series of a family: one combination of label values, kept. It stays until it is released as often
/// as it was kept, or the process ends.
pub struct Series {
    /// Of its kind.
    pub(crate) record: Record,
    pub(crate) metric: AnyMetric,
    family: &'static Family,
    /// The label values; `None` of a series that is never released.
    values: Option<Vec<String>>,
    /// Has the series stay. It is dropped after the metric.
    hold: Option<Hold>,
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
    fn keep(&'static self, values: &[Value]) -> Arc<Series> {
        let _inside = fork::enter();
        if values.is_empty() {
            return self.overflow();
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Vec<_> = values.iter().map(|value| value.as_ref().to_owned()).collect();
        if let Some(series) = kept.get(&key).filter(|series| series.is_current()) {
            return Arc::clone(series);
        }
        let Some((metric, hold)) = self.family.hold(values) else { return self.overflow() };
        let series = Arc::new(Series::new(self, metric, Some(key.clone()), hold));
        kept.insert(key, Arc::clone(&series));
        series
    }

    /// The overflow series; of a family without labels its only one.
    fn overflow(&'static self) -> Arc<Series> {
        let series = self.overflow.get_or_init(|| {
            // More values than labels belong to no series.
            let values = if self.labels == 0 { Vec::new() } else { vec![""; self.labels + 1] };
            Arc::new(Series::new(self, self.family.keep(&values), None, None))
        });
        Arc::clone(series)
    }
}

impl Series {
    fn new(
        family: &'static Family,
        metric: AnyMetric,
        values: Option<Vec<String>>,
        hold: Option<Hold>,
    ) -> Self {
        Self { record: metric.recorder(), metric, family, values, hold }
    }

    /// Whether this process has not removed it.
    fn is_current(&self) -> bool {
        self.hold.as_ref().is_none_or(Hold::is_current)
    }

    /// Ends one call's use of a series. With the last one, the process lets go of it.
    fn release(series: Arc<Self>) {
        let _inside = fork::enter();
        let Some(values) = &series.values else { return };
        let mut kept = series.family.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // All references are made and dropped under this lock. One is the family's, unless the series was
        // removed and kept anew, and one is this call's.
        let is_listed = kept.get(values).is_some_and(|listed| Arc::ptr_eq(listed, &series));
        if is_listed && Arc::strong_count(&series) == 2 {
            kept.remove(values);
        }
        drop(series);
    }
}

/// Finds or creates the series of some label values, in the order of the family's labels, and
/// keeps it: recording in it costs no look-up. The same values give the same pointer, unless this process
/// removed the series meanwhile.
///
/// A kept series stays in memory, and does not expire, until talea_series_release was called for it as
/// often as this function, or the process ends. If there is no room for a new one, it is the family's
/// overflow series; if the series exists and the region has no room even for the 48 bytes that note that
/// it is kept, its updates are discarded. So keep series early.
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
        place.write(Arc::into_raw(family.keep(values)));
        Ok(())
    })
}

/// Lets go of a series: call it once for each call of talea_series_keep that returned the pointer. After
/// the last one the pointer and the series' words must not be used; the series stays with its values until
/// it expires or is removed. Null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_release(series: *const Series) {
    guarded(|| {
        if !series.is_null() {
            // SAFETY: the header demands a pointer of talea_series_keep, which made it of such a reference,
            // and one call for each of those.
            Series::release(unsafe { Arc::from_raw(series) });
        }
        Ok(())
    });
}

/// Writes the addresses of up to `capacity` words of a kept series, and their number to `count`. Code
/// in any language may add to each of them without a call, by its own atomic instruction on 64 bits
/// (relaxed), beside all other recording; never by a plain one. The words are aligned, and valid until
/// the series is released: they count from 0 after it is wiped, and what is added after this process
/// removed it, or while the family has ended, is discarded.
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

/// Removes a series with all its values; the next update creates it anew. A series that another living
/// process keeps is left out of scrapes until its next update, and counts from 0. What this process
/// records in a series that it kept before is discarded: keep it anew. `removed`, which may be null,
/// receives whether the series existed.
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
