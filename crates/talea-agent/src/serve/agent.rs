//! The agent: all regions that can be read, and the reasons why others cannot.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use talea::outside::{Look, Standing};
use talea::{AddPath, Config, Page, Registry, Scrapable, Snapshot};

use super::meters::{AgentMetrics, EndLabels, PathLabels, ProcessMeters, RegionLabel};
use super::region::{Processes, Region};
use super::source_error::{ErrorLog, SourceError, is_missing, log, system_error};
use super::sources::{Sources, Unlisted};
use crate::descriptors::{CONNECTIONS, RAISE_LIMIT, Shares};
use crate::exits::{Identity, Reason};
use crate::page::{Process, now};
use crate::region_place::RegionPlace;
use talea_view::printable;

/// How many files of directories that cannot be read have a name in the metrics and lines on standard error: every user
/// may put some into `/dev/shm`.
const MOST_REFUSED: usize = 100;
/// Memory for the metrics of its own.
const OWN_METRICS_BYTES: u64 = 8 << 20;

/// Reads regions from outside, and makes one page of them. Clones are the same agent. It
/// looks for regions that come and go before each scrape, and at each
/// [`refresh`](Self::refresh). A fault of one region is reported once on standard error, and
/// in the metrics; the others are served. A region that is open stays so while the system has no
/// descriptor or memory for another.
#[derive(Clone, Debug)]
pub struct Agent(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: Sources,
    /// The users whose files are opened.
    owners: Vec<u32>,
    /// The label that distinguishes regions; `None` if there is only one.
    label: Option<String>,
    registry: Registry,
    meters: AgentMetrics,
    processes: ProcessMeters,
    state: Mutex<State>,
    errors: ErrorLog,
}

#[derive(Debug, Default)]
struct State {
    regions: BTreeMap<String, Slot>,
    unlisted: BTreeMap<PathBuf, SourceError>,
    conflicts: BTreeSet<String>,
    /// When a page had no region because descriptors or memory ran out.
    starved: Option<Instant>,
}

impl State {
    /// Why regions and directories cannot be read.
    fn refusals(&self) -> Vec<String> {
        let regions = self.regions.iter().filter_map(|(name, slot)| {
            let trouble = slot.found.as_ref().err()?;
            Some(printable(&format!("{name}: {}", trouble.reason)))
        });
        let unlisted = self.unlisted.iter().map(|(path, trouble)| {
            printable(&format!("directory {}: {}", path.display(), trouble.reason))
        });
        regions.chain(unlisted).collect()
    }

    /// Whether the system refused descriptors or memory when it was looked for regions.
    fn has_shortage(&self) -> bool {
        let regions = self.regions.values().filter_map(|slot| slot.found.as_ref().err());
        regions.chain(self.unlisted.values()).any(|trouble| trouble.is_shortage)
    }
}

/// The part of a page that has the agent's own families. No region has an empty name.
pub(super) const OWN: &str = "";

/// How many more there may be.
#[derive(Debug)]
struct Room {
    /// Regions that are open.
    open: u64,
    /// Files that cannot be read.
    refused: usize,
}

const TOO_MANY_REFUSED: &str =
    "further files of the directories cannot be read either; they have no lines and no metrics";

/// A region, or why there is none.
#[derive(Debug)]
struct Slot {
    source: RegionPlace,
    found: Result<Arc<Region>, SourceError>,
    /// Of the region that is open, or was the last one. A file that is replaced has others, so these died.
    processes: Arc<Mutex<Processes>>,
}

impl Slot {
    /// Whether it cannot be read, for another reason than a shortage.
    fn is_refused(&self) -> bool {
        self.found.as_ref().is_err_and(|trouble| !trouble.is_shortage)
    }
}

impl Agent {
    /// One that serves these sources, and opens files of these owners. Each series has the
    /// name of its region in `label`, if there is one.
    ///
    /// # Errors
    /// When a process has no region that can be read, or there is no memory for metrics of its own.
    pub fn new(sources: Sources, owners: Vec<u32>, label: Option<String>) -> anyhow::Result<Self> {
        processes_are_there(&sources)?;
        let registry = Registry::with_config(Config::with_len(OWN_METRICS_BYTES))?;
        let (meters, processes) = (AgentMetrics::new(), ProcessMeters::new());
        talea::install(&registry, &[&meters, &processes])?;
        let state = Mutex::default();
        let errors = ErrorLog::default();
        let inner = Inner { sources, owners, label, registry, meters, processes, state, errors };
        let agent = Self(Arc::new(inner));
        agent.refresh();
        Ok(agent)
    }

