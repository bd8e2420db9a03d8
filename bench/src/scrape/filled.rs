//! A region in a file, with much in it.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use talea::{Config, Counter, Family, Labels, Opts, Registry};

use super::FAMILIES;
use crate::randomness::Key;

pub(super) const PREFIX: &str = "shop_orders_";

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

/// The file goes when it is dropped.
pub(super) struct Filled {
    registry: Registry,
    path: PathBuf,
    series: u64,
}

impl Filled {
    /// So many counters with one label; mixed, one of each family after the other, as
    /// requests make them.
    pub(super) fn new(series: u64, is_mixed: bool) -> Result<Self> {
        let path = format!("/dev/shm/talea-bench-{}.talea", std::process::id()).into();
        let config = Config { series: series + series / 10, ..Config::with_len(512 << 20) };
        let registry = Registry::open_with(&path, config)?;
        let filled = Self { registry, path, series };
        let families = (0..FAMILIES).map(|n| filled.family(n)).collect::<Result<Vec<_>>>()?;
        let each = series / FAMILIES;
        for n in 0..series {
            let (family, key) =
                if is_mixed { (n % FAMILIES, n / FAMILIES) } else { (n / each, n % each) };
            let family = &families[family as usize];
            family.with(By { user: Key::of(key).as_str() }).add(n * 7919 % 100_000);
        }
        let dropped: u64 = families.iter().map(Family::dropped).sum();
        ensure!(dropped == 0, "{dropped} of {series} series found no room");
        Ok(filled)
    }

    fn family(&self, n: u64) -> Result<Family<By<'static>, Counter>> {
        let name = format!("{PREFIX}{n}");
        let opts = Opts::new(&name, "Orders accepted.").limit(self.series / FAMILIES);
        Ok(self.registry.register(opts)?)
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn series(&self) -> u64 {
        self.series
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
