//! Scrapes that are sent piece by piece, and given up if their clients are too slow.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

use crate::turns::Client;

/// The pause until the next attempt to give up a scrape, if a piece of it is being encoded.
const AGAIN: Duration = Duration::from_millis(100);
/// The time after which a client that took no piece is stalled.
const STALLED: Duration = Duration::from_secs(1);
/// The time that a scrape waits before it displaces one that makes progress.
const GRACE: Duration = Duration::from_secs(1);
/// The time for which a scrape that makes progress keeps its turn.
const TURN: Duration = Duration::from_secs(10);

pub(super) trait Pieces: Send {
    /// Encodes the next piece; also returns whether there is another after it.
    fn next(&mut self) -> io::Result<(Bytes, bool)>;
}

/// A scrape whose body is being sent: shared by the body, by the thread that encodes a piece and by
/// the watch.
pub(super) struct ScrapeStream {
    client: Client,
    began: Instant,
    /// Locked while a piece is encoded; `None` if no piece is left or the scrape was given up.
    pieces: Mutex<Option<Box<dyn Pieces>>>,
    progress: Mutex<Progress>,
    given_up: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The time at which the client took a piece, or the next one was ready for it.
    at: Instant,
    bytes: u64,
}

/// The scrapes whose bodies are being sent. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct ScrapeStreams(Arc<Mutex<Vec<Weak<ScrapeStream>>>>);

impl ScrapeStreams {
    pub(super) fn begin(&self, pieces: Box<dyn Pieces>, client: Client) -> Arc<ScrapeStream> {
        let now = Instant::now();
        let stream = Arc::new(ScrapeStream {
            client,
            began: now,
            pieces: Mutex::new(Some(pieces)),
            progress: Mutex::new(Progress { at: now, bytes: 0 }),
            given_up: AtomicBool::new(false),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|stream| stream.strong_count() > 0);
        all.push(Arc::downgrade(&stream));
        stream
    }

    /// Gives up one scrape for a client that has waited for `waited`, unless as many scrapes are
    /// being given up already as clients wait. In this order:
    ///
    /// 1. the scrape that has been stalled the longest, if one is;
    /// 2. after [`GRACE`], the slowest scrape of a source with two turns more than the client's;
    /// 3. after [`GRACE`], the slowest scrape of a connection of the same source with two turns
    ///    more than the client's;
    /// 4. after [`GRACE`], the slowest scrape that has had its turn for [`TURN`].
    pub(super) fn displace(&self, client: &Client, waited: Duration, waiting: usize) {
        let running = self.running();
        let (leaving, running): (Vec<_>, Vec<_>) =
            running.into_iter().partition(|stream| stream.given_up.load(Relaxed));
        // A piece was being encoded when they were given up.
        leaving.iter().for_each(|stream| _ = stream.give_up());
        if leaving.len() >= waiting {
            return;
        }
        let now = Instant::now();
        let since = |instant: Instant| now.saturating_duration_since(instant);
        let stalled = running.iter().filter(|stream| since(stream.progress().at) >= STALLED);
        if let Some(stalled) = stalled.min_by_key(|stream| stream.progress().at) {
            stalled.give_up();
            return;
        }
        if waited < GRACE {
            return;
        }
        let clients = || running.iter().map(|stream| &stream.client);
        let of_source =
            |client: &Client| clients().filter(|other| other.shares_source(client)).count();
        let of_client = |client: &Client| clients().filter(|other| *other == client).count();
        let (own_of_source, own) = (of_source(client), of_client(client));
        let rules: [&dyn Fn(&ScrapeStream) -> bool; 3] = [
            &|other| of_source(&other.client) >= own_of_source + 2,
            &|other| other.client.shares_source(client) && of_client(&other.client) >= own + 2,
            &|other| since(other.began) >= TURN,
        ];
        let slowest = rules.into_iter().find_map(|rule| {
            let among = running.iter().filter(|stream| rule(stream));
            among.min_by(|one, other| one.rate(now).total_cmp(&other.rate(now)))
        });
        slowest.map(|slowest| slowest.give_up());
    }

    /// The scrapes that have a snapshot in memory.
    fn running(&self) -> Vec<Arc<ScrapeStream>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).filter(|stream| stream.has_pieces()).collect()
    }
}

impl ScrapeStream {
    /// The next piece, and whether there is another after it.
    pub(super) fn next(&self) -> io::Result<(Bytes, bool)> {
        let mut source = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pieces) = source.as_mut() else {
            let reason = "the scrape was given up because its client was too slow";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        };
        let (piece, more) = pieces.next()?;
        if !more || self.given_up.load(Relaxed) {
            // The next scrape can have the memory while the last piece is sent.
            *source = None;
        }
        self.progress().at = Instant::now();
        Ok((piece, more))
    }

    pub(super) fn note_taken(&self, bytes: usize) {
        let mut progress = self.progress();
        progress.at = Instant::now();
        progress.bytes += bytes as u64;
    }

    /// Frees the rest of the scrape; false while a piece of it is being encoded.
    fn give_up(&self) -> bool {
        self.given_up.store(true, Relaxed);
        match self.pieces.try_lock() {
            Ok(mut source) => *source = None,
            Err(TryLockError::Poisoned(source)) => *source.into_inner() = None,
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }

    fn has_pieces(&self) -> bool {
        match self.pieces.try_lock() {
            Ok(source) => source.is_some(),
            Err(TryLockError::Poisoned(source)) => source.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => true,
        }
    }

    /// The bytes that the client has taken a second.
    fn rate(&self, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(self.began).as_secs_f64();
        self.progress().bytes as f64 / seconds.max(1e-3)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ScrapeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScrapeStream").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Gives a scrape up when its client takes too long, for a piece or for all of it. A body cannot
/// do that itself: it is not polled while the client takes nothing.
pub(super) async fn watch(stream: Weak<ScrapeStream>, patience: Duration, until: Instant) {
    loop {
        // Not across the pause, so that a body that is dropped is freed.
        let Some(watched) = stream.upgrade() else { return };
        let now = Instant::now();
        // A patience that no clock can reach has no end of its own.
        let due = watched.progress().at.checked_add(patience);
        let mut due = due.map_or(until, |due| due.min(until));
        if due <= now {
            if watched.give_up() {
                return;
            }
            due = now + AGAIN;
        }
        drop(watched);
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Endless;

    impl Pieces for Endless {
        fn next(&mut self) -> io::Result<(Bytes, bool)> {
            Ok((Bytes::new(), true))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_scrape_with_any_patience_ends_with_its_time() {
        for patience in [Duration::from_secs(3600), Duration::MAX] {
            let stream = ScrapeStreams::default().begin(Box::new(Endless), Client::new(None, ""));
            let until = Instant::now() + Duration::from_secs(1);
            watch(Arc::downgrade(&stream), patience, until).await;
            assert!(stream.next().is_err(), "{patience:?}");
            assert!(Instant::now() >= until);
        }
    }
}
