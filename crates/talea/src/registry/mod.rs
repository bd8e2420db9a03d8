//! The registry: a region, and the way of metrics into it.

mod bounds;
mod constant_labels;
pub(crate) mod declared;
mod field;
pub(crate) mod install;
pub(crate) mod observable;
mod observed;
mod open;
mod passes;
mod refreshing;
pub(crate) mod register;
pub(crate) mod set_fields;
mod uninstalled;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talea_region::{LentPlane, Region, Usage};

use self::bounds::Bounds;
use self::field::Field;
use self::refreshing::{Failures, Refreshers};
use crate::definition::opts::Opts;
use crate::histogram::kept_windows::KeptWindows;
use crate::samples::{own_name, owner_of};
use crate::snapshot::Snapshot;
use crate::snapshot::observed::FAILURES;

/// A region and the metrics in it. Clones are the same registry, and cheap. Any number
/// of threads may use one at once; registering takes a lock, metrics and snapshots do
/// not wait for it.
#[derive(Clone)]
pub struct Registry {
    pub(crate) region: &'static Region,
    pub(crate) refreshers: Arc<Refreshers>,
    /// The data that handles point to, by the family's number, the type of its labels, and its
    /// metric type.
    pub(crate) bounds: Arc<Mutex<Bounds>>,
    pub(crate) kept: Arc<KeptWindows>,
    /// The field of a set that is being registered, if it was made for one.
    pub(crate) field: Option<Arc<Field>>,
}

/// Registers the counter of panics; `None` if the region has no room.
fn failures_in(region: &'static Region) -> Option<Failures> {
    let help = "Panics of functions that read observable values.";
    Registry::of(region).family(Opts::new(FAILURES, help), &["family"]).ok()
}

impl Registry {
    pub(crate) fn of(region: &'static Region) -> Self {
        let (bounds, kept) = Default::default();
        let refreshers = Arc::new(Refreshers::new(region, failures_in));
        Self { region, refreshers, bounds, kept, field: None }
    }

    /// Lends a thread copies of all striped cells, for plain stores of another language: see [`LentPlane`].
    #[doc(hidden)]
    pub fn lend_plane(&self) -> Option<LentPlane> {
        self.region.lend_plane()
    }

    /// Calls `refresh` before each snapshot, for values that are read rather than counted, for as long as
    /// the registry lives, in that process only. It runs on a thread that is made for this, never on two at
    /// once.
    ///
    /// Keep it short: a snapshot waits for it, two seconds at most. If it takes longer than 0.1 seconds, the
    /// other functions are called meanwhile. As long as it has not returned, further snapshots neither call it
    /// nor wait for it. If it takes a snapshot of this registry, that has the values as they are. If it panics,
    /// `talea_observable_failures_total{family="on_snapshot"}` counts that, and snapshots go on.
    pub fn on_snapshot(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.refreshers.add(refresh);
    }

    /// Also calls the functions of [`on_snapshot`](Self::on_snapshot) once each `period`, in a
    /// thread of its own, and expires idle series. Use it for a registry that is read from outside
    /// and that this process may never take a snapshot of. It continues as long as the registry
    /// lives. It does not continue in children made by `fork`, which call it themselves. If the
    /// system gives no thread, only snapshots refresh the values.
    /// Each call begins another thread, so call it once.
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

    /// All values at this instant. Any number of threads may ask at once. At most once a minute,
    /// idle series expire first.
    ///
    /// Writers do not wait for it. A concurrent update is either in it or not. No counter or bucket
    /// is ever less than in an earlier snapshot, unless it was wiped or removed.
    ///
    /// Cost: linear in the series, plus the functions of [`on_snapshot`](Self::on_snapshot). It
    /// does not depend on the number of processes that have the region open, or died.
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

    /// Takes a snapshot into an earlier one and reuses its memory. Once that has reached its full
    /// size, nothing is allocated.
    pub fn snapshot_into(&self, out: &mut Snapshot, wants: impl Fn(&str) -> bool) {
        self.refreshers.refresh();
        refreshing::sweep_if_due(self.region);
        out.take(wants, |raw, wants| self.region.snapshot_into(raw, wants));
        self.kept.show(self.region, out);
    }

    /// Has the families whose names are wanted, as samples have them, count from 0 again, as
    /// [`Family::wipe`](crate::Family::wipe) does for one; false if one of their series could not be
    /// reset. Cost: a look at each of their series.
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

    /// Removes a family: scrapes do not show it any more, updates by its handles are discarded, and
    /// its name is free for another definition. If it is registered again with the same definition,
    /// it counts from 0, by its old handles too; counts in flight and per-process gauges go on
    /// meanwhile, and show what is true then. False if there is no family of this name, which is
    /// the name of its samples (a counter's with `_total`). Functions of
    /// [`on_snapshot`](Self::on_snapshot) are still called.
    ///
    /// The memory of its series is reclaimed once all processes that registered it have ended.
    pub fn unregister(&self, name: &str) -> bool {
        self.region.end_families(own_name(name).as_bytes());
        self.region.end_families(name.as_bytes())
    }

    /// Removes all families whose names are wanted, as [`unregister`](Self::unregister) does.
    /// Returns their number. Cost: a look at each family, and each of their series.
    pub fn unregister_where(&self, wants: impl Fn(&str) -> bool) -> usize {
        let mut ended = HashSet::new();
        self.region.end_families_where(|name| {
            let Ok(name) = std::str::from_utf8(name) else { return false };
            let is_wanted = !crate::snapshot::is_internal(name) && wants(owner_of(name));
            if is_wanted && owner_of(name) == name {
                ended.insert(name.to_owned());
            }
            is_wanted
        });
        ended.len()
    }

    /// Ends this process's use of the region, as [`Region::close`] does. Nothing of the registry may be
    /// used afterwards.
    #[doc(hidden)]
    pub fn close(&self, clears: bool) {
        self.region.close(clears);
    }

    /// How much of the region is in use. Cost: a look at a bit of each piece of it.
    pub fn usage(&self) -> Usage {
        self.region.usage()
    }

    /// Does the sweep of a minute now: it expires series that were not looked up for their family's
    /// time (see [`Opts::expires_after`](crate::Opts::expires_after)), and reclaims the memory of
    /// removed ones. Snapshots and new series do this by themselves; this call is for tests, where
    /// each call counts as a minute. Cost: a look at every series.
    pub fn sweep(&self) {
        refreshing::sweep(self.region);
    }

    /// Removes idle series of the wanted families now: those without a look-up for `longer` or, if
    /// that is `None`, for their family's time
    /// ([`Opts::expires_after`](crate::Opts::expires_after)). Returns how many were removed.
    /// `wants` gets a family's name, as samples have it, and whether its idle series expire by
    /// themselves. A sweep that is due is done too, as by any snapshot.
    ///
    /// Sweeps, which begin at least a minute apart, measure how long a series is idle. Every
    /// removed series was idle for at least so long; some that stay may have been too, above all if
    /// no process swept. A series stays if a handle keeps it, if it is permanent, or if it has a
    /// count in flight. Cost: a look at every series.
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
