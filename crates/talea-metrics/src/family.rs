//! Families whose series have any labels, and requests to register one.

use std::sync::Arc;

use talea::{Error, Metric, Opts};

use crate::labels::Free;
use crate::losses::Losses;
use crate::settings::Settings;

/// A family, and what its handles share.
pub(crate) struct Family<M: Metric> {
    pub(crate) series: talea::Family<Free<'static>, M>,
    /// As the program calls it.
    pub(crate) name: String,
    pub(crate) losses: Losses,
}

/// Makes the facade's handles of series.
pub(crate) trait Make<H>: Send + Sync {
    /// The handle of the series with these labels.
    fn handle(self: Arc<Self>, labels: String) -> H;
}

/// The factory of a family's handles, or the reason why there is no family.
pub(crate) type Made<H> = Result<Arc<dyn Make<H>>, Error>;

/// A definition that is to be registered.
#[derive(Clone, Copy)]
pub(crate) struct FamilyRequest<'a> {
    pub(crate) settings: &'a Settings,
    /// As the program calls it.
    pub(crate) name: &'a str,
    /// Its name with characters replaced, which need not be the one it gets.
    pub(crate) base: &'a str,
    /// Its unit, if it was described with one.
    pub(crate) unit: Option<metrics::Unit>,
    pub(crate) opts: Opts<'a>,
}

impl FamilyRequest<'_> {
    pub(crate) fn family<M: Metric>(self) -> Result<Family<M>, Error> {
        Ok(Family {
            series: self.settings.registry.register(self.opts)?,
            name: self.name.to_owned(),
            losses: self.settings.losses.clone(),
        })
    }
}
