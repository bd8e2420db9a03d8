//! Claims about versions of a service that define a metric differently and share a region: which
//! definition a page shows while they come, go back and crash, and what is added up.
#![cfg(all(target_os = "linux", not(miri)))]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

use crate::support::metrics::{By, Users};
use crate::support::process::{Worker, obey};
use crate::support::tmpfs::Shm;
use proptest::prelude::*;
use talea::{
    Count, Counter, Family, FloatCounter, Gauge, Histogram, Labels, Opts, Registrable, Registry,
    UpDownCounter,
};

#[derive(Labels)]
struct Page<'a> {
    page: &'a str,
}

#[derive(Labels)]
struct PageAndSite<'a> {
    page: &'a str,
    site: &'a str,
}

#[derive(Labels)]
struct PageAndHost<'a> {
    page: &'a str,
    host: &'a str,
}

/// A counter whose labels differ from version to version.
enum Visits {
    First(Family<Page<'static>, Counter>),
    Second(Family<PageAndSite<'static>, Counter>),
    Third(Family<PageAndHost<'static>, Counter>),
}

/// Its series in the versions 1, 2 and 3.
const VISITS: [&str; 3] = [
    "visits_total{page=\"a\"}",
    "visits_total{page=\"a\",site=\"x\"}",
    "visits_total{page=\"a\",host=\"x\"}",
];

impl Visits {
    fn of(version: usize, registry: &Registry) -> Self {
        let opts = Opts::new("visits", "Pages that were read.");
        match version {
            1 => Self::First(registry.register(opts).unwrap()),
            2 => Self::Second(registry.register(opts).unwrap()),
            _ => Self::Third(registry.register(opts).unwrap()),
        }
    }

    fn add(&self, n: u64) {
        let (page, other) = ("a", "x");
        match self {
            Self::First(visits) => visits.with(Page { page }).add(n),
            Self::Second(visits) => visits.with(PageAndSite { page, site: other }).add(n),
            Self::Third(visits) => visits.with(PageAndHost { page, host: other }).add(n),
        }
    }
}

/// The metrics of a version of the service.
struct Metrics {
    registry: Registry,
    /// Its help differs from version to version.
    orders: Counter,
    paid: FloatCounter,
    open: UpDownCounter,
    sizes: Histogram<Count>,
    level: Gauge,
    users: Users<Counter>,
    /// Its buckets differ too.
    baskets: Histogram<Count>,
    visits: Visits,
}

impl Metrics {
    fn open(file: &Path, version: usize) -> Self {
        let registry = Registry::open(file).unwrap();
        let help = format!("Of version {version}.");
        let opts = |name| Opts::new(name, &help);
        let buckets = [version as f64, 100.0];
        Self {
            orders: registry.register(opts("orders")).unwrap(),
            paid: registry.register(opts("paid")).unwrap(),
            open: registry.register(opts("open")).unwrap(),
            sizes: registry.register(opts("sizes")).unwrap(),
            level: registry.register(opts("level")).unwrap(),
            users: registry.register(opts("users")).unwrap(),
            baskets: registry.register(opts("baskets").buckets(&buckets)).unwrap(),
            visits: Visits::of(version, &registry),
            registry,
        }
    }

    /// Records so many of everything, and has so many in flight.
    fn record(&self, n: u64) {
        self.orders.add(n);
        self.paid.add(n as f64 / 2.0);
        self.open.add(n as i64);
        self.level.set(n as i64);
        self.users.with(By { user: "a" }).add(n);
        self.visits.add(n);
        (0..n).for_each(|_| self.sizes.observe(1 << (n % 10)));
        (0..n).for_each(|_| self.baskets.observe(1));
    }
}

/// Not a claim of its own: a version that obeys orders.
#[test]
fn runs_a_version() {
    let Some(file) = std::env::var_os("TALEA_TEST_VERSION_OF") else { return };
    let version = std::env::var("TALEA_TEST_VERSION").unwrap().parse().unwrap();
    let metrics = Metrics::open(file.as_ref(), version);
    obey(|order| {
        match order.split_once(' ') {
            Some(("record", n)) => metrics.record(n.parse().unwrap()),
            Some((_, label)) => {
                metrics.registry.set_constant_labels(&[("version", label)]).unwrap()
            }
            None => return metrics.registry.snapshot().to_text(),
        }
        String::new()
    });
}

/// A process of a version.
struct Version {
    number: usize,
    worker: Worker,
}

impl Version {
    fn start(shm: &Shm, version: usize) -> Self {
        Self::start_with_stderr(shm, version, Stdio::inherit())
    }

    fn start_with_stderr(shm: &Shm, version: usize, stderr: Stdio) -> Self {
        let mut command = again!("runs_a_version");
        command.env("TALEA_TEST_VERSION_OF", shm.file()).stderr(stderr);
        let worker = Worker::obeying(command.env("TALEA_TEST_VERSION", version.to_string()));
        Self { number: version, worker }
    }

    fn record(&mut self, n: u64) {
        self.worker.ask(&format!("record {n}"));
    }

    /// Sets a constant label.
    fn label(&mut self, value: &str) {
        self.worker.ask(&format!("label {value}"));
    }

    fn page(&mut self) -> String {
        self.worker.ask("show")
    }
}

/// The page of a reader outside.
fn agent(shm: &Shm) -> String {
    shm.outside(|_| true).to_text()
}

#[track_caller]
fn assert_shows(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|found| found == *line), "no {line:?} in {page}");
    }
}

