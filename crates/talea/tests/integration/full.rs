//! Claims about regions that have no room left, of each kind: no operation panics, no
//! add is lost that a family takes, and what was counted before is there.
#![cfg(not(miri))]

use std::time::Duration;

use crate::support::metrics::{By, Fixed, OVERFLOW, Users};
use talea::{
    Bucketing, Combine, Config, Count, Counter, DynamicLabels, Error, Family, FloatCounter,
    FloatGauge, Gauge, Histogram, Info, Labels, Lazy, Opts, Overflow, Registrable, Registry,
    Seconds, SeriesError, StateSet, UpDownCounter,
};

fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.").limit(u64::MAX)
}

fn register<R: Registrable>(registry: &Registry, name: &str) -> R {
    registry.register(opts(name)).unwrap()
}

/// The resource that a region has too little of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scarce {
    Series,
    Text,
    Cells,
    Owned,
    Striped,
}

const ALL: [Scarce; 5] =
    [Scarce::Series, Scarce::Text, Scarce::Cells, Scarce::Owned, Scarce::Striped];

/// Of these, series are refused; of some cells there are others.
const REFUSING: [Scarce; 3] = [Scarce::Series, Scarce::Text, Scarce::Cells];

const FULL: SeriesError = SeriesError::Overflow(Overflow::Full);
const BEFORE: By<'_> = By { user: "before" };
const AFTER: By<'_> = By { user: "after" };

/// A region that has one of these, and all families that a test wants.
struct Stage {
    registry: Registry,
    scarce: Scarce,
    one: One,
    families: Families,
    info: Info<By<'static>>,
    /// The family that fills it; its handles are kept, so that no series expires.
    big: Users<Histogram<Count>>,
    open: Users<UpDownCounter>,
    small: Users<Gauge>,
}

struct One {
    count: Counter,
    float: FloatCounter,
    level: Gauge,
    ratio: FloatGauge,
    most: Gauge,
    open: UpDownCounter,
    time: Histogram<Seconds>,
    state: StateSet<bool>,
}

struct Families {
    count: Users<Counter>,
    fixed: Family<Fixed, Counter>,
    values: Family<DynamicLabels, FloatCounter>,
    open: Users<UpDownCounter>,
    most: Users<Gauge>,
    time: Users<Histogram<Seconds>>,
    state: Users<StateSet<bool>>,
}

impl Stage {
    fn new(scarce: Scarce) -> Self {
        let series = if scarce == Scarce::Series { 100 } else { 3_500 };
        // It takes as much room on any number of CPUs.
        let config = Config { series, planes: 2, ..Config::with_len(1 << 20) };
        let registry = &Registry::with_config(config).unwrap();
        let thresholds: Vec<f64> = (1..=100).map(f64::from).collect();
        let stage = Self {
            one: One {
                count: register(registry, "one_count"),
                float: register(registry, "one_float"),
                level: register(registry, "one_level"),
                ratio: register(registry, "one_ratio"),
                most: registry.register(opts("one_most").combine(Combine::Max)).unwrap(),
                open: register(registry, "one_open"),
                time: register(registry, "one_time"),
                state: register(registry, "one_state"),
            },
            families: Families {
                count: register(registry, "count"),
                fixed: register(registry, "fixed"),
                values: registry.family(opts("values"), &["a", "b"]).unwrap(),
                open: register(registry, "open"),
                most: registry.register(opts("most").combine(Combine::Max)).unwrap(),
                time: register(registry, "time"),
                state: register(registry, "state"),
            },
            info: register(registry, "about"),
            big: registry.register(opts("big").buckets(&thresholds)).unwrap(),
            open: register(registry, "filling_open"),
            small: register(registry, "filling_small"),
            scarce,
            registry: registry.clone(),
        };
        stage.record("before");
        stage.info.set(BEFORE);
        stage
    }

    /// Adds once to everything that is added to, and sets what is set.
    fn record(&self, user: &str) {
        let One { count, float, level, ratio, most, open, time, state } = &self.one;
        count.inc();
        float.add(0.5);
        level.set(7);
        ratio.set(0.5);
        most.set(8);
        open.inc();
        time.observe(Duration::from_millis(1));
        state.set(true);
        let by = By { user };
        let families = &self.families;
        families.count.with(by).inc();
        families.fixed.with(Fixed { gift: true }).inc();
        families.values.with_values(&[user, "x"]).add(1.0);
        families.open.with(by).inc();
        families.most.with(by).set(3);
        families.time.with(by).observe(Duration::from_millis(1));
        families.state.with(by).set(true);
    }

