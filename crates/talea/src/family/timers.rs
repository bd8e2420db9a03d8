//! Timers of labelled metrics. A timer holds its labels and looks the series up when it ends: so it
//! pins nothing meanwhile, it may live as long as it likes and be sent to any thread, and if the
//! series is removed or expires before the end, the observation makes it anew.

use std::time::Duration;

use super::Family;
use crate::definition::unit::Seconds;
use crate::labels::Labels;
use crate::metric::timer::{KeepExemplar, ObserveDuration, ObserveWith, Timer};
use crate::metric::{Histogram, Metric};

/// A family with the labels of one series, in which a timer observes.
#[derive(Debug)]
pub struct Labelled<'a, L, M: Metric, Q> {
    family: &'a Family<L, M>,
    labels: Q,
}

impl<L, M, Q> ObserveDuration for Labelled<'_, L, M, Q>
where
    L: 'static,
    M: Metric + ObserveDuration,
    Q: Labels<Static = L>,
{
    #[inline]
    fn observe_duration(&self, duration: Duration) {
        self.family.with(&self.labels).observe_duration(duration);
    }
}

impl<L, M, Q> KeepExemplar for Labelled<'_, L, M, Q>
where
    L: 'static,
    M: Metric + KeepExemplar,
    Q: Labels<Static = L>,
{
    fn with_histogram<R>(&self, use_it: impl FnOnce(&Histogram<Seconds>) -> R) -> Option<R> {
        self.family.with(&self.labels).with_histogram(use_it)
    }
}

impl<L, M, Q, P> ObserveWith<P> for Labelled<'_, L, M, Q>
where
    L: 'static,
    M: Metric + ObserveDuration,
    Q: Labels<Static = L>,
    P: Labels<Static = L>,
{
    #[inline]
    fn observe_with(&self, labels: P, duration: Duration) {
        self.family.with(labels).observe_duration(duration);
    }
}

/// With the bound at each function and not at the block, the compiler shows what the trait says.
impl<L: 'static, M: Metric> Family<L, M> {
    /// Starts a timer of the series with these labels, which observes when it is stopped or dropped. It
    /// is not bound to this thread: it may live across an `await` and be sent.
    ///
    /// The series is looked up at the end. So a series that is removed or expires in between is made
    /// anew, and holds this observation; and labels that are known only then can be given to
    /// [`stop_with`](Timer::stop_with).
    ///
    /// ```
    /// use talea::{Family, Histogram, Labels, Opts, Registry, Seconds};
    ///
    /// #[derive(Labels)]
    /// struct By<'a> { outcome: &'a str }
    ///
    /// let registry = Registry::new()?;
    /// let opts = Opts::new("payment", "Time to pay.");
    /// let payment: Family<By<'static>, Histogram<Seconds>> = registry.register(opts)?;
    /// let timer = payment.start_timer(By { outcome: "aborted" });
    /// // … an error or a panic here counts as aborted …
    /// timer.stop_with(By { outcome: "paid" });
    /// let labels = [("outcome", "paid")];
    /// assert_eq!(registry.snapshot().expect_histogram("payment_seconds", &labels).count(), 1);
    /// # Ok::<(), talea::Error>(())
    /// ```
    ///
    /// Cost: two readings of the monotonic clock, and [`with`](Self::with) and an observation at the end.
    #[inline]
    pub fn start_timer<Q: Labels<Static = L>>(&self, labels: Q) -> Timer<Labelled<'_, L, M, Q>>
    where
        M: ObserveDuration,
    {
        Timer::new(Labelled { family: self, labels })
    }

    /// Calls a function and observes how long that took, also if it panics.
    #[inline]
    pub fn observe_closure<Q: Labels<Static = L>, R>(
        &self,
        labels: Q,
        function: impl FnOnce() -> R,
    ) -> R
    where
        M: ObserveDuration,
    {
        let _timer = self.start_timer(labels);
        function()
    }

    /// Runs a future and observes how long that took, from its first poll on; also if it is dropped
    /// before it is done.
    pub async fn observe_future<Q: Labels<Static = L>, F: Future>(
        &self,
        labels: Q,
        future: F,
    ) -> F::Output
    where
        M: ObserveDuration,
    {
        let _timer = self.start_timer(labels);
        future.await
    }
}