const OLD: [&str; 2] = ["# HELP baskets Of version 1.", "# TYPE baskets histogram"];

#[test]
fn a_version_goes_on_where_its_notices_find_a_full_disk() {
    let shm = Shm::new("full-stderr");
    let mut first = Version::start(&shm, 1);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut second = Version::start_with_stderr(&shm, 2, full.into());
    second.record(3);
    assert_shows(&first.page(), &["baskets_count 3"]);
}

#[test]
fn a_restart_with_another_definition_says_that_the_metric_begins_anew() {
    let shm = Shm::new("replaced");
    Version::start(&shm, 1).record(3);
    let path = shm.file().with_extension("stderr");
    let restart = |version| {
        let stderr = File::create(&path).unwrap();
        let page = Version::start_with_stderr(&shm, version, stderr.into()).page();
        (page, std::fs::read_to_string(&path).unwrap())
    };
    let (page, same) = restart(1);
    assert_shows(&page, &["baskets_count 3"]);
    let (page, other) = restart(2);
    assert_shows(&page, &["baskets_count 0"]);
    let (_, again) = restart(2);
    std::fs::remove_file(&path).unwrap();
    for (text, lines) in [(same, 0), (other, 1), (again, 0)] {
        assert_eq!(
            text.lines().filter(|line| line.contains("\"baskets\"")).count(),
            lines,
            "{text}"
        );
    }
}

#[test]
fn after_a_rollback_the_definition_of_the_living_is_shown() {
    let shm = Shm::new("rollback");
    let mut old = Version::start(&shm, 1);
    old.record(2);
    let mut new = Version::start(&shm, 2);
    new.record(5);
    assert_shows(&old.page(), &["# HELP baskets Of version 2.", "baskets_count 5"]);
    drop(old);
    let mut old = Version::start(&shm, 1);
    old.record(1);
    assert_shows(&old.page(), &["# HELP baskets Of version 2.", "baskets_count 5"]);
    drop(new);
    for page in [old.page(), agent(&shm)] {
        assert_shows(&page, &OLD);
        assert_shows(&page, &["baskets_count 1", "level 1"]);
        assert!(!page.contains("le=\"2.0\""), "{page}");
    }
    // Also when no process lives any more.
    drop(old);
    assert_shows(&agent(&shm), &OLD);
    // Also when another process has taken the slot of the dead one, and no metric yet.
    let next = Registry::open(shm.file()).unwrap();
    for page in [next.snapshot().to_text(), agent(&shm)] {
        assert_shows(&page, &OLD);
    }
}

