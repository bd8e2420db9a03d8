//! Claims about series with dynamic labels, and how they go.

use std::time::Duration;

use crate::support::metrics::{By, Users, alone, count, opts, registry};
use talea::{Counter, Family, Gauge, Labels, Opts, Registry, UpDownCounter};

/// Options of series that expire after so many minutes.
fn expiring(name: &str, minutes: u64) -> Opts<'_> {
    opts(name).expires_after(Some(Duration::from_secs(60 * minutes)))
}

fn value(registry: &Registry, name: &str, user: &str) -> Option<f64> {
    registry.snapshot().value(name, &[("user", user)])
}

#[test]
fn an_idle_series_expires_and_a_kept_counter_hides_until_it_counts_again() {
    let (registry, calls) = alone::<Users<Counter>>(expiring("calls", 2));
    calls.with(By { user: "idle" }).inc();
    let kept = calls.with(By { user: "kept" }).keep();
    // A clone is as good.
    let cloned = (*calls.with(By { user: "cloned" })).clone();
    for user in [&kept, &cloned] {
        user.inc();
    }
    (0..8).for_each(|_| registry.sweep());
    assert_eq!(count(&registry.snapshot(), "calls_total"), 0);
    // Were theirs free, these would get their cells.
    for n in 0..10 {
        calls.with(By { user: &n.to_string() }).inc();
    }
    kept.inc();
    cloned.inc();
    assert_eq!(value(&registry, "calls_total", "kept"), Some(2.0));
    assert_eq!(value(&registry, "calls_total", "cloned"), Some(2.0));
    assert_eq!(value(&registry, "calls_total", "idle"), None);
}

#[test]
fn a_kept_gauge_stays_and_so_does_what_is_in_flight() {
    let registry = registry();
    let sizes: Users<Gauge> = registry.register(expiring("sizes", 1)).unwrap();
    let open: Users<UpDownCounter> = registry.register(expiring("open", 1)).unwrap();
    sizes.with(By { user: "a" }).keep().set(7);
    open.with(By { user: "a" }).inc();
    (0..5).for_each(|_| registry.sweep());
    assert_eq!(value(&registry, "sizes", "a"), Some(7.0));
    assert_eq!(value(&registry, "open", "a"), Some(1.0));
    open.with(By { user: "a" }).dec();
    (0..5).for_each(|_| registry.sweep());
    assert_eq!(value(&registry, "open", "a"), None);
}

#[test]
fn a_family_can_keep_its_series_for_good() {
    let (registry, calls) = alone::<Users<Counter>>(opts("calls").expires_after(None));
    calls.with(By { user: "a" }).inc();
    (0..200).for_each(|_| registry.sweep());
    assert_eq!(value(&registry, "calls_total", "a"), Some(1.0));
}

#[test]
fn more_users_than_the_limit_come_and_go_without_overflow() {
    let (registry, calls) = alone::<Users<Counter>>(expiring("calls", 1).limit(100));
    for n in 0..10_000 {
        calls.with(By { user: &n.to_string() }).inc();
        if n % 20 == 0 {
            registry.sweep();
        }
    }
    assert_eq!(calls.dropped(), 0);
}

#[test]
fn a_combination_that_is_remembered_is_the_same_for_every_type_of_labels() {
    #[derive(Labels)]
    struct Call<'a> {
        on: bool,
        user: &'a str,
    }
    #[derive(Labels)]
    struct Texts<'a> {
        on: &'a str,
        user: &'a str,
    }
    let registry = registry();
    let calls: Family<Call<'static>, Counter> = registry.register(opts("calls")).unwrap();
    let texts: Family<Texts<'static>, Counter> = registry.register(opts("calls")).unwrap();
    let values = registry.family::<Counter>(opts("calls"), &["on", "user"]).unwrap();
    let long = "long".repeat(30);
    let users = ["", "a", "\0", "a user of 17 byte", "a user of more than 24 bytes", &long];
    // Often enough that each of them remembers, and between removals.
    for round in 1..=4 {
        for _ in 0..4 {
            for (on, text) in [(false, "false"), (true, "true")] {
                for user in users {
                    calls.with(Call { on, user }).inc();
                    texts.with(Texts { on: text, user }).inc();
                    values.with_values(&[text, user]).inc();
                }
            }
        }
        let snapshot = registry.snapshot();
        for (on, user) in [("false", "a"), ("true", ""), ("true", "a user of 17 byte")] {
            let found = snapshot.value("calls_total", &[("on", on), ("user", user)]);
            assert_eq!(found, Some(12.0), "round {round}");
        }
        assert_eq!(snapshot.total("calls_total", &[]), Some(144.0));
        match round % 2 {
            0 => assert!(calls.wipe()),
            _ => assert_eq!(texts.remove_matching(&[]), 12),
        }
    }
}
