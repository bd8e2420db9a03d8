//! Processes that started or died between readings, by the agent's own metrics, or a service's.

use std::collections::BTreeMap;

use serde::Serialize;

use super::regions::{ANSWERED, CREATED, KnownRegions, UP, by_region};
use talea_page::Family;

/// How many processes of a region live.
pub const PROCESSES: &str = "talea_region_processes";
pub(crate) const LAST_DEATH: &str = "talea_region_last_death_timestamp_seconds";
/// How processes of a region ended.
pub(crate) const ENDS: &str = "talea_region_process_ends_total";
/// A service's own, where there is no agent.
const STARTED: &str = "process_start_time_seconds";

/// The families that marks and regions are found in.
pub fn is_of_marks(name: &str) -> bool {
    [PROCESSES, LAST_DEATH, STARTED, UP, ANSWERED, CREATED].contains(&name)
}

/// A moment that explains what is seen after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    #[serde(rename = "t")]
    pub(crate) unix_millis: i64,
    pub(crate) kind: Kind,
    /// The region, or the endpoint.
    pub(crate) of: String,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Started,
    Died,
    /// One died and another started.
    Replaced,
    /// An endpoint is otherwise than usual.
    Changed,
    /// It is as usual again.
    Back,
    /// The wall clock was set.
    Clock,
}

impl Kind {
    /// Whether a process died.
    pub(crate) fn is_death(self) -> bool {
        matches!(self, Self::Died | Self::Replaced)
    }
}

impl Mark {
    /// Says more of it.
    pub(crate) fn add(&mut self, text: &str) {
        self.text.push_str("; ");
        self.text.push_str(text);
    }

    pub(crate) fn new(unix_millis: i64, kind: Kind, of: String, text: String) -> Self {
        Self { unix_millis, kind, of, text }
    }
}

/// The processes as they were found at the latest reading.
#[derive(Clone, Debug, Default)]
pub struct Watch(Option<Found>);

#[derive(Clone, Debug, Default)]
struct Found {
    /// How many processes live, by region.
    processes: BTreeMap<String, f64>,
    last_deaths: BTreeMap<String, f64>,
    regions: KnownRegions,
    started: Option<f64>,
}

impl Found {
    fn of(unix_millis: i64, families: &[Family], before: Option<&Self>) -> Self {
        Self {
            processes: by_region(families, PROCESSES),
            last_deaths: by_region(families, LAST_DEATH),
            regions: KnownRegions::of(families, unix_millis, before.map(|it| &it.regions)),
            started: by_region(families, STARTED).into_values().reduce(f64::max),
        }
    }
}

/// Whether the agent knows a region and cannot read it.
fn is_unreadable(families: &[Family], region: &str) -> bool {
    by_region(families, UP).get(region) == Some(&0.0)
}

impl Watch {
    /// The marks since the latest reading, of which this is the next one.
    pub(crate) fn next(&mut self, unix_millis: i64, families: &[Family]) -> Vec<Mark> {
        let mut now = Found::of(unix_millis, families, self.0.as_ref());
        let before = self.0.as_ref().map(|before| &before.processes);
        for (region, lived) in
            before.into_iter().flatten().filter(|it| is_unreadable(families, it.0))
        {
            // How many live is not known; the next one that is known is compared with what was.
            now.processes.entry(region.clone()).or_insert(*lived);
        }
        let Some(before) = self.0.replace(now.clone()) else { return Vec::new() };
        let mut marks = Vec::new();
        for (region, living) in &now.processes {
            let lived = match before.processes.get(region) {
                Some(lived) => *lived,
                // It was made earlier, and was found now, as one whose file got another name.
                None if now.regions.old.have(region) => continue,
                None => 0.0,
            };
            let death = now.last_deaths.get(region);
            let died = death.filter(|death| before.last_deaths.get(region) != Some(death));
            let (kind, at, text) = match died {
                Some(_) if *living >= lived => (
                    Kind::Replaced,
                    died,
                    "a process was found gone, and another started".to_owned(),
                ),
                Some(_) => (Kind::Died, died, left(lived, *living)),
                // It may have ended while the agent was not looking.
                None if *living < lived => (Kind::Died, None, left(lived, *living)),
                None if *living > lived => {
                    (Kind::Started, None, format!("{} started", processes(living - lived)))
                }
                None => continue,
            };
            let at = at.map_or(unix_millis, |seconds| (seconds * 1e3) as i64);
            marks.push(Mark { unix_millis: at, kind, of: region.clone(), text });
        }
        if now.processes.is_empty() {
            let started =
                now.started.filter(|now| before.started.is_some_and(|it| now - it > 0.05));
            marks.extend(started.map(|seconds| Mark {
                unix_millis: (seconds * 1e3) as i64,
                kind: Kind::Started,
                of: String::new(),
                text: "a process started".to_owned(),
            }));
        }
        marks
    }
}

