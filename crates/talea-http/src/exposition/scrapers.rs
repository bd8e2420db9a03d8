//! How many scrape at once, and the memory that one leaves to the next.

use std::sync::{Arc, Mutex, PoisonError};

use talea::{Scrapable, Scraper};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lends a scraper to as many as may scrape at once. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Scrapers<S> {
    of: S,
    free: Arc<Semaphore>,
    /// At most one: what keeps a scraper keeps the memory of a snapshot, and most
    /// registries are scraped by one.
    kept: Arc<Mutex<Option<Scraper<S>>>>,
}

/// A scraper on loan, and the right to scrape.
#[derive(Debug)]
pub(super) struct Lent<S: Scrapable> {
    pub(super) scraper: Scraper<S>,
    of: Scrapers<S>,
    _permit: OwnedSemaphorePermit,
}

impl<S: Scrapable> Scrapers<S> {
    pub(super) fn new(of: &S, at_once: usize) -> Self {
        let free = Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS)));
        Self { of: of.clone(), free, kept: Arc::default() }
    }

    /// A scraper; `None` while too many are on loan.
    pub(super) fn lend(&self) -> Option<Lent<S>> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let scraper = kept.unwrap_or_else(|| Scraper::new(&self.of));
        Some(Lent { scraper, of: self.clone(), _permit: permit })
    }
}

/// Before the right to scrape goes on, so that the next one finds the memory.
impl<S: Scrapable> Drop for Lent<S> {
    fn drop(&mut self) {
        let empty = Scraper::new(&self.of.of);
        let used = std::mem::replace(&mut self.scraper, empty);
        let mut kept = self.of.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Another's memory is freed without the lock.
        let other = kept.replace(used);
        drop(kept);
        drop(other);
    }
}
