//! What a request costs: the CPU time of the polls of its handler, their number, the time between them, and
//! what they allocate. Without the feature `costs` nothing is measured, and nothing of it is in a request.

#[cfg(all(feature = "costs", unix))]
pub(crate) use self::measured::{Costs, PollStart};
#[cfg(not(all(feature = "costs", unix)))]
pub(crate) use self::unmeasured::{Costs, PollStart};

#[cfg(all(feature = "costs", unix))]
mod measured {
    use std::time::Duration;

    use talea_region::thread_cpu_nanos;

    use super::super::clock::Instant;
    use super::super::meters::{CostMeters, RequestMeters};
    use crate::opts::Allocations;

    /// The polls of a request's handler so far.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Costs {
        /// `None` if polls are not measured, or their costs are recorded already.
        meters: Option<&'static CostMeters>,
        sum: Reading,
        polls: u64,
    }

    /// A reading at the beginning of a poll. `None` if it is not measured.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct PollStart(Option<Reading>);

    #[derive(Clone, Copy, Debug)]
    struct Reading {
        /// The nanoseconds of the thread's CPU clock.
        cpu: u64,
        /// The nanoseconds since the request's arrival.
        wall: u64,
        allocations: Allocations,
    }

    impl Reading {
        const ZERO: Self =
            Self { cpu: 0, wall: 0, allocations: Allocations { count: 0, bytes: 0 } };

        #[inline(never)]
        fn now(arrival: Instant, meters: &CostMeters) -> Self {
            Self {
                cpu: thread_cpu_nanos(),
                wall: arrival.elapsed().as_nanos() as u64,
                allocations: meters.allocations.map_or_else(Default::default, |of| (of.read)()),
            }
        }
    }

    impl PollStart {
        pub(crate) const UNMEASURED: Self = Self(None);
    }

    impl Costs {
        pub(crate) const NOTHING: Self = Self { meters: None, sum: Reading::ZERO, polls: 0 };

        /// Polls are measured from now on, if these meters have costs.
        #[inline]
        pub(in crate::request) fn measure_for(&mut self, meters: &RequestMeters) {
            self.meters = meters.costs;
        }

        #[inline]
        pub(in crate::request) fn begin_poll(&self, arrival: Instant) -> PollStart {
            PollStart(self.meters.map(|meters| Reading::now(arrival, meters)))
        }

        /// The poll has ended, on the same thread.
        #[inline]
        pub(in crate::request) fn end_poll(&mut self, arrival: Instant, start: PollStart) {
            if let (Some(start), Some(meters)) = (start.0, self.meters) {
                self.add_poll(start, Reading::now(arrival, meters));
            }
        }

        #[inline(never)]
        fn add_poll(&mut self, start: Reading, end: Reading) {
            let (Self { sum, polls, .. }, from, to) = (self, start.allocations, end.allocations);
            sum.cpu += end.cpu.saturating_sub(start.cpu);
            sum.wall += end.wall.saturating_sub(start.wall);
            sum.allocations.count += to.count.saturating_sub(from.count);
            sum.allocations.bytes += to.bytes.saturating_sub(from.bytes);
            *polls += 1;
        }

        /// Records the costs of a request whose head, or end without one, took this time: once, and only if it
        /// was polled.
        #[inline]
        pub(in crate::request) fn record(&mut self, took: Duration) {
            if let Some(meters) = self.meters.take() {
                self.record_in(meters, took);
            }
        }

        /// Records the costs of a call whose head is there, and which goes on.
        #[cfg(feature = "grpc")]
        pub(in crate::request) fn record_to_head(&mut self, arrival: Instant) {
            if let Some(meters) = self.meters.take() {
                self.record_in(meters, arrival.elapsed());
            }
        }

        #[inline(never)]
        fn record_in(&self, meters: &CostMeters, took: Duration) {
            if self.polls == 0 {
                return;
            }
            let Reading { cpu, wall, allocations } = self.sum;
            meters.cpu.observe(Duration::from_nanos(cpu));
            meters.polls.add(self.polls);
            meters.waiting.observe(took.saturating_sub(Duration::from_nanos(wall)));
            if let Some(meters) = &meters.allocations {
                meters.count.add(allocations.count);
                meters.bytes.add(allocations.bytes);
            }
        }
    }
}

#[cfg(not(all(feature = "costs", unix)))]
mod unmeasured {
    use std::time::Duration;

    use super::super::clock::Instant;
    use super::super::meters::RequestMeters;

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Costs;

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct PollStart;

    impl PollStart {
        pub(crate) const UNMEASURED: Self = Self;
    }

    impl Costs {
        pub(crate) const NOTHING: Self = Self;

        #[inline(always)]
        pub(in crate::request) fn measure_for(&mut self, _: &RequestMeters) {}

        #[inline(always)]
        pub(in crate::request) fn begin_poll(&self, _: Instant) -> PollStart {
            PollStart
        }

        #[inline(always)]
        pub(in crate::request) fn end_poll(&mut self, _: Instant, _: PollStart) {}

        #[inline(always)]
        pub(in crate::request) fn record(&mut self, _: Duration) {}

        #[cfg(feature = "grpc")]
        #[inline(always)]
        pub(in crate::request) fn record_to_head(&mut self, _: Instant) {}
    }
}
