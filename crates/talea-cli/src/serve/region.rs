//! One region that is served.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use talea::outside::{Reader, Standing};
use talea::{Error, Snapshot, Windows};

use super::sources::Source;

/// How often it is looked for summaries where nobody scrapes and none is known.
const DISCOVERY: Duration = Duration::from_secs(10);

/// A region that is open, and what it held in the last minutes.
#[derive(Debug)]
pub(super) struct Region {
    reader: Reader,
    recent: Mutex<Recent>,
}

#[derive(Debug)]
struct Recent {
    windows: Windows,
    began: Instant,
    /// When they were last told of all summaries, which a scrape may not ask for.
    kept_up: Option<Instant>,
}

impl Region {
    /// Opens it, if it can be read: what it claims to have is looked at.
    pub(super) fn open(source: &Source, owners: &[u32]) -> Result<Self, Error> {
        let reader = match source {
            Source::File(path) => Reader::open_owned_by(path, owners)?,
            Source::Process(pid) => Reader::of_process(*pid)?,
        };
        reader.snapshot_into(&mut Snapshot::default(), |_| false)?;
        let recent = Recent { windows: Windows::new(), began: Instant::now(), kept_up: None };
        Ok(Self { reader, recent: Mutex::new(recent) })
    }

    /// Whether its source is still the one that was opened. A process may be dead.
    pub(super) fn is_current(&self) -> bool {
        matches!(self.reader.standing(), Ok(Standing::Same))
    }

    /// Copies the wanted families out, with the quantiles of the last minutes.
    pub(super) fn snapshot_into(
        &self,
        out: &mut Snapshot,
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        self.reader.snapshot_into(out, wants)?;
        self.recent().show(out);
        Ok(())
    }

    /// Keeps the windows up to date where nobody scrapes.
    pub(super) fn keep_up(&self, memory: &mut Snapshot) -> Result<(), Error> {
        if self.recent().is_due() {
            self.reader.recent_into(memory)?;
            let mut recent = self.recent();
            recent.show(memory);
            recent.kept_up = Some(Instant::now());
        }
        Ok(())
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    fn show(&mut self, snapshot: &mut Snapshot) {
        let since = self.began.elapsed();
        self.windows.show(snapshot, since);
    }

    /// Whether the windows have to be told now, so that they miss nothing.
    fn is_due(&self) -> bool {
        let step = self.windows.summaries().map(|(_, step)| step).min().unwrap_or(DISCOVERY);
        self.kept_up.is_none_or(|told| told.elapsed() >= step)
    }
}