#[test]
fn the_constant_labels_of_the_newest_that_lives_are_shown_also_after_a_rollback() {
    let shm = Shm::new("constants-rollback");
    let line = |version: &str| format!("orders_total{{version=\"{version}\"}} 2");
    let mut old = Version::start(&shm, 1);
    old.label("1.0");
    old.record(2);
    assert_shows(&old.page(), &[&line("1.0")]);
    let mut new = Version::start(&shm, 2);
    assert_shows(&new.page(), &[&line("1.0")]);
    new.label("2.0");
    for page in [old.page(), new.page(), agent(&shm)] {
        assert_shows(&page, &[&line("2.0")]);
    }
    drop(old);
    let mut old = Version::start(&shm, 1);
    old.label("1.0");
    assert_shows(&old.page(), &[&line("2.0")]);
    drop(new);
    for page in [old.page(), agent(&shm)] {
        assert_shows(&page, &[&line("1.0")]);
    }
    // Also when no process lives any more.
    drop(old);
    assert_shows(&agent(&shm), &[&line("1.0")]);
}

/// As if the wall clock had been set back by an hour between any two registrations.
fn set_back_the_creation_of_families(file: &Path) {
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    // The table of families comes behind the process slots; the fourth word of each says when.
    for n in 0..60_u64 {
        let created = 1_700_000_000_000_000_000 - n * 3_600_000_000_000;
        let at = 20_480 + 512 * 128 + n * 256 + 24;
        file.write_all_at(&created.to_le_bytes(), at).unwrap();
    }
}

#[test]
fn the_newest_definition_is_known_though_the_wall_clock_was_set_back() {
    let shm = Shm::new("set-back");
    let mut old = Version::start(&shm, 1);
    old.record(2);
    let mut new = Version::start(&shm, 2);
    new.record(5);
    set_back_the_creation_of_families(&shm.file());
    let newer = ["# HELP baskets Of version 2.", "baskets_count 5"];
    for page in [old.page(), new.page(), agent(&shm)] {
        assert_shows(&page, &newer);
    }
    let look = talea::outside::Reader::open(shm.file()).unwrap().look().unwrap();
    let baskets = look.families.iter().filter(|family| family.name == "baskets");
    let helps: Vec<&str> = baskets.map(|family| family.help.as_str()).collect();
    assert_eq!(helps, ["Of version 2.", "Of version 1."]);
}

#[test]
fn after_a_canary_has_crashed_the_page_counts_what_the_stable_version_did_since_it_came() {
    let shm = Shm::new("canary");
    let mut stable = Version::start(&shm, 1);
    stable.record(3);
    for n in 1..4 {
        let mut canary = Version::start(&shm, 2);
        canary.record(7);
        let newer = ["# HELP baskets Of version 2.", "baskets_count 7"];
        assert_shows(&stable.page(), &newer);
        stable.record(n);
        assert_shows(&stable.page(), &newer);
        drop(canary);
        assert_shows(&stable.page(), &OLD);
        assert_shows(&stable.page(), &[&format!("baskets_bucket{{le=\"1.0\"}} {n}")]);
        // A gauge is what it is.
        assert_shows(&stable.page(), &[&format!("level {n}")]);
    }
    stable.record(1);
    assert_shows(&stable.page(), &["baskets_bucket{le=\"1.0\"} 4"]);
}

/// The growth of a counter as a scraper computes it, which takes a fall for a new beginning.
#[derive(Default)]
struct Growth {
    before: f64,
    sum: f64,
}

impl Growth {
    fn see(&mut self, page: &str, sample: &str) {
        let lines = page.lines().filter_map(|line| line.strip_prefix(sample));
        for value in lines.map(|rest| rest.trim().parse::<f64>().unwrap()) {
            self.sum += if value < self.before { value } else { value - self.before };
            self.before = value;
        }
    }
}

