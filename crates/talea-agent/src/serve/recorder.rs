//! Records what the agent shows, second by second, at a bounded cost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use talea::{Page, Scrapable, Scraper};

use super::agent::Agent;
use super::source_error::{ErrorLog, log};
use crate::exits::Exits;
use crate::page::{Feed, Recorded, now};
use talea_view::printable;

/// Families with more series are not recorded: their history would take the room of all others.
const MOST_SERIES: u64 = 10_000;
/// The most families of one reading that are named in the log.
const MOST_LINES: usize = 5;

/// More series are not recorded together, which bounds the memory that a reading takes.
const MOST_TOGETHER: u64 = 50_000;
/// After a reading it waits so many times as long as that took, so that it takes 2 % of a core at most.
const REST: u32 = 50;

/// The region and the name of a family.
type Key = (String, String);

/// Reads an agent's page and adds it to a feed.
#[derive(Debug)]
pub struct Recorder {
    agent: Agent,
    scraper: Scraper<Recording>,
    feed: Arc<Feed>,
    exits: Exits,
    families: Arc<Mutex<Families>>,
    rests_until: Option<Instant>,
    errors: ErrorLog,
}

/// The page of an agent without the families that are too large. Those of one region leave those of others alone,
/// whatever their names.
#[derive(Clone, Debug)]
struct Recording {
    agent: Agent,
    families: Arc<Mutex<Families>>,
}

#[derive(Debug, Default)]
struct Families {
    /// The families that are not recorded, and why.
    large: BTreeMap<Key, (Size, String)>,
    /// How many series were read of the others.
    read: BTreeMap<Key, u64>,
}

/// How a family was found to be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// By the number of series that its region states.
    Stated,
    /// When it was read, since its region stated fewer.
    Hidden,
}

impl Scrapable for Recording {
    fn fill(&self, page: &mut Page, wants: &dyn Fn(&str) -> bool) {
        let Families { large, read } = &mut *locked(&self.families);
        read.clear();
        let is_wanted = |region: &str, family: &str| {
            let key = (region.to_owned(), family.to_owned());
            // The page is to know that it lacks some.
            wants(if large.contains_key(&key) { LEFT_OUT } else { family })
        };
        self.agent.fill_parts(page, &is_wanted, &mut |region, part| {
            for family in part.families() {
                let key = (region.to_owned(), family.name().to_owned());
                *read.entry(key).or_default() += family.series().count() as u64;
            }
        });
    }

    fn joined(&self, page: &Page) {
        self.agent.joined(page);
    }
}

/// Stands for the name of a family that is not recorded.
const LEFT_OUT: &str = "";