    /// Takes all that there is of what is scarce.
    fn fill(&self) {
        let long = "x".repeat(if self.scarce == Scarce::Text { 8_000 } else { 1 });
        let name = |n: u32| format!("{long}{n}");
        let fill = |make: &dyn Fn(&str) -> Result<(), SeriesError>| {
            let full = (0..100_000).find_map(|n| make(&name(n)).err());
            assert_eq!(full, Some(FULL), "{:?}", self.scarce);
        };
        let small = |user: &str| self.small.try_with(By { user }).map(|gauge| gauge.set(1));
        let open = |user: &str| self.open.try_with(By { user }).map(|open| open.inc());
        match self.scarce {
            Scarce::Series => fill(&small),
            Scarce::Text => {
                fill(&small);
                // The gaps between are used, too.
                fill_with_less(4_000, |user| small(user).is_ok());
            }
            Scarce::Cells => {
                fill(&|user| self.big.try_with(By { user }).map(|big| big.observe(1)));
                fill(&small);
            }
            // There are 512 bytes of them a process. Beyond these, single cells are taken.
            Scarce::Owned => (0..100).for_each(|n| open(&name(n)).unwrap()),
            // There are 8,192 of them, and 104 in a series. Beyond these, single cells are
            // taken, four for one.
            Scarce::Striped => (0..80).for_each(|n| self.striped(n)),
        }
    }

    /// A family of its own, updated once.
    fn striped(&self, n: u32) {
        let name = format!("filling_striped_{n}");
        let thresholds: Vec<f64> = (1..=102).map(f64::from).collect();
        let opts = opts(&name).buckets(&thresholds).bucketing(Bucketing::Classic);
        self.registry.register::<Histogram<Count>>(opts).unwrap().observe(3);
    }

    /// The totals of all families, and the values of gauges.
    fn totals(&self) -> Vec<(&'static str, f64)> {
        let snapshot = self.registry.snapshot();
        let total = |name: &str| match snapshot.histogram(name, &[]) {
            Some(time) => time.count() as f64,
            None => snapshot.total(name, &[]).unwrap_or(0.0),
        };
        let totals = totals_of(0).into_iter().map(|(name, _)| (name, total(name))).collect();
        // The text has a line of each sample.
        let text = snapshot.to_text();
        assert!(talea_parse::text(&text).is_ok_and(|samples| samples.len() > 20), "{text}");
        totals
    }

    fn total(&self, name: &str) -> Option<f64> {
        self.registry.snapshot().total(name, &[])
    }

    fn sweep(&self) {
        (0..5).for_each(|_| self.registry.sweep());
    }
}

/// Takes ever smaller pieces.
fn fill_with_less(most: usize, take: impl Fn(&str) -> bool) {
    let mut len = most;
    for n in 0.. {
        let text = format!("{n}{}", "y".repeat(len));
        if !take(&text) {
            if len == 0 {
                return;
            }
            len /= 2;
        }
    }
}

/// The values after so many calls of [`Stage::record`].
fn totals_of(times: u32) -> Vec<(&'static str, f64)> {
    let n = f64::from(times);
    vec![
        ("one_count_total", n),
        ("one_float_total", n / 2.0),
        ("one_level", 7.0),
        ("one_ratio", 0.5),
        ("one_most", 8.0),
        ("one_open", n),
        ("one_state", 1.0),
        ("count_total", n),
        ("fixed_total", n),
        ("values_total", n),
        ("open", n),
        ("one_time_seconds", n),
        ("time_seconds", n),
    ]
}

#[test]
fn updates_in_a_full_region_add_up_and_earlier_ones_stay() {
    for scarce in ALL {
        let stage = Stage::new(scarce);
        stage.fill();
        assert_eq!(stage.totals(), totals_of(1), "{scarce:?}");
        for n in 0..50 {
            stage.record(&format!("after {n}"));
            stage.record("before");
        }
        assert_eq!(stage.totals(), totals_of(101), "{scarce:?}");
        let by = [("user", "before")];
        let snapshot = stage.registry.snapshot();
        assert_eq!(snapshot.value("count_total", &by), Some(51.0), "{scarce:?}");
        assert_eq!(snapshot.value("open", &by), Some(51.0));
        assert_eq!(snapshot.value("most", &by), Some(3.0));
        let state = [("user", "before"), ("state", "true")];
        assert_eq!(snapshot.value("state", &state), Some(1.0));
        if REFUSING.contains(&scarce) {
            assert_eq!(snapshot.value("count_total", &OVERFLOW), Some(50.0), "{scarce:?}");
            assert_eq!(stage.families.count.dropped(), 50);
            assert_eq!(snapshot.value("most", &OVERFLOW), Some(3.0));
            assert_eq!(snapshot.total("state", &OVERFLOW), Some(1.0));
        }
    }
}

