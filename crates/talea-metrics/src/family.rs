//! Families of the three types, whose series have any labels.

use std::sync::Arc;

use talea::{Counter, Error, FloatGauge, Histogram, Metric, Opts};

use crate::handle::Make;
use crate::labels::Free;
use crate::losses::{Losses, Refused};
use crate::scale::{Fixed, Scale};
use crate::settings::Settings;

/// A family, and what its handles share.
pub(crate) struct Family<M: Metric> {
    pub(crate) series: talea::Family<Free<'static>, M>,
    /// As the program calls it.
    pub(crate) name: String,
    pub(crate) losses: Losses,
}

/// The factory of a family's handles, or the reason why there is no family.
pub(crate) type Made<H> = Result<Arc<dyn Make<H>>, Error>;

/// A definition that is to be registered.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) settings: &'a Settings,
    /// As the program calls it.
    pub(crate) name: &'a str,
    /// Its name with characters replaced, which need not be the one it gets.
    pub(crate) base: &'a str,
    /// Its unit, where it was described with one.
    pub(crate) unit: Option<metrics::Unit>,
    pub(crate) opts: Opts<'a>,
}

impl Asked<'_> {
    fn family<M: Metric>(self) -> Result<Family<M>, Error> {
        Ok(Family {
            series: self.settings.registry.register(self.opts)?,
            name: self.name.to_owned(),
            losses: self.settings.losses.clone(),
        })
    }
}

/// A type of metric, identified by the facade's handle for it.
pub(crate) trait Type: Clone + Send + Sync + 'static {
    const NAME: &'static str;

    /// Registers a family.
    fn open(asked: Asked<'_>) -> Made<Self>;

    /// A factory of handles that discard their updates.
    fn refused(refused: Refused) -> Arc<dyn Make<Self>>;
}

impl Type for metrics::Counter {
    const NAME: &'static str = "counter";

    fn open(asked: Asked<'_>) -> Made<Self> {
        Ok(Arc::new(asked.family::<Counter>()?))
    }

    fn refused(refused: Refused) -> Arc<dyn Make<Self>> {
        Arc::new(refused)
    }
}

impl Type for metrics::Gauge {
    const NAME: &'static str = "gauge";

    fn open(asked: Asked<'_>) -> Made<Self> {
        // A gauge keeps its value until it is set again.
        let opts = asked.opts.expires_after(None);
        Ok(Arc::new(Asked { opts, ..asked }.family::<FloatGauge>()?))
    }

    fn refused(refused: Refused) -> Arc<dyn Make<Self>> {
        Arc::new(refused)
    }
}

impl Type for metrics::Histogram {
    const NAME: &'static str = "histogram";

    fn open(asked: Asked<'_>) -> Made<Self> {
        let scale = Scale::of(asked.unit, asked.base);
        let with = |buckets| (scale.open)(Asked { opts: asked.opts.buckets(buckets), ..asked });
        let Some(chosen) = asked.settings.buckets.of(asked.base) else {
            return with(scale.buckets);
        };
        with(chosen).or_else(|error| {
            // Most likely they are finer than the scale.
            let made = with(scale.buckets).map_err(|_| ());
            let Ok(made) = made else { return Err(error) };
            eprintln!("talea: {error}; it has the default buckets of its unit");
            Ok(made)
        })
    }

    fn refused(refused: Refused) -> Arc<dyn Make<Self>> {
        Arc::new(refused)
    }
}

/// Registers a histogram of one scale.
pub(crate) fn open<const STEPS: u64>(asked: Asked<'_>) -> Made<metrics::Histogram> {
    Ok(Arc::new(asked.family::<Histogram<Fixed<STEPS>>>()?))
}
