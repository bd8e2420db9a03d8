//! Claims about metrics that are used before they are installed, cloned before that, or never
//! installed. They are a binary of their own, since discarded updates are counted for the process and
//! any registry in it that is not for a test shows that count.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod types;

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::metrics::{By, Fixed, Users, opts};
use talea::{
    Counter, Error, Family, FloatCounter, FloatGauge, Gauge, Histogram, Info, Lazy, Metrics,
    Registrable, Registry, Seconds, StateSet, Summary, UpDownCounter,
};

const DISCARDED: &str = "talea_uninstalled_updates_total";

const A: By<'_> = By { user: "a" };

#[derive(Clone, Metrics)]
struct Each {
    /// Some.
    count: Counter,
    /// Some.
    float: FloatCounter,
    /// Some.
    level: Gauge,
    /// Some.
    share: FloatGauge,
    /// Some.
    open: UpDownCounter,
    /// Some.
    time: Histogram<Seconds>,
    /// Some.
    lately: Summary<Seconds>,
    /// Some.
    state: StateSet<bool>,
    /// Some.
    build: Info<By<'static>>,
    /// Some.
    users: Users<Counter>,
    /// Some.
    gifts: Family<Fixed, Histogram<Seconds>>,
}

/// So many updates are in [`Each::update`].
const UPDATES: f64 = 11.0;

impl Each {
    fn update(&self) {
        self.count.inc();
        self.float.add(0.5);
        self.level.add(3);
        self.share.set(0.25);
        self.open.inc();
        self.time.observe(Duration::from_secs(1));
        self.lately.observe(Duration::from_secs(1));
        self.state.set(true);
        self.build.set(A);
        self.users.with(A).inc();
        self.gifts.with(Fixed { gift: true }).observe(Duration::from_secs(1));
    }
}

mod clones {
    use super::*;
    use crate::support::metrics::registry;

    #[test]
    fn clones_share_what_they_are_installed_to_in_either_order() {
        for clone_is_installed in [false, true] {
            let registry = registry();
            let set = Each::new();
            let clone = set.clone();
            let of_clone = clone.clone();
            set.update();
            clone.update();
            let installed = if clone_is_installed { &clone } else { &set };
            talea::install(&registry, &[installed]).unwrap();
            for handle in [&set, &clone, &of_clone, &of_clone.clone()] {
                handle.update();
            }
            let snapshot = registry.snapshot();
            for (name, value) in [
                ("count_total", 4.0),
                ("float_total", 2.0),
                ("level", 12.0),
                ("share", 0.25),
                ("open", 4.0),
            ] {
                snapshot.assert_value(name, &[], value);
            }
            assert_eq!(snapshot.expect_histogram("time_seconds", &[]).count(), 4);
            snapshot.assert_value("state", &[("state", "true")], 1.0);
            snapshot.assert_value("build_info", &[("user", "a")], 1.0);
            snapshot.assert_value("users_total", &[("user", "a")], 4.0);
            let gifts = snapshot.expect_histogram("gifts_seconds", &[("gift", "true")]);
            assert_eq!(gifts.count(), 4);
            assert_eq!((of_clone.count.get(), clone.level.get(), set.open.get()), (4, 12, 4));
            assert!(of_clone.state.is(true));
            assert_eq!(of_clone.users.dropped(), 0);
        }
    }

    #[test]
    fn clones_have_one_place() {
        let registry = registry();
        let count = Counter::new();
        let clone = count.clone();
        count.register(&registry, &opts("a")).unwrap();
        clone.register(&registry, &opts("a")).unwrap();
        for (registry, name) in [(&registry, "b"), (&self::registry(), "a")] {
            let message = clone.register(registry, &opts(name)).unwrap_err().to_string();
            assert!(message.contains("a metric has one place"), "{message}");
        }
        let users = Users::<Counter>::new();
        let clone = users.clone();
        users.register(&registry, &opts("users")).unwrap();
        assert!(clone.register(&self::registry(), &opts("users")).is_err());
        clone.with(A).inc();
        assert_eq!(users.with(A).get(), 1);
    }