fn locked(families: &Mutex<Families>) -> MutexGuard<'_, Families> {
    families.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    pub fn new(agent: &Agent, feed: Arc<Feed>) -> Self {
        feed.find_changes();
        let families = Arc::<Mutex<Families>>::default();
        let recording = Recording { agent: agent.clone(), families: Arc::clone(&families) };
        let (agent, exits) = (agent.clone(), Exits::default());
        let (scraper, errors) = (Scraper::new(&recording), ErrorLog::default());
        Self { agent, scraper, feed, exits, families, rests_until: None, errors }
    }

    /// Whether it records now, rather than rests.
    pub fn is_due(&self) -> bool {
        self.rests_until.is_none_or(|until| Instant::now() >= until)
    }

    pub fn record(&mut self) {
        let (began, cpu_before) = (Instant::now(), cpu_time());
        let time = now();
        let stated = self.agent.series_counts();
        self.take_back(&stated);
        self.leave_out(stated, Size::Stated);
        self.scraper.begin(|name| name != LEFT_OUT);
        // The counts of a damaged region are wrong, and those of others may grow meanwhile.
        let read = std::mem::take(&mut locked(&self.families).read);
        if self.leave_out(read, Size::Hidden) {
            let agent = self.agent.clone();
            self.scraper = Scraper::new(&Recording { agent, families: Arc::clone(&self.families) });
            self.scraper.begin(|name| name != LEFT_OUT);
        }
        let ended = Instant::now();
        let families = self.scraper.page().to_families();
        let processes = self.agent.processes();
        let ends = self.exits.next(&processes, &self.agent.identities());
        for (process, reason) in &ends {
            self.agent.note_end(&process.region, *reason);
        }
        self.feed.note_ends(ends);
        self.feed.set_faults(self.faults());
        let recorded = Recorded { time, began, ended, families, processes };
        if let Err(error) = self.feed.add(recorded) {
            self.errors.write_seldom(&format!("{error:#}; memory has it"));
        }
        let took = cpu_time().saturating_sub(cpu_before);
        self.rests_until = Some(began + took * REST);
    }

    /// What is not shown, or not as it is defined, in words.
    fn faults(&self) -> Vec<String> {
        let families = locked(&self.families);
        let large = families.large.iter().map(|(key, (_, reason))| not_recorded(key, reason));
        self.agent.faults().into_iter().chain(large).collect()
    }

    /// Records families again whose regions stated too many series and state few now. Half of the bounds are few, so
    /// that no family comes and goes all the time.
    fn take_back(&mut self, stated: &BTreeMap<Key, u64>) {
        let large = &mut locked(&self.families).large;
        let recorded = stated.iter().filter(|(key, _)| !large.contains_key(*key));
        let mut together = recorded.fold(0, |sum: u64, (_, series)| sum.saturating_add(*series));
        large.retain(|key, (size, _)| {
            let series = stated.get(key).copied().unwrap_or(0);
            let with_it = together.saturating_add(series);
            let stays =
                *size == Size::Hidden || series > MOST_SERIES / 2 || with_it > MOST_TOGETHER / 2;
            if !stays {
                let (region, family) = key;
                let line = format!("{region}: {family} is recorded again: it has {series} series");
                log(&printable(&line));
                together = with_it;
            }
            stays
        });
    }

    /// Leaves families out from now on that are too large, of how many series each has; whether there were any.
    fn leave_out(&mut self, mut counts: BTreeMap<Key, u64>, size: Size) -> bool {
        let known = &mut locked(&self.families).large;
        counts.retain(|key, _| !known.contains_key(key));
        let large = too_large(counts);
        for (key, reason) in large.iter().take(MOST_LINES) {
            log(&not_recorded(key, reason));
        }
        if let Some(more @ 1..) = large.len().checked_sub(MOST_LINES) {
            log(&format!("{more} more families are not recorded; the page names them"));
        }
        let has_large = !large.is_empty();
        known.extend(large.into_iter().map(|(key, reason)| (key, (size, reason))));
        has_large
    }
}

fn not_recorded((region, family): &Key, reason: &str) -> String {
    printable(&format!("{region}: {family} is not recorded: {reason}"))
}

/// The families that are not recorded, of how many series each has, and why: those that are too large, and then
/// the largest, until the others are few enough together.
fn too_large(counts: BTreeMap<Key, u64>) -> Vec<(Key, String)> {
    let mut counts: Vec<(Key, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, series)| std::cmp::Reverse(*series));
    let mut together = counts.iter().fold(0, |sum: u64, (_, series)| sum.saturating_add(*series));
    let large = counts.into_iter().map_while(|(key, series)| {
        let reason = match (series > MOST_SERIES, together > MOST_TOGETHER) {
            (true, _) => format!("it has more than {MOST_SERIES} series"),
            (false, true) => format!("with it there are more than {MOST_TOGETHER} series"),
            (false, false) => return None,
        };
        together = together.saturating_sub(series);
        Some((key, reason))
    });
    large.collect()
}

