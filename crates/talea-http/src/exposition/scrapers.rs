//! The turns of scrapes, and the memory that one leaves to the next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talea::{Scrapable, Scraper};
use tokio::time::{Instant, sleep_until};

use super::stream::Streams;
use crate::turns::{Client, Turn, Turns};

/// The number of scrapes that may wait for a turn. Each takes a connection and no snapshot.
const WAITING: usize = 16;
/// The time that a scrape waits for a turn, if its scraper waits twice as long.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How often a scrape that waits looks for another to displace.
const LOOK: Duration = Duration::from_millis(100);

/// Lends scrapers, as many as may scrape at once. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Scrapers<S> {
    of: S,
    turns: Turns,
    streams: Streams,
    /// At most one: a scraper keeps the memory of a snapshot, and most registries are scraped by
    /// one client.
    kept: Arc<Mutex<Option<Scraper<S>>>>,
}

/// A scraper on loan, with its turn.
#[derive(Debug)]
pub(super) struct Lent<S: Scrapable> {
    pub(super) scraper: Scraper<S>,
    of: Scrapers<S>,
    _turn: Turn,
}

impl<S: Scrapable> Scrapers<S> {
    pub(super) fn new(of: &S, at_once: usize) -> Self {
        let turns = Turns::new(at_once, WAITING);
        Self { of: of.clone(), turns, streams: Streams::default(), kept: Arc::default() }
    }

    /// The scrapes whose bodies are being sent.
    pub(super) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Waits for a turn, displacing a scrape that moves least, see [`Streams::displace`]. `None`
    /// if too many wait or none comes in time, at the latest half way to `until`.
    pub(super) async fn lend(&self, client: &Client, until: Instant) -> Option<Lent<S>> {
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

    fn with_turn(&self, turn: Turn) -> Lent<S> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let scraper = kept.unwrap_or_else(|| Scraper::new(&self.of));
        Lent { scraper, of: self.clone(), _turn: turn }
    }
}

/// The memory is returned before the turn is passed on, so that the next scrape finds it.
impl<S: Scrapable> Drop for Lent<S> {
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
