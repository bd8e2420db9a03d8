//! Refreshes observable values: before each snapshot, and periodically for readers outside the
//! process.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::thread;
use std::time::Duration;

use talea_region::Region;

use crate::notice::notice;

/// The functions that read them. A child that is forked while a thread holds the read lock can read
/// too: for it the lock stays read-locked for ever.
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

/// Does the work that is due once a minute: a sweep, and a check whether the requested path is
/// free.
pub(crate) fn sweep_if_due(region: &'static Region) {
    region.sweep_if_due();
    log(region.claim_path_if_due());
}

/// Does both now, at each call.
pub(crate) fn sweep(region: &'static Region) {
    region.sweep();
    log(region.claim_path());
}

fn log(text: Option<String>) {
    text.into_iter().for_each(notice);
}

/// Runs until the registry is dropped.
pub(crate) fn keep_fresh(region: &'static Region, refreshers: &Weak<Refreshers>, period: Duration) {
    loop {
        thread::sleep(period);
        let Some(refreshers) = refreshers.upgrade() else { return };
        refreshers.refresh();
        sweep_if_due(region);
    }
}