/// One of the things that happen to a service of several versions.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// One of three versions starts a process.
    Start(usize),
    /// One of the processes is killed.
    Kill(usize),
    /// One of them records.
    Record(usize, u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (1..4_usize).prop_map(Event::Start),
        2 => any::<usize>().prop_map(Event::Kill),
        4 => (any::<usize>(), 1..40_u64).prop_map(|(n, count)| Event::Record(n, count)),
    ];
    proptest::collection::vec(event, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..Default::default() })]

    #[test]
    fn no_count_is_seen_twice_in_whatever_order_versions_come_and_go(events in events()) {
        let shm = Shm::new("orders");
        // It sees to it that there is a file.
        let _region = Registry::open(shm.file()).unwrap();
        let mut living: Vec<Version> = Vec::new();
        let mut recorded = 0.0;
        // Of each version that lives, since it was not there.
        let mut visits = [0.0; 3];
        let [first, second, third] = VISITS;
        let samples =
            ["baskets_count", "users_total{user=\"a\"}", "orders_total", first, second, third];
        let mut growths = samples.map(|_| Growth::default());
        for event in events {
            let n = |any: usize| any % living.len().max(1);
            match event {
                Event::Start(_) if living.len() == 4 => {}
                Event::Start(version) => living.push(Version::start(&shm, version)),
                _ if living.is_empty() => {}
                Event::Kill(any) => drop(living.swap_remove(n(any))),
                Event::Record(any, count) => {
                    let n = n(any);
                    living[n].record(count);
                    recorded += count as f64;
                    visits[living[n].number - 1] += count as f64;
                }
            }
            for (n, visits) in visits.iter_mut().enumerate() {
                if living.iter().all(|version| version.number != n + 1) {
                    *visits = 0.0;
                }
            }
            // Which of several definitions was shown last, the dead do not say.
            if living.is_empty() {
                continue;
            }
            let page = agent(&shm);
            for (growth, sample) in growths.iter_mut().zip(samples) {
                growth.see(&page, sample);
                prop_assert!(growth.sum <= recorded, "{sample}: {} of {recorded}", growth.sum);
            }
            // Versions with other labels stand beside each other.
            for (sample, visits) in VISITS.iter().zip(visits).filter(|(_, visits)| *visits > 0.0) {
                let value = page.lines().find_map(|line| line.strip_prefix(sample));
                let value = value.map(|text| text.trim().parse::<f64>().unwrap());
                prop_assert!(value >= Some(visits), "{sample}: {visits} of {page}");
            }
            // Definitions that differ in their help are one.
            prop_assert_eq!(growths[2].sum, recorded);
        }
    }
}

#[test]
fn values_of_definitions_that_differ_in_their_help_are_added() {
    let shm = Shm::new("help");
    let mut old = Version::start(&shm, 1);
    old.record(2);
    let mut new = Version::start(&shm, 2);
    new.record(5);
    let sum = [
        "orders_total 7",
        "paid_total 3.5",
        "sizes_count 7",
        "sizes_sum 168",
        "sizes_bucket{le=\"+Inf\"} 7",
    ];
    for page in [old.page(), new.page(), agent(&shm)] {
        assert_shows(&page, &sum);
        assert_shows(&page, &["# HELP orders_total Of version 2.", "open 7", "level 5"]);
        assert_eq!(page.matches("# TYPE orders_total ").count(), 1);
    }
    // Values in flight go with their process.
    drop(old);
    assert_shows(&new.page(), &sum);
    assert_shows(&new.page(), &["open 5"]);
    // Version 1 goes on where it was, and the page with it.
    let mut old = Version::start(&shm, 1);
    drop(new);
    old.record(1);
    for page in [old.page(), agent(&shm)] {
        assert_shows(&page, &["# HELP orders_total Of version 1.", "orders_total 8", "open 1"]);
        assert_shows(&page, &["paid_total 4", "sizes_count 8", "sizes_sum 170"]);
    }
    // And a third version, which finds no process alive.
    drop(old);
    let mut third = Version::start(&shm, 3);
    third.record(1);
    assert_shows(&third.page(), &["# HELP orders_total Of version 3.", "orders_total 9"]);
    let native = shm.outside(|name| name == "sizes");
    let series = native.families().next().unwrap().series().next().unwrap();
    let talea::Value::Histogram(sizes) = series.value() else { panic!("a histogram") };
    assert_eq!(sizes.native().unwrap().count(), 9);
}

