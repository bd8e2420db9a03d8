//! Records what the agent shows, second by second, at a bounded cost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use talea::{Escaping, Format, Scraper};

use super::agent::Agent;
use super::source_error::{ErrorLog, log};
use crate::families;
use crate::page::{Feed, Recorded, now};
use crate::printable::printable;

/// Families with more series are not recorded: their history would take the room of all others.
const MOST_SERIES: usize = 10_000;
/// After a reading it waits so many times as long as that took, so that it takes 2 % of a core at most.
const REST: u32 = 50;

/// Reads an agent's page and adds it to a feed.
#[derive(Debug)]
pub(super) struct Recorder {
    agent: Agent,
    scraper: Scraper<Agent>,
    feed: Arc<Feed>,
    /// Families that are left out.
    large: BTreeSet<String>,
    rests_until: Option<Instant>,
    errors: ErrorLog,
}

impl Recorder {
    pub(super) fn new(agent: &Agent, feed: Arc<Feed>) -> Self {
        let (large, errors) = (BTreeSet::new(), ErrorLog::default());
        let scraper = scraper(agent);
        Self { agent: agent.clone(), scraper, feed, large, rests_until: None, errors }
    }

    /// Whether it records now, rather than rests.
    pub(super) fn is_due(&self) -> bool {
        self.rests_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Records what is shown now.
    pub(super) fn record(&mut self) {
        let (began, cpu_before) = (Instant::now(), cpu_time());
        let time = now();
        self.scraper.begin(|name| !self.large.contains(name));
        if self.leave_out_large() {
            self.scraper.begin(|name| !self.large.contains(name));
        }
        let ended = Instant::now();
        let mut page = Vec::new();
        while self.scraper.write_some(&mut page, usize::MAX) {}
        match families::read(&page) {
            Ok(families) => {
                let processes = self.agent.processes();
                let recorded = Recorded { time, began, ended, families, processes };
                if let Err(error) = self.feed.add(recorded) {
                    self.errors.write_seldom(&format!("{error:#}; memory has it"));
                }
            }
            Err(error) => self.errors.write_seldom(&format!("nothing is recorded: {error:#}")),
        }
        let took = cpu_time().saturating_sub(cpu_before);
        self.rests_until = Some(began + took * REST);
    }
}

impl Recorder {
    /// Leaves large families out from now on, and gives back the memory of what was read of them; whether
    /// there were any.
    fn leave_out_large(&mut self) -> bool {
        let families = self.scraper.page().parts().flat_map(|part| part.families());
        let large = families.filter(|family| family.series().nth(MOST_SERIES).is_some());
        let large: Vec<String> = large.map(|family| family.name().to_owned()).collect();
        for name in &large {
            let name = printable(name);
            log(&format!("{name} is not recorded: it has more than {MOST_SERIES} series"));
        }
        let has_large = !large.is_empty();
        self.large.extend(large);
        if has_large {
            self.scraper = scraper(&self.agent);
        }
        has_large
    }
}

/// The processor time of this thread: on a busy machine the clock would count the work of others.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn scraper(agent: &Agent) -> Scraper<Agent> {
    let mut scraper = Scraper::new(agent);
    scraper.format(Format::Protobuf, Escaping::AllowUtf8);
    scraper
}
