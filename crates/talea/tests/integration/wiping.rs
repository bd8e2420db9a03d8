//! Counting from 0 again, families that end, and snapshots of some.

use std::time::{Duration, SystemTime};

use talea::{
    Combine, Counter, Family, FloatCounter, Gauge, Histogram, Info, Registry, Seconds, StateSet,
    UpDownCounter,
};

use crate::support::metrics::{
    By, Fixed, OVERFLOW, Users, alone, count, opts, reason, register, registry,
};

/// One metric of each type, all with values.
struct Each {
    count: Counter,
    float: FloatCounter,
    time: Histogram<Seconds>,
    level: Gauge,
    own: Gauge,
    open: UpDownCounter,
    state: StateSet<bool>,
}

impl Each {
    fn new(registry: &Registry) -> Self {
        Self {
            count: register(registry, "a_count"),
            float: register(registry, "a_float"),
            time: register(registry, "b_time"),
            level: register(registry, "b_level"),
            own: registry.register(opts("a_own").combine(Combine::Max)).unwrap(),
            open: register(registry, "a_open"),
            state: register(registry, "b_state"),
        }
    }

    fn record(&self) {
        self.count.add(3);
        self.float.add(0.5);
        self.time.observe(Duration::from_millis(20));
        self.level.set(4);
        self.own.set(5);
        self.open.add(6);
        self.state.set(true);
    }
}

const NAMES: [&str; 7] =
    ["a_count_total", "a_float_total", "b_time_seconds", "b_level", "a_own", "a_open", "b_state"];

/// Their values in a snapshot.
fn shown(registry: &Registry) -> [f64; 7] {
    let snapshot = registry.snapshot();
    let time = snapshot.histogram("b_time_seconds", &[]).unwrap();
    assert_eq!(time.sum(), time.count() as f64 / 50.0);
    NAMES.map(|name: &str| match name {
        "b_time_seconds" => time.count() as f64,
        _ => snapshot.total(name, &[]).unwrap(),
    })
}

#[test]
fn a_wipe_leaves_only_counts_in_flight_and_per_process_values() {
    let registry = registry();
    let each = Each::new(&registry);
    for _ in 0..3 {
        each.record();
        each.open.add(-6);
        each.open.add(6);
        assert!(registry.wipe(|_| true));
        assert_eq!(shown(&registry)[..5], [0.0, 0.0, 0.0, 0.0, 5.0]);
        assert_eq!((each.count.get(), each.float.get(), each.level.get()), (0, 0.0, 0));
        assert!(!each.state.is(true));
        each.open.add(-each.open.get());
        each.record();
        assert_eq!(shown(&registry), [3.0, 0.5, 1.0, 4.0, 5.0, 6.0, 1.0]);
        assert_eq!((each.count.get(), each.float.get(), each.level.get()), (3, 0.5, 4));
        each.open.add(-6);
    }
}

#[test]
fn a_sum_that_came_to_its_end_is_wiped_too() {
    let registry = registry();
    let time: Histogram<Seconds> = register(&registry, "time");
    for first in [Duration::MAX, Duration::from_secs(1)] {
        time.observe(first);
        assert!(registry.wipe(|_| true));
        let sum = || registry.snapshot().expect_histogram("time_seconds", &[]).sum();
        assert_eq!(sum(), 0.0);
        time.observe(Duration::from_secs(5));
        assert_eq!(sum(), 5.0);
    }
}

#[test]
fn only_families_with_the_wanted_names_are_wiped() {
    let registry = registry();
    let each = Each::new(&registry);
    each.record();
    let mut names = Vec::new();
    assert!(registry.wipe(|_| false));
    assert_eq!(shown(&registry), [3.0, 0.5, 1.0, 4.0, 5.0, 6.0, 1.0]);
    let named = std::sync::Mutex::new(&mut names);
    assert!(registry.wipe(|name| {
        named.lock().unwrap().push(name.to_owned());
        name.starts_with("b_")
    }));
    assert_eq!(shown(&registry), [3.0, 0.5, 0.0, 0.0, 5.0, 6.0, 0.0]);
    names.sort();
    let mut all = NAMES;
    all.sort();
    assert_eq!(names, all);
}

