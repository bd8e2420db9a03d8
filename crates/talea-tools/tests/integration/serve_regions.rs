//! `talea serve` among many regions, of which some come, go, or are none: each fault is reported
//! once, and all that the others have is served at each scrape.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use talea::{Config, Counter, Gauge, Histogram, Opts, Registry, Seconds};
use talea_parse::{Severity, Syntax, check, families};

use crate::support::agent::Agent;
use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::{End, TALEA, sample, until};

/// Somebody else.
const NOBODY: u32 = 65_534;

fn region(path: &Path, n: u64, series: u64) -> Registry {
    let registry = Registry::open_with(path, Config::with_len(1 << 20)).unwrap();
    let orders = registry.family::<Counter>(Opts::new("orders", "Orders."), &["customer"]).unwrap();
    for one in 0..series {
        orders.with_values(&[one.to_string()]).add(n * 10_000 + one);
    }
    registry
}

/// By region, its lines of that family.
fn orders(page: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut orders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in page.lines() {
        if let Some((region, rest)) =
            line.strip_prefix("orders_total{region=\"").and_then(|line| line.split_once("\","))
        {
            orders.entry(region).or_default().push(rest);
        }
    }
    orders
}

/// So many regions of so many series, the values of which follow from both.
fn fill(place: &RegionFolder, regions: u64, series: u64) -> Vec<Registry> {
    (0..regions).map(|n| region(&place.at(&format!("r{n}.talea")), n, series)).collect()
}

/// That all of some regions' series are there, each with its value.
#[track_caller]
fn assert_all_of(page: &str, regions: impl IntoIterator<Item = u64>, series: u64) {
    let found = orders(page);
    for n in regions {
        let found = found.get(format!("r{n}").as_str()).map_or(&[][..], Vec::as_slice);
        assert_eq!(found.len() as u64, series, "r{n}");
        for (one, found) in (0..).zip(found) {
            assert_eq!(*found, format!("customer=\"{one}\"}} {}", n * 10_000 + one), "r{n}");
        }
    }
}

fn agent_value(page: &str, metric: &str, region: &str) -> Option<u64> {
    sample(page, &format!("talea_agent_region_{metric}{{region=\"{region}\"}}"))
}

/// A region with a family that the agent has too, with a label; and the agent.
fn with_a_conflict(place: &RegionFolder, series: u64) -> (Registry, Agent) {
    let registry = region(&place.region(), 1, series);
    let up: Gauge = registry.register(Opts::new("talea_agent_region_up", "Ours.")).unwrap();
    up.set(7);
    let agent = Agent::start([place.region()]);
    // A family left out of a page is counted in the next.
    agent.scrape();
    (registry, agent)
}

#[test]
fn a_family_left_out_of_a_single_region_is_reported_and_counted_by_its_name() {
    let place = RegionFolder::new();
    let (_registry, agent) = with_a_conflict(&place, 1);
    let page = agent.scrape();
    assert_eq!(agent_value(&page, "conflicts", "shop"), Some(1), "{page}");
    let lines = agent.stderr();
    let expected = "talea serve: shop: the family talea_agent_region_up is left out";
    assert!(lines.iter().any(|line| line.starts_with(expected)), "{lines:?}");
    assert!(lines.iter().all(|line| !line.starts_with("talea serve: :")), "{lines:?}");
}

#[test]
fn a_scrape_of_some_families_changes_nothing_that_is_said_of_all() {
    let place = RegionFolder::new();
    let (_registry, agent) = with_a_conflict(&place, 5);
    let said = |page: &str| ["conflicts", "series"].map(|of| agent_value(page, of, "shop"));
    let before = said(&agent.scrape());
    assert_eq!(before[0], Some(1));
    assert!(before[1] > Some(5), "{before:?}");
    let path = "/metrics?name[]=talea_agent_region_series&name[]=talea_agent_region_conflicts";
    for _ in 0..2 {
        let some = agent.get(path, &[]).text();
        assert_eq!(said(&some), before, "{some}");
    }
    assert_eq!(said(&agent.scrape()), before);
}