/// The processor time of this thread: on a busy machine the clock would count the work of others.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use talea::{Config, Counter, Opts, Registry};

    use super::*;
    use crate::history::{Extent, History};
    use crate::page::About;
    use crate::serve::sources::Sources;

    fn left_out(counts: &[(&str, u64)]) -> Vec<String> {
        let key = |name: &str| ("shop".to_owned(), name.to_owned());
        let counts = counts.iter().map(|(name, series)| (key(name), *series)).collect();
        too_large(counts).into_iter().map(|((_, family), _)| family).collect()
    }

    #[test]
    fn a_family_is_left_out_if_it_is_too_large_by_itself_or_with_the_others() {
        assert_eq!(left_out(&[]), Vec::<String>::new());
        assert_eq!(left_out(&[("a", 10_000), ("b", 10_001), ("c", u64::MAX)]), ["c", "b"]);
        let some = [("a", 9_999), ("b", 10_000), ("c", 10_000), ("d", 10_000), ("e", 10_000)];
        assert_eq!(left_out(&some), Vec::<String>::new());
        let many = [&some[..], &[("f", 9_000), ("g", 1_002)]].concat();
        assert_eq!(left_out(&many), ["b", "c"], "the largest, until 50,000 are left");
    }

    #[test]
    fn a_large_family_is_left_out_also_one_that_has_grown_or_hides_it() {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = place.path().join("shop.talea");
        let registry = Registry::open_with(&path, Config::with_len(64 << 20)).unwrap();
        let family = |name| {
            let opts = Opts::new(name, "Orders accepted.").limit(20_000);
            registry.family::<Counter>(opts, &["customer"]).unwrap()
        };
        let [few, many, grows, lies] = ["few", "many", "grows", "lies"].map(family);
        let fill = |family: &talea::Family<_, Counter>, count| {
            (0..count).for_each(|n: u32| family.with_values(&[n.to_string()]).inc());
        };
        fill(&few, 10);
        fill(&many, 10_001);
        fill(&grows, 10_000);
        fill(&lies, 12_345);
        // The region says that this family has no series.
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut bytes = vec![0; 1 << 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let words = bytes.chunks(8).enumerate();
        let counts = words.filter(|(_, word)| *word == 12_345_u64.to_le_bytes());
        let counts: Vec<usize> = counts.map(|(n, _)| n).collect();
        let [count] = counts[..] else { panic!("{counts:?}") };
        file.write_all_at(&[0; 8], count as u64 * 8).unwrap();
        let sources = Sources { files: vec![path], ..Sources::default() };
        let owners = vec![rustix::process::geteuid().as_raw()];
        let agent = Agent::new(sources, owners, None).unwrap();
        let second = Duration::from_secs(1);
        let extent = Extent { seconds: second, minutes: second, bytes: 1 << 20 };
        let mut recorder = Recorder::new(&agent, Feed::new(About::default(), History::new(extent)));
        let mut recorded = || {
            recorder.record();
            let families = recorder.scraper.page().parts().flat_map(|part| part.families());
            let shop = families.filter(|family| {
                ["few_total", "many_total", "grows_total", "lies_total"].contains(&family.name())
            });
            shop.map(|family| (family.name().to_owned(), family.series().count()))
                .collect::<Vec<_>>()
        };
        let expected = |name: &str, series| (name.to_owned(), series);
        assert_eq!(recorded(), [expected("few_total", 10), expected("grows_total", 10_000)]);
        fill(&grows, 10_001);
        assert_eq!(recorded(), [expected("few_total", 10)]);
        // They are few again.
        for (family, left) in [(&many, 5_000), (&grows, 5_001), (&lies, 7)] {
            for n in left..12_345 {
                family.remove_values(&[n.to_string()]);
            }
        }
        assert_eq!(recorded(), [expected("few_total", 10), expected("many_total", 5_000)]);
    }

    #[test]
    fn one_region_with_too_many_series_takes_the_endpoints_of_no_other() {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let registry = |name: &str| {
            let path = place.path().join(format!("{name}.talea"));
            Registry::open_with(path, Config::with_len(64 << 20)).unwrap()
        };
        let registries = ["odd", "shop"].map(registry);
        for (registry, count) in registries.iter().zip([10_001, 3]) {
            let opts = Opts::new("requests", "Requests.").limit(20_000);
            let family = registry.family::<Counter>(opts, &["route"]).unwrap();
            (0..count).for_each(|n: u32| family.with_values(&[n.to_string()]).inc());
        }
        let sources = Sources { directories: vec![place.path().to_owned()], ..Sources::default() };
        let owners = vec![rustix::process::geteuid().as_raw()];
        let agent = Agent::new(sources, owners, Some("region".to_owned())).unwrap();
        let second = Duration::from_secs(1);
        let extent = Extent { seconds: second, minutes: second, bytes: 1 << 20 };
        let feed = Feed::new(About::default(), History::new(extent));
        let mut recorder = Recorder::new(&agent, feed);
        recorder.record();
        let families = recorder.scraper.page().to_families();
        let requests = families.iter().filter(|family| family.name == "requests_total");
        let series: Vec<_> = requests.flat_map(|family| &family.series).collect();
        assert_eq!(series.len(), 3);
        assert!(series.iter().all(|one| one.label("region") == Some("shop")));
        let said = "odd: requests_total is not recorded: it has more than 10000 series";
        assert_eq!(recorder.faults(), [said]);
    }
}
