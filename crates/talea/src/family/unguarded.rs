//! Metrics that were looked up and are used later, as a timer does: on another thread, behind an
//! `await`. They pin nothing meanwhile, so each use makes sure that the series is still there.

use std::mem::ManuallyDrop;
use std::time::Duration;

use talea_region::Incarnation;

use super::SeriesGuard;
use crate::definition::unit::Seconds;
use crate::metric::slot::{Bound, Slot};
use crate::metric::timer::{KeepExemplar, ObserveDuration, Timer};
use crate::metric::{Histogram, Metric, Sealed};

/// A metric that was looked up, for one later use; made by [`SeriesGuard::start_timer`]. It may be
/// sent to another thread.
#[derive(Debug)]
pub struct Unguarded<M> {
    /// Never dropped, as in a [`SeriesGuard`].
    metric: ManuallyDrop<M>,
    /// `None` where the series stays, or where the family is not installed.
    incarnation: Option<Incarnation>,
}

impl<M> Unguarded<M> {
    /// Uses the metric, if its series is still there.
    fn enter<R>(&self, use_it: impl FnOnce(&M) -> R) -> Option<R> {
        match &self.incarnation {
            None => Some(use_it(&self.metric)),
            Some(incarnation) => {
                let _guard = incarnation.enter()?;
                Some(use_it(&self.metric))
            }
        }
    }
}

impl<M: Metric + ObserveDuration> ObserveDuration for Unguarded<M> {
    fn observe_duration(&self, duration: Duration) {
        self.enter(|metric| metric.observe_duration(duration));
    }
}

impl<M: Metric + KeepExemplar> KeepExemplar for Unguarded<M> {
    fn with_histogram<R>(&self, use_it: impl FnOnce(&Histogram<Seconds>) -> R) -> Option<R> {
        self.enter(|metric| metric.with_histogram(use_it)).flatten()
    }
}

impl<M: Metric> SeriesGuard<M> {
    fn unguarded(self) -> Unguarded<M> {
        let incarnation = match Sealed::slot(&*self.metric) {
            Slot::Bound { bound, passes: true } => Some(Incarnation::of(bound.cell())),
            _ => None,
        };
        Unguarded { metric: self.metric, incarnation }
    }
}

/// Timers of a series that was just looked up. They pin nothing: if the series is removed or expires
/// before a timer ends, the observation goes with it. With
/// [`Family::start_timer`](crate::Family::start_timer) the series is looked up at the end, and made
/// anew then.
///
/// With the bound at each function and not at the block, the compiler shows what the trait says.
impl<M: Metric> SeriesGuard<M> {
    /// Starts a timer, which observes when it is stopped or dropped. It is not bound to this thread.
    ///
    /// ```
    /// # use talea::{Family, Histogram, Labels, Seconds};
    /// # #[derive(Labels)]
    /// # struct By<'a> { provider: &'a str }
    /// # fn pay(payment: &Family<By<'static>, Histogram<Seconds>>) {
    /// let _timer = payment.with(By { provider: "acme" }).start_timer();
    /// // … pay …
    /// # }
    /// ```
    ///
    /// Cost: two readings of the monotonic clock, a guard and an observation; no allocation.
    #[inline]
    pub fn start_timer(self) -> Timer<Unguarded<M>>
    where
        M: ObserveDuration,
    {
        Timer::new(self.unguarded())
    }

    /// Calls a function and observes how long that took, also if it panics.
    #[inline]
    pub fn observe_closure<R>(self, function: impl FnOnce() -> R) -> R
    where
        M: ObserveDuration,
    {
        let _timer = self.start_timer();
        function()
    }

    /// Runs a future and observes how long that took, from its first poll on; also if it is dropped
    /// before it is done. The result is `Send` if the future is.
    pub fn observe_future<F: Future>(self, future: F) -> impl Future<Output = F::Output> + use<M, F>
    where
        M: ObserveDuration,
    {
        let target = self.unguarded();
        async move {
            let _timer = Timer::new(target);
            future.await
        }
    }
}