#[test]
fn a_directory_is_ready_unless_all_of_its_regions_are_refused() {
    let place = RegionFolder::new();
    let agent = place.agent();
    let ready = || {
        let answer = agent.get("/readyz", &[]);
        (answer.status, answer.text())
    };
    assert_eq!(ready(), (200, "ready\n".to_owned()), "services may come later");
    fs::write(place.at("bad.talea"), [7; 8192]).unwrap();
    let (status, text) = ready();
    assert_eq!(status, 503, "{text}");
    assert!(text.starts_with("bad: "), "{text}");
    let _registry = region(&place.region(), 1, 1);
    let (status, text) = ready();
    assert_eq!(status, 200, "{text}");
    assert!(text.starts_with("ready\nbad: "), "{text}");
}

#[test]
fn services_of_one_metric_with_other_buckets_are_all_shown() {
    let place = RegionFolder::new();
    let shop = |name: &str, buckets: &[f64]| {
        let registry = Registry::open_with(place.at(name), Config::with_len(1 << 20)).unwrap();
        let opts = Opts::new("http_request_duration", "T.").buckets(buckets);
        let labels = ["method", "route"];
        let took = registry.family::<Histogram<Seconds>>(opts, &labels).unwrap();
        took.with_values(&["GET", "/"]).observe(Duration::from_millis(250));
        registry
    };
    let agent = place.agent();
    let _old = shop("old.talea", &[0.1, 1.0]);
    let count = |page: &str, region: &str| {
        let of_it = format!("{{region=\"{region}\",method=\"GET\",route=\"/\"}}");
        sample(page, &format!("http_request_duration_seconds_count{of_it}"))
    };
    assert_eq!(count(&agent.scrape(), "old"), Some(1));
    // One that starts later takes nothing from it.
    let _new = shop("new.talea", &[0.2, 0.3, 5.0]);
    agent.scrape();
    let page = agent.scrape();
    assert_eq!((count(&page, "old"), count(&page, "new")), (Some(1), Some(1)), "{page}");
    for region in ["old", "new"] {
        assert_eq!(agent_value(&page, "conflicts", region), Some(0), "{page}");
    }
    let faults = check(&page, Syntax::Text);
    let violations = faults.iter().filter(|found| found.severity == Severity::Violation);
    assert_eq!(violations.count(), 0, "{faults:?}");
}

#[test]
fn a_hundred_regions_of_a_thousand_series_are_one_page() {
    const REGIONS: u64 = 100;
    const SERIES: u64 = 1_000;
    let place = RegionFolder::new();
    let _regions = fill(&place, REGIONS, SERIES);
    let agent = place.agent();
    let mut times = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let page = agent.scrape();
        times.push(began.elapsed());
        assert_all_of(&page, 0..REGIONS, SERIES);
        assert_eq!(orders(&page).len() as u64, REGIONS);
        for n in 0..REGIONS {
            let region = format!("r{n}");
            assert_eq!(agent_value(&page, "up", &region), Some(1), "{region}");
            assert_eq!(agent_value(&page, "series", &region), Some(SERIES + 1), "{region}");
        }
    }
    times.sort();
    println!("{REGIONS} regions of {SERIES} series are scraped in {:?}", times[1]);
    let page = agent.scrape();
    families(&page, Syntax::Text).unwrap();
    let faults = check(&page, Syntax::Text);
    let faults: Vec<_> = faults.iter().filter(|one| one.severity == Severity::Violation).collect();
    assert!(faults.is_empty(), "{faults:?}");
}

/// Scrapes again and again, and asserts that some regions are whole each time, while
/// something else is done.
fn while_scraped(agent: &Agent, regions: u64, series: u64, act: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let scrapes = scope.spawn(|| {
            let mut scrapes = 0;
            while !is_over.load(Ordering::SeqCst) {
                assert_all_of(&agent.scrape(), 0..regions, series);
                scrapes += 1;
            }
            scrapes
        });
        let end = End(&is_over);
        act();
        drop(end);
        assert!(scrapes.join().unwrap() > 0);
    });
}

#[test]
fn regions_that_come_go_or_are_replaced_are_served_as_they_are() {
    let place = RegionFolder::new();
    let _stay = fill(&place, 4, 50);
    let agent = place.agent();
    let goes = |name: &str| {
        let page = agent.scrape();
        assert!(
            !orders(&page).contains_key(name) && agent_value(&page, "up", name).is_none(),
            "{page}"
        );
    };
    while_scraped(&agent, 4, 50, || {
        for round in 0..20 {
            let comes = place.at("comes.talea");
            let first = region(&comes, 7, 3);
            let page = agent.scrape();
            assert_eq!(orders(&page)["comes"].len(), 3);
            assert_eq!(agent_value(&page, "up", "comes"), Some(1));
            // Another over it, as if its service was started anew.
            let second = region(&place.at("new"), 8, 5);
            fs::rename(place.at("new"), &comes).unwrap();
            let page = agent.scrape();
            assert_eq!(orders(&page)["comes"].len(), 5, "{round}");
            assert!(orders(&page)["comes"][0].ends_with(" 80000"));
            drop((first, second));
            fs::remove_file(&comes).unwrap();
            goes("comes");
        }
    });
    said(&agent, "comes: gone", 20);
}

