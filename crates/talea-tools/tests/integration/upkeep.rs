//! `talea wipe` and `talea expire`: the real program on regions that others count in; and files that are no
//! regions, also for `talea inspect`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::Duration;

use talea::outside::{Look, Reader};
use talea::{Counter, Family, Histogram, Labels, Opts, Registry, Seconds};

use crate::support::items_api::{ItemsApi, LISTED};
use crate::support::region_folder::RegionFolder;
use crate::support::{TALEA, assert_ends, assert_refused, done, sample, talea};

#[derive(Clone, Copy, Labels)]
struct By<'a> {
    user: &'a str,
}

fn files(place: &RegionFolder) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(place.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A folder, and the path of a region in it, also as a text.
fn region() -> (RegionFolder, PathBuf, String) {
    let place = RegionFolder::new();
    let region = place.region();
    let path = region.to_str().unwrap().to_owned();
    (place, region, path)
}

fn look(region: &Path) -> Look {
    Reader::open(region).unwrap().look().unwrap()
}

fn value(region: &Path, name: &str) -> Option<f64> {
    look(region).snapshot.value(name, &[])
}

fn series(region: &Path, name: &str) -> u64 {
    look(region).families.iter().find(|family| family.name == name).unwrap().series
}

/// The requests that a service counted as answered well, by its own scrape.
fn answered(service: &ItemsApi) -> Option<f64> {
    sample(&service.scrape(), LISTED)
}

/// The series of a service's request counter and what each shows, by its own scrape.
fn requests(service: &ItemsApi) -> BTreeMap<String, f64> {
    let scrape = service.scrape();
    let samples = scrape.lines().filter(|line| line.starts_with("http_requests_total{"));
    let parts = samples.map(|sample| sample.trim_end().rsplit_once(' ').unwrap());
    parts.map(|(series, value)| (series.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn a_wipe_leaves_all_declared_series_at_zero_while_the_service_runs_and_after_its_death() {
    let (place, region, path) = region();
    let service = ItemsApi::start(Some(&region));
    let declared: BTreeMap<String, f64> = requests(&service);
    assert!(declared.len() > 10 && declared.values().all(|value| *value == 0.0), "{declared:?}");
    service.list(3);
    assert_eq!(answered(&service), Some(3.0));
    let count = declared.len();
    let expected = format!(
        "wiped 1 family of {path}: {count} series count from 0, 0 were removed until their next update\n"
    );
    let by_name = ["wipe", &path, "--family", "http_requests_total"];
    assert_eq!(done(&by_name), expected);
    assert_eq!(requests(&service), declared);
    assert_eq!(series(&region, "http_requests_total"), count as u64, "from outside too");

    service.list(3);
    assert_eq!(answered(&service), Some(3.0));
    let stdout = done(&["wipe", &path]);
    assert!(stdout.starts_with("wiped ") && stdout.contains(&path), "{stdout}");
    assert_eq!(answered(&service), Some(0.0));
    assert!(value(&region, "process_start_time_seconds").unwrap() > 1e9, "what is now stays");
    service.list(2);
    assert_eq!(answered(&service), Some(2.0));

    drop(service);
    let service = ItemsApi::start(Some(&region));
    assert_eq!(requests(&service).len(), count);
    assert_eq!(answered(&service), Some(2.0), "a restart wipes nothing");
    drop(service);
    for wipe in [&by_name[..], &by_name[..2]] {
        done(wipe);
        let service = ItemsApi::start(Some(&region));
        assert_eq!(requests(&service), declared, "{wipe:?}");
        service.list(1);
        assert_eq!(answered(&service), Some(1.0), "{wipe:?}");
    }
    assert_eq!(files(&place), [region]);
}

#[test]
fn memory_of_a_process_is_wiped_by_its_id() {
    let service = ItemsApi::start(None);
    service.list(3);
    assert_eq!(answered(&service), Some(3.0));
    let pid = service.pid().to_string();
    assert!(done(&["wipe", "--pid", &pid]).contains(&format!("of process {pid}")));
    service.list(1);
    assert_eq!(answered(&service), Some(1.0));
    assert!(done(&["expire", "--pid", &pid]).contains("removed 0 of "));
}

#[test]
fn only_the_families_that_are_named_are_wiped() {
    let (_place, region, path) = region();
    let registry = Registry::open(&region).unwrap();
    let counters = ["one", "two", "three"].map(|name| {
        let counter: Counter = registry.register(Opts::new(name, "One.")).unwrap();
        counter.add(5);
        counter
    });
    let values = || counters.each_ref().map(Counter::get);
    let expected = format!(
        "wiped 2 families of {path}: 2 series count from 0, 0 were removed until their next update\n"
    );
    let two = ["wipe", &path, "--family", "one_total", "--family", "three_total"];
    assert_eq!(done(&two), expected);
    assert_eq!(values(), [0, 5, 0]);

    assert_refused(
        &talea(["wipe", &path, "--family", "two_total", "--family", "for"]),
        &["no family \"for\"", "among the 3", "nothing was done", "talea inspect"],
    );
    assert_eq!(values(), [0, 5, 0]);
}

#[test]
fn a_gauge_is_not_wiped_and_a_request_to_do_so_says_that() {
    let (_place, region, path) = region();
    let registry = Registry::open(&region).unwrap();
    let level: talea::Gauge = registry.register(Opts::new("level", "Now.")).unwrap();
    let orders: Counter = registry.register(Opts::new("orders", "Orders.")).unwrap();
    level.set(9);
    orders.add(9);
    assert_refused(
        &talea(["wipe", &path, "--family", "orders_total", "--family", "level"]),
        &["level is of type gauge", "nothing was done"],
    );
    assert_eq!((level.get(), orders.get()), (9, 9));
    assert!(done(&["wipe", &path]).contains("wiped 1 family of "));
    assert_eq!((level.get(), orders.get()), (9, 0));
}

#[test]
fn concurrent_increments_count_before_or_after_and_never_twice_or_not_at_all() {
    let (_place, region, path) = region();
    let registry = Registry::open(&region).unwrap();
    let orders: Counter = registry.register(Opts::new("orders", "Orders.")).unwrap();
    let took: Histogram<Seconds> = registry.register(Opts::new("took", "Time.")).unwrap();
    let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    scope(|scope| {
        (0..3).for_each(|_| {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    begun.fetch_add(1, SeqCst);
                    orders.inc();
                    took.observe(Duration::from_millis(3));
                    ended.fetch_add(1, SeqCst);
                }
            });
        });
        for _ in 0..5 {
            sleep(Duration::from_millis(20));
            let before = ended.load(SeqCst);
            done(&["wipe", &path]);
            let after = begun.load(SeqCst);
            // Whatever of them is shown by now: those since the wipe began at most.
            let shown = orders.get();
            assert!(shown <= begun.load(SeqCst) - before, "{shown}");
            // And what comes from here on, all of it.
            sleep(Duration::from_millis(5));
            let least = ended.load(SeqCst).saturating_sub(after);
            let shown = orders.get();
            assert!(shown >= least, "{shown} of at least {least}");
        }
        is_over.store(true, SeqCst);
    });
    let counted = ended.load(SeqCst);
    assert!(orders.get() < counted);
    done(&["wipe", &path]);
    let observed = || look(&region).snapshot.histogram("took_seconds", &[]).unwrap().count();
    assert_eq!((orders.get(), observed()), (0, 0));
    (0..11).for_each(|_| orders.inc());
    took.observe(Duration::from_millis(3));
    assert_eq!((value(&region, "orders_total"), observed()), (Some(11.0), 1));
}

/// A registry with a series that was idle for at least two minutes, as far as sweeps tell,
/// and one that was not.
fn with_an_idle_series(region: &Path) -> (Registry, Family<By<'static>, Counter>) {
    let registry = Registry::open(region).unwrap();
    let users: Family<By<'static>, Counter> =
        registry.register(Opts::new("users", "By user.")).unwrap();
    ["ann", "bob"].iter().for_each(|user| users.with(By { user }).inc());
    // Each counts as a minute.
    (0..3).for_each(|_| registry.sweep());
    users.with(By { user: "bob" }).inc();
    (registry, users)
}

#[test]
fn idle_series_go_when_somebody_asks_and_others_stay() {
    let (_place, region, path) = region();
    let (_registry, _users) = with_an_idle_series(&region);
    for (more, expected) in [
        (
            &[][..],
            "removed 0 of 2 series in 1 family of PATH that had no look-up for their family's time\n",
        ),
        (
            &["--idle", "1h"],
            "removed 0 of 2 series in 1 family of PATH that had no look-up for 1h\n",
        ),
        (
            &["--idle", "2m", "--family", "users_total"],
            "removed 1 of 2 series in 1 family of PATH that had no look-up for 2m\n",
        ),
    ] {
        let said = done(&[&["expire", &path], more].concat());
        assert_eq!(said, expected.replace("PATH", &path), "{more:?}");
    }
    let left = look(&region).snapshot;
    assert_eq!(left.value("users_total", &[("user", "bob")]), Some(2.0));
    assert_eq!(left.value("users_total", &[("user", "ann")]), None);
    let other = talea(["expire", &path, "--family", "users"]);
    assert_refused(&other, &["no family \"users\"", "talea inspect"]);
    assert_ends(&talea(["expire", &path, "--idle", "0s"]), 2, &["such as 30s"]);
}

#[test]
fn families_that_keep_their_series_are_gone_through_only_by_name() {
    let (_place, region, path) = region();
    let registry = Registry::open(&region).unwrap();
    let opts = Opts::new("kept", "For good.").expires_after(None);
    let kept: Family<By<'static>, Counter> = registry.register(opts).unwrap();
    kept.with(By { user: "ann" }).inc();
    (0..3).for_each(|_| registry.sweep());
    done(&["expire", &path, "--idle", "1m"]);
    assert_eq!(series(&region, "kept_total"), 1);
    done(&["expire", &path, "--idle", "1m", "--family", "kept_total"]);
    assert_eq!(series(&region, "kept_total"), 0);
}

#[test]
fn a_file_that_is_no_region_is_one_clear_error_and_stays_as_it_is() {
    let place = RegionFolder::new();
    let region = place.region();
    drop(Registry::open(&region).unwrap());
    // The link is to a copy: the region is written to when another test forks, since children take slots in all that
    // is open.
    let bad = place.make_bad_files(&region);
    let before = files(&place);
    for (name, part) in bad {
        let path = place.at(name);
        let bytes = || path.is_file().then(|| fs::read(&path).unwrap());
        let was = bytes();
        for command in ["inspect", "wipe", "expire"] {
            let path = path.to_str().unwrap();
            assert_refused(&talea([command, path]), &[part, path]);
            assert!(bytes() == was, "{name}");
        }
    }
    done(&["inspect", place.at("whole").to_str().unwrap()]);
    assert_eq!(files(&place), before);
    for command in ["wipe", "expire"] {
        let none = talea([command, "--pid", "4194305"]);
        assert_refused(&none, &["process 4194305", "No such file"]);
        for arguments in [&[command][..], &[command, region.to_str().unwrap(), "--pid", "1"]] {
            assert_ends(&talea(arguments), 2, &[]);
        }
    }
}

fn made_region(place: &RegionFolder) -> PathBuf {
    let region = place.region();
    drop(Registry::open(&region).unwrap());
    region
}

#[test]
#[ignore = "needs root: a command of another user"]
fn as_root_a_region_of_another_user_says_who_may() {
    let place = RegionFolder::new();
    let region = made_region(&place);
    // A program that another user may start and reach, and a region that is not theirs.
    let folder = tempfile::tempdir().unwrap();
    let open_to_all =
        |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("talea");
    fs::copy(TALEA, &program).unwrap();
    open_to_all(folder.path());
    open_to_all(place.0.path());
    for command in ["wipe", "expire"] {
        let mut talea = Command::new(&program);
        talea.args([command, region.to_str().unwrap()]).uid(65_534).gid(65_534).current_dir("/");
        let stderr = assert_ends(&talea.output().unwrap(), 2, &[]);
        let words =
            "Permission denied (os error 13); run it as the user that the service runs as\n";
        assert!(stderr.ends_with(words), "{stderr}");
    }
}

#[test]
#[ignore = "needs root: a file of another user"]
fn as_root_a_file_of_another_user_is_changed_only_if_that_user_is_named() {
    let place = RegionFolder::new();
    let region = made_region(&place);
    chown(&region, Some(65_534), None).unwrap();
    let path = region.to_str().unwrap();
    for command in ["wipe", "expire"] {
        let parts = [path, "belongs to user 65534", "mode 0600", "expected user 0", "--owner"];
        assert_refused(&talea([command, path]), &parts);
        let other = talea([command, path, "--owner", "1"]);
        assert_refused(&other, &["user 65534", "expected user 1"]);
        done(&[command, path, "--owner", "1", "--owner", "nobody"]);
    }
    chown(&region, Some(0), None).unwrap();
    fs::set_permissions(&region, fs::Permissions::from_mode(0o666)).unwrap();
    let stderr = assert_ends(&talea(["wipe", path]), 2, &[]);
    assert!(stderr.ends_with("expected 0600 or 0640, as chmod go-w makes it\n"), "{stderr}");
}
