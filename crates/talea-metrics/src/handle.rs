//! The implementations behind the facade's handles.
//!
//! Each operation looks its series up, so that one that is idle can go, also while a
//! handle of it is kept, and none is ever lost on its way: a handle that kept its series
//! could find no room to note that.

use std::sync::{Arc, Mutex, PoisonError};

use metrics::{CounterFn, GaugeFn, HistogramFn};
use talea::{Counter, FloatGauge, Histogram, Metric, SeriesGuard};

use crate::family::{Family, Make};
use crate::labels::Free;
use crate::losses::Refused;
use crate::scale::Fixed;

/// A series: its family and the text of its labels.
struct Series<M: Metric> {
    family: Arc<Family<M>>,
    labels: String,
}

impl<M: Metric> Series<M> {
    #[inline]
    fn find(&self) -> SeriesGuard<M> {
        self.family.series.with(Free(&self.labels))
    }
}

impl Make<metrics::Counter> for Family<Counter> {
    fn handle(self: Arc<Self>, labels: String) -> metrics::Counter {
        metrics::Counter::from_arc(Arc::new(Series { family: self, labels }))
    }
}

/// Raising a counter reads it first; no other thread may raise it in between.
static RAISING: Mutex<()> = Mutex::new(());

impl CounterFn for Series<Counter> {
    fn increment(&self, value: u64) {
        self.find().add(value);
    }

    fn absolute(&self, value: u64) {
        let _alone = RAISING.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = self.find();
        // An increment that comes between counts as one that came after.
        counter.add(value.saturating_sub(counter.get()));
    }
}

impl Make<metrics::Gauge> for Family<FloatGauge> {
    fn handle(self: Arc<Self>, labels: String) -> metrics::Gauge {
        metrics::Gauge::from_arc(Arc::new(Series { family: self, labels }))
    }
}

impl GaugeFn for Series<FloatGauge> {
    fn increment(&self, value: f64) {
        self.find().add(value);
    }

    fn decrement(&self, value: f64) {
        self.find().add(-value);
    }

    fn set(&self, value: f64) {
        self.find().set(value);
    }
}

impl<const STEPS: u64> Make<metrics::Histogram> for Family<Histogram<Fixed<STEPS>>> {
    fn handle(self: Arc<Self>, labels: String) -> metrics::Histogram {
        metrics::Histogram::from_arc(Arc::new(Series { family: self, labels }))
    }
}

impl<const STEPS: u64> HistogramFn for Series<Histogram<Fixed<STEPS>>> {
    fn record(&self, value: f64) {
        match Fixed::<STEPS>::can_keep(value) {
            true => self.find().observe(value),
            false => self.family.losses.unusable(&self.family.name, 1),
        }
    }

    fn record_many(&self, value: f64, count: usize) {
        if !Fixed::<STEPS>::can_keep(value) {
            return self.family.losses.unusable(&self.family.name, count as u64);
        }
        self.find().observe_many(value, count as u64);
    }
}

macro_rules! refused {
    ($handle:ident: $what:ident { $($operation:ident($($value:ty),*))* }) => {
        impl Make<metrics::$handle> for Refused {
            fn handle(self: Arc<Self>, _: String) -> metrics::$handle {
                metrics::$handle::from_arc(self)
            }
        }

        impl $what for Refused {
            $(fn $operation(&self, $(_: $value),*) {
                self.count();
            })*
        }
    };
}
refused!(Counter: CounterFn { increment(u64) absolute(u64) });
refused!(Gauge: GaugeFn { increment(f64) decrement(f64) set(f64) });
refused!(Histogram: HistogramFn { record(f64) record_many(f64, usize) });