/// The lines on standard error that have a part, of which there are so many and no more: all was
/// said before the agent answered, and takes a moment to come.
#[track_caller]
fn said(agent: &Agent, part: &str, times: usize) -> Vec<String> {
    let lines = about(agent, part, times);
    assert_eq!(lines.len(), times, "{part:?}: {lines:?}");
    lines
}

/// Likewise, with at least so many of them.
fn about(agent: &Agent, part: &str, times: usize) -> Vec<String> {
    let lines =
        || -> Vec<_> { agent.stderr().into_iter().filter(|line| line.contains(part)).collect() };
    until(part, || lines().len() >= times);
    // One that is too many takes a moment too.
    thread::sleep(Duration::from_millis(10));
    lines()
}

/// A file that is no region, or none that may be read: how it is made at a path, and the report of
/// it.
type Fault = (&'static str, fn(&Path, &RegionFolder), &'static str);

fn copy(path: &Path, place: &RegionFolder) {
    fs::copy(place.at("r0.talea"), path).unwrap();
}

/// A copy with another word.
fn with_word(path: &Path, place: &RegionFolder, at: u64, word: u64) {
    copy(path, place);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&word.to_le_bytes(), at).unwrap();
}

/// A copy that these users may use.
fn with_mode(path: &Path, place: &RegionFolder, mode: u32) {
    copy(path, place);
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

/// A file of which all is in use by its header, and nothing else has memory.
fn write_holes(path: &Path, place: &RegionFolder) {
    let mut header = vec![0; 4096];
    let from = OpenOptions::new().read(true).open(place.at("r0.talea")).unwrap();
    from.read_exact_at(&mut header, 0).unwrap();
    for mark in [ARENA, ARENA + 8] {
        header[mark..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    }
    write(path, &header);
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(from.metadata().unwrap().len()).unwrap();
}

fn noise() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| random.u8(..)).take(1 << 20).collect()
}

/// Where the header says how much of the arena is in use and has memory, and how much of the
/// planes' part is.
const ARENA: usize = 1024 + 2 * 64;

fn faults() -> Vec<Fault> {
    vec![
        ("empty", |path, _| write(path, b""), "shorter than a region"),
        ("short", |path, _| write(path, &[7; 100]), "shorter than a region"),
        ("noise", |path, _| write(path, &noise()), "does not begin as a region does"),
        ("another version", |path, place| with_word(path, place, 8, 4), "version"),
        ("another length", |path, place| with_word(path, place, 16, 1 << 40), "its header states"),
        ("holes", write_holes, "claims"),
        ("link", |path, place| symlink(place.at("r0.talea"), path).unwrap(), "symbolic link"),
        ("folder", |path, _| fs::create_dir(path).unwrap(), "a directory"),
        ("socket", |path, _| drop(UnixListener::bind(path).unwrap()), "a socket"),
        ("for its group", |path, place| with_mode(path, place, 0o620), "any user of its group"),
        ("for all", |path, place| with_mode(path, place, 0o602), "any user could"),
    ]
}

#[test]
fn a_file_that_is_no_region_is_reported_once_and_costs_the_others_nothing() {
    assert_reported_once(faults());
}

#[test]
#[ignore = "needs root: a file of another user"]
fn as_root_a_file_of_another_user_is_reported_once_and_costs_the_others_nothing() {
    assert_reported_once(vec![(
        "of somebody else",
        |path, place| {
            copy(path, place);
            chown(path, Some(NOBODY), None).unwrap();
        },
        "it belongs to user 65534",
    )]);
}