    #[test]
    fn a_clone_of_a_lazy_handle_that_was_made_too_early_counts_once_that_is_used() {
        static USERS: Users<Counter> = Family::new();
        static ANN: Lazy<By<'static>, Counter> = USERS.lazy(By { user: "ann" });
        let (early, referred): (Counter, &Counter) = (ANN.clone(), &ANN);
        early.add(100);
        let registry = registry();
        USERS.register(&registry, &opts("users")).unwrap();
        ANN.inc();
        early.add(2);
        referred.add(3);
        registry.snapshot().assert_value("users_total", &[("user", "ann")], 6.0);
    }

    #[test]
    fn of_clones_that_are_made_while_a_set_is_installed_none_is_dead() {
        const THREADS: usize = 4;
        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
            let registry = registry();
            let (count, users) = (Counter::new(), Users::<Counter>::new());
            let barrier = Barrier::new(THREADS + 1);
            let clones = thread::scope(|scope| {
                let threads = [(); THREADS].map(|()| {
                    scope.spawn(|| {
                        barrier.wait();
                        (count.clone(), users.clone())
                    })
                });
                barrier.wait();
                count.register(&registry, &opts("count")).unwrap();
                users.register(&registry, &opts("users")).unwrap();
                threads.map(|thread| thread.join().unwrap())
            });
            for (count, users) in &clones {
                count.inc();
                users.with(A).inc();
            }
            assert_eq!((count.get(), users.with(A).get()), (THREADS as u64, THREADS as u64));
        }
    }
}

#[cfg(not(miri))]
mod reports {
    use super::*;
    use crate::support::tmpfs::Shm;

    /// The variable that names the case for a process.
    const CASE: &str = "TALEA_TEST_UNINSTALLED";

    /// Not a claim of its own: what the test below starts as a process for each case, since what is
    /// not installed is counted by process.
    #[test]
    fn does_a_case_when_ordered() {
        let Ok(name) = std::env::var(CASE) else { return };
        let (_, case, _) = CASES.iter().find(|(of, ..)| *of == name).unwrap();
        case().unwrap();
    }

    /// Talea's lines on standard error in a case; the case itself asserts the rest.
    fn printed(case: &str) -> Vec<String> {
        let mut process = again!("does_a_case_when_ordered");
        let output = process.env(CASE, case).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{case}: {text}");
        text.lines().filter(|line| line.starts_with("talea: ")).map(str::to_owned).collect()
    }

