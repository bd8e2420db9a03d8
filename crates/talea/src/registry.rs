//! The registry: a region, and the way of metrics into it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use talea_region::{Config, Region};

use crate::error::Error;
use crate::opts::Opts;
use crate::register::Registrable;
use crate::snapshot::Snapshot;
use crate::told;

/// A region and the metrics in it. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    pub(crate) region: &'static Region,
    refresh: Arc<Mutex<Vec<Arc<Refresh>>>>,
    /// What handles point to, by the family's number, who numbers its label
    /// combinations, and its metric type.
    pub(crate) bounds: Arc<Mutex<Bounds>>,
}

pub(crate) type Bounds = HashMap<(u32, TypeId, TypeId), Box<dyn Any + Send + Sync>>;

type Refresh = dyn Fn() + Send + Sync;

impl Registry {
    /// A registry in memory of its own, which children made by `fork` share.
    /// 64 MiB at most, of which pages are used as they are needed, or an eighth
    /// of the cgroup's memory limit where that is less.
    ///
    /// The memory stays mapped until the process ends, so that handles are plain
    /// pointers.
    ///
    /// # Errors
    ///
    /// The system refuses memory.
    pub fn new() -> Result<Self, Error> {
        Self::with_config(Config::default())
    }

    /// A registry with limits of its own; see [`Config`].
    ///
    /// # Errors
    ///
    /// The limits do not fit each other, or the system refuses memory.
    pub fn with_config(config: Config) -> Result<Self, Error> {
        Ok(Self::of(Region::anonymous(config)?))
    }

    /// A registry of 1 MiB for a test, which holds about 2,000 series.
    ///
    /// # Errors
    ///
    /// The system refuses memory.
    pub fn for_test() -> Result<Self, Error> {
        Self::with_config(Config::with_len(1 << 20))
    }

    /// Attaches to the registry in a file on tmpfs, or creates it, for processes
    /// that do not fork from one parent. A file that cannot be used is moved
    /// aside, or a sibling opened; a line on standard error says so.
    ///
    /// # Errors
    ///
    /// The path is not on tmpfs, cannot be created or is no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let opened = Region::open(path, Config::default())?;
        if let Some(notice) = opened.notice {
            eprintln!("talea: {notice}");
        }
        Ok(Self::of(opened.region))
    }

    fn of(region: &'static Region) -> Self {
        Self { region, refresh: Arc::default(), bounds: Arc::default() }
    }

    /// Registers a metric, or finds the one that is defined alike. Use this where
    /// names are known at run time; otherwise derive [`Metrics`].
    ///
    /// # Errors
    ///
    /// The name, a label or the buckets are not usable; the name is taken by
    /// another definition; the region is full.
    pub fn register<R: Registrable>(&self, opts: Opts<'_>) -> Result<R, Error> {
        let metric = R::unbound();
        metric.register(self, &opts)?;
        Ok(metric)
    }

    /// Calls `refresh` before each snapshot, for values that are read rather
    /// than counted. Keep it short: a scrape waits for it.
    pub fn on_snapshot(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(refresh));
    }

    /// All values at this instant. Any number of threads may ask at once. At most
    /// once a minute, series that are idle go before.
    ///
    /// Cost: the series, and what [`on_snapshot`](Self::on_snapshot) calls. How many
    /// processes have the region open, or died, does not matter.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_of(|_| true)
    }

    /// The values of those families whose names are wanted, as samples have them (a
    /// counter's with `_total`). Cost: their series; a word for each 64 others.
    pub fn snapshot_of(&self, wants: impl Fn(&str) -> bool) -> Snapshot {
        let refresh = self.refresh.lock().unwrap_or_else(PoisonError::into_inner).clone();
        refresh.iter().for_each(|refresh| refresh());
        self.region.sweep_if_due();
        let mut raw = self.region.snapshot_of(&|name| std::str::from_utf8(name).is_ok_and(&wants));
        if wants(told::DROPPED) {
            told::dropped(&mut raw);
        }
        Snapshot::of(raw)
    }

    /// Has the families whose names are wanted count from 0 again, as
    /// [`Family::wipe`](crate::Family::wipe). Cost: a look at each of their series.
    ///
    /// ```
    /// # use talea::{Counter, Opts, Registry};
    /// # let registry = Registry::for_test()?;
    /// let orders: Counter = registry.register(Opts::new("shop_orders", "Orders."))?;
    /// orders.add(3);
    /// registry.wipe(|name| name.starts_with("shop_"));
    /// orders.inc();
    /// assert_eq!(orders.get(), 1);
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn wipe(&self, wants: impl Fn(&str) -> bool) -> bool {
        self.region.wipe(|name| std::str::from_utf8(name).is_ok_and(&wants))
    }

    /// Ends a family: scrapes show it no more, what its handles are told goes nowhere,
    /// and its name is free for another definition. Registered again as it was, it
    /// counts from 0, by its old handles too. False where there is no family of this
    /// name.
    ///
    /// The memory of its series is used again when no process lives any more that
    /// registered it.
    pub fn unregister(&self, name: &str) -> bool {
        self.region.retire(name.as_bytes())
    }

    /// Does a minute's sweep now: series that nobody looked up for their family's time
    /// go (see [`Opts::expires_after`]), and what was removed becomes free. Snapshots
    /// and new series see to that themselves; this is for tests, where each call
    /// counts as a minute. Cost: a look at every series.
    pub fn sweep(&self) {
        self.region.sweep();
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}
