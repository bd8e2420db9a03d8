//! Everything at once, in front of one real agent: writers that are killed, stopped and started in
//! turns of two versions, masters that die before their children, a region that is damaged word by
//! word under its writers, a region on a tmpfs that is full, and clients that mean harm.
//!
//! By round: the agent shows exactly the counts that the writers of the undamaged regions
//! acknowledged, and at most a batch of 64 more of each one that was killed; the agent has answered
//! all the time; nothing crashed or hung; and the agent holds no more descriptors than before. At the end: it
//! holds no more memory than in the beginning, but for a bound.
//!
//! `TALEA_MINUTES` says for how long it goes on; without it, for some rounds. In a binary of its
//! own, since it forks and needs the whole machine.
#![cfg(target_os = "linux")]

mod everything;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use everything::page::{Page, ProcessUsage, ask, scrape};
use everything::writers::{BATCH, Role, Writer};
use everything::{clients, writers};

use crate::support::agent::Agent;
use crate::support::{End, wait_for};

/// Rounds without `TALEA_MINUTES`.
const ROUNDS: u64 = 6;
/// Kills of writers of the undamaged region in a round.
const KILLS: u64 = 6;
/// By how much the agent's memory may be larger in the last quarter than in the first, in bytes:
/// what its allocator may keep of pages that were made at the same time.
const GROWTH: u64 = 32 << 20;
/// Of a tmpfs that is full before the region on it is. Such a region has backed 428 KiB when all of its
/// records are in use, if its writer only ever ran on one CPU, and more if on several.
const SMALL: &str = "size=360k";
/// The most that a region backs at once, where less is not tried if this is refused, in bytes.
const MORE: usize = 16 << 10;

/// Not a claim of its own: the other test starts it as processes.
#[test]
fn a_writer_that_counts_on_request() {
    writers::write();
}

#[test]
fn whatever_happens_at_once_nothing_is_lost_and_nothing_is_left() {
    const ALONE: &str = "TALEA_TEST_OWN_MOUNTS";
    if std::env::var_os(ALONE).is_some() {
        return Stage::new(true).play();
    }
    // With mounts of its own, where any user may have a small tmpfs.
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.arg("--mount");
    let may = Command::new("unshare").args(command.get_args()).arg("true").status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("without a full tmpfs: unshare cannot give mounts of its own here");
        return Stage::new(false).play();
    }
    let test = "whatever_happens_at_once_nothing_is_lost_and_nothing_is_left";
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    assert!(command.env(ALONE, "1").status().unwrap().success());
}

/// The samples that count the same, in an undamaged region.
const COUNTED: [&str; 3] = ["orders_total", "users_total", "sizes_count"];

/// An undamaged region, and what was counted in it.
struct Exact {
    path: PathBuf,
    name: &'static str,
    /// The page at the last time when nobody counted.
    shown: [u64; COUNTED.len()],
    /// How much was acknowledged since, and before.
    acknowledged: Arc<AtomicU64>,
    acknowledged_before: u64,
    /// How many writers were killed since.
    kills: u64,
}

impl Exact {
    fn new(path: PathBuf, name: &'static str) -> Self {
        let acknowledged = Arc::default();
        Self { path, name, shown: [0; 3], acknowledged, acknowledged_before: 0, kills: 0 }
    }

    fn start(&self, version: u64, role: Role) -> Writer {
        Writer::start(&self.path, version, role, &self.acknowledged)
    }

    fn kill(&mut self, writer: Writer) {
        writer.kill();
        self.kills += 1;
    }

    /// That a page, taken when nobody counts, shows what was acknowledged.
    fn assert_all(&mut self, page: &Page) {
        let acknowledged = self.acknowledged.load(SeqCst);
        let more = acknowledged - self.acknowledged_before;
        for (sample, shown) in COUNTED.into_iter().zip(&mut self.shown) {
            let now = page.count(sample, self.name);
            let expected = *shown + more..=*shown + more + self.kills * BATCH;
            assert!(
                expected.contains(&now),
                "{sample} of {}: {now}, expected {expected:?}",
                self.name
            );
            *shown = now;
        }
        assert_eq!(page.count("open", self.name), 0, "what dead processes had in flight");
        (self.acknowledged_before, self.kills) = (acknowledged, 0);
    }
}

struct Stage {
    agent: Agent,
    good: Exact,
    full: Option<Exact>,
    bad: PathBuf,
    random: fastrand::Rng,
    /// Other descriptors of the agent than those of regions, before anybody came.
    others: usize,
    small: Option<Mount>,
    place: tempfile::TempDir,
}

struct Mount(PathBuf);

impl Mount {
    fn new(at: PathBuf) -> Self {
        fs::create_dir(&at).unwrap();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", SMALL, "none"]).arg(&at).status();
        assert!(mount.unwrap().success());
        Self(at)
    }

