//! Metered by Talea from its declaration, with quantiles over a sliding window.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use talea::Registry;

use crate::{Service, metered};

pub(crate) fn service() -> Result<Service> {
    let registry = Registry::new()?;
    keep_quantiles(&registry);
    metered::serviced(&registry)
}

/// Requests pay nothing for quantiles: a window is the difference of two snapshots, which
/// are taken beside them. One a second is more than a window of minutes asks for.
fn keep_quantiles(registry: &Registry) {
    let registry = registry.clone();
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(1));
            black_box(registry.snapshot());
        }
    });
}