    /// The claim, how it is seen, and what the one line has; none if there is no line. Behind `at:`
    /// is code that makes a metric, whose place the line names.
    type Case = (&'static str, fn() -> Result<(), Error>, Option<&'static [&'static str]>);
    const CASES: [Case; 9] = [
        (
            "a metric that is never installed is counted, and reported once with the place of its making",
            never,
            Some(&[
                "3 updates",
                "not installed",
                "at:static HITS: Counter = Counter::new(); // Never.",
            ]),
        ),
        (
            "each type counts what it discards; fields of a derived set have places of their own",
            each_type,
            Some(&["at:count: Counter", "at:level: Gauge", "at:open: UpDown"]),
        ),
        ("updates before the installation are not reported", before, None),
        ("reported updates stay counted when the metric is installed late", late, Some(&[])),
        (
            "updates of a handle that was kept before its family was installed are reported",
            kept_too_early,
            Some(&["1 update was", "keep"]),
        ),
        (
            "however many there are, each update counts and there is one line",
            many_places,
            Some(&["16000 updates", "75 further places"]),
        ),
        ("a registry for a test says nothing of what other tests do", for_a_test, Some(&[])),
        ("each update is shown by one registry of the process", several_registries, Some(&[])),
        ("where the region is full there is the line alone", full, Some(&[])),
    ];

    #[test]
    fn updates_of_what_is_not_installed_are_counted_and_reported() {
        for (case, _, parts) in CASES {
            let lines = printed(case);
            let Some(parts) = parts else {
                assert_eq!(lines, [""; 0], "{case}");
                continue;
            };
            let [line] = &lines[..] else { panic!("{case}: {lines:?}") };
            for part in parts {
                let part = part.strip_prefix("at:").map_or((*part).to_owned(), |code| {
                    let mut lines = include_str!("main.rs").lines();
                    let at = lines.position(|line| line.trim().starts_with(code)).unwrap();
                    format!("tests/uninstalled/main.rs:{}:", at + 1)
                });
                assert!(line.contains(&part), "{case}: no {part} in {line}");
            }
        }
    }

    fn shown(registry: &Registry) -> Option<f64> {
        registry.snapshot().value(DISCARDED, &[])
    }

    fn never() -> Result<(), Error> {
        static HITS: Counter = Counter::new(); // Never.
        let registry = Registry::new()?;
        assert_eq!(shown(&registry), None);
        (0..3).for_each(|_| HITS.inc());
        let text = registry.snapshot().to_text();
        let help = "# HELP talea_uninstalled_updates_total ";
        assert!(text.contains(help) && text.contains("\ntalea_uninstalled_updates_total 3\n"));
        assert_eq!(shown(&registry), Some(3.0));
        HITS.add(500);
        assert_eq!(HITS.get(), 0);
        assert_eq!(shown(&registry), Some(4.0));
        Ok(())
    }

    fn each_type() -> Result<(), Error> {
        static SET: Each = Each::new();
        let registry = Registry::new()?;
        SET.update();
        assert_eq!(shown(&registry), Some(UPDATES));
        SET.level.set(1);
        SET.level.set_max(2);
        SET.level.set_min(2);
        SET.level.inc();
        SET.level.dec();
        SET.share.add(1.0);
        SET.share.set_max(1.0);
        SET.share.set_min(1.0);
        drop(SET.open.in_flight_guard());
        drop(SET.time.start_timer());
        drop(SET.lately.start_timer());
        SET.time.observe_in_both(&SET.time, Duration::ZERO);
        SET.state.enable(true);
        SET.state.disable(true);
        SET.count.add_with_exemplar(1, &[]).unwrap();
        SET.time.observe_with_exemplar(Duration::ZERO, &[]).unwrap();
        let users = SET.users.try_with(A).unwrap();
        users.inc();
        users.clone().inc();
        drop(users);
        SET.users.with(A).keep().inc();
        assert_eq!(shown(&registry), Some(UPDATES + 20.0));
        // To read is no update.
        let _ = (SET.count.get(), SET.level.get(), SET.state.is(true), SET.users.dropped());
        let _ = SET.users.with(A).get();
        assert_eq!(shown(&registry), Some(UPDATES + 20.0));
        Ok(())
    }

    fn before() -> Result<(), Error> {
        static SET: Each = Each::new();
        static ANN: Lazy<By<'static>, Counter> = SET.users.lazy(By { user: "ann" });
        let registry = Registry::new()?;
        let clone = SET.clone();
        SET.update();
        clone.update();
        ANN.inc();
        talea::install(&registry, &[&SET])?;
        SET.update();
        clone.update();
        ANN.inc();
        for _ in 0..3 {
            assert_eq!(shown(&registry), None);
        }
        Ok(())
    }

    fn late() -> Result<(), Error> {
        static HITS: Counter = Counter::new();
        let registry = Registry::new()?;
        HITS.add(1);
        assert_eq!(shown(&registry), Some(1.0));
        HITS.add(1);
        HITS.register(&registry, &opts("hits"))?;
        HITS.add(1);
        assert_eq!(shown(&registry), Some(1.0), "what came before the installation is no fault");
        assert_eq!(HITS.get(), 1);
        Ok(())
    }

    fn kept_too_early() -> Result<(), Error> {
        static USERS: Users<Counter> = Family::new();
        let registry = Registry::new()?;
        let kept = USERS.with(A).keep();
        USERS.register(&registry, &opts("users"))?;
        assert_eq!(shown(&registry), None);
        kept.inc();
        USERS.with(A).inc();
        assert_eq!(shown(&registry), Some(1.0));
        registry.snapshot().assert_value("users_total", &[("user", "a")], 1.0);
        Ok(())
    }

    /// A counter whose place is where this is called.
    #[track_caller]
    fn new() -> Counter {
        Counter::new()
    }

    /// An array of these, which are each at a place of their own.
    macro_rules! counters {
        ($($counter:expr),*) => {
            [$($counter),*]
        };
    }

    fn many_places() -> Result<(), Error> {
        let registry = Registry::new()?;
        let counters = counters! {
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new(),
            new(), new(), new(), new(), new(), new(), new(), new(), new(), new()
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    counters.iter().for_each(|counter| (0..50).for_each(|_| counter.inc()))
                });
            }
        });
        assert_eq!(shown(&registry), Some(4.0 * 80.0 * 50.0));
        assert_eq!(shown(&registry), Some(4.0 * 80.0 * 50.0));
        Ok(())
    }

    fn for_a_test() -> Result<(), Error> {
        let counter = Counter::new();
        let (_, registry) = Each::for_test();
        let other = Registry::new()?;
        counter.inc();
        assert_eq!(shown(&registry), None);
        assert_eq!(shown(&other), Some(1.0));
        Ok(())
    }

    fn several_registries() -> Result<(), Error> {
        let counter = Counter::new();
        let registries = [Registry::new()?, Registry::new()?];
        counter.inc();
        assert_eq!(registries.each_ref().map(shown), [Some(1.0), None]);
        counter.inc();
        assert_eq!(registries.each_ref().map(shown), [Some(2.0), None]);
        counter.inc();
        assert_eq!([&registries[1], &registries[0]].map(shown), [Some(1.0), Some(2.0)]);
        Ok(())
    }

    fn full() -> Result<(), Error> {
        let counter = Counter::new();
        let registry = Registry::with_config(talea::Config::with_len(1 << 20))?;
        let mut n = 0;
        while registry.register::<Counter>(opts(&format!("fill_{n}"))).is_ok() {
            n += 1;
        }
        counter.inc();
        for _ in 0..3 {
            assert_eq!(shown(&registry), None);
        }
        Ok(())
    }

    /// A region that is read from outside alone.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_reader_outside_sees_it_where_the_process_keeps_its_values_fresh() {
        let mut process = again!("counts_without_a_snapshot_when_ordered");
        let shm = Shm::new("uninstalled");
        process.env("TALEA_REGION", shm.file()).env(CASE, "fresh");
        let output = process.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        let reader = talea::outside::Reader::open(shm.file()).unwrap();
        assert_eq!(reader.look().unwrap().snapshot.value(DISCARDED, &[]), Some(2.0), "{text}");
    }

    /// Not a claim of its own: the test above starts it as a process.
    #[cfg(target_os = "linux")]
    #[test]
    fn counts_without_a_snapshot_when_ordered() {
        if std::env::var_os("TALEA_REGION").is_none() {
            return;
        }
        let registry = Registry::from_env().unwrap();
        let counter = Counter::new();
        (0..2).for_each(|_| counter.inc());
        // Called each five seconds, and by a snapshot.
        registry.refresh_every(Duration::from_millis(1));
        let reader = talea::outside::Reader::open(std::env::var_os("TALEA_REGION").unwrap());
        let reader = reader.unwrap();
        // The series is there before its value is.
        let until = Instant::now() + Duration::from_secs(60);
        while reader.look().unwrap().snapshot.value(DISCARDED, &[]) != Some(2.0) {
            assert!(Instant::now() < until, "what was discarded is not in the region");
            thread::yield_now();
        }
    }
}

/// A declared static beside a registry of the program's own.
#[talea::register]
static DECLARED_HERE: Counter = Counter::new();

#[test]
fn updates_a_declared_static_when_ordered() {
    if std::env::var_os("TALEA_TEST_DECLARED").is_none() {
        return;
    }
    let registry = Registry::new().unwrap();
    DECLARED_HERE.inc();
    registry.snapshot();
}

#[test]
fn the_advice_for_a_declared_static_names_the_registry_that_has_it() {
    let mut process = again!("updates_a_declared_static_when_ordered");
    let output = process.env("TALEA_TEST_DECLARED", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("1 update was discarded") && text.contains("talea::default_registry()"),
        "{text}"
    );
}
