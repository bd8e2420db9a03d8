//! Values that are read rather than told: before each snapshot, and now and then for readers
//! outside the process.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::thread;
use std::time::Duration;

use talea_region::Region;

use crate::registry::Registry;

/// What is called to read them. A child that is forked while a thread looks at them can look
/// too: it finds them as if somebody else were reading for ever.
#[derive(Default)]
pub(crate) struct Refreshers(RwLock<Vec<Arc<Refresh>>>);

type Refresh = dyn Fn() + Send + Sync;

impl Refreshers {
    pub(crate) fn add(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(refresh));
    }

    pub(crate) fn refresh(&self) {
        // A refresher may register another.
        let mut n = 0;
        loop {
            let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let Some(next) = all.get(n).cloned() else { return };
            drop(all);
            next();
            n += 1;
        }
    }
}

impl fmt::Debug for Refreshers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refreshers").finish_non_exhaustive()
    }
}

impl Registry {
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
        let thread = thread::Builder::new().name("talea-refresh".to_owned());
        let _ = thread.spawn(move || keep_fresh(region, &refreshers, period));
    }
}

/// Does what is due once a minute: a sweep, and a look whether the path that was asked for is free.
pub(crate) fn sweep_if_due(region: &'static Region) {
    region.sweep_if_due();
    log(region.claim_path_if_due());
}

/// The same now, as often as it is called.
pub(crate) fn sweep(region: &'static Region) {
    region.sweep();
    log(region.claim_path());
}

fn log(notice: Option<String>) {
    if let Some(notice) = notice {
        eprintln!("talea: {notice}");
    }
}

/// Goes on until the registry is gone.
fn keep_fresh(region: &'static Region, refreshers: &Weak<Refreshers>, period: Duration) {
    loop {
        thread::sleep(period);
        let Some(refreshers) = refreshers.upgrade() else { return };
        refreshers.refresh();
        sweep_if_due(region);
    }
}
