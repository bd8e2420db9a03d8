//! Counts of values and calls that are not recorded.

use talea::{Counter, DynamicLabels, Error, Family, Opts, Registry};

/// The recorder's own metrics.
#[derive(Clone)]
pub(crate) struct Losses {
    refused: Family<DynamicLabels, Counter>,
    unusable: Family<DynamicLabels, Counter>,
}

impl Losses {
    pub(crate) fn register(registry: &Registry) -> Result<Self, Error> {
        let refused = Opts::new(
            "talea_recorder_refused",
            "Calls to metrics that the recorder could not register.",
        );
        let unusable = Opts::new(
            "talea_recorder_unusable",
            "Values of histograms that were negative, no number, or more than a sum can hold.",
        );
        Ok(Self {
            refused: registry.family(refused, &["metric", "type"])?,
            unusable: registry.family(unusable, &["metric"])?,
        })
    }

    pub(crate) fn unusable(&self, metric: &str, count: u64) {
        self.unusable.with_values(&[metric]).add(count);
    }
}

/// A metric that could not be registered.
pub(crate) struct Refused {
    pub(crate) losses: Losses,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
}

impl Refused {
    /// Counts a call that is discarded.
    pub(crate) fn count(&self) {
        self.losses.refused.with_values(&[self.name.as_str(), self.kind]).inc();
    }
}
