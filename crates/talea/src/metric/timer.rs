//! Timers: they observe how long something took, on every way out.

use std::time::{Duration, Instant};

use super::histogram::Histogram;
use super::summary::Summary;
use crate::definition::unit::{Seconds, Unit};
use crate::exemplar::ExemplarError;

/// A metric of durations, or a reference to one: a timer observes in it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no durations, so it has no timers",
    label = "expected a `Histogram<Seconds>` or a `Summary<Seconds>`",
    note = "of another unit, measure by `std::time::Instant` and pass the value to `observe`"
)]
pub trait ObserveDuration {
    /// Counts one observation.
    fn observe_duration(&self, duration: Duration);
}

/// A metric of durations that has exemplars, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no exemplars",
    label = "expected a `Histogram<Seconds>`",
    note = "of a summary, stop the timer by `stop`"
)]
pub trait KeepExemplar: ObserveDuration {
    /// Calls a function with the histogram; `None` if its series is gone.
    fn with_histogram<R>(&self, use_it: impl FnOnce(&Histogram<Seconds>) -> R) -> Option<R>;
}

/// A family of durations with the labels of one series; see [`Timer::stop_with`].
#[diagnostic::on_unimplemented(
    message = "this timer has one series and cannot stop with other labels",
    label = "`{Self}` knows no family",
    note = "start it from the family: `family.start_timer(labels)`, not `family.with(labels).start_timer()`"
)]
pub trait ObserveWith<P>: ObserveDuration {
    /// Counts one observation in the series with other labels.
    fn observe_with(&self, labels: P, duration: Duration);
}

impl KeepExemplar for Histogram<Seconds> {
    fn with_histogram<R>(&self, use_it: impl FnOnce(&Self) -> R) -> Option<R> {
        Some(use_it(self))
    }
}

impl<T: KeepExemplar> KeepExemplar for &T {
    fn with_histogram<R>(&self, use_it: impl FnOnce(&Histogram<Seconds>) -> R) -> Option<R> {
        (**self).with_histogram(use_it)
    }
}

impl<T: ObserveDuration> ObserveDuration for &T {
    #[inline]
    fn observe_duration(&self, duration: Duration) {
        (**self).observe_duration(duration);
    }
}

/// Observes the time from its start to its end, once: when it is stopped, or else when it is dropped,
/// whether by an error, by a panic or with a future. See [`Histogram::start_timer`] and
/// [`Family::start_timer`](crate::Family::start_timer).
///
/// It may be sent to another thread. Cost: two readings of the monotonic clock, and an observation; no
/// allocation.
#[must_use = "a timer that is dropped at once measures nothing"]
#[derive(Debug)]
pub struct Timer<T: ObserveDuration> {
    pub(crate) target: T,
    /// None once it has ended.
    start: Option<Instant>,
}

impl<T: ObserveDuration> Timer<T> {
    #[inline]
    pub(crate) fn new(target: T) -> Self {
        Self { target, start: Some(Instant::now()) }
    }

    /// Observes now; returns the time that it observed.
    #[inline]
    pub fn stop(mut self) -> Duration {
        let took = self.end();
        self.target.observe_duration(took);
        took
    }

    /// Observes now, in the series with other labels; returns the time that it observed. For timers by
    /// [`Family::start_timer`](crate::Family::start_timer).
    pub fn stop_with<P>(mut self, labels: P) -> Duration
    where
        T: ObserveWith<P>,
    {
        let took = self.end();
        self.target.observe_with(labels, took);
        took
    }

    /// Ends it without an observation; returns the time until now.
    pub fn discard(mut self) -> Duration {
        self.end()
    }

    /// The time until now. From here on it observes nothing.
    #[inline]
    pub(crate) fn end(&mut self) -> Duration {
        self.start.take().map_or(Duration::ZERO, |start| start.elapsed())
    }

    /// Observes now, with an exemplar: see [`Histogram::observe_with_exemplar`]. Returns the time that
    /// it observed.
    ///
    /// # Errors
    ///
    /// The exemplar is refused, and the observation counts all the same.
    pub fn stop_with_exemplar(mut self, labels: &[(&str, &str)]) -> Result<Duration, ExemplarError>
    where
        T: KeepExemplar,
    {
        let took = self.end();
        self.target.with_histogram(|it| it.observe_with_exemplar(took, labels)).transpose()?;
        Ok(took)
    }

    /// Observes now, with the trace that this thread is in as the exemplar: see
    /// [`Histogram::observe_traced`]. Returns the time that it observed.
    #[cfg(feature = "tracing")]
    pub fn stop_traced(mut self) -> Duration
    where
        T: KeepExemplar,
    {
        let took = self.end();
        self.target.with_histogram(|it| it.observe_traced(took));
        took
    }
}

impl<T: ObserveDuration> Drop for Timer<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(start) = self.start {
            self.target.observe_duration(start.elapsed());
        }
    }
}

// Written out, since the compiler shows it to users.
impl ObserveDuration for Histogram<Seconds> {
    #[inline]
    fn observe_duration(&self, duration: Duration) {
        self.observe(duration);
    }
}

impl ObserveDuration for Summary<Seconds> {
    #[inline]
    fn observe_duration(&self, duration: Duration) {
        self.observe(duration);
    }
}

/// With the bound at each function and not at the block, the compiler shows what the trait says.
macro_rules! timed {
    ($metric:ident) => {
        impl<U: Unit> $metric<U> {
            /// Starts a timer, which observes when it is stopped or dropped. Of a family, use
            /// [`Family::start_timer`](crate::Family::start_timer). Cost: as [`Timer`].
            #[inline]
            pub fn start_timer(&self) -> Timer<&Self>
            where
                Self: ObserveDuration,
            {
                Timer::new(self)
            }

            /// Calls a function and observes how long that took, also if it panics.
            #[inline]
            pub fn observe_closure<R>(&self, function: impl FnOnce() -> R) -> R
            where
                Self: ObserveDuration,
            {
                let _timer = self.start_timer();
                function()
            }

            /// Runs a future and observes how long that took, from its first poll on; also if it is dropped
            /// before it is done, as when a client has disconnected.
            ///
            /// ```
            /// # use talea::{Histogram, Opts, Registry, Seconds};
            /// # async fn price() -> u64 { 1250 }
            /// # async fn pricing(pricing: Histogram<Seconds>) {
            /// let cents = pricing.observe_future(price()).await;
            /// # let _ = cents;
            /// # }
            /// ```
            pub async fn observe_future<F: Future>(&self, future: F) -> F::Output
            where
                Self: ObserveDuration,
            {
                let _timer = self.start_timer();
                future.await
            }
        }
    };
}
timed!(Histogram);
timed!(Summary);