fn assert_reported_once(faults: Vec<Fault>) {
    let place = RegionFolder::new();
    let _stay = fill(&place, 4, 50);
    let agent = place.agent();
    let bad = place.at("bad.talea");
    let mut lines = 0;
    while_scraped(&agent, 4, 50, || {
        for (what, make, reason) in faults {
            // As it comes, and in the place of one that is served.
            for is_replaced in [false, true] {
                let made = place.at("made");
                make(&made, &place);
                if is_replaced && !made.is_dir() {
                    drop(region(&place.at("served"), 9, 1));
                    fs::rename(place.at("served"), &bad).unwrap();
                    assert_eq!(agent_value(&agent.scrape(), "up", "bad"), Some(1), "{what}");
                    lines += 1;
                    said(&agent, " bad: ", lines);
                }
                fs::rename(&made, &bad).unwrap();
                let mut errors = 0;
                for _ in 0..5 {
                    let page = agent.scrape();
                    assert_eq!(agent_value(&page, "up", "bad"), Some(0), "{what}: {page}");
                    assert!(!orders(&page).contains_key("bad"), "{what}");
                    let more = agent_value(&page, "errors_total", "bad").unwrap();
                    assert!(more > errors, "{what}: {more} after {errors}");
                    errors = more;
                }
                lines += 1;
                let last = said(&agent, " bad: ", lines).pop().unwrap();
                assert!(last.contains(reason), "{what}: {last}");
                let ready = agent.get("/readyz", &[]);
                assert_eq!(ready.status, 200, "{what}: it was not named: {}", ready.text());
                match bad.is_dir() {
                    true => fs::remove_dir(&bad).unwrap(),
                    false => fs::remove_file(&bad).unwrap(),
                }
                assert_eq!(agent_value(&agent.scrape(), "up", "bad"), None, "{what}");
                lines += 1;
                assert!(said(&agent, " bad: ", lines).pop().unwrap().ends_with("bad: gone"));
            }
        }
    });
}

#[test]
fn a_region_that_is_cut_is_reported_once_and_served_when_it_is_whole() {
    let place = RegionFolder::new();
    let _stay = fill(&place, 3, 50);
    let cut = place.at("cut.talea");
    // Not mapped by anybody whom the cut would kill.
    drop(region(&place.at("first"), 9, 50));
    fs::copy(place.at("first"), &cut).unwrap();
    let agent = place.agent();
    assert_eq!(agent_value(&agent.scrape(), "up", "cut"), Some(1));
    let mut lines = 1;
    while_scraped(&agent, 3, 50, || {
        for len in [0, 4095, 4096, 12_288, 200_000, (1 << 20) - 1] {
            said(&agent, " cut: ", lines);
            OpenOptions::new().write(true).open(&cut).unwrap().set_len(len).unwrap();
            let scrape = || assert_eq!(agent_value(&agent.scrape(), "up", "cut"), Some(0), "{len}");
            scrape();
            // A reader that had it open finds it cut; a later one finds how short it is.
            let before = lines;
            lines = about(&agent, " cut: ", before + 1).len();
            assert!(lines <= before + 2, "{len}: {:?}", agent.stderr());
            (0..3).for_each(|_| scrape());
            said(&agent, " cut: ", lines);
            lines += 1;
            // At once, so that it is never seen half-way.
            fs::copy(place.at("first"), place.at("again")).unwrap();
            fs::rename(place.at("again"), &cut).unwrap();
            let page = agent.scrape();
            assert_eq!(agent_value(&page, "up", "cut"), Some(1), "{len}");
            assert_eq!(orders(&page)["cut"].len(), 50, "{len}");
        }
    });
}

/// Every user may put files into `/dev/shm`; the names of these come first.
#[test]
fn many_files_that_are_no_regions_hide_no_region() {
    let place = RegionFolder::new();
    for n in 0..3_000 {
        fs::write(place.at(&format!("a{n:04}.talea")), "").unwrap();
    }
    let _orders = count_orders(&place.at("shop.talea"), 7);
    let agent = place.agent();
    let page = agent.scrape();
    assert!(page.contains("orders_total{region=\"shop\"} 7\n"), "{page}");
    assert_eq!(sample(&page, "talea_agent_region_up{region=\"shop\"}"), Some(1));
    let up = page.lines().filter(|line| line.starts_with("talea_agent_region_up{")).count();
    assert_eq!(up, 101, "{page}");
    agent.says("further files of the directories cannot be read");
    assert!(agent.stderr().len() < 120, "{:?}", agent.stderr());
    // A region among them is served when it comes, and the lines are for others when these go.
    let _late = count_orders(&place.at("late.talea"), 3);
    assert!(agent.scrape().contains("orders_total{region=\"late\"} 3\n"));
    for n in 0..2_950 {
        fs::remove_file(place.at(&format!("a{n:04}.talea"))).unwrap();
    }
    agent.scrape();
    let page = agent.scrape();
    assert!(page.contains("talea_agent_region_up{region=\"a2999\"} 0\n"), "{page}");
}

