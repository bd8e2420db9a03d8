//! The three types of metric that the facade has.

use std::sync::Arc;

use talea::{Counter, FloatGauge};

use crate::family::{FamilyRequest, Made};
use crate::scale::Scale;

/// A type of metric, identified by the facade's handle for it.
pub(crate) trait Type: Clone + Send + Sync + 'static {
    const NAME: &'static str;
    /// The end of its names as they are shown, which a name may have already.
    const ENDING: &'static str = "";

    /// Registers a family.
    fn open(request: FamilyRequest<'_>) -> Made<Self>;
}

impl Type for metrics::Counter {
    const NAME: &'static str = "counter";
    const ENDING: &'static str = "_total";

    fn open(request: FamilyRequest<'_>) -> Made<Self> {
        Ok(Arc::new(request.family::<Counter>()?))
    }
}

impl Type for metrics::Gauge {
    const NAME: &'static str = "gauge";

    fn open(request: FamilyRequest<'_>) -> Made<Self> {
        // A gauge keeps its value until it is set again.
        let opts = request.opts.expires_after(None);
        Ok(Arc::new(FamilyRequest { opts, ..request }.family::<FloatGauge>()?))
    }
}

impl Type for metrics::Histogram {
    const NAME: &'static str = "histogram";

    fn open(request: FamilyRequest<'_>) -> Made<Self> {
        let scale = Scale::of(request.unit, request.base);
        let with = |buckets| {
            (scale.open)(FamilyRequest { opts: request.opts.buckets(buckets), ..request })
        };
        let Some(chosen) = request.settings.buckets.of(request.base) else {
            return with(scale.buckets);
        };
        with(chosen).or_else(|error| {
            // Most likely they are finer than the scale.
            let Ok(made) = with(scale.buckets) else { return Err(error) };
            talea::notice(format_args!("{error}; it has the default buckets of its unit"));
            Ok(made)
        })
    }
}