    /// Looks for regions.
    pub fn refresh(&self) {
        self.0.regions();
    }

    /// Removes the files of regions of directories in which the agent found no living process for so long. A process that
    /// opens a file meanwhile keeps it.
    pub fn remove_dead(&self, keep: Duration) {
        for (name, region) in self.0.regions() {
            if region.processes().dead_for().is_none_or(|dead| dead < keep) {
                continue;
            }
            let source = self.0.state().regions.get(&name).map(|slot| slot.source.clone());
            let Some(RegionPlace::File(path)) = source else { continue };
            if self.0.sources.files.contains(&path) {
                continue;
            }
            match talea::outside::remove_unused(&path, &self.0.owners) {
                Ok(true) => log(&format!(
                    "{name}: {} is removed: no process used it for {}",
                    path.display(),
                    humantime::format_duration(keep)
                )),
                Ok(false) => {}
                Err(error) => {
                    let path = path.display();
                    self.0.errors.write_seldom(&format!("{name}: cannot remove {path}: {error}"));
                }
            }
        }
    }

    /// Keeps quantiles up to date where nobody scrapes: to be called once a second, with
    /// memory that is used again.
    pub fn keep_up(&self, memory: &mut Snapshot) {
        for (name, region) in self.0.regions() {
            if let Err(error) = region.keep_up(memory) {
                self.0.failed(&name, &region, &SourceError::from(&error));
            }
        }
    }

    /// How many series each family of each region states. Regions that cannot be read are left out: a scrape reports
    /// them.
    pub(super) fn series_counts(&self) -> BTreeMap<(String, String), u64> {
        let mut counts = BTreeMap::new();
        for (region, read) in self.0.regions() {
            for (family, series) in read.series_counts().unwrap_or_default() {
                let count: &mut u64 = counts.entry((region.clone(), family)).or_default();
                *count = count.saturating_add(series);
            }
        }
        counts
    }

    /// The label that distinguishes regions, if there are several.
    pub(super) fn label(&self) -> Option<&str> {
        self.0.label.as_deref()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.state().regions.keys().cloned().collect()
    }

    /// The values that a region holds now, and where it is; `None` if it cannot be read.
    pub(super) fn look(&self, name: &str) -> Option<(String, Look)> {
        let (source, region) = {
            let state = self.0.state();
            let slot = state.regions.get(name)?;
            (slot.source.to_string(), slot.found.clone().ok()?)
        };
        Some((source, region.look().ok()?))
    }

    /// Whether it serves all that was named, and the reasons for what it does not serve, in words. A
    /// directory is served if a region in it can be read, or it has none yet.
    pub fn readiness(&self) -> (bool, Vec<String>) {
        self.refresh();
        let state = self.0.state();
        let is_refused = |(_, slot): &(&String, &Slot)| slot.found.is_err();
        let mut refused = state.regions.iter().filter(is_refused);
        let is_ready = state.unlisted.is_empty()
            && !refused.any(|(_, slot)| self.0.is_named(&slot.source))
            && !self.0.sources.directories.iter().any(|directory| {
                let mut here = state.regions.iter().filter(|it| is_in(&it.1.source, directory));
                here.clone().next().is_some() && here.all(|it| is_refused(&it))
            });
        (is_ready, state.refusals())
    }

    /// What of its regions is not shown, or not as it is defined, in words.
    pub(super) fn faults(&self) -> Vec<String> {
        let state = self.0.state();
        state.refusals().into_iter().chain(state.conflicts.iter().cloned()).collect()
    }

    /// The processes that live, by the latest reading of each region.
    pub(super) fn processes(&self) -> Vec<Process> {
        let mut all = Vec::new();
        let now = now();
        let state = self.0.state();
        for (name, slot) in &state.regions {
            let Ok(region) = &slot.found else { continue };
            all.extend(region.processes().living().map(|process| Process {
                region: name.clone(),
                pid: process.pid,
                started_boot_nanos: process.started_boot_nanos,
                started_unix_millis: now.unix_millis_of_boot(process.started_boot_nanos),
                alive: true,
                died_unix_millis: None,
                reason: None,
            }));
        }
        all
    }