#[test]
fn a_fifo_is_never_opened() {
    let place = RegionFolder::new();
    let _stay = fill(&place, 2, 5);
    let fifo = place.at("fifo.talea");
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status().unwrap().success());
    let is_woken = AtomicBool::new(false);
    let agent = place.agent();
    thread::scope(|scope| {
        scope.spawn(|| {
            // It waits for a reader.
            drop(OpenOptions::new().write(true).open(&fifo).unwrap());
            is_woken.store(true, Ordering::SeqCst);
        });
        let began = Instant::now();
        // For longer than it takes until regions are looked for by themselves.
        while began.elapsed() < Duration::from_millis(1500) {
            let page = agent.scrape();
            assert_all_of(&page, 0..2, 5);
            assert_eq!(agent_value(&page, "up", "fifo"), Some(0));
        }
        let was_woken = is_woken.load(Ordering::SeqCst);
        drop(OpenOptions::new().read(true).open(&fifo).unwrap());
        assert!(!was_woken, "somebody opened it");
    });
    assert!(said(&agent, "fifo", 1)[0].contains("a FIFO"));
}

#[test]
fn a_folder_that_vanishes_comes_back_with_its_regions() {
    let [place, other] = [RegionFolder::new(), RegionFolder::new()];
    let _stay = fill(&place, 2, 5);
    let folder = other.at("folder");
    fs::create_dir(&folder).unwrap();
    let _goes = region(&folder.join("goes.talea"), 9, 4);
    let agent = Agent::start([
        "--dir".as_ref(),
        place.0.path().as_os_str(),
        "--dir".as_ref(),
        folder.as_os_str(),
    ]);
    while_scraped(&agent, 2, 5, || {
        for round in 1..=3 {
            assert_eq!(orders(&agent.scrape())["goes"].len(), 4);
            assert_eq!(agent.get("/readyz", &[]).status, 200);
            fs::rename(&folder, other.at("away")).unwrap();
            for _ in 0..5 {
                let page = agent.scrape();
                assert!(
                    !orders(&page).contains_key("goes")
                        && agent_value(&page, "up", "goes").is_none()
                );
            }
            assert_eq!(agent.get("/readyz", &[]).status, 503);
            said(&agent, "cannot be listed", round);
            fs::rename(other.at("away"), &folder).unwrap();
        }
    });
    let page = agent.scrape();
    let line = page.lines().find(|line| line.starts_with("talea_agent_directory_errors_total "));
    let errors: u64 = line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
    assert!(errors >= 15, "{errors}");
}

#[test]
#[ignore = "needs root: an agent of another user"]
fn as_root_an_unreadable_file_is_reported_and_the_others_are_served() {
    let place = RegionFolder::new();
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o755)).unwrap();
    // A program that the other user may start.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("talea");
    fs::copy(TALEA, &program).unwrap();
    for path in [folder.path(), &program] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let _stay = fill(&place, 2, 5);
    for n in 0..2 {
        let open = Permissions::from_mode(0o644);
        fs::set_permissions(place.at(&format!("r{n}.talea")), open).unwrap();
    }
    let _closed = region(&place.at("closed.talea"), 9, 4);
    fs::set_permissions(place.at("closed.talea"), Permissions::from_mode(0o000)).unwrap();
    let mut command = Command::new(&program);
    command
        .arg("serve")
        .arg("--dir")
        .arg(place.0.path())
        .args(["--owner", "0", "--owner", "65534"]);
    let agent = Agent::by(command.uid(NOBODY).gid(NOBODY).current_dir("/")).unwrap();
    for _ in 0..3 {
        let page = agent.scrape();
        assert_all_of(&page, 0..2, 5);
        assert_eq!(agent_value(&page, "up", "closed"), Some(0));
    }
    let open = Permissions::from_mode(0o644);
    fs::set_permissions(place.at("closed.talea"), open).unwrap();
    let page = agent.scrape();
    assert_eq!((agent_value(&page, "up", "closed"), orders(&page)["closed"].len()), (Some(1), 4));
    let of_it = said(&agent, "closed", 2);
    assert!(of_it[0].contains("ermission denied") && of_it[1].contains("is served"), "{of_it:?}");
}
