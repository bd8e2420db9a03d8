//! Families, and series that are kept.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Mutex, OnceLock, PoisonError};

use talea::{Bytes, Count, DynamicLabels, Floats, Histogram, Metric, SampledSummary, Summary};

use crate::boundary::{self, guarded, guarded_with_message, place, required};
use crate::definition::{Definition, FamilyOptions, Kind, Unit};
use crate::fork::{self, WithoutSignals};
use crate::metric::{AnyFamily, AnyMetric, Nanoseconds, each_kind};
use crate::open::Registry;
use crate::status::{Failure, Status};
use crate::text::{Text, Value, values};

/// A family: metrics of one name. It stays until the process ends.
pub struct Family {
    pub(crate) family: AnyFamily,
    /// The same metric if it keeps samples.
    pub(crate) sampled: Option<Box<SampledSummary>>,
    /// How many labels it has.
    pub(crate) labels: usize,
    /// Kept series, by their label values.
    kept: Mutex<HashMap<Vec<u8>, &'static Series>>,
    overflow: OnceLock<&'static Series>,
}

/// A series of a family: one combination of label values, kept. It stays until the process
/// ends.
pub struct Series {
    pub(crate) metric: AnyMetric,
    /// Where its family keeps samples, that and its values.
    pub(crate) sampled: Option<Box<(SampledSummary, Vec<String>)>>,
}

impl Family {
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

    /// Keeps a series; where there is no room for a new one, it is that of what overflows.
    fn keep(&self, values: &[Value]) -> &'static Series {
        let _inside = fork::enter();
        if values.is_empty() {
            return self.overflow();
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(values);
        if let Some(series) = kept.get(&key) {
            return series;
        }
        let found = each_kind!(&self.family, AnyFamily, |family, M, make| {
            family.try_with_values(values).map(|found| make(found.keep()))
        });
        match found {
            Ok(metric) => {
                let series: &Series = Box::leak(Box::new(self.series(metric, values)));
                kept.insert(key, series);
                series
            }
            Err(_) => self.overflow(),
        }
    }

    /// The series of what overflows; of a family without labels its only one.
    fn overflow(&self) -> &'static Series {
        self.overflow.get_or_init(|| {
            // More values than labels are nobody's series.
            let values = if self.labels == 0 { Vec::new() } else { vec![""; self.labels + 1] };
            let metric = each_kind!(&self.family, AnyFamily, |family, M, make| {
                make(family.with_values(&values).keep())
            });
            Box::leak(Box::new(self.series(metric, &values)))
        })
    }

    fn series(&self, metric: AnyMetric, values: &[impl AsRef<str>]) -> Series {
        let values = || values.iter().map(|value| value.as_ref().to_owned()).collect();
        let sampled = self.sampled.as_deref();
        Series { metric, sampled: sampled.map(|it| Box::new((it.clone(), values()))) }
    }
}

/// Values that differ have keys that differ.
fn key(values: &[Value]) -> Vec<u8> {
    let mut key = Vec::new();
    for value in values {
        key.extend(value.as_ref().len().to_le_bytes());
        key.extend(value.as_ref().as_bytes());
    }
    key
}

/// Registers a family, or finds the one that is registered alike: the same options give the
/// same pointer. Keep it for as long as the process lives. Children made by fork use it too.
///
/// TALEA_STATUS_CANNOT_REGISTER with a message where the name, a label or the buckets cannot be
/// used, or the name is taken by another definition (the message says in what they differ);
/// TALEA_STATUS_NO_ROOM where the region is full; or TALEA_STATUS_NULL, _WRONG_SIZE, _WRONG_LENGTH, _WRONG_OPTION, _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_register(
    registry: *const Registry,
    options: *const FamilyOptions,
    family: *mut *const Family,
    message: *mut c_char,
    message_len: usize,
) -> Status {
    // SAFETY: the header asks for as much.
    unsafe {
        guarded_with_message(message, message_len, || {
            let (registry, place) = (required(registry)?, place(family)?);
            let definition = Definition::of(boundary::options(options)?)?;
            place.write(registry.register(definition)?);
            Ok(())
        })
    }
}

