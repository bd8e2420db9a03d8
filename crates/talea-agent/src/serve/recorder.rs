//! Records what the agent shows, second by second, at a bounded cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use talea::Scraper;

use super::agent::Agent;
use super::source_error::{ErrorLog, log};
use crate::exits::Exits;
use crate::page::{Feed, Recorded, now};
use talea_view::printable;

/// Families with more series are not recorded: their history would take the room of all others.
const MOST_SERIES: u64 = 10_000;
/// More series are not recorded together, which bounds the memory that a reading takes.
const MOST_TOGETHER: u64 = 50_000;
/// After a reading it waits so many times as long as that took, so that it takes 2 % of a core at most.
const REST: u32 = 50;

/// Reads an agent's page and adds it to a feed.
#[derive(Debug)]
pub struct Recorder {
    agent: Agent,
    scraper: Scraper<Agent>,
    feed: Arc<Feed>,
    exits: Exits,
    large: BTreeMap<String, Size>,
    rests_until: Option<Instant>,
    errors: ErrorLog,
}

/// How a family was found to be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// By the number of series that its region states.
    Stated,
    /// When it was read, since its region stated fewer.
    Hidden,
}

impl Recorder {
    pub fn new(agent: &Agent, feed: Arc<Feed>) -> Self {
        let (large, errors) = (BTreeMap::new(), ErrorLog::default());
        let scraper = Scraper::new(agent);
        feed.find_changes();
        let (agent, exits) = (agent.clone(), Exits::default());
        Self { agent, scraper, feed, exits, large, rests_until: None, errors }
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
        self.scraper.begin(|name| !self.large.contains_key(name));
        // The counts of a damaged region are wrong, and those of others may grow meanwhile.
        if self.leave_out(self.series_read(), Size::Hidden) {
            self.scraper = Scraper::new(&self.agent);
            self.scraper.begin(|name| !self.large.contains_key(name));
        }
        let ended = Instant::now();
        let families = self.scraper.page().to_families();
        let processes = self.agent.processes();
        let ends = self.exits.next(&processes, &self.agent.identities());
        for (process, reason) in &ends {
            self.agent.note_end(&process.region, *reason);
        }
        self.feed.note_ends(ends);
        self.feed.set_faults(self.agent.faults());
        let recorded = Recorded { time, began, ended, families, processes };
        if let Err(error) = self.feed.add(recorded) {
            self.errors.write_seldom(&format!("{error:#}; memory has it"));
        }
        let took = cpu_time().saturating_sub(cpu_before);
        self.rests_until = Some(began + took * REST);
    }

    /// Records families again whose regions stated too many series and state few now. Half of the bounds are few, so
    /// that no family comes and goes all the time.
    fn take_back(&mut self, stated: &BTreeMap<String, u64>) {
        let recorded = stated.iter().filter(|(name, _)| !self.large.contains_key(*name));
        let mut together = recorded.fold(0, |sum: u64, (_, series)| sum.saturating_add(*series));
        self.large.retain(|name, size| {
            let series = stated.get(name).copied().unwrap_or(0);
            let with_it = together.saturating_add(series);
            let stays =
                *size == Size::Hidden || series > MOST_SERIES / 2 || with_it > MOST_TOGETHER / 2;
            if !stays {
                log(&format!("{} is recorded again: it has {series} series", printable(name)));
                together = with_it;
            }
            stays
        });
    }

    /// Leaves families out from now on that are too large, of how many series each has; whether there were any.
    fn leave_out(&mut self, mut counts: BTreeMap<String, u64>, size: Size) -> bool {
        counts.retain(|name, _| !self.large.contains_key(name));
        let large = too_large(counts);
        let has_large = !large.is_empty();
        for (name, reason) in large {
            log(&format!("{} is not recorded: {reason}", printable(&name)));
            self.large.insert(name, size);
        }
        has_large
    }

    fn series_read(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for family in self.scraper.page().parts().flat_map(|part| part.families()) {
            *counts.entry(family.name().to_owned()).or_default() += family.series().count() as u64;
        }
        counts
    }
}

/// The families that are not recorded, of how many series each has, and why: those that are too large, and then
/// the largest, until the others are few enough together.
fn too_large(counts: BTreeMap<String, u64>) -> Vec<(String, String)> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, series)| std::cmp::Reverse(*series));
    let mut together = counts.iter().fold(0, |sum: u64, (_, series)| sum.saturating_add(*series));
    let large = counts.into_iter().map_while(|(name, series)| {
        let reason = match (series > MOST_SERIES, together > MOST_TOGETHER) {
            (true, _) => format!("it has more than {MOST_SERIES} series"),
            (false, true) => format!("with it there are more than {MOST_TOGETHER} series"),
            (false, false) => return None,
        };
        together = together.saturating_sub(series);
        Some((name, reason))
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
        let counts = counts.iter().map(|(name, series)| (name.to_string(), *series)).collect();
        too_large(counts).into_iter().map(|(name, _)| name).collect()
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
}