#[test]
fn a_new_series_in_a_full_region_is_an_error_and_existing_ones_work() {
    for scarce in REFUSING {
        let stage = Stage::new(scarce);
        stage.fill();
        let Families { count, fixed, values, open, most, time, state } = &stage.families;
        let other = Fixed { gift: false };
        assert_eq!(count.try_with(AFTER).unwrap_err(), FULL);
        assert_eq!(time.try_with(AFTER).unwrap_err(), FULL);
        assert_eq!(state.try_with(AFTER).unwrap_err(), FULL);
        assert_eq!(values.try_with_values(&["after", "x"]).unwrap_err(), FULL);
        count.try_with(BEFORE).unwrap().inc();
        values.try_with_values(&["before", "x"]).unwrap().add(1.0);
        time.try_with(BEFORE).unwrap().observe(Duration::ZERO);
        if scarce == Scarce::Cells {
            // Striped and per-process values have cells elsewhere.
            fixed.try_with(other).unwrap().inc();
            open.try_with(AFTER).unwrap().inc();
            most.try_with(AFTER).unwrap().set(3);
            continue;
        }
        assert_eq!(open.try_with(AFTER).unwrap_err(), FULL);
        assert_eq!(most.try_with(AFTER).unwrap_err(), FULL);
        assert_eq!(fixed.try_with(other).unwrap_err(), FULL, "{scarce:?}");
        fixed.with(other).inc();
        assert_eq!((fixed.dropped(), stage.total("fixed_total")), (2, Some(2.0)));
    }
}

#[test]
fn a_handle_kept_in_a_full_region_counts_or_discards_and_harms_no_other() {
    for scarce in ALL {
        let stage = Stage::new(scarce);
        let Families { count, fixed, values, open, time, state, .. } = &stage.families;
        // It takes room to note that a series is kept.
        let early = count.with(By { user: "early" }).keep();
        early.inc();
        stage.fill();
        early.inc();
        assert_eq!(count.with(By { user: "early" }).get(), 2, "{scarce:?}");
        let total = || stage.total("count_total").unwrap();
        for user in ["early", "before", "after"] {
            let before = total();
            let kept = count.with(By { user }).keep();
            let cloned = (*count.with(By { user })).clone();
            kept.inc();
            cloned.inc();
            let added = total() - before;
            // Where there is room for that note, it counts.
            let may_go_nowhere = scarce == Scarce::Cells && user == "before";
            assert!(added == 2.0 || may_go_nowhere && added == 0.0, "{scarce:?} {user} {added}");
        }
        time.with(BEFORE).keep().observe(Duration::ZERO);
        state.with(BEFORE).keep().set(false);
        open.with(BEFORE).keep().inc();
        values.with_values(&["before", "x"]).keep().add(1.0);
        fixed.with(Fixed { gift: true }).keep().inc();
        assert_eq!(stage.total("fixed_total"), Some(2.0));
        stage.sweep();
        early.inc();
        assert_eq!(early.get(), 5, "{scarce:?}");
    }
}

#[test]
fn a_lazy_handle_in_a_full_region_counts_where_it_overflows() {
    static COUNTS: Users<Counter> = Family::new();
    static FIXED: Family<Fixed, Counter> = Family::new();
    static COUNT: Lazy<By<'static>, Counter> = COUNTS.lazy(By { user: "lazy" });
    static GIFT: Lazy<Fixed, Counter> = FIXED.lazy(Fixed { gift: true });
    static SALE: Lazy<Fixed, Counter> = FIXED.lazy(Fixed { gift: false });
    let stage = Stage::new(Scarce::Series);
    COUNTS.register(&stage.registry, &opts("count")).unwrap();
    FIXED.register(&stage.registry, &opts("fixed")).unwrap();
    stage.fill();
    for lazy in [&*COUNT, &*GIFT, &*SALE] {
        lazy.add(4);
    }
    let snapshot = stage.registry.snapshot();
    assert_eq!(snapshot.value("count_total", &OVERFLOW), Some(4.0));
    assert_eq!(snapshot.value("fixed_total", &[("gift", "true")]), Some(5.0));
    assert_eq!(snapshot.value("fixed_total", &OVERFLOW), Some(4.0));
}