impl Registry {
    fn register(&self, definition: Definition<'_>) -> Result<&'static Family, Failure> {
        let _inside = fork::enter();
        let _alone = definition.is_windowed().then(WithoutSignals::new);
        // Talea is asked each time: somebody may have ended the family meanwhile.
        let (found, sampled) = self.found_or_sampled(&definition).map_err(|error| {
            let is_full = matches!(error, talea::Error::Full { .. });
            let status = if is_full { Status::NoRoom } else { Status::CannotRegister };
            Failure::new(status, error.to_string())
        })?;
        let number = each_kind!(&found, AnyFamily, |family, M, make| family.number());
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = families.entry((number.unwrap_or(0), definition.kind, definition.unit));
        Ok(*entry.or_insert_with(|| {
            Box::leak(Box::new(Family {
                family: found,
                sampled: sampled.map(Box::new),
                labels: definition.labels.len(),
                kept: Mutex::default(),
                overflow: OnceLock::new(),
            }))
        }))
    }

    fn found_or_sampled(
        &self,
        definition: &Definition<'_>,
    ) -> Result<(AnyFamily, Option<SampledSummary>), talea::Error> {
        if !definition.is_sampled() {
            return self.found(definition).map(|family| (family, None));
        }
        let sampled = self.registry.sampled_summary(definition.opts(), &definition.labels)?;
        Ok((AnyFamily::Summary(sampled.family().clone()), Some(sampled)))
    }

    fn found(&self, definition: &Definition<'_>) -> Result<AnyFamily, talea::Error> {
        let (kind, unit) = (definition.kind, definition.unit);
        fn found<M: Metric>(
            registry: &Registry,
            definition: &Definition<'_>,
            any: fn(talea::Family<DynamicLabels, M>) -> AnyFamily,
        ) -> Result<AnyFamily, talea::Error> {
            registry.registry.family(definition.opts(), &definition.labels).map(any)
        }
        match (kind, unit) {
            (Kind::Counter, _) => found(self, definition, AnyFamily::Counter),
            (Kind::FloatCounter, _) => found(self, definition, AnyFamily::FloatCounter),
            (Kind::Gauge, _) => found(self, definition, AnyFamily::Gauge),
            (Kind::IntegerGauge, _) => found(self, definition, AnyFamily::IntegerGauge),
            (Kind::UpDownCounter, _) => found(self, definition, AnyFamily::UpDownCounter),
            (Kind::Histogram, Unit::None) => {
                found::<Histogram<Floats>>(self, definition, AnyFamily::Histogram)
            }
            (Kind::Histogram, Unit::Seconds) => {
                found::<Histogram<Nanoseconds>>(self, definition, AnyFamily::HistogramOfSeconds)
            }
            (Kind::Histogram, Unit::Bytes) => {
                found::<Histogram<Bytes>>(self, definition, AnyFamily::HistogramOfBytes)
            }
            (Kind::Histogram, Unit::Things) => {
                found::<Histogram<Count>>(self, definition, AnyFamily::HistogramOfThings)
            }
            (Kind::Summary, Unit::None) => {
                found::<Summary<Floats>>(self, definition, AnyFamily::Summary)
            }
            (Kind::Summary, Unit::Seconds) => {
                found::<Summary<Nanoseconds>>(self, definition, AnyFamily::SummaryOfSeconds)
            }
            (Kind::Summary, Unit::Bytes) => {
                found::<Summary<Bytes>>(self, definition, AnyFamily::SummaryOfBytes)
            }
            (Kind::Summary, Unit::Things) => {
                found::<Summary<Count>>(self, definition, AnyFamily::SummaryOfThings)
            }
        }
    }
}

/// Finds or makes the series of some label values, in the order of the family's labels, and
/// keeps it: counting in it costs no look-up. The same values give the same pointer.
///
/// For few series that are known beforehand: what is kept stays in memory until the process
/// ends, and the series does not expire. Where there is no room for a new one, it is the
/// family's overflow series; where a series is there and the region has no room even for the 40
/// bytes that note that it is kept, its updates are discarded. So keep series early.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_series_keep(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    series: *mut *const Series,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let (family, place) = unsafe { (required(family)?, place(series)?) };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        place.write(family.keep(values));
        Ok(())
    })
}

