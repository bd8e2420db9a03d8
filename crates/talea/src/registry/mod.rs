//! The registry: a region, and the way of metrics into it.

mod field;
pub(crate) mod install;
pub(crate) mod observable;
mod open;
mod refreshing;
pub(crate) mod register;
pub(crate) mod set_fields;
mod uninstalled;

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talea_region::{Region, Usage};

use self::field::Field;
use self::refreshing::Refreshers;
use crate::histogram::kept_windows::KeptWindows;
use crate::samples::{own_name, owner_of};
use crate::snapshot::Snapshot;

/// A region and the metrics in it. Clones are the same registry, and cheap. Any number
/// of threads may use one at once; registering takes a lock, metrics and snapshots do
/// not wait for it.
#[derive(Clone)]
pub struct Registry {
    pub(crate) region: &'static Region,
    pub(crate) refreshers: Arc<Refreshers>,
    /// What handles point to, by the family's number, who tells its label
    /// combinations apart, and its metric type.
    pub(crate) bounds: Arc<Mutex<Bounds>>,
    pub(crate) kept: Arc<KeptWindows>,
    /// The field of a set that is being registered, where it was made for one.
    pub(crate) field: Option<Arc<Field>>,
}

pub(crate) type Bounds = HashMap<(u32, TypeId, TypeId), &'static (dyn Any + Send + Sync)>;

impl Registry {
    pub(crate) fn of(region: &'static Region) -> Self {
        let (refreshers, bounds, kept) = Default::default();
        Self { region, refreshers, bounds, kept, field: None }
    }

    /// Calls `refresh` before each snapshot, for values that are read rather
    /// than counted, for as long as the registry lives. Keep it short: a scrape waits for
    /// it. It runs on the thread that takes the snapshot, in that process only, on several
    /// at once if they do; it must not take a snapshot of this registry, and if it panics,
    /// so does [`snapshot`](Self::snapshot).
    pub fn on_snapshot(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.refreshers.add(refresh);
    }

