//! One region that is served.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use talea::outside::Reader;
use talea::{Error, Snapshot, Windows};

use super::sources::Source;

/// How often it is looked for summaries where nobody scrapes.
const DISCOVERY: Duration = Duration::from_secs(60);

/// A region that is open, and what it held in the last minutes.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) source: Source,
    reader: Reader,
    recent: Mutex<Recent>,
}

#[derive(Debug)]
struct Recent {
    windows: Windows,
    began: Instant,
    /// When all families were last looked at, and when the summaries were.
    looked: Option<Instant>,
    shown: Instant,
}

impl Region {
    /// Opens it.
    pub(super) fn open(source: Source, owners: &[u32]) -> Result<Self, Error> {
        let reader = match &source {
            Source::File(path) => {
                let _ = owners;
                Reader::open(path)?
            }
            Source::Process(pid) => Reader::of_process(*pid)?,
        };
        let now = Instant::now();
        let recent = Recent { windows: Windows::new(), began: now, looked: None, shown: now };
        Ok(Self { source, reader, recent: Mutex::new(recent) })
    }

    /// Whether its source is still the one that was opened. A process may be dead.
    pub(super) fn is_current(&self) -> bool {
        match &self.source {
            Source::File(path) => self.is_at(path),
            Source::Process(_) => true,
        }
    }

    fn is_at(&self, path: &Path) -> bool {
        path.exists()
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
        let due = self.recent().due();
        match due {
            Due::Nothing => Ok(()),
            Due::All => {
                self.snapshot_into(memory, &|_| true)?;
                self.recent().looked = Some(Instant::now());
                Ok(())
            }
            Due::Summaries(names) => {
                self.snapshot_into(memory, &|name| names.iter().any(|known| known == name))
            }
        }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What must be looked at so that windows miss nothing.
enum Due {
    Nothing,
    Summaries(Vec<String>),
    /// There may be new ones.
    All,
}

impl Recent {
    fn show(&mut self, snapshot: &mut Snapshot) {
        self.shown = Instant::now();
        let since = self.began.elapsed();
        self.windows.show(snapshot, since);
    }

    fn due(&self) -> Due {
        if self.looked.is_none_or(|looked| looked.elapsed() >= DISCOVERY) {
            return Due::All;
        }
        let step = self.windows.summaries().map(|(_, step)| step).min();
        if step.is_none_or(|step| self.shown.elapsed() < step) {
            return Due::Nothing;
        }
        Due::Summaries(self.windows.summaries().map(|(name, _)| name.to_owned()).collect())
    }
}