    /// The files of the regions that can be read, by name.
    pub(super) fn identities(&self) -> BTreeMap<String, Identity> {
        let state = self.0.state();
        let regions = state.regions.iter();
        let identities = regions
            .filter_map(|(name, slot)| Some((name.clone(), slot.found.as_ref().ok()?.identity()?)));
        identities.collect()
    }

    /// Counts that a process of a region ended.
    pub(super) fn note_end(&self, region: &str, reason: Reason) {
        let (reason, detail) = reason.labels();
        let labels = EndLabels { region, reason, detail: &detail };
        self.0.processes.ends.with(labels).inc();
    }

    /// Whether a page has had no region since then because the system refused descriptors or
    /// memory.
    pub(super) fn was_starved_since(&self, since: Instant) -> bool {
        self.0.state().starved.is_some_and(|at| at >= since)
    }

    pub(super) fn meters(&self) -> &AgentMetrics {
        &self.0.meters
    }

    /// Where metrics of its own are.
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }
}

impl Agent {
    /// Adds the parts of a page: those of regions, of which `wants` says by the names of region and family what is
    /// wanted, and its own, under the name [`OWN`]. `seen` gets each part of a region.
    pub(super) fn fill_parts(
        &self,
        page: &mut Page,
        wants: &dyn Fn(&str, &str) -> bool,
        seen: &mut dyn FnMut(&str, &Snapshot),
    ) {
        let Inner { label, registry, meters, .. } = &*self.0;
        let (mut is_empty, mut is_refused) = (true, false);
        for (name, region) in self.0.regions() {
            let label = label.as_ref().map(|label| (label.as_str(), name.as_str()));
            let is_whole = Cell::new(true);
            let added = page.try_add(label, |snapshot| {
                region.snapshot_into(snapshot, &|family: &str| {
                    let is_wanted = wants(&name, family);
                    is_whole.set(is_whole.get() && is_wanted);
                    is_wanted
                })
            });
            match added {
                Ok(snapshot) => {
                    if is_whole.get() {
                        let series = i64::try_from(snapshot.series_count()).unwrap_or(i64::MAX);
                        meters.region_series.with(RegionLabel { region: &name }).set(series);
                    }
                    seen(&name, snapshot);
                    self.0.note_processes(&name, &region);
                    is_empty = false;
                }
                Err(error) => {
                    let trouble = SourceError::from(&error);
                    is_refused |= trouble.is_shortage;
                    self.0.failed(&name, &region, &trouble);
                }
            }
        }
        if is_empty {
            let mut state = self.0.state();
            if is_refused || state.has_shortage() {
                state.starved = Some(Instant::now());
            }
        }
        // Last, so that they include this scrape.
        page.add(None, |snapshot| {
            registry.snapshot_into(snapshot, |family: &str| wants(OWN, family));
        });
    }
}

