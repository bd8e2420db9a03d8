//! The turns of scrapes, and the memory that a scrape leaves to the next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talea::{Scrapable, Scraper};
use tokio::time::{Instant, sleep_until};

use super::stream::ScrapeStreams;
use crate::turns::{Client, Turn, Turns};

/// The number of scrapes that may wait for a turn. Each takes a connection and no snapshot.
const WAITING: usize = 16;
/// The time that a scrape waits for a turn, if its scraper waits at least twice as long.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often a scrape that waits looks for another to displace.
const LOOK: Duration = Duration::from_millis(100);

/// Lends a limited number of scrapers. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Scrapers<S> {
    of: S,
    turns: Turns,
    pub(super) streams: ScrapeStreams,
    /// At most one: a scraper keeps the memory of a snapshot, and most registries are scraped by
    /// one client.
    kept: Arc<Mutex<Option<Scraper<S>>>>,
}

#[derive(Debug)]
pub(super) struct ScraperLease<S: Scrapable> {
    pub(super) scraper: Scraper<S>,
    of: Scrapers<S>,
    _turn: Turn,
}

impl<S: Scrapable> Scrapers<S> {
    pub(super) fn new(of: &S, at_once: usize) -> Self {
        let turns = Turns::new(at_once, WAITING);
        Self { of: of.clone(), turns, streams: ScrapeStreams::default(), kept: Arc::default() }
    }

    /// Waits for a turn, and displaces other scrapes by the rules of
    /// [`ScrapeStreams::displace`]. `None` if too many wait, or if half of the time to `until` has
    /// passed.
    pub(super) async fn lend(&self, client: &Client, until: Instant) -> Option<ScraperLease<S>> {
        let mut turn = std::pin::pin!(self.turns.turn(client.clone()));
        let began = Instant::now();
        let latest = began + (until.saturating_duration_since(began) / 2).min(LONGEST_WAIT);
        let mut look = began;
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return Some(self.with_turn(turn.ok()?)),
                () = sleep_until(look) => {}
            }
            let now = Instant::now();
            if now >= latest {
                return None;
            }
            self.streams.displace(client, now - began, self.turns.waiting());
            look = (now + LOOK).min(latest);
        }
    }

    fn with_turn(&self, turn: Turn) -> ScraperLease<S> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let scraper = kept.unwrap_or_else(|| Scraper::new(&self.of));
        ScraperLease { scraper, of: self.clone(), _turn: turn }
    }
}

/// The memory is returned before the turn is passed on, so that the next scrape finds it.
impl<S: Scrapable> Drop for ScraperLease<S> {
    fn drop(&mut self) {
        let empty = Scraper::new(&self.of.of);
        let used = std::mem::replace(&mut self.scraper, empty);
        let mut kept = self.of.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The memory of another is freed without the lock.
        let other = kept.replace(used);
        drop(kept);
        drop(other);
    }
}