/// Registers a family by names, whose series `before` is there before the region is full, and holds it then.
fn held_in_full<M: talea::Metric + Clone>(opts: Opts<'_>, scarce: Scarce) -> (Stage, M) {
    let stage = Stage::new(scarce);
    let family: Family<DynamicLabels, M> = stage.registry.family(opts, &["user"]).unwrap();
    _ = family.with_values(&["before"]);
    stage.fill();
    (stage, family.hold_values(&["before"]).unwrap().metric)
}

#[test]
fn a_series_that_there_is_no_room_to_hold_counts_somewhere() {
    for scarce in REFUSING {
        let (stage, counter) = held_in_full::<Counter>(opts("held"), scarce);
        counter.add(3);
        assert_eq!(stage.total("held_total"), Some(3.0), "{scarce:?}");
        let (stage, striped) = held_in_full::<FloatCounter>(opts("held").striped(true), scarce);
        striped.add(3.0);
        assert_eq!(stage.total("held_total"), Some(3.0), "{scarce:?}");
    }
}

#[test]
fn an_info_that_finds_no_room_keeps_its_labels() {
    for scarce in REFUSING {
        let stage = Stage::new(scarce);
        stage.fill();
        for n in 0..50 {
            // Long enough that it does not fit between two others.
            stage.info.set(By { user: &format!("{n:0>100}") });
        }
        stage.info.set(BEFORE);
        let snapshot = stage.registry.snapshot();
        let said: Vec<_> = snapshot.select("about_info", &[]).collect();
        assert_eq!(format!("{said:?}"), "[about_info{user=\"before\"} 1]", "{scarce:?}");
    }
}

#[test]
fn a_full_region_can_be_wiped_and_what_cannot_counts_on() {
    for scarce in ALL {
        let stage = Stage::new(scarce);
        stage.fill();
        stage.record("after");
        let wiped = stage.registry.wipe(|_| true);
        // The wiped values of a series are stored in single cells, one for each of its own.
        let has_room = scarce != Scarce::Cells;
        assert_eq!(wiped, has_room, "{scarce:?}");
        let totals = stage.totals();
        for ((name, total), (_, before)) in totals.iter().zip(totals_of(2)) {
            // Values in flight stay, and so do per-process values.
            let stays = ["one_open", "open", "one_most"].contains(name);
            let expected = if stays { before } else { 0.0 };
            // Where there is no room to note it, some series count on.
            let counts_on = !wiped && (0.0..=before).contains(total);
            assert!(*total == expected || counts_on, "{scarce:?}: {name} is {total}");
        }
        stage.one.open.add(-2);
        stage.families.open.with(BEFORE).dec();
        stage.families.open.with(AFTER).dec();
        let total = |name| stage.total(name).unwrap_or(0.0);
        assert_eq!((total("one_open"), total("open")), (0.0, 0.0), "{scarce:?}");
        let before = total("count_total");
        stage.families.count.with(By { user: "anew" }).add(3);
        assert_eq!(total("count_total"), before + 3.0, "{scarce:?}");
    }
}

#[test]
fn removing_series_from_a_full_region_makes_room() {
    for scarce in REFUSING {
        let stage = Stage::new(scarce);
        stage.fill();
        let Families { count, values, time, .. } = &stage.families;
        assert!(count.try_with(AFTER).is_err());
        assert!(count.remove(BEFORE) && !count.remove(AFTER));
        assert_eq!(values.remove_matching(&[("a", "before")]), 1);
        assert!(time.remove(BEFORE) && stage.small.remove_matching(&[]) > 0);
        assert_eq!(stage.total("count_total"), None);
        stage.registry.sweep();
        count.try_with(AFTER).unwrap().add(3);
        assert_eq!(stage.total("count_total"), Some(3.0), "{scarce:?}");
    }
}

#[test]
fn a_family_of_a_full_region_can_end_and_another_begin() {
    for scarce in ALL {
        let stage = Stage::new(scarce);
        stage.fill();
        for name in ["filling_small", "big", "one_level"] {
            assert!(stage.registry.unregister(name), "{name}");
        }
        let before = stage.totals();
        stage.small.with(By { user: "late" }).set(3);
        stage.one.level.set(9);
        assert_eq!(stage.totals(), before, "{scarce:?}");
        assert_eq!(stage.total("filling_small"), None);
        stage.sweep();
        let new: Users<Counter> = register(&stage.registry, "new");
        new.try_with(By { user: "a" }).unwrap().inc();
        register::<StateSet<bool>>(&stage.registry, "one_level").set(false);
        assert_eq!(stage.total("new_total"), Some(1.0), "{scarce:?}");
        assert_eq!(stage.total("one_level"), Some(1.0));
    }
}