impl Scrapable for Agent {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        self.fill_parts(page, &|_, family| wants(family), &mut |_, _| {});
    }

    fn joined(&self, page: &Page) {
        if page.is_filtered() {
            return;
        }
        let mut state = self.0.state();
        // A region alone has no label in the page. A conflict there is the region's: the agent's
        // own families prevail.
        let alone = state.regions.keys().next().map_or("the agent", String::as_str).to_owned();
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        let mut conflicts = BTreeSet::new();
        for conflict in page.conflicts() {
            let region = if conflict.part.is_empty() { &alone } else { &conflict.part };
            *counts.entry(region).or_default() += 1;
            conflicts.insert(printable(&format!("{region}: {conflict}")));
        }
        for name in state.regions.keys() {
            let count = counts.get(name.as_str()).copied().unwrap_or(0);
            self.0.meters.region_conflicts.with(RegionLabel { region: name }).set(count);
        }
        for line in conflicts.difference(&state.conflicts) {
            self.0.errors.write_seldom(line);
        }
        state.conflicts = conflicts;
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The regions that can be served now.
    fn regions(&self) -> Vec<(String, Arc<Region>)> {
        let mut state = self.state();
        let known: Vec<RegionPlace> =
            state.regions.values().map(|slot| slot.source.clone()).collect();
        let (names, unlisted) = self.sources.look(&known);
        self.note_unlisted(&mut state, unlisted);
        let gone: Vec<String> =
            state.regions.keys().filter(|name| !names.contains_key(*name)).cloned().collect();
        gone.iter().for_each(|name| self.forget(&mut state, name));
        let open = state.regions.values().filter(|slot| slot.found.is_ok()).count() as u64;
        let mut room = Room {
            open: Shares::now(CONNECTIONS).regions.saturating_sub(open),
            refused: MOST_REFUSED
                .saturating_sub(state.regions.values().filter(|it| it.is_refused()).count()),
        };
        for (name, source) in names {
            self.look_at(&mut state, &name, source, &mut room);
        }
        self.note_waiting(&state);
        let found = state.regions.iter();
        found.filter_map(|(name, slot)| Some((name.clone(), slot.found.clone().ok()?))).collect()
    }

    fn note_unlisted(&self, state: &mut State, unlisted: Vec<Unlisted>) {
        self.meters.directory_errors.add(unlisted.len() as u64);
        let unlisted =
            unlisted.iter().map(|(path, error)| (path.clone(), SourceError::from(error)));
        let unlisted: BTreeMap<PathBuf, SourceError> = unlisted.collect();
        for (path, trouble) in &unlisted {
            if state.unlisted.get(path) != Some(trouble) {
                let SourceError { reason, .. } = trouble;
                let line = format!("the directory {} cannot be listed: {reason}", path.display());
                self.errors.write(trouble, &line);
            }
        }
        state.unlisted = unlisted;
    }

    fn forget(&self, state: &mut State, name: &str) {
        state.regions.remove(name);
        let AgentMetrics { region_up, region_series, region_conflicts, region_errors, .. } =
            &self.meters;
        let region = name;
        region_up.remove(RegionLabel { region });
        region_series.remove(RegionLabel { region });
        region_conflicts.remove(RegionLabel { region });
        region_errors.remove(RegionLabel { region });
        self.forget_processes(region);
        self.processes.last_death.remove(RegionLabel { region });
        log(&format!("{name}: gone"));
    }

    /// Says that there are regions that wait for descriptors, in one line for all.
    fn note_waiting(&self, state: &State) {
        let waits = SourceError::waits();
        let (waiting, all) = (
            state
                .regions
                .values()
                .filter(|slot| slot.found.as_ref().is_err_and(|trouble| *trouble == waits))
                .count(),
            state.regions.len(),
        );
        if waiting > 0 {
            let line = format!(
                "{waiting} of {all} regions wait for file descriptors, of which some are kept for clients; \
                 {RAISE_LIMIT}"
            );
            self.errors.write_seldom_about(&waits.reason, &line);
        }
    }

    /// Opens a region that is new, or is another than before.
    fn look_at(&self, state: &mut State, name: &str, source: RegionPlace, room: &mut Room) {
        let before = state.regions.get(name).filter(|slot| slot.source == source);
        let known = before.map(|slot| slot.found.as_ref());
        let mut is_replaced = false;
        if let Some(Ok(region)) = known {
            match region.standing() {
                Ok(Standing::Same) => return self.note_up(name, true),
                Ok(standing) => is_replaced = standing == Standing::Replaced,
                Err(error) if is_missing(&error) => {}
                Err(error) => {
                    return self.note_kept(name, &format!("cannot look at {source}: {error}"));
                }
            }
        }
        let processes = before.map(|slot| Arc::clone(&slot.processes)).unwrap_or_default();
        let was_open = known.is_some_and(|found| found.is_ok());
        let is_new = !state.regions.contains_key(name);
        if !was_open && room.open == 0 {
            self.meters.region_errors.with(RegionLabel { region: name }).inc();
            self.note_up(name, false);
            let found = Err(SourceError::waits());
            state.regions.insert(name.to_owned(), Slot { source, found, processes });
            return;
        }
        let found = Region::open(&source, &self.owners, Arc::clone(&processes));
        let is_gone =
            found.as_ref().is_err_and(|error| system_error(error).is_some_and(is_missing));
        if is_gone && !self.is_named(&source) {
            // It went since its directory was listed.
            if state.regions.contains_key(name) {
                self.forget(state, name);
            }
            return;
        }
        let found = found.map(Arc::new).map_err(|error| SourceError::from(&error));
        match &found {
            Ok(_) => {
                room.open -= u64::from(!was_open);
                log(&format!("{name}: {source} is served"));
            }
            // Keeps the replaced file: its last counts are better than none.
            Err(trouble) if trouble.is_shortage && is_replaced => {
                return self.note_kept(name, &trouble.reason);
            }
            Err(trouble) if is_new && !trouble.is_shortage && !self.is_named(&source) => {
                if room.refused == 0 {
                    self.errors.write_seldom(TOO_MANY_REFUSED);
                    return;
                }
                room.refused -= 1;
                self.meters.region_errors.with(RegionLabel { region: name }).inc();
                self.errors.write(trouble, &format!("{name}: {}", trouble.reason));
            }
            Err(trouble) => {
                self.meters.region_errors.with(RegionLabel { region: name }).inc();
                if known.and_then(Result::err) != Some(trouble) {
                    self.errors.write(trouble, &format!("{name}: {}", trouble.reason));
                }
            }
        }
        self.note_up(name, found.is_ok());
        state.regions.insert(name.to_owned(), Slot { source, found, processes });
    }

    /// Notes that a region goes on being served as it is open, since the system refuses to look at
    /// its file or to open another that is in its place.
    fn note_kept(&self, name: &str, reason: &str) {
        self.meters.region_errors.with(RegionLabel { region: name }).inc();
        self.errors.write_seldom(&format!("{name}: {reason}; what is open goes on being served"));
        self.note_up(name, true);
    }

    /// Shows when a region was made, how many of its processes live, and when one was last found gone.
    fn note_processes(&self, region: &str, found: &Region) {
        self.processes.created.with(RegionLabel { region }).set(found.created());
        let found = found.processes();
        self.processes.processes.with(RegionLabel { region }).set(found.count() as i64);
        for path in AddPath::all() {
            let labels = PathLabels { region, path: path.name() };
            self.processes.adds_by.with(labels).set(found.count_by(path) as i64);
        }
        match found.dead_since() {
            Some(time) => self.processes.dead_since.with(RegionLabel { region }).set(time),
            None => {
                self.processes.dead_since.remove(RegionLabel { region });
            }
        }
        if let Some(time) = found.last_death() {
            self.processes.last_death.with(RegionLabel { region }).set(time);
        }
    }

    fn note_up(&self, name: &str, is_up: bool) {
        self.meters.region_up.with(RegionLabel { region: name }).set(is_up.into());
        // So that it is there before the first error.
        self.meters.region_errors.with(RegionLabel { region: name }).add(0);
        if !is_up {
            // How many live is unknown.
            self.forget_processes(name);
        }
    }

    fn forget_processes(&self, region: &str) {
        self.processes.dead_since.remove(RegionLabel { region });
        self.processes.created.remove(RegionLabel { region });
        self.processes.processes.remove(RegionLabel { region });
        for path in AddPath::all() {
            self.processes.adds_by.remove(PathLabels { region, path: path.name() });
        }
    }

    /// Whether the user named it, so that it should be there.
    fn is_named(&self, source: &RegionPlace) -> bool {
        match source {
            RegionPlace::File(path) => self.sources.files.contains(path),
            RegionPlace::Process(_) => true,
        }
    }

    /// Notes that a region could not be read. It is opened again the next time, unless memory
    /// ran out: then the open region is still good.
    fn failed(&self, name: &str, region: &Arc<Region>, trouble: &SourceError) {
        let mut state = self.state();
        let Some(slot) = state.regions.get_mut(name) else { return };
        if slot.found.as_ref().is_ok_and(|found| Arc::ptr_eq(found, region)) {
            self.errors.write(trouble, &format!("{name}: {}", trouble.reason));
            if !trouble.is_shortage {
                slot.found = Err(trouble.clone());
            }
            self.meters.region_errors.with(RegionLabel { region: name }).inc();
            self.note_up(name, false);
        }
    }
}

fn is_in(source: &RegionPlace, directory: &Path) -> bool {
    matches!(source, RegionPlace::File(path) if path.parent() == Some(directory))
}

/// A file may come later, a process that is not there never will. Checked before anything is
/// reported of any region, so that this is the only message.
fn processes_are_there(sources: &Sources) -> anyhow::Result<()> {
    for pid in &sources.processes {
        RegionPlace::Process(*pid).open()?;
    }
    Ok(())
}
