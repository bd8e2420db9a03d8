//! One region that is served.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use talea::outside::{Look, Reader, Standing};
use talea::{AddPath, Error, LivingProcess, Snapshot, Windows};

use crate::exits::Identity;
use crate::region_place::RegionPlace;

/// How often summaries are looked for without a scrape, when none is known.
const DISCOVERY: Duration = Duration::from_secs(10);

/// A region that is open, and what it held in the last minutes.
#[derive(Debug)]
pub(super) struct Region {
    reader: Reader,
    recent: Mutex<Recent>,
    processes: Arc<Mutex<Processes>>,
}

/// The processes of a region, as they were found the last time: at most 1,024.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes {
    living: BTreeSet<LivingProcess>,
    /// When one was found gone that had been seen alive, in seconds since 1970.
    last_death: Option<f64>,
    noted: Option<Instant>,
    /// When none was found alive first, and in seconds since 1970.
    dead_since: Option<(Instant, f64)>,
}

impl Processes {
    /// Those that a look found, which was begun at that instant. Of looks that overlap, which
    /// cannot be put in an order, the first that is reported counts.
    fn found(&mut self, began: Instant, living: BTreeSet<LivingProcess>, now: f64) {
        if self.noted.is_some_and(|noted| began < noted) {
            return;
        }
        if self.living.difference(&living).next().is_some() {
            self.last_death = Some(now);
        }
        self.dead_since = match living.is_empty() {
            true => self.dead_since.or(Some((Instant::now(), now))),
            false => None,
        };
        self.living = living;
        self.noted = Some(Instant::now());
    }

    pub(super) fn living(&self) -> impl Iterator<Item = &LivingProcess> {
        self.living.iter()
    }

    pub(super) fn count(&self) -> usize {
        self.living.len()
    }

    pub(super) fn count_by(&self, path: AddPath) -> usize {
        self.living.iter().filter(|process| process.adds == path).count()
    }

    /// How long none was found alive.
    pub(super) fn dead_for(&self) -> Option<Duration> {
        self.dead_since.map(|(since, _)| since.elapsed())
    }

    /// Since when none was found alive, in seconds since 1970.
    pub(super) fn dead_since(&self) -> Option<f64> {
        self.dead_since.map(|(_, since)| since)
    }

    /// When one was last found gone, in seconds since 1970.
    pub(super) fn last_death(&self) -> Option<f64> {
        self.last_death
    }
}

#[derive(Debug)]
struct Recent {
    windows: Windows,
    began: Instant,
    /// When they last received all summaries, which a scrape may not ask for.
    kept_up: Option<Instant>,
}

impl Region {
    /// Opens it, if it can be read: its header is checked. `processes` are those that were found there before, of
    /// which one may be gone.
    pub(super) fn open(
        source: &RegionPlace,
        owners: &[u32],
        processes: Arc<Mutex<Processes>>,
    ) -> Result<Self, Error> {
        let reader = match source {
            RegionPlace::File(path) => Reader::open_owned_by(path, owners)?,
            RegionPlace::Process(pid) => Reader::of_process(*pid)?,
        };
        reader.snapshot_into(&mut Snapshot::default(), |_| false)?;
        let recent = Recent { windows: Windows::new(), began: Instant::now(), kept_up: None };
        Ok(Self { reader, recent: Mutex::new(recent), processes })
    }

    /// Whether its source is still the one that was opened. A process may be dead. It takes no
    /// descriptor.
    pub(super) fn standing(&self) -> std::io::Result<Standing> {
        self.reader.standing()
    }

    /// When it was made, in seconds since 1970.
    pub(super) fn created(&self) -> f64 {
        Duration::from_nanos(self.reader.created_unix_nanos()).as_secs_f64()
    }

    /// Copies the wanted families out, with the quantiles of the last minutes.
    pub(super) fn snapshot_into(
        &self,
        out: &mut Snapshot,
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let began = Instant::now();
        self.reader.snapshot_into(out, wants)?;
        self.note_processes(began, out);
        self.recent().show(out);
        Ok(())
    }

    /// The device and the number of its file; `None` if the system refuses to look at it.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.reader.identity().ok()
    }

    /// The names of its families, and how many series each has.
    pub(super) fn series_counts(&self) -> Result<Vec<(String, u64)>, Error> {
        self.reader.series_counts()
    }

    /// All that it holds.
    pub(super) fn look(&self) -> Result<Look, Error> {
        self.reader.look()
    }

    fn note_processes(&self, began: Instant, snapshot: &Snapshot) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.found(began, snapshot.living_processes().collect(), now);
    }

    /// Its processes, as they were found the last time.
    pub(super) fn processes(&self) -> Processes {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the windows up to date between scrapes.
    pub(super) fn keep_up(&self, memory: &mut Snapshot) -> Result<(), Error> {
        if self.recent().is_due() {
            let began = Instant::now();
            self.reader.recent_into(memory)?;
            self.note_processes(began, memory);
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

    /// Whether the windows have to be updated now, so that they miss nothing.
    fn is_due(&self) -> bool {
        let step = self.windows.summaries().map(|(_, step)| step).min().unwrap_or(DISCOVERY);
        self.kept_up.is_none_or(|updated| updated.elapsed() >= step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_is_a_death_also_if_another_has_its_slot_and_its_id() {
        let process = |slot, started| {
            let adds = AddPath::default();
            LivingProcess { slot, started_boot_nanos: started, pid: 1, adds }
        };
        let mut processes = Processes::default();
        processes.found(Instant::now(), BTreeSet::from([process(0, 10)]), 100.0);
        processes.found(Instant::now(), BTreeSet::from([process(0, 10), process(1, 20)]), 200.0);
        assert_eq!((processes.count(), processes.last_death()), (2, None), "one more is no death");
        processes.found(Instant::now(), BTreeSet::from([process(0, 30), process(1, 20)]), 300.0);
        assert_eq!((processes.count(), processes.last_death()), (2, Some(300.0)), "a restart is");
        processes.found(Instant::now(), BTreeSet::new(), 400.0);
        assert_eq!((processes.count(), processes.last_death()), (0, Some(400.0)));
        processes.found(Instant::now(), BTreeSet::new(), 500.0);
        assert_eq!(processes.last_death(), Some(400.0));
    }

    #[test]
    fn a_look_that_another_has_overtaken_kills_nobody() {
        let adds = AddPath::default();
        let process = LivingProcess { slot: 0, started_boot_nanos: 10, pid: 1, adds };
        let mut processes = Processes::default();
        // Of two scrapes at a time, one looked before the process came and is reported last.
        let began = Instant::now();
        processes.found(Instant::now(), BTreeSet::from([process]), 100.0);
        processes.found(began, BTreeSet::new(), 200.0);
        assert_eq!((processes.count(), processes.last_death()), (1, None));
    }
}
