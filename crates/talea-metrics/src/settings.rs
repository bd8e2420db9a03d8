//! The settings that a recorder was built with.

use std::time::Duration;

use talea::{Opts, Registry};

use crate::buckets::Buckets;
use crate::losses::Losses;

pub(crate) struct Settings {
    pub(crate) registry: Registry,
    pub(crate) losses: Losses,
    pub(crate) buckets: Buckets,
    pub(crate) limit: Option<u64>,
    pub(crate) expires_after: Option<Duration>,
    /// Labels that all metrics have.
    pub(crate) labels: Vec<(String, String)>,
}

impl Settings {
    pub(crate) fn opts<'a>(&self, name: &'a str, help: &'a str) -> Opts<'a> {
        // As metrics-exporter-prometheus has such names.
        let is_reserved = name.starts_with('_');
        let opts = Opts::new(name, help).expires_after(self.expires_after);
        let opts = opts.lenient_names(is_reserved);
        self.limit.map_or(opts, |limit| opts.limit(limit))
    }
}
