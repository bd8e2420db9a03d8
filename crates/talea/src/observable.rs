//! Metrics whose values are read at each snapshot rather than told.
//!
//! What is read goes into the region as what is told does, so that an agent outside
//! the process shows it too: as of the last snapshot that the process took.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::family::Family;
use crate::labels::{LabelText, Labels};
use crate::metric::{FloatCounter, FloatGauge};
use crate::opts::Opts;
use crate::registry::Registry;

impl Registry {
    /// Registers a gauge whose value `read` gives before each snapshot. Keep it short: a
    /// scrape waits for it.
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
        self.on_snapshot(move || gauge.set(read()));
        Ok(())
    }

    /// Registers a counter that follows a total which somebody else keeps, as the CPU
    /// time of a process: before each snapshot, what `read` gives has grown by since it
    /// was last read is added. A total that is less than before adds nothing. Processes
    /// that share the region add up.
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
        // Snapshots may be taken side by side: who holds this reads and adds.
        let reached = Mutex::new(0.0);
        self.on_snapshot(move || {
            let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
            let total = read();
            // What is no number says nothing.
            if total.is_finite() {
                counter.add(total - *reached);
                *reached = total;
            }
        });
        Ok(())
    }

    /// Registers a family of gauges whose label combinations and values `read` gives
    /// before each snapshot. What it gave the last time and does not give any more goes.
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
        read: impl Fn(&mut Found<'_, L>) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let family = self.passing_family::<L, FloatGauge>(&opts)?;
        let before = Mutex::new(HashSet::new());
        self.on_snapshot(move || {
            let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
            let mut found = Found { family: &family, texts: HashSet::new() };
            read(&mut found);
            let now = found.texts;
            for gone in before.difference(&now) {
                family.remove_text(gone);
            }
            *before = now;
        });
        Ok(())
    }
}

/// What [`Registry::observable_gauges`] is given values with.
#[derive(Debug)]
pub struct Found<'a, L> {
    family: &'a Family<L, FloatGauge>,
    texts: HashSet<Vec<u8>>,
}

impl<L: 'static> Found<'_, L> {
    /// The value of one label combination.
    pub fn set<Q: Labels<Static = L>>(&mut self, labels: Q, value: f64) {
        self.family.with(&labels).set(value);
        self.texts.insert(LabelText::of(&labels).as_bytes().to_vec());
    }
}
