//! The recorder that the facade's macros call.

use std::fmt;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};

use crate::family_table::FamilyTable;
use crate::settings::Settings;

/// Records the calls of the facade's macros in a registry. A clone is the same recorder. In a
/// program, [`install`](crate::install) it; in tests,
///
/// ```
/// use talea::Registry;
/// use talea_metrics::Recorder;
///
/// let registry = Registry::for_test()?;
/// metrics::with_local_recorder(&Recorder::new(&registry)?, || {
///     metrics::counter!("orders").increment(2);
/// });
/// registry.snapshot().assert_value("orders_total", &[], 2.0);
/// # Ok::<(), talea_metrics::Error>(())
/// ```
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    counters: FamilyTable<Counter>,
    gauges: FamilyTable<Gauge>,
    histograms: FamilyTable<Histogram>,
}

impl Recorder {
    pub(crate) fn of(settings: Settings) -> Self {
        Self {
            inner: Arc::new(Inner {
                settings,
                counters: FamilyTable::new(),
                gauges: FamilyTable::new(),
                histograms: FamilyTable::new(),
            }),
        }
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.counters.describe(&key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.gauges.describe(&key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.histograms.describe(&key, unit, description);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.inner.counters.handle(key, &self.inner.settings)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.inner.gauges.handle(key, &self.inner.settings)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.inner.histograms.handle(key, &self.inner.settings)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
