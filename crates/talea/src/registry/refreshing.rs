//! Refreshes observable values: before each snapshot, and periodically for readers outside the
//! process.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::thread;
use std::time::Duration;

use talea_region::Region;

use super::observed::Observed;
use super::passes::{Functions, Passes};
use crate::family::Family;
use crate::family::values::DynamicLabels;
use crate::metric::Counter;
use crate::notice::notice;

/// The functions that read them. A child that is forked while a thread holds the read lock can read
/// too: for it the lock stays read-locked for ever.
pub(crate) struct Refreshers {
    region: &'static Region,
    all: RwLock<Vec<Arc<Refresher>>>,
    passes: Passes,
    /// How often functions panicked; made at the first panic.
    failures: OnceLock<Option<Failures>>,
    make_failures: fn(&'static Region) -> Option<Failures>,
}

/// Counts panics, by the label `family`.
pub(super) type Failures = Family<DynamicLabels, Counter>;

/// A function that refreshes values.
pub(crate) struct Refresher {
    refresh: Box<dyn Fn() + Send + Sync>,
    observed: Option<Observed>,
    /// The process that a thread runs it in; 0 if no thread does. In a child made by `fork` meanwhile, no thread
    /// does.
    running_in: AtomicU32,
}

impl Refreshers {
    pub(super) fn new(
        region: &'static Region,
        make_failures: fn(&'static Region) -> Option<Failures>,
    ) -> Self {
        let (all, passes, failures) = Default::default();
        Self { region, all, passes, failures, make_failures }
    }

    /// Calls `refresh` now, and adds it.
    pub(super) fn begin(
        &self,
        refresh: impl Fn() + Send + Sync + 'static,
        observed: Option<Observed>,
    ) {
        let refresher = Refresher::new(refresh, observed);
        self.call(&refresher);
        self.push(refresher);
    }

    pub(crate) fn add(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.push(Refresher::new(refresh, None));
    }

    fn push(&self, refresher: Refresher) {
        self.all.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(refresher));
    }

    /// Calls all of them, and returns when they have returned, or after a bounded time: see `passes.rs`.
    pub(crate) fn refresh(self: &Arc<Self>) {
        if self.nth(0).is_some() {
            let functions: Arc<dyn Functions> = Arc::clone(self) as _;
            self.passes.make(&functions);
        }
    }

    fn nth(&self, n: usize) -> Option<Arc<Refresher>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(n).cloned()
    }

    /// Calls one of them, unless a thread still runs it.
    fn call(&self, refresher: &Refresher) {
        let process = process::id();
        let claimed = refresher
            .running_in
            .fetch_update(AcqRel, Acquire, |running_in| (running_in != process).then_some(process));
        if claimed.is_err() {
            return;
        }
        let result = catch_unwind(AssertUnwindSafe(|| (refresher.refresh)()));
        match (result, &refresher.observed) {
            (Ok(()), Some(observed)) => observed.note_success(),
            (Ok(()), None) => {}
            (Err(payload), observed) => {
                forget(payload);
                observed.iter().for_each(Observed::note_failure);
                self.count_failure(observed.as_ref().map_or("on_snapshot", Observed::family));
            }
        }
        refresher.running_in.store(0, Release);
    }

    fn count_failure(&self, family: &str) {
        let failures = self.failures.get_or_init(|| (self.make_failures)(self.region));
        failures.iter().for_each(|failures| failures.with_values(&[family]).inc());
    }
}

impl Functions for Refreshers {
    fn passes(&self) -> &Passes {
        &self.passes
    }

    fn has(&self, n: usize) -> bool {
        self.nth(n).is_some()
    }

    fn call(&self, n: usize) {
        self.nth(n).iter().for_each(|refresher| Self::call(self, refresher));
    }
}

/// Leaks what a panic was raised with, since its drop could panic too.
fn forget(payload: Box<dyn Any + Send>) {
    std::mem::forget(payload);
}

impl Refresher {
    fn new(refresh: impl Fn() + Send + Sync + 'static, observed: Option<Observed>) -> Self {
        Self { refresh: Box::new(refresh), observed, running_in: AtomicU32::new(0) }
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
