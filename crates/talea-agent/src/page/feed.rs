//! Readings, as browsers get them.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::json;
use talea_http::turns::{Client, Turn, Turns};
use tokio::sync::broadcast;

use super::clients::{Clients, clients, clients_grown};
use super::numbering::Numbering;
use super::point::{InFlight, Point};
use super::process::Process;
use crate::change::{self, Change, Changes, Quantity};
use crate::exits::{self, Reason};
use crate::history::{History, Stretch, Time};
use crate::live::{Kind, Mark, Moment, Reading, Step, Watch, unix_millis};
use talea_page::Family;
use talea_statistics::figures::measured;

/// How many events a browser may be behind, which takes memory for as many pages.
const BEHIND: usize = 8;
/// How many marks are kept, and how many processes that died.
const MARKS: usize = 200;
const DEAD: usize = 20;
/// The wall clock was set if it went on by so much more or less than the clock that is never set.
const CLOCK_SET: i64 = 2_000;
/// How many changes are sent.
const CHANGES: usize = 100;
/// How many faults are sent.
const FAULTS: usize = 50;
/// How long a request for the past waits for others, of which one is answered at a time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many wait at most.
const WAITING: usize = 64;

/// What a page says of its service that does not change.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Of which service it is, for people.
    pub title: String,
    /// The address of a trace, with `{trace_id}` in the place of its number.
    pub trace_url: Option<String>,
    /// The label that distinguishes regions, if there are several.
    pub region_label: Option<String>,
}

/// The data of a live page. Readings are added by one thread, and given to any number of browsers.
#[derive(Debug)]
pub struct Feed {
    about: About,
    /// Distinguishes this feed from those before and after it.
    run: String,
    history: Mutex<History>,
    state: Mutex<State>,
    events: broadcast::Sender<Event>,
    is_closed: AtomicBool,
    /// Reading the past takes a core.
    past: Turns,
}

#[derive(Debug, Default)]
struct State {
    numbering: Numbering,
    /// The numbers that all browsers have.
    announced: (usize, usize),
    /// The latest reading; `None` while nobody looks and no changes are looked for.
    last: Option<Moment>,
    /// `None` if no changes are looked for.
    changes: Option<Changes>,
    /// The changes as browsers have them.
    shown_changes: Vec<Change>,
    last_clients: Option<Clients>,
    watch: Watch,
    marks: VecDeque<Mark>,
    processes: Vec<Process>,
    /// The processes that ended since the latest reading, as it is known now, and how.
    ends: Vec<(Process, Reason)>,
    /// What is not shown, or not as it is defined, in words.
    faults: Vec<String>,
    /// What is wrong with the agent itself, in words.
    agent_faults: Vec<String>,
    /// The state of a study or load, as JSON.
    study: Option<serde_json::Value>,
    latest: Latest,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) unix_millis: i64,
    /// By the clock that is never set.
    pub(super) steady: Duration,
    pub(super) families: Arc<Vec<Family>>,
}

/// All that is known at one time.
#[derive(Debug)]
pub struct Recorded {
    pub time: Time,
    /// All values are of an instant between these.
    pub began: Instant,
    pub ended: Instant,
    pub families: Vec<Family>,
    pub processes: Vec<Process>,
}

/// A message to browsers.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// An event of the stream.
    Text(Bytes),
    /// A point, as an event of the stream, and the page that it is of.
    Point { text: Bytes, latest: Latest },
    /// The server stops.
    End,
}

