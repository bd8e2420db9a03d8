//! How many scrape at once, and the memory that one leaves to the next.

use std::sync::{Arc, Mutex, PoisonError};

use talea::{Registry, Scraper};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lends a scraper to as many as may scrape at once. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Scrapers {
    registry: Registry,
    free: Arc<Semaphore>,
    /// At most one: what keeps a scraper keeps the memory of a snapshot, and most
    /// registries are scraped by one.
    kept: Arc<Mutex<Option<Scraper>>>,
}

/// A scraper on loan, and the right to scrape.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) scraper: Scraper,
    of: Scrapers,
    _permit: OwnedSemaphorePermit,
}

impl Scrapers {
    pub(super) fn new(registry: &Registry, at_once: usize) -> Self {
        let free = Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS)));
        Self { registry: registry.clone(), free, kept: Arc::default() }
    }

    /// A scraper; `None` while too many are on loan.
    pub(super) fn lend(&self) -> Option<Lent> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let scraper = kept.unwrap_or_else(|| self.registry.scraper());
        Some(Lent { scraper, of: self.clone(), _permit: permit })
    }
}

/// Before the right to scrape goes on, so that the next one finds the memory.
impl Drop for Lent {
    fn drop(&mut self) {
        let empty = self.of.registry.scraper();
        let used = std::mem::replace(&mut self.scraper, empty);
        let mut kept = self.of.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Another's memory is freed without the lock.
        let other = kept.replace(used);
        drop(kept);
        drop(other);
    }
}