    /// Calls what [`on_snapshot`](Self::on_snapshot) calls once each `period` too, in a thread
    /// of its own, and has series that are idle go: for a registry that is read from outside
    /// and that this process may never take a snapshot of. It does so as long as the registry
    /// lives; not in children that are made by `fork`, which call it themselves; and where the
    /// system gives no thread, or one that is called panics, snapshots alone do. Each call of
    /// this one begins another thread, so call it once.
    ///
    /// [`from_env`](Self::from_env) does, with five seconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use talea::{Opts, Registry, outside};
    ///
    /// # let path = format!("/dev/shm/talea-refreshing-{}.talea", std::process::id());
    /// let registry = Registry::open(&path)?;
    /// registry.observable_gauge(Opts::new("up_seconds", "Time."), up)?;
    /// registry.refresh_every(Duration::from_millis(10));
    /// # use std::{sync::LazyLock, time::Instant};
    /// # static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    /// fn up() -> f64 { // …
    /// #     BEGAN.elapsed().as_secs_f64()
    /// }
    ///
    /// // In the agent, with no scrape of the process itself:
    /// let reader = outside::Reader::open(&path)?;
    /// let look = || Ok::<_, talea::Error>(reader.look()?.snapshot.value("up_seconds", &[]));
    /// let before = look()?;
    /// while look()? == before {}
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), talea::Error>(())
    /// ```
    pub fn refresh_every(&self, period: Duration) {
        let (region, refreshers) = (self.region, Arc::downgrade(&self.refreshers));
        let thread = std::thread::Builder::new().name("talea-refresh".to_owned());
        let _ = thread.spawn(move || refreshing::keep_fresh(region, &refreshers, period));
    }

    /// All values at this instant. Any number of threads may ask at once. At most
    /// once a minute, series that are idle go before.
    ///
    /// Nobody who adds waits for it, and what they add meanwhile may be in it or not. No
    /// counter or bucket is ever less than in a snapshot before, unless it was wiped or
    /// removed.
    ///
    /// Cost: the series, and what [`on_snapshot`](Self::on_snapshot) calls. How many
    /// processes have the region open, or died, does not matter.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_of(|_| true)
    }

    /// The values of those families whose names are wanted, as samples have them (a
    /// counter's with `_total`). Cost: their series; a word for each 64 others.
    pub fn snapshot_of(&self, wants: impl Fn(&str) -> bool) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(&mut snapshot, wants);
        snapshot
    }

    /// The same into a snapshot that was taken before, whose memory is used again: for
    /// who takes one after the other. Once it is as large as it gets, nothing is
    /// allocated for it.
    pub fn snapshot_into(&self, out: &mut Snapshot, wants: impl Fn(&str) -> bool) {
        self.refreshers.refresh();
        refreshing::sweep_if_due(self.region);
        out.take(wants, |raw, wants| self.region.snapshot_into(raw, wants));
        self.kept.show(self.region, out);
    }

    /// Has the families whose names are wanted, as samples have them, count from 0 again,
    /// as [`Family::wipe`](crate::Family::wipe) does for one; false where one of them goes
    /// on. Cost: a look at each of their series.
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
        self.region.wipe(|name| std::str::from_utf8(name).is_ok_and(|name| wants(owner_of(name))))
    }

    /// Ends a family: scrapes show it no more, what its handles are told goes nowhere,
    /// and its name is free for another definition. Registered again as it was, it
    /// counts from 0, by its old handles too. False where there is no family of this
    /// name, which is as samples have it (a counter's with `_total`). What
    /// [`on_snapshot`](Self::on_snapshot) calls goes on being called.
    ///
    /// The memory of its series is used again when no process lives any more that
    /// registered it.
    pub fn unregister(&self, name: &str) -> bool {
        self.region.end_families(own_name(name).as_bytes());
        self.region.end_families(name.as_bytes())
    }

    /// The same of all families whose names are wanted. Returns how many these were. Cost: a look
    /// at each family, and each of their series.
    pub fn unregister_where(&self, wants: impl Fn(&str) -> bool) -> usize {
        let mut ended = HashSet::new();
        self.region.end_families_where(|name| {
            let Ok(name) = std::str::from_utf8(name) else { return false };
            let is_wanted = wants(owner_of(name));
            if is_wanted && owner_of(name) == name {
                ended.insert(name.to_owned());
            }
            is_wanted
        });
        ended.len()
    }

    /// How much of the region is in use. Cost: a look at a bit of each piece of it.
    pub fn usage(&self) -> Usage {
        self.region.usage()
    }

    /// Does a minute's sweep now: series that nobody looked up for their family's time
    /// go (see [`Opts::expires_after`]), and what was removed becomes free. Snapshots
    /// and new series see to that themselves; this is for tests, where each call
    /// counts as a minute. Cost: a look at every series.
    pub fn sweep(&self) {
        refreshing::sweep(self.region);
    }

    /// Removes series of the families that are wanted, now: those that nobody looked up for
    /// `longer` or, where that is `None`, for their family's time
    /// ([`Opts::expires_after`]). Returns how many went. `wants` is told a family's name, as
    /// samples have it, and whether its idle series go at all by themselves. The sweep that is
    /// due is done too, as by any snapshot.
    ///
    /// How long a series was idle is known by sweeps, which begin at least a minute apart, and
    /// by when the last one began: what goes was idle for so long, and what stays may have
    /// been, most of all where no process swept. Series stay that a handle keeps, that last as
    /// long as their family, or that hold what is in flight. Cost: a look at every series.
    pub fn expire(&self, longer: Option<Duration>, wants: impl Fn(&str, bool) -> bool) -> u64 {
        self.region.expire(longer, |name, minutes| {
            std::str::from_utf8(name).is_ok_and(|name| wants(owner_of(name), minutes > 0))
        })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}
