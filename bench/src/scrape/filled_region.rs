//! A region in a file, filled with counters.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use talea::{Config, Counter, Family, Labels, Opts, Registry};

use crate::randomness::Key;

pub(super) const PREFIX: &str = "shop_orders_";
const FAMILIES: u64 = 20;

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

/// A filled region; its file is deleted when this is dropped.
pub(super) struct FilledRegion {
    registry: Registry,
    path: PathBuf,
}

impl FilledRegion {
    /// `series` counters with one label. If `is_mixed`, the families take turns, as requests
    /// create series.
    pub(super) fn new(series: u64, is_mixed: bool) -> Result<Self> {
        let path = format!("/dev/shm/talea-bench-{}.talea", std::process::id()).into();
        let config = Config { series: series + series / 10, ..Config::with_len(512 << 20) };
        let registry = Registry::open_with(&path, config)?;
        let filled = Self { registry, path };
        let each = series / FAMILIES;
        let family = |n| filled.family(n, each);
        let families = (0..FAMILIES).map(family).collect::<Result<Vec<_>>>()?;
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

    fn family(&self, n: u64, series: u64) -> Result<Family<By<'static>, Counter>> {
        let name = format!("{PREFIX}{n}");
        let opts = Opts::new(&name, "Orders accepted.").limit(series);
        Ok(self.registry.register(opts)?)
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FilledRegion {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