/// Else the page would go from these to those of the newer definition, and then to these again.
#[test]
fn counts_begin_anew_when_a_newer_definition_comes_back_that_was_unregistered() {
    let shm = Shm::new("unregistered");
    let [old, new, newer] = [(); 3].map(|()| Registry::open(shm.file()).unwrap());
    let opts = Opts::new("paid", "Euros that were paid.");
    old.register::<FloatCounter>(opts).unwrap();
    new.register::<Counter>(opts).unwrap();
    old.unregister("paid_total");
    let paid: FloatCounter = old.register(opts).unwrap();
    paid.add(7.0);
    assert_shows(&agent(&shm), &["paid_total 7"]);
    newer.register::<Counter>(opts).unwrap();
    assert_shows(&agent(&shm), &["paid_total 0"]);
    assert_eq!(paid.get(), 0.0);
}

/// A metric of two versions that differ in its help.
fn of_both_versions<M: Registrable>(shm: &Shm, name: &str) -> [(M, Registry); 2] {
    ["Of version 1.", "Of version 2."].map(|help| {
        let registry = Registry::open(shm.file()).unwrap();
        let opts = Opts::new(name, help).expires_after(None);
        (registry.register(opts).unwrap(), registry)
    })
}

#[test]
fn of_added_values_the_latest_exemplars_of_both_versions_are_shown() {
    let shm = Shm::new("exemplars");
    let [(old, registry), (new, _)] = of_both_versions::<Counter>(&shm, "orders");
    let [(older, _), (newer, _)] = of_both_versions::<Histogram<Count>>(&shm, "sizes");
    let ids = |name: &str| {
        let snapshot = registry.snapshot();
        let series = snapshot.select(name, &[]).next().unwrap();
        series.exemplars().map(|one| one.labels[0].1.clone()).collect::<Vec<_>>()
    };
    new.inc();
    newer.observe_with_exemplar(500, &[("id", "1")]).unwrap();
    newer.observe_with_exemplar(5, &[("id", "2")]).unwrap();
    old.add_with_exemplar(1, &[("id", "3")]).unwrap();
    older.observe_with_exemplar(6, &[("id", "4")]).unwrap();
    assert_eq!(
        (ids("orders_total"), ids("sizes")),
        (vec!["3".into()], vec!["4".into(), "1".into()])
    );
    new.add_with_exemplar(1, &[("id", "5")]).unwrap();
    assert_eq!(ids("orders_total"), ["5"]);
}

/// A sum that loses the part of one version falls, and what is left of it would be taken for growth.
#[test]
fn a_series_is_removed_or_wiped_with_what_another_version_counted_in_it() {
    let shm = Shm::new("removed");
    let versions: [(Users<Counter>, _); 2] = of_both_versions(&shm, "users");
    let names = ["a", "b", "c"];
    for (users, _) in &versions {
        names.iter().for_each(|user| users.with(By { user }).add(2));
    }
    let [(users, registry), _] = &versions;
    let shown = || {
        let snapshot = registry.snapshot();
        names.map(|user| snapshot.value("users_total", &[("user", user)]).unwrap_or(0.0))
    };
    assert_eq!(shown(), [4.0, 4.0, 4.0]);
    assert!(users.remove(By { user: "a" }));
    assert_eq!(shown(), [0.0, 4.0, 4.0]);
    assert_eq!(users.remove_matching(&[("user", "b")]), 2);
    assert_eq!(shown(), [0.0, 0.0, 4.0]);
    assert!(users.wipe());
    assert_eq!(shown(), [0.0, 0.0, 0.0]);
}

/// A sum would fall when the series of one definition expires before that of the other.
#[test]
fn values_of_series_that_expire_are_not_added() {
    let shm = Shm::new("expiring");
    let mut old = Version::start(&shm, 1);
    old.record(2);
    let mut new = Version::start(&shm, 2);
    new.record(5);
    assert_shows(&old.page(), &["users_total{user=\"a\"} 5"]);
    old.record(1);
    drop(new);
    assert_shows(&old.page(), &["users_total{user=\"a\"} 1"]);
}