    /// That the system refuses memory to the region, and not only the region to its writer.
    fn assert_full(&self) {
        let more = self.0.join("more");
        let written = fs::write(&more, vec![1; MORE]);
        fs::remove_file(more).unwrap();
        assert_eq!(written.unwrap_err().kind(), ErrorKind::StorageFull);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

impl Stage {
    fn new(has_mounts: bool) -> Self {
        talea_load::descriptors::ensure(500).unwrap();
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let small = has_mounts.then(|| Mount::new(place.path().join("small")));
        let mut directories = vec!["--dir".as_ref(), place.path().as_os_str()];
        if let Some(Mount(small)) = &small {
            directories.extend(["--dir".as_ref(), small.as_os_str()]);
        }
        let agent = Agent::start(directories);
        let [good, bad] = ["good.talea", "bad.talea"].map(|name| place.path().join(name));
        let full = small.as_ref().map(|Mount(small)| Exact::new(small.join("full.talea"), "full"));
        let others = ProcessUsage::of(agent.pid(), place.path()).others;
        let random = fastrand::Rng::with_seed(1);
        Self { agent, good: Exact::new(good, "good"), full, bad, random, others, small, place }
    }

    fn play(mut self) {
        let minutes = std::env::var("TALEA_MINUTES").ok().map(|text| text.parse::<f64>().unwrap());
        let began = Instant::now();
        let is_over = |round| match minutes {
            // Quarters want four rounds.
            Some(minutes) => {
                round >= 4 && began.elapsed() > Duration::from_secs_f64(60.0 * minutes)
            }
            None => round >= ROUNDS,
        };
        let (mut memory, mut kills) = (Vec::new(), 0);
        let mut answers = Answers::default();
        for round in (0..).take_while(|round| !is_over(*round)) {
            kills += self.everything_at_once(round, &mut answers);
            memory.push(self.nothing_is_lost_or_left(1 + round % 2).memory);
        }
        let quarter = |n: usize| {
            let of_it = memory.len() * n / 4..(memory.len() * (n + 1) / 4).max(1);
            memory[of_it].iter().max().copied().unwrap_or_default()
        };
        println!(
            "{} rounds in {:?}, {kills} kills, {} counted, {answers:?}; by quarters the agent had at \
             most {:?} KiB",
            memory.len(),
            began.elapsed(),
            self.good.acknowledged.load(SeqCst),
            [0, 1, 2, 3].map(|n| quarter(n) >> 10),
        );
        self.assert_quiet(began.elapsed().as_secs() / 60);
        assert!(quarter(3) <= quarter(0) + GROWTH, "the agent's memory grew: {memory:?}");
    }

    /// A round of all of it; how many processes were killed.
    fn everything_at_once(&mut self, round: u64, answers: &mut Answers) -> u64 {
        let is_over = AtomicBool::new(false);
        let address = self.agent.address.clone();
        let (floor, acknowledged) = (self.good.shown[0], self.good.acknowledged.clone());
        let before = self.good.acknowledged_before;
        let bad = self.bad.clone();
        let seed = self.random.u64(..);
        scope(|scope| {
            let end = End(&is_over);
            let is_over = &is_over;
            let address = address.as_str();
            scope.spawn(|| clients::over_http1(address, is_over));
            scope.spawn(|| clients::over_http2(address, round % 2 == 1, is_over));
            scope.spawn(|| damage(&bad, seed, is_over));
            let watch = scope.spawn(move || {
                watch(address, || floor + acknowledged.load(SeqCst) - before, is_over)
            });
            let kills = self.lives_and_deaths(round);
            drop(end);
            answers.add(&watch.join().unwrap());
            kills
        })
    }

    /// Writers that come, go and are killed.
    fn lives_and_deaths(&mut self, round: u64) -> u64 {
        let version = |n: u64| 1 + (round + n) % 2;
        let nobody: Arc<AtomicU64> = Arc::default();
        let mut good = [0, 1].map(|n| self.good.start(version(n), Role::Counts));
        let mut master = self.good.start(version(0), Role::Forks);
        // One version, as there is no room for another's definitions.
        let full = self.full.as_ref().map(|full| full.start(1, Role::Fills));
        let mut bad = [0, 1].map(|n| Writer::start(&self.bad, version(n), Role::Counts, &nobody));
        for kill in 0..KILLS {
            // Some die while they start.
            let victim = &mut good[kill as usize % 2];
            if kill % 3 > 0 {
                assert!(victim.is_ready());
            }
            sleep(Duration::from_micros(self.random.u64(..30_000)));
            let next = self.good.start(version(kill), Role::Counts);
            let killed = std::mem::replace(victim, next);
            self.good.kill(killed);
            bad.iter_mut().for_each(Writer::assert_runs);
        }
        // It dies before its children.
        master.has_forked();
        self.good.kill(master);
        if let (Some(full), Some(mut writer)) = (&mut self.full, full) {
            assert!(writer.is_ready());
            writer.was_refused();
            sleep(Duration::from_micros(self.random.u64(..30_000)));
            let mut next = full.start(1, Role::Fills);
            full.kill(writer);
            assert!(next.is_ready());
            next.stop();
        }
        for mut writer in good {
            assert!(writer.is_ready());
            writer.stop();
        }
        let [mut stays, killed] = bad;
        stays.is_ready();
        stays.stop();
        killed.kill();
        KILLS + 2 + u64::from(self.full.is_some())
    }

    /// Once nobody counts and only one process of a version has the good region open.
    fn nothing_is_lost_or_left(&mut self, version: u64) -> ProcessUsage {
        let mut alone = self.good.start(version, Role::Waits);
        assert!(alone.is_ready());
        // A child that ends closes its output before it lets go of its lock.
        let page = self.page(|page| page.sum("talea_region_processes", "good") == Some(1.0));
        assert_eq!(page.help("good_orders"), format!("Of version {version}."), "{}", page.text);
        self.good.assert_all(&page);
        alone.stop();
        if let Some(full) = &mut self.full {
            full.assert_all(&page);
            let overflow = "full_users_total{region=\"full\",otel_metric_overflow=\"true\"}";
            assert!(page.text.contains(overflow), "{}", page.text);
        }
        self.small.iter().for_each(Mount::assert_full);
        assert_eq!(ask(&self.agent.address, "/readyz").status, 200);
        // The regions that are there, and of its connections the one that asked.
        let place = self.place.path();
        let files = regions_in(place) + regions_in(&place.join("small"));
        let others = self.others + 1;
        ProcessUsage::settled(self.agent.pid(), place, |now| {
            now.files <= files && now.others <= others
        })
    }

    /// A page, as soon as there is one that is as expected.
    fn page(&self, is: impl Fn(&Page) -> bool) -> Page {
        wait_for(|| match scrape(&self.agent.address) {
            Some(page) if is(&page) => Ok(page),
            page => Err(page.map_or(String::new(), |page| page.text)),
        })
    }

    /// That the same trouble is not written about all the time.
    fn assert_quiet(&self, minutes: u64) {
        let mut times: BTreeMap<String, u64> = BTreeMap::new();
        for line in self.agent.stderr().into_iter().filter(|line| line.contains("left out")) {
            *times.entry(line).or_default() += 1;
        }
        let most = times.values().max().copied().unwrap_or_default();
        assert!(most <= 1 + minutes, "{times:#?}");
    }
}

/// How many files of a folder have the name of a region.
fn regions_in(folder: &Path) -> usize {
    let names = fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.contains(".talea") && !name.contains("stale")).count()
}

/// How often the agent answered so.
#[derive(Debug, Default)]
struct Answers {
    pages: u64,
    refused: u64,
    healthy: u64,
}

impl Answers {
    fn add(&mut self, more: &Self) {
        self.pages += more.pages;
        self.refused += more.refused;
        self.healthy += more.healthy;
    }
}

/// Asks the agent until it is over. It always answers, no count ever falls, and what was
/// acknowledged before a scrape is in it.
fn watch(address: &str, at_least: impl Fn() -> u64, is_over: &AtomicBool) -> Answers {
    let mut answers = Answers::default();
    let mut before: BTreeMap<&str, u64> = BTreeMap::new();
    while !is_over.load(SeqCst) {
        let health = ask(address, "/healthz");
        assert_eq!(health.status, 200, "{}", health.text);
        answers.healthy += 1;
        let acknowledged = at_least();
        let Some(page) = scrape(address) else {
            answers.refused += 1;
            continue;
        };
        answers.pages += 1;
        // In the first round it may not be there yet.
        if acknowledged == 0 {
            continue;
        }
        for sample in COUNTED {
            let now = page.count(sample, "good");
            let was = before.insert(sample, now).unwrap_or(0);
            assert!(now >= was, "{sample} fell from {was} to {now}");
        }
        let now = before["orders_total"];
        assert!(now >= acknowledged, "{acknowledged} were acknowledged, and {now} are shown");
    }
    answers
}

/// Writes at random into words of a region until it is over. The first one stays: a file without it is
/// somebody else's, which a writer refuses to open.
fn damage(path: &Path, seed: u64, is_over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !is_over.load(SeqCst) {
        sleep(Duration::from_millis(1));
        // It may just be moved aside.
        let Ok(bytes) = fs::read(path) else { continue };
        let Ok(file) = fs::OpenOptions::new().write(true).open(path) else { continue };
        let words = bytes.chunks_exact(8).enumerate().skip(1).filter(|(_, word)| *word != [0; 8]);
        let used: Vec<usize> = words.map(|(at, _)| at).collect();
        for _ in 0..4 {
            let Some(&at) = random.choice(&used) else { break };
            let before = u64::from_le_bytes(bytes[at * 8..][..8].try_into().unwrap());
            let after = match random.u32(..5) {
                0 => before ^ 1 << random.u32(..64),
                1 => random.u64(..),
                2 => 0,
                3 => random.u64(..bytes.len() as u64),
                _ => before.wrapping_add(random.u64(..1 << 20)),
            };
            let _ = file.write_all_at(&after.to_le_bytes(), at as u64 * 8);
        }
    }
}