#[test]
fn of_a_wiped_family_dynamic_series_go_and_fixed_and_kept_ones_are_zero() {
    let registry = registry();
    let users: Users<Counter> = registry.register(opts("users").limit(2)).unwrap();
    let gifts: Family<Fixed, Counter> = register(&registry, "gifts");
    let open: Users<UpDownCounter> = register(&registry, "open");
    let info: Info<By<'static>> = register(&registry, "i");
    let kept = users.with(By { user: "kept" }).keep();
    for user in ["kept", "gone", "beyond"] {
        users.with(By { user }).add(2);
        open.with(By { user }).inc();
    }
    open.with(By { user: "gone" }).dec();
    gifts.with(Fixed { gift: true }).add(3);
    info.set(By { user: "me" });

    assert!(users.wipe() && gifts.wipe() && open.wipe());
    let snapshot = registry.snapshot();
    assert_eq!(count(&snapshot, "users_total"), 1, "{snapshot:?}");
    assert_eq!(snapshot.value("users_total", &[("user", "kept")]), Some(0.0));
    assert_eq!(snapshot.value("gifts_total", &[("gift", "true")]), Some(0.0));
    assert_eq!((count(&snapshot, "open"), snapshot.total("open", &[])), (2, Some(2.0)));
    assert_eq!(count(&snapshot, "i_info"), 1, "another family stays as it is");

    users.with(By { user: "gone" }).inc();
    kept.inc();
    users.with(By { user: "beyond" }).add(5);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.value("users_total", &[("user", "gone")]), Some(1.0));
    assert_eq!(snapshot.value("users_total", &[("user", "kept")]), Some(1.0));
    assert_eq!(snapshot.value("users_total", &OVERFLOW), Some(5.0));
}

#[test]
fn a_series_counts_since_it_was_made_or_wiped() {
    let registry = registry();
    let before = SystemTime::now() - Duration::from_millis(20);
    let count: Counter = register(&registry, "count");
    let users: Users<Counter> = register(&registry, "u");
    let created = |name: &str| {
        let snapshot = registry.snapshot();
        let created = snapshot.select(name, &[]).next().unwrap().created();
        created.unwrap()
    };
    let mut seen = [before; 2];
    for round in 0..5 {
        count.inc();
        users.with(By { user: "a" }).inc();
        let now = ["count_total", "u_total"].map(created);
        assert!(now[0] > seen[0] && now[1] >= seen[1], "{round}: {seen:?} {now:?}");
        assert!(now.iter().all(|&time| time <= SystemTime::now()));
        assert_eq!(now, ["count_total", "u_total"].map(created), "it stands still");
        seen = now;
        registry.wipe(|_| true);
    }
    users.with(By { user: "a" }).inc();
    assert!(created("u_total") >= seen[1]);
}

#[test]
fn of_what_a_reader_adds_nobody_knows_since_when_it_counts() {
    let (registry, users) = alone::<Users<Counter>>(opts("u").limit(0));
    users.with(By { user: "a" }).inc();
    let snapshot = registry.snapshot();
    let created = |name| snapshot.select(name, &[]).next().unwrap().created();
    assert_eq!(created("talea_series_dropped_total"), None);
    assert!(created("u_total").is_some());
}

#[test]
fn the_states_of_a_set_were_made_when_the_set_was() {
    let (registry, _state) = alone::<StateSet<bool>>(opts("s"));
    let snapshot = registry.snapshot();
    let mut created = snapshot.select("s", &[]).map(|series| series.created());
    let first = created.next().unwrap();
    assert!(first.is_some() && created.all(|other| other == first));
}

