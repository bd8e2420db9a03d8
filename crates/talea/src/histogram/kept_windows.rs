//! The windows that a registry keeps in a thread of its own, so that they are up to date however
//! rarely it is scraped.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use talea_region::{FamilyCopy, Region};

use super::windows::Windows;
use crate::definition::Recent;
use crate::snapshot::Snapshot;

/// The kept windows, which the clones of a registry share.
#[derive(Debug, Default)]
pub(crate) struct KeptWindows {
    /// Nothing until the first summary is registered or seen.
    own: Mutex<Option<Arc<OwnWindows>>>,
    /// The summaries that were registered here.
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    all: HashSet<Vec<u8>>,
    /// The shortest of their steps.
    step: Option<Duration>,
}

/// The windows of one process. A child made by `fork` has none of its parent's threads, and a lock
/// that they held is never released there, so the child makes its own.
#[derive(Debug)]
struct OwnWindows {
    process: u32,
    began: Instant,
    windows: Mutex<Windows>,
}

impl OwnWindows {
    fn show(&self, snapshot: &mut Snapshot) {
        let now = self.began.elapsed();
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).show(snapshot, now);
    }
}

impl KeptWindows {
    /// Keeps the windows of a summary, also while nobody scrapes.
    pub(crate) fn keep(self: &Arc<Self>, region: &'static Region, name: &str, recent: &Recent) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.all.insert(name.as_bytes().to_vec());
        names.step = Some(names.step.map_or(recent.step(), |step| step.min(recent.step())));
        drop(names);
        self.own_windows(region);
    }

    /// Puts the quantiles of summaries into a snapshot.
    pub(crate) fn show(self: &Arc<Self>, region: &'static Region, snapshot: &mut Snapshot) {
        if snapshot.has_summaries() {
            self.own_windows(region).show(snapshot);
        }
    }

    fn own_windows(self: &Arc<Self>, region: &'static Region) -> Arc<OwnWindows> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if let Some(own) = own.as_ref().filter(|own| own.process == process) {
            return own.clone();
        }
        let new = OwnWindows { process, began: Instant::now(), windows: Mutex::default() };
        let new = own.insert(Arc::new(new)).clone();
        drop(own);
        // If the system gives no thread, snapshots alone keep them up to date.
        let kept = Arc::downgrade(self);
        let thread = thread::Builder::new().name("talea-windows".to_owned());
        let _ = thread.spawn(move || keep_up_to_date(region, &kept, process));
        new
    }
}

/// Looks at the summaries once a step, until the registry is gone.
fn keep_up_to_date(region: &'static Region, kept: &Weak<KeptWindows>, process: u32) {
    let mut snapshot = Snapshot::default();
    loop {
        let Some(step) = kept
            .upgrade()
            .map(|kept| kept.names.lock().unwrap_or_else(PoisonError::into_inner).step)
        else {
            return;
        };
        thread::sleep(step.unwrap_or(Duration::from_secs(10)));
        let Some(kept) = kept.upgrade() else { return };
        let names = kept.names.lock().unwrap_or_else(PoisonError::into_inner).all.clone();
        if names.is_empty() {
            continue;
        }
        snapshot.refill(
            |_| true,
            |raw| region.snapshot_into(raw, &|found: &FamilyCopy| names.contains(&found.name)),
        );
        let own = kept.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(own) = own.filter(|own| own.process == process) {
            own.show(&mut snapshot);
        }
    }
}
