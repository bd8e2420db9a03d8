//! Counters of any library that are found by their labels each time.

use std::hash::Hash;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use measured::CounterVec;
use measured::label::LabelGroupSet;
use prometheus::IntCounterVec;
use prometheus_client::metrics::counter::Counter as ClientCounter;
use prometheus_client::metrics::family::Family as ClientFamily;
use talea::{Counter, Family, Labels};

use crate::work::{Work, work};

/// Events that are drawn at random.
pub(super) trait Draw: Copy + 'static {
    /// Draws `n` events, as thread number `thread`.
    fn walk(thread: usize, n: u64, with: impl FnMut(Self));

    /// Every event that can be drawn.
    fn all() -> impl Iterator<Item = Self>;
}

pub(super) trait Counters<L>: Send + Sync + 'static {
    fn inc(&self, labels: L);

    fn get(&self, labels: L) -> u64;
}

/// Counts the events that are drawn. Those without labels are left out, so that the checked count is too low.
pub(super) fn counted<D: Draw, L, C: Counters<L>>(
    counters: C,
    labels: impl Fn(D) -> Option<L> + Send + Sync + 'static,
) -> Result<Box<dyn Work>> {
    work(
        (counters, labels),
        |(counters, labels), thread, n| {
            D::walk(thread, n, |event| {
                if let Some(labels) = labels(event) {
                    counters.inc(labels);
                }
            });
        },
        |(counters, labels)| Ok(D::all().filter_map(labels).map(|one| counters.get(one)).sum()),
    )
}

/// Makes all series, by an increment each.
pub(super) fn filled<D: Draw, L, C: Counters<L>>(counters: C, labels: fn(D) -> Option<L>) -> C {
    D::all().filter_map(labels).for_each(|labels| counters.inc(labels));
    counters
}

impl<L: Labels> Counters<L> for Family<L::Static, Counter>
where
    Self: Send + Sync + 'static,
{
    #[inline]
    fn inc(&self, labels: L) {
        self.with(labels).inc();
    }

    fn get(&self, labels: L) -> u64 {
        self.with(labels).get()
    }
}

impl<'a, S: LabelGroupSet> Counters<S::Group<'a>> for CounterVec<S>
where
    Self: Send + Sync + 'static,
{
    #[inline]
    fn inc(&self, labels: S::Group<'a>) {
        CounterVec::inc(self, labels);
    }

    fn get(&self, labels: S::Group<'a>) -> u64 {
        self.get_metric(self.with_labels(labels)).count.load(Relaxed)
    }
}

impl<'a, const N: usize> Counters<[&'a str; N]> for IntCounterVec {
    #[inline]
    fn inc(&self, labels: [&'a str; N]) {
        self.with_label_values(&labels).inc();
    }

    fn get(&self, labels: [&'a str; N]) -> u64 {
        self.with_label_values(&labels).get()
    }
}

impl<L: Clone + Eq + Hash + Send + Sync + 'static> Counters<L> for ClientFamily<L, ClientCounter> {
    #[inline]
    fn inc(&self, labels: L) {
        self.get_or_create(&labels).inc();
    }

    fn get(&self, labels: L) -> u64 {
        self.get_or_create(&labels).get()
    }
}
