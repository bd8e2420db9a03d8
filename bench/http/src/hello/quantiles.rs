//! Metered by Talea from its declaration, with quantiles of the last ten minutes: the
//! registry keeps their windows by itself, on a thread of its own.

use anyhow::Result;
use talea::Bucketing;
use talea_http::Opts;

use crate::{Service, metered};

pub(crate) fn service() -> Result<Service> {
    metered::serviced(Opts::new().bucketing(Bucketing::Dual).quantiles(&[0.5, 0.9, 0.99]))
}
