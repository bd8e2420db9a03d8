//! The clock of requests: the CPU's time stamp counter if that is invariant, with the feature `tsc`,
//! or else the system's monotonic clock.

#[cfg(feature = "tsc")]
pub(super) use fastant::Instant;

#[cfg(not(feature = "tsc"))]
pub(super) use self::system::Instant;

#[cfg(not(feature = "tsc"))]
mod system {
    use std::time::{self, Duration};

    /// An instant of the system's monotonic clock.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::request) struct Instant(Option<time::Instant>);

    impl Instant {
        /// Before any measurement.
        pub(in crate::request) const ZERO: Self = Self(None);

        #[inline]
        pub(in crate::request) fn now() -> Self {
            Self(Some(time::Instant::now()))
        }

        #[inline]
        pub(in crate::request) fn elapsed(&self) -> Duration {
            self.0.map_or(Duration::ZERO, |start| start.elapsed())
        }
    }
}