/// Removes a series with all that it counted; what counts in it next makes it anew. One that a
/// living process keeps is left out of scrapes until it is counted in, and counts from 0.
/// `removed`, which may be null, receives whether there was one.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8, _WRONG_LABELS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_remove(
    family: *const Family,
    values: *const Text,
    value_count: usize,
    removed: *mut bool,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        // SAFETY: the same.
        let values = unsafe { family.values(values, value_count)? };
        let found = match &family.sampled {
            Some(sampled) => sampled.remove_values(values),
            None => each_kind!(&family.family, AnyFamily, |family, M, make| {
                family.remove_values(values)
            }),
        };
        // SAFETY: the same.
        if let Ok(place) = unsafe { place(removed) } {
            place.write(found);
        }
        Ok(())
    })
}

/// Has a family count from 0 again: series with labels go, and kept ones count from 0. What is
/// in flight, and what each process set for itself, stays.
///
/// TALEA_STATUS_NULL, _NO_ROOM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_wipe_family(family: *const Family) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let family = unsafe { required(family)? };
        let wiped = match &family.sampled {
            Some(sampled) => sampled.wipe(),
            None => each_kind!(&family.family, AnyFamily, |family, M, make| family.wipe()),
        };
        if wiped { Ok(()) } else { Err(Status::NoRoom) }
    })
}

/// Has all families of a registry count from 0 again, those of other processes too.
///
/// TALEA_STATUS_NULL, _NO_ROOM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_wipe(registry: *const Registry) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let registry = unsafe { required(registry)? };
        if registry.registry.wipe(|_| true) { Ok(()) } else { Err(Status::NoRoom) }
    })
}

/// Ends the family of a name, which is as samples have it (a counter's with `_total`), for all
/// processes: scrapes no longer show it, and its updates are discarded until a process
/// registers it again with the same options. An empty name ends all. `ended`, which may be null,
/// receives their number.
///
/// TALEA_STATUS_NULL, _WRONG_LENGTH, _NOT_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_unregister(
    registry: *const Registry,
    name: Text,
    ended: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let (registry, name) = unsafe { (required(registry)?, name.as_str()?) };
        let registry = &registry.registry;
        let count = match name {
            "" => registry.unregister_where(|_| true),
            name => usize::from(registry.unregister(name)),
        };
        // SAFETY: the same.
        if let Ok(place) = unsafe { place(ended) } {
            place.write(count);
        }
        Ok(())
    })
}

/// Whether any process ended the family, so that its updates are discarded until it is registered
/// again with the same options. True for null. Cost: a load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_is_ended(family: *const Family) -> bool {
    // SAFETY: the header asks for as much.
    match unsafe { family.as_ref() } {
        Some(family) => {
            each_kind!(&family.family, AnyFamily, |family, M, make| family.is_ended())
        }
        None => true,
    }
}

/// How often label values counted in a family's overflow series, because they were new and
/// there was no room for them; over all processes. Scrapes show it as
/// talea_series_dropped_total.
///
/// TALEA_STATUS_NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talea_dropped(family: *const Family, dropped: *mut u64) -> Status {
    guarded(|| {
        // SAFETY: the header asks for as much.
        let (family, place) = unsafe { (required(family)?, place(dropped)?) };
        place.write(each_kind!(&family.family, AnyFamily, |family, M, make| family.dropped()));
        Ok(())
    })
}