/// An event of the stream: its name, and JSON.
pub(super) fn event(name: &str, data: &impl Serialize) -> Bytes {
    // JSON has no line breaks but those within texts, which are escaped.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

impl Feed {
    pub fn new(about: About, history: History) -> Arc<Self> {
        Arc::new(Self {
            about,
            run: format!("{:016x}", fastrand::u64(..)),
            history: Mutex::new(history),
            state: Mutex::default(),
            events: broadcast::Sender::new(BEHIND),
            is_closed: AtomicBool::new(false),
            past: Turns::new(1, WAITING),
        })
    }

    /// Adds a reading, and gives it to the browsers that look. An error says that the file of the history
    /// could not be written; memory has it.
    pub fn add(&self, recorded: Recorded) -> Result<()> {
        let Recorded { time, began, ended, families, processes } = recorded;
        let clients = clients(&families);
        let (written, agent_faults) = {
            let mut history = self.history();
            (history.add(time, &families), history.faults())
        };
        let mut state = self.state();
        if state.agent_faults != agent_faults {
            self.send(Event::Text(event("agent-faults", &agent_faults)));
            state.agent_faults = agent_faults;
        }
        let mut marks = state.watch.next(time.unix_millis, &families);
        let ends = std::mem::take(&mut state.ends);
        let ends: Vec<(Process, String)> = ends.into_iter().map(in_words).collect();
        explain(&mut marks, &ends, time.unix_millis);
        marks.extend(state.clock_set(time));
        state.note_marks(&marks);
        if let Some(changed) = state.note_processes(processes, &ends, time.unix_millis) {
            self.send(Event::Text(changed));
        }
        let Time { unix_millis, steady } = time;
        let reading = Reading { began, ended, unix_millis, families, processes: None };
        let is_watched = self.events.receiver_count() > 0;
        let is_wanted = is_watched || state.changes.is_some();
        let moment = is_wanted.then(|| Moment::of(&reading, state.last.as_ref()));
        let latest = Latest { unix_millis, steady, families: Arc::new(reading.families) };
        state.latest = latest.clone();
        let clients_before = std::mem::replace(&mut state.last_clients, clients.clone());
        let clients_grown = clients.map(|now| clients_grown(clients_before.as_ref(), &now));
        let before = std::mem::replace(&mut state.last, moment);
        if let (Some(before), Some(now)) = (before, &state.last) {
            let step = Step::between(&before, now);
            let events = state.changes.as_mut().map(|it| it.add(time.unix_millis, &step));
            let changed = events.into_iter().flatten().map(|it| mark_of(it, time.unix_millis));
            let changed: Vec<Mark> = changed.collect();
            state.note_marks(&changed);
            if !is_watched {
                return written;
            }
            let mut in_flight = InFlight::of(&before);
            let State { numbering, announced, .. } = &mut *state;
            let mut point = Point::of(
                time.unix_millis,
                (1, &step),
                clients_grown.as_ref(),
                numbering,
                &mut in_flight,
            );
            (point.new_endpoints, point.new_buckets) = numbering.since(*announced);
            *announced = numbering.len();
            point.marks = marks;
            point.marks.extend(changed);
            self.send(Event::Point { text: event("point", &point), latest });
            if let Some(text) = state.news_of_changes() {
                self.send(Event::Text(text));
            }
        }
        written
    }

    /// Looks for endpoints that become otherwise from now on. The service of a study does so on purpose.
    pub(crate) fn find_changes(&self) {
        self.state().changes = Some(Changes::default());
    }

    /// The endpoints that are otherwise than usual, and how often any became so.
    pub(crate) fn changes(&self) -> (Vec<Change>, [u64; Quantity::ALL.len()]) {
        let state = self.state();
        let changes = state.changes.as_ref();
        changes.map(|it| (it.current().to_vec(), it.begun())).unwrap_or_default()
    }

    /// Takes processes that ended before the next reading is added, or before one earlier.
    pub(crate) fn note_ends(&self, ends: Vec<(Process, Reason)>) {
        self.state().ends.extend(ends);
    }

    /// Says what is not shown, or not as it is defined. There may be many; a page has room for some.
    pub(crate) fn set_faults(&self, mut faults: Vec<String>) {
        faults.truncate(FAULTS);
        let mut state = self.state();
        if state.faults != faults {
            self.send(Event::Text(event("faults", &faults)));
            state.faults = faults;
        }
    }

    /// Says how far a study or load is.
    pub fn set_study(&self, study: &impl Serialize) {
        let study = serde_json::to_value(study).ok();
        let mut state = self.state();
        if state.study != study {
            self.send(Event::Text(event("study", &study)));
            state.study = study;
        }
    }

    /// Whether all that is recorded is written to a file; `None` if that is not wanted.
    pub(crate) fn is_in_file(&self) -> Option<bool> {
        self.history().is_in_file()
    }

    /// The bytes of the history's file that could not be read.
    pub(crate) fn lost_history_bytes(&self) -> u64 {
        self.history().lost_bytes()
    }

    pub(crate) fn history_bytes(&self) -> usize {
        self.history().bytes()
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.send(Event::End);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// The first event of a stream, and those that follow.
    pub(super) fn subscribe(&self) -> (Bytes, broadcast::Receiver<Event>) {
        let oldest = self.history().oldest();
        let [seconds, minutes] = self.history().kept();
        let state = self.state();
        // While nothing can be added in between.
        let events = self.events.subscribe();
        let (endpoints, buckets) = state.numbering.since((0, 0));
        let hello = json!({
            "version": 1,
            "run": self.run,
            "program": concat!("talea ", env!("CARGO_PKG_VERSION")),
            "title": self.about.title,
            "step": 1,
            "seconds": seconds.as_secs(),
            "minutes": minutes.as_secs(),
            "oldest": oldest,
            "now": state.latest.unix_millis,
            "endpoints": endpoints,
            "buckets": buckets,
            "processes": state.processes,
            "marks": state.marks,
            "changes": state.current_changes(),
            "faults": state.faults,
            "agentFaults": state.agent_faults,
            "study": state.study,
            "traceUrl": self.about.trace_url,
            "regionLabel": self.about.region_label,
            "history": true,
        });
        (event("hello", &hello), events)
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn latest(&self) -> Latest {
        self.state().latest.clone()
    }

    /// The ticks between two times, and the tick before.
    pub(super) fn between(&self, from: i64, to: i64) -> Stretch {
        self.history().between(from, to)
    }

    /// The region in which a process died last, as far as this feed saw it.
    pub(crate) fn last_death(&self) -> Option<String> {
        let state = self.state();
        // In the order of readings: the wall clock may be set back.
        let mut deaths = state.marks.iter().filter(|mark| mark.kind.is_death());
        deaths.next_back().map(|mark| mark.of.clone())
    }

    /// Waits for the turn to read the past, which one request has at a time, in turns among client addresses; `None`
    /// if others take too long, or too many wait.
    pub(crate) async fn turn(&self, client: IpAddr) -> Option<Turn> {
        let turn = self.past.turn(Client::new(Some(client), ""));
        tokio::time::timeout(PATIENCE, turn).await.ok()?.ok()
    }

    /// All seconds that are kept.
    pub(crate) fn seconds(&self) -> Stretch {
        self.history().last_seconds(Duration::MAX)
    }

    /// Makes points with the numbers that browsers have.
    pub(super) fn with_numbers<T>(&self, make: impl FnOnce(&mut Numbering) -> T) -> T {
        make(&mut self.state().numbering)
    }

    fn send(&self, event: Event) {
        // Nobody may look.
        let _ = self.events.send(event);
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_words((process, reason): (Process, Reason)) -> (Process, String) {
    let (kind, detail) = reason.labels();
    (process, exits::in_words(kind, &detail))
}

/// Says in the marks of deaths how processes ended. An end that is known later is a mark of its own.
fn explain(marks: &mut Vec<Mark>, ends: &[(Process, String)], unix_millis: i64) {
    for (process, reason) in ends {
        let text = format!("process {} {reason}", process.pid);
        let is_its = |mark: &&mut Mark| mark.kind.is_death() && mark.of == process.region;
        match marks.iter_mut().find(is_its) {
            Some(mark) => mark.add(&text),
            None => {
                marks.push(Mark::new(unix_millis, Kind::Died, process.region.clone(), text));
            }
        }
    }
}

/// A change as an event in the list of the page.
fn mark_of(event: change::Event, unix_millis: i64) -> Mark {
    let change::Event { change: Change { endpoint, since_unix_millis, text, .. }, has_begun } =
        event;
    match has_begun {
        true => Mark::new(since_unix_millis, Kind::Changed, endpoint, text),
        false => Mark::new(unix_millis, Kind::Back, endpoint, "is as usual again".to_owned()),
    }
}

impl State {
    /// A mark if the wall clock was set since the latest reading.
    fn clock_set(&self, now: Time) -> Option<Mark> {
        let Latest { unix_millis, steady, .. } = self.latest;
        let passed = now.steady.checked_sub(steady).filter(|_| unix_millis != 0)?;
        let ahead = now.unix_millis - unix_millis - passed.as_millis() as i64;
        if ahead.abs() < CLOCK_SET {
            return None;
        }
        let seconds = measured(ahead.unsigned_abs() as f64 / 1e3);
        let which = if ahead > 0 { "ahead" } else { "back" };
        let text = format!("the wall clock was set {which} by {seconds} s");
        Some(Mark::new(now.unix_millis, Kind::Clock, String::new(), text))
    }

    fn note_marks(&mut self, marks: &[Mark]) {
        self.marks.extend(marks.iter().cloned());
        let surplus = self.marks.len().saturating_sub(MARKS);
        self.marks.drain(..surplus);
    }

    /// The changes that a page has room for, the oldest first.
    fn current_changes(&self) -> Vec<Change> {
        let mut changes = self.changes.as_ref().map_or_else(Vec::new, |it| it.current().to_vec());
        changes.sort_by_key(|change| change.since_unix_millis);
        changes.truncate(CHANGES);
        changes
    }

    /// An event if the changes are others than browsers have.
    fn news_of_changes(&mut self) -> Option<Bytes> {
        let now = self.current_changes();
        if self.shown_changes == now {
            return None;
        }
        self.shown_changes = now;
        Some(event("changes", &self.shown_changes))
    }

    /// Takes the processes that live now: an event if they are others than before. One that is found again, as after
    /// its region could not be read, has not died.
    fn note_processes(
        &mut self,
        living: Vec<Process>,
        ends: &[(Process, String)],
        unix_millis: i64,
    ) -> Option<Bytes> {
        let is_known = |process: &Process| living.iter().any(|found| found.is(process));
        let died = self.processes.iter().any(|it| it.alive && !is_known(it));
        let is_new = |found: &&Process| !self.processes.iter().any(|it| it.alive && it.is(found));
        let started: Vec<Process> = living.iter().filter(is_new).cloned().collect();
        if !died && started.is_empty() && ends.is_empty() {
            return None;
        }
        for process in self.processes.iter_mut().filter(|it| it.alive && !is_known(it)) {
            (process.alive, process.died_unix_millis) = (false, Some(unix_millis));
        }
        for (ended, reason) in ends {
            let found = self.processes.iter_mut().find(|it| !it.alive && it.is(ended));
            found.into_iter().for_each(|it| it.reason = Some(reason.clone()));
        }
        self.processes.retain(|it| it.alive || !is_known(it));
        self.processes.extend(started);
        let dead = self.processes.iter().filter(|it| !it.alive).count();
        let mut surplus = dead.saturating_sub(DEAD);
        self.processes.retain(|process| {
            let is_surplus = !process.alive && surplus > 0;
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
        Some(event("processes", &self.processes))
    }
}

/// Now, on both clocks.
pub fn now() -> Time {
    let steady = clock_gettime(ClockId::Boottime).try_into().unwrap_or_default();
    Time { unix_millis: unix_millis(), steady }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::change::tests as tests_of_change;
    use crate::history::Extent;
    use talea_view::families::pages;

    #[test]
    fn a_process_is_the_same_after_its_region_was_unreadable_or_the_clock_was_set() {
        let process = |pid, started_unix_millis| Process {
            region: "shop".to_owned(),
            pid,
            started_boot_nanos: pid * 1_000_000_000,
            started_unix_millis,
            alive: true,
            died_unix_millis: None,
            reason: None,
        };
        let mut state = State::default();
        assert!(
            state.note_processes(vec![process(1, 1_000), process(2, 2_000)], &[], 3_000).is_some()
        );
        let set = vec![process(1, 3_601_000), process(2, 3_602_000)];
        assert_eq!(state.note_processes(set.clone(), &[], 3_604_000), None);
        assert!(state.note_processes(Vec::new(), &[], 3_605_000).is_some());
        assert!(state.processes.iter().all(|process| !process.alive));
        assert!(state.note_processes(set[..1].to_vec(), &[], 3_606_000).is_some());
        let found = state.processes.iter().map(|it| (it.pid, it.alive, it.died_unix_millis));
        assert_eq!(found.collect::<Vec<_>>(), [(2, false, Some(3_605_000)), (1, true, None)]);
    }

    /// A second of the pages of a service that becomes slow, as a feed gets it.
    pub(crate) fn add_second(feed: &Feed, second: u64, families: Vec<Family>) {
        static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        let steady = Duration::from_secs(second);
        let at = *BEGAN.get_or_init(Instant::now) + steady;
        let time = Time { unix_millis: 1_000_000 + second as i64 * 1_000, steady };
        let recorded = Recorded { time, began: at, ended: at, families, processes: Vec::new() };
        feed.add(recorded).unwrap();
    }

    #[test]
    fn a_change_is_found_while_nobody_looks_and_said_to_those_who_do() {
        for is_agent in [true, false] {
            let minute = Duration::from_secs(60);
            let history = History::new(Extent { seconds: minute, minutes: minute, bytes: 1 << 20 });
            let feed = Feed::new(About::default(), history);
            if is_agent {
                feed.find_changes();
            }
            let mut events = None;
            for (second, families) in (0..150).zip(tests_of_change::pages(120)) {
                if second == 140 {
                    let (hello, receiver) = feed.subscribe();
                    let hello = String::from_utf8(hello.to_vec()).unwrap();
                    assert_eq!(hello.contains("\"quantity\":\"slower\""), is_agent, "{hello}");
                    assert_eq!(hello.contains("\"kind\":\"changed\""), is_agent, "{hello}");
                    events = Some(receiver);
                }
                add_second(&feed, second, families);
                let Some(events) = &mut events else { continue };
                let mut names = Vec::new();
                while let Ok(event) = events.try_recv() {
                    match event {
                        Event::Point { .. } => names.push("point".to_owned()),
                        Event::Text(text) => {
                            let text = String::from_utf8(text.to_vec()).unwrap();
                            names.push(text.lines().next().unwrap_or_default().to_owned());
                        }
                        Event::End => {}
                    }
                }
                let is_first = second == 140;
                assert!(names.contains(&"point".to_owned()) || is_first && !is_agent, "{names:?}");
                assert!(names.contains(&"event: changes".to_owned()) == is_agent || !is_first);
            }
            assert_eq!(feed.changes().1, [u64::from(is_agent), 0, 0, 0]);
        }
    }

    #[test]
    fn a_wall_clock_that_was_set_is_a_mark_and_one_that_drifts_is_none() {
        let minute = Duration::from_secs(60);
        let history = History::new(Extent { seconds: minute, minutes: minute, bytes: 1 << 20 });
        let feed = Feed::new(About::default(), history);
        for (second, unix_millis) in
            [(1, 1_000_000), (2, 1_001_500), (3, 1_002_000), (4, 4_603_000), (9, 1_008_000)]
        {
            let time = Time { unix_millis, steady: Duration::from_secs(second) };
            let (began, ended) = (Instant::now(), Instant::now());
            let (families, processes) = (Vec::new(), Vec::new());
            feed.add(Recorded { time, began, ended, families, processes }).unwrap();
        }
        let marks = serde_json::to_value(&feed.state().marks).unwrap();
        let texts: Vec<&str> =
            marks.as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
        let expected = ["ahead by 3,600 s", "back by 3,600 s"];
        assert_eq!(texts, expected.map(|it| format!("the wall clock was set {it}")));
    }

    #[test]
    fn how_a_process_ended_is_said_with_its_death_also_if_it_is_known_later() {
        let minute = Duration::from_secs(60);
        let history = History::new(Extent { seconds: minute, minutes: minute, bytes: 1 << 20 });
        let feed = Feed::new(About::default(), history);
        let process = |pid| Process {
            region: "shop".to_owned(),
            pid,
            started_boot_nanos: pid,
            started_unix_millis: 1,
            alive: true,
            died_unix_millis: None,
            reason: None,
        };
        let add = |second: u64, living: &[Process], ends: Vec<(Process, Reason)>| {
            let processes =
                pages::gauge("talea_region_processes", &[("region=\"shop\"", living.len())]);
            feed.note_ends(ends);
            let time =
                Time { unix_millis: second as i64 * 1_000, steady: Duration::from_secs(second) };
            let (began, ended) = (Instant::now(), Instant::now());
            let (families, processes) = (pages::read(&processes), living.to_vec());
            feed.add(Recorded { time, began, ended, families, processes }).unwrap();
        };
        let all = [1, 2, 3].map(process);
        let killed = Reason::Ended(talea::outside::ProcessEnd::Signal(9));
        add(1, &all, Vec::new());
        add(2, &all[1..], vec![(process(1), killed)]);
        add(3, &all[2..], Vec::new());
        add(4, &all[2..], vec![(process(2), Reason::OutOfMemory)]);
        let state = feed.state();
        let marks = serde_json::to_value(&state.marks).unwrap();
        let texts: Vec<&str> =
            marks.as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
        let out_of_memory = "process 2 was killed by the system, since memory ran out";
        assert_eq!(
            texts,
            [
                "1 process found gone, 2 left; process 1 was killed by SIGKILL",
                "1 process found gone, 1 left",
                out_of_memory,
            ]
        );
        let reasons: Vec<(u64, Option<&str>)> =
            state.processes.iter().map(|it| (it.pid, it.reason.as_deref())).collect();
        let of_memory = out_of_memory.strip_prefix("process 2 ");
        assert_eq!(reasons, [(1, Some("was killed by SIGKILL")), (2, of_memory), (3, None)]);
    }
}
