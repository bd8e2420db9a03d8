//! A folder where regions are.

use std::path::{Path, PathBuf};

use talea::{Config, Counter, Opts, Registry};

use super::agent::Agent;

/// A region that counted so many orders.
pub(crate) fn count_orders(region: &Path, orders: u64) -> (Registry, Counter) {
    let registry = Registry::open_with(region, Config::with_len(1 << 20)).unwrap();
    let counter: Counter = registry.register(Opts::new("orders", "Orders accepted.")).unwrap();
    counter.add(orders);
    (registry, counter)
}

/// A folder on tmpfs, removed when it is dropped.
pub(crate) struct RegionFolder(pub(crate) tempfile::TempDir);

impl RegionFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path of a region, `shop`.
    pub(crate) fn region(&self) -> PathBuf {
        self.at("shop.talea")
    }

    /// An agent that serves the folder.
    pub(crate) fn agent(&self) -> Agent {
        Agent::start(["--dir".as_ref(), self.0.path().as_os_str()])
    }
}