fn left(lived: f64, living: f64) -> String {
    format!("{} found gone, {living} left", processes(lived - living))
}

fn processes(number: f64) -> String {
    if number == 1.0 { "1 process".to_owned() } else { format!("{number} processes") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_view::families::pages::{self, gauge};

    const SHOP: &str = "region=\"shop\"";

    fn page(processes: u32, last_death: Option<u32>) -> Vec<Family> {
        let death = last_death.map(|seconds| gauge(LAST_DEATH, &[(SHOP, seconds)]));
        pages::read(&(gauge(PROCESSES, &[(SHOP, processes)]) + &death.unwrap_or_default()))
    }

    #[test]
    fn each_death_and_each_start_is_marked_once() {
        let mut watch = Watch::default();
        let mut next = |at, processes, last_death| {
            let marks = watch.next(at, &page(processes, last_death));
            assert!(marks.iter().all(|mark| mark.of == "shop"));
            marks.iter().map(|mark| (mark.unix_millis, mark.kind, mark.text.clone())).next()
        };
        let none = None;
        assert_eq!(next(1_000, 2, None), none, "they were there before");
        assert_eq!(next(2_000, 2, None), none);
        let text = "1 process found gone, 1 left".to_owned();
        assert_eq!(next(3_000, 1, Some(2)), Some((2_000, Kind::Died, text)));
        assert_eq!(next(4_000, 1, Some(2)), none);
        let text = "2 processes started".to_owned();
        assert_eq!(next(5_000, 3, Some(2)), Some((5_000, Kind::Started, text)));
        let text = "a process was found gone, and another started".to_owned();
        assert_eq!(next(7_000, 3, Some(6)), Some((6_000, Kind::Replaced, text)));
    }

    #[test]
    fn processes_of_a_region_that_is_found_late_did_not_start_then() {
        let made = |created: u32| gauge(CREATED, &[("region=\"found\"", created)]);
        for (created, starts) in [(1, 0), (3, 1)] {
            let mut watch = Watch::default();
            watch.next(2_000, &page(1, None));
            let page = made(created) + &gauge(PROCESSES, &[(SHOP, 1), ("region=\"found\"", 4)]);
            assert_eq!(watch.next(3_000, &pages::read(&page)).len(), starts, "{created}");
        }
    }

    #[test]
    fn a_region_that_cannot_be_read_for_a_while_marks_what_changed_meanwhile() {
        for (processes, last_death, kind) in [
            (2, None, None),
            (3, None, Some(Kind::Started)),
            (1, Some(4), Some(Kind::Died)),
            (2, Some(4), Some(Kind::Replaced)),
        ] {
            let mut watch = Watch::default();
            assert_eq!(watch.next(1_000, &page(2, None)), []);
            let unreadable = pages::read(&gauge(UP, &[(SHOP, 0)]));
            assert_eq!(watch.next(2_000, &unreadable), []);
            assert_eq!(watch.next(3_000, &unreadable), []);
            let marks = watch.next(4_000, &page(processes, last_death));
            let kinds: Vec<Kind> = marks.iter().map(|mark| mark.kind).collect();
            assert_eq!(kinds, Vec::from_iter(kind), "{processes} {last_death:?}");
        }
    }
}