#[test]
fn an_ended_family_is_gone_and_its_name_is_free_for_another_type() {
    let registry = registry();
    let old: Gauge = register(&registry, "level");
    let users: Users<Gauge> = register(&registry, "u");
    old.set(3);
    users.with(By { user: "a" }).set(4);
    assert!(!registry.unregister("lev") && !registry.unregister("levels"));
    assert!(registry.unregister("level") && registry.unregister("u"));
    assert!(!registry.unregister("level"));
    old.set(5);
    old.inc();
    users.with(By { user: "b" }).set(6);
    assert_eq!(registry.snapshot().families().len(), 0);

    let new: StateSet<bool> = register(&registry, "level");
    let _histogram: Histogram<talea::Count> = register(&registry, "u");
    new.set(false);
    old.set(7);
    users.with(By { user: "b" }).set(8);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.value("level", &[("level", "false")]), Some(1.0));
    assert_eq!((count(&snapshot, "level"), count(&snapshot, "u")), (2, 1));
    assert_eq!(snapshot.histogram("u", &[]).unwrap().count(), 0);
    // A counter's name is that of its samples.
    register::<Counter>(&registry, "c");
    assert!(!registry.unregister("c") && registry.unregister("c_total"));
}

#[test]
fn a_family_that_is_registered_again_counts_from_zero_by_its_old_handles_too() {
    let registry = registry();
    let again = || -> (Users<Counter>, Family<Fixed, Counter>, Each) {
        let users = registry.register(opts("u").limit(1)).unwrap();
        (users, register(&registry, "g"), Each::new(&registry))
    };
    let (users, gifts, each) = again();
    let kept = users.with(By { user: "a" }).keep();
    let record_all = || {
        users.with(By { user: "a" }).inc();
        users.with(By { user: "beyond" }).inc();
        gifts.with(Fixed { gift: true }).inc();
        kept.inc();
        each.record();
    };
    for _ in 0..3 {
        record_all();
        for name in ["u_total", "g_total"].into_iter().chain(NAMES) {
            assert!(registry.unregister(name), "{name}");
        }
        // Updates are discarded now, also after the families are back.
        record_all();
        assert_eq!(registry.snapshot().to_text(), "");
        let (new_users, ..) = again();
        let snapshot = registry.snapshot();
        for name in ["u_total", "g_total", "a_count_total", "a_float_total", "b_level", "b_state"] {
            assert_eq!(snapshot.total(name, &[]).unwrap_or(0.0), 0.0, "{name}: {snapshot:?}");
        }
        assert_eq!(snapshot.histogram("b_time_seconds", &[]).unwrap().count(), 0);

        kept.inc();
        new_users.with(By { user: "a" }).inc();
        gifts.with(Fixed { gift: true }).inc();
        each.count.add(2);
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("u_total", &[("user", "a")]), Some(2.0), "{snapshot:?}");
        assert_eq!(snapshot.total("g_total", &[]), Some(1.0));
        assert_eq!(snapshot.value("a_count_total", &[]), Some(2.0));
        each.open.add(-each.open.get());
    }
}

#[test]
fn an_ended_family_can_come_back_as_it_is_not_and_as_it_was() {
    let registry = registry();
    let first: Counter = register(&registry, "x");
    for round in 0..3 {
        first.add(5);
        registry.unregister("x_total");
        let second: FloatCounter = register(&registry, "x");
        second.add(0.5);
        assert_eq!(registry.snapshot().value("x_total", &[]), Some(0.5), "{round}");
        let refused = registry.register::<Counter>(opts("x"));
        assert!(reason(refused).contains("whole numbers or not"));
        registry.unregister("x_total");
        register::<Counter>(&registry, "x");
        first.inc();
        assert_eq!(registry.snapshot().value("x_total", &[]), Some(1.0), "{round}");
    }
}

#[test]
fn a_snapshot_of_some_families_has_all_of_theirs_and_no_others() {
    let registry = registry();
    Each::new(&registry).record();
    let users: Users<Counter> = register(&registry, "u");
    (0..100).for_each(|n: u32| users.with(By { user: &n.to_string() }).inc());
    let all = registry.snapshot();
    for wanted in all.families() {
        let some = registry.snapshot_of(|name| name == wanted.name());
        assert_eq!(some.families().len(), 1);
        let text = all.to_text();
        assert!(text.contains(&some.to_text()) && !some.to_text().is_empty(), "{some:?}");
    }
    assert_eq!(registry.snapshot_of(|name| name.starts_with("b_")).families().len(), 3);
    assert_eq!(registry.snapshot_of(|_| false).to_text(), "");
}