fn refused<R: Registrable>(registry: &Registry, opts: Opts<'_>) -> Error {
    registry.register::<R>(opts).err().expect("it was accepted")
}

/// The error of registering where the region is full.
fn check_full(error: Error, name: &str) {
    let expected = format!("the metric {name:?}: the region is full; create it with more bytes");
    assert_eq!(error.to_string(), format!("cannot register {expected}"));
    assert!(matches!(error, Error::Full { .. }));
}

#[test]
fn registering_in_a_full_region_is_an_error_and_can_be_retried() {
    for scarce in REFUSING {
        let stage = Stage::new(scarce);
        stage.fill();
        for _ in 0..200 {
            for name in ["late", "later"] {
                check_full(refused::<Gauge>(&stage.registry, opts(name)), name);
            }
        }
        // Series that exist are found.
        register::<Gauge>(&stage.registry, "one_level").set(5);
        assert_eq!(stage.one.level.get(), 5);
        stage.small.remove_matching(&[]);
        stage.sweep();
        register::<Gauge>(&stage.registry, "late").set(4);
        assert_eq!(stage.registry.snapshot().value("late", &[]), Some(4.0), "{scarce:?}");
        // The other name is free.
        register::<StateSet<bool>>(&stage.registry, "later");
    }
}

#[test]
fn families_without_end_are_refused_in_words() {
    let registry = Registry::with_config(Config::with_len(512 << 10)).unwrap();
    let (last, error) = (0..1_000)
        .find_map(|n: i64| match registry.register::<Gauge>(opts(&format!("x{n}"))) {
            Ok(gauge) => {
                gauge.set(n);
                None
            }
            Err(error) => Some((n, error)),
        })
        .unwrap();
    check_full(error, &format!("x{last}"));
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.families().len() as i64, last);
    assert!((0..last).all(|n| snapshot.value(&format!("x{n}"), &[]) == Some(n as f64)));
}

#[test]
fn a_whole_family_that_does_not_fit_is_refused_in_words() {
    talea::label_set! { struct Many; }
    #[derive(Labels)]
    struct OfMany {
        many: Many,
    }
    Many::fix((0..200).map(|n| n.to_string())).unwrap();
    let stage = Stage::new(Scarce::Series);
    let whole = opts("whole").whole(true);
    check_full(refused::<Family<OfMany, Counter>>(&stage.registry, whole), "whole");
    assert_eq!(stage.totals(), totals_of(1));
}

#[test]
fn gauges_of_processes_that_find_no_room_of_their_own_keep_what_was_set_last() {
    let stage = Stage::new(Scarce::Owned);
    stage.fill();
    for combine in [Combine::Sum, Combine::Max, Combine::Min, Combine::Each] {
        let name = format!("late_{combine:?}");
        let late: Gauge = stage.registry.register(opts(&name).combine(combine)).unwrap();
        let shown = || stage.total(&name);
        for value in [7, -3, 5] {
            late.set(value);
            assert_eq!((late.get(), shown()), (value, Some(value as f64)), "{combine:?}");
        }
        late.add(-2);
        late.set_max(9);
        assert_eq!((late.get(), shown()), (9, Some(9.0)), "{combine:?}");
    }
}

#[test]
fn a_count_in_flight_without_room_of_its_own_stays() {
    let stage = Stage::new(Scarce::Owned);
    stage.fill();
    let opts = opts("late").expires_after(Some(Duration::from_secs(60)));
    let late: Users<UpDownCounter> = stage.registry.register(opts).unwrap();
    let by = By { user: "a" };
    late.with(by).add(3);
    let shown = || stage.total("late");
    assert!(late.wipe());
    assert_eq!(shown(), Some(3.0));
    stage.sweep();
    assert_eq!(shown(), Some(3.0), "it is not idle while it is not 0");
    late.with(by).add(-3);
    assert_eq!(shown(), Some(0.0));
    stage.sweep();
    assert_eq!(shown(), None);
}

#[test]
fn in_a_full_region_threads_neither_panic_nor_lose_what_is_taken() {
    for scarce in ALL {
        let stage = Stage::new(scarce);
        stage.fill();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let stage = &stage;
                scope.spawn(move || (0..100).for_each(|n| stage.record(&format!("{thread} {n}"))));
            }
        });
        assert_eq!(stage.totals(), totals_of(401), "{scarce:?}");
    }
}

#[test]
fn no_room_at_all_is_refused_when_the_region_is_made() {
    let config = Config { series: 1_000_000, ..Config::with_len(1 << 20) };
    let message = Registry::with_config(config).unwrap_err().to_string();
    assert!(message.contains("1000000 series"), "{message}");
}
