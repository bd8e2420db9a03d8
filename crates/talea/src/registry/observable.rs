//! Observable metrics, whose values are read at each snapshot.
//!
//! The values are written into the region as recorded ones are, so that an agent outside the
//! process shows them too: as of the last snapshot that the process took, or of the last time that
//! it [refreshed them](crate::Registry::refresh_every).

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::Registry;
use super::observed::{Observed, Values};
use crate::definition::names;
use crate::definition::opts::Opts;
use crate::error::Error;
use crate::family::Family;
use crate::labels::{LabelText, Labels};
use crate::metric::{FloatCounter, FloatGauge, Metric};

impl Registry {
    /// Registers a gauge whose value `read` gives, now and before each snapshot, as
    /// [`on_snapshot`](Self::on_snapshot) calls it. Keep it short: a scrape waits for it.
    ///
    /// If `read` panics, the gauge has no value until `read` has returned again, and
    /// `talea_observable_failures_total{family="…"}` counts that. If it blocks, the gauge has its last value.
    /// From 10 seconds on `talea_observable_age_seconds{family="…"}` shows how old it is, and after 5 minutes
    /// the gauge is not shown. So it is for a reader outside of a process that neither takes snapshots nor
    /// [refreshes](Self::refresh_every) its values.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// use talea::{Opts, Registry};
    ///
    /// static WAITING: AtomicU64 = AtomicU64::new(7);
    ///
    /// let registry = Registry::for_test()?;
    /// let opts = Opts::new("queue_length", "Jobs that wait.");
    /// registry.observable_gauge(opts, || WAITING.load(Relaxed) as f64)?;
    /// assert_eq!(registry.snapshot().value("queue_length", &[]), Some(7.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn observable_gauge(
        &self,
        opts: Opts<'_>,
        read: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let gauge: FloatGauge = self.register(opts)?;
        let observed = Values::Gauge(gauge.clone());
        self.observe::<FloatGauge>(&opts, observed, move || gauge.set(read()));
        Ok(())
    }

    /// Registers a counter that follows an external total, for example the CPU time of a process.
    /// Now and before each snapshot it calls `read` and adds the growth since the last call. A
    /// total that is less than before has restarted, as a child's CPU time after `fork`, and is
    /// added whole. Processes that share the region add up. If `read` panics, the counter is not shown until
    /// `read` has returned again; see [`observable_gauge`](Self::observable_gauge).
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn observable_counter(
        &self,
        opts: Opts<'_>,
        read: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let counter: FloatCounter = self.register(opts)?;
        // The bits of a float. No two threads call the function at once.
        let reached = AtomicU64::new(0);
        self.observe::<FloatCounter>(&opts, Values::Counter, move || {
            let total = read();
            // NaN and infinities are ignored.
            if total.is_finite() {
                let before = f64::from_bits(reached.swap(total.to_bits(), Relaxed));
                // As after a fork: a child's CPU time begins at 0.
                counter.add(if total < before { total } else { total - before });
            }
        });
        Ok(())
    }

    /// Registers a family of gauges whose label combinations and values `read` sets, now and before
    /// each snapshot. Combinations that it set the last time and not this time are removed, also if it
    /// panics; see [`observable_gauge`](Self::observable_gauge).
    ///
    /// Cost of each snapshot: a look-up and an allocation for each combination.
    ///
    /// ```
    /// use talea::{Labels, Opts, Registry};
    ///
    /// #[derive(Labels)]
    /// struct Disk<'a> { mount: &'a str }
    ///
    /// let registry = Registry::for_test()?;
    /// let opts = Opts::new("disk_free_bytes", "Bytes that are free.");
    /// registry.observable_gauges::<Disk<'static>>(opts, |found| {
    ///     for (mount, free) in [(String::from("/"), 10.0), (String::from("/srv"), 20.0)] {
    ///         found.set(Disk { mount: &mount }, free);
    ///     }
    /// })?;
    /// assert_eq!(registry.snapshot().value("disk_free_bytes", &[("mount", "/srv")]), Some(20.0));
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn observable_gauges<L: Labels + 'static>(
        &self,
        opts: Opts<'_>,
        read: impl Fn(&mut Observation<'_, L>) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let family = self.passing_family::<L, FloatGauge>(&opts)?;
        let before = Mutex::new((HashSet::new(), false));
        self.observe::<FloatGauge>(&opts, Values::Gauges, move || {
            let (known, overflowed) =
                std::mem::take(&mut *before.lock().unwrap_or_else(PoisonError::into_inner));
            let mut found = Observation {
                family: &family,
                known: &known,
                texts: HashSet::new(),
                new: Vec::new(),
            };
            let dropped = family.dropped();
            let result = catch_unwind(AssertUnwindSafe(|| read(&mut found)));
            let Observation { mut texts, new, .. } = found;
            for gone in known.difference(&texts) {
                family.remove_text(gone);
            }
            let Some(bound) = family.bound() else { return };
            for (text, value) in new {
                let made = bound.series_of_text(&text);
                if made.is_err() {
                    texts.remove(&text);
                }
                made.unwrap_or_else(|_| bound.overflow_series()).set(value);
            }
            let overflows = family.dropped() != dropped;
            // An overflow series cannot be removed; at 0 it is not shown.
            if overflowed && !overflows {
                bound.overflow_series().set(0.0);
            }
            *before.lock().unwrap_or_else(PoisonError::into_inner) = (texts, overflows);
            result.unwrap_or_else(|panic| resume_unwind(panic));
        });
        Ok(())
    }
}

impl Registry {
    /// Refreshes the values of a family now, so that a reader outside finds something, and before each
    /// snapshot.
    fn observe<M: Metric>(
        &self,
        opts: &Opts<'_>,
        values: Values,
        refresh: impl Fn() + Send + Sync + 'static,
    ) {
        let ending = M::shape(opts).map_or("", |shape| shape.ending);
        let name = names::completed(&self.name_of(opts), ending);
        self.refreshers.begin(refresh, Some(Observed::of(self.region, name, values)));
    }
}

/// Collects the values of [`Registry::observable_gauges`].
#[derive(Debug)]
pub struct Observation<'a, L> {
    family: &'a Family<L, FloatGauge>,
    /// The combinations that were set the time before, except those that overflowed.
    known: &'a HashSet<Vec<u8>>,
    texts: HashSet<Vec<u8>>,
    /// Those that are new. They are made when those that are gone have left their room.
    new: Vec<(Vec<u8>, f64)>,
}

impl<L: 'static> Observation<'_, L> {
    /// Sets the value of one label combination. If there is no room for a new one, it is the value of
    /// the family's overflow series.
    pub fn set<Q: Labels<Static = L>>(&mut self, labels: Q, value: f64) {
        let text = LabelText::of(&labels).as_bytes().to_vec();
        match self.family.bound() {
            // By its text, since fixed labels have no places in a family whose series come and go.
            Some(bound) if self.known.contains(&text) => {
                let found = bound.series_of_text(&text);
                found.unwrap_or_else(|_| bound.overflow_series()).set(value);
            }
            _ => self.new.push((text.clone(), value)),
        }
        self.texts.insert(text);
    }
}
