//! Claims about series with dynamic labels, and how they go.

use std::time::Duration;

use crate::support::metrics::By;
use talea::{Counter, Family, Gauge, Labels, Opts, Registry, UpDownCounter};

fn minutes(n: u64) -> Option<Duration> {
    Some(Duration::from_secs(60 * n))
}

fn value(registry: &Registry, name: &str, user: &str) -> Option<f64> {
    registry.snapshot().value(name, &[("user", user)])
}

#[test]
fn a_removed_series_is_gone_and_starts_anew() {
    let registry = Registry::for_test().unwrap();
    let calls: Family<By<'static>, Counter> =
        registry.register(Opts::new("calls", "Calls.")).unwrap();
    calls.with(By { user: "a" }).add(3);
    assert!(calls.remove(By { user: "a" }));
    assert!(!calls.remove(By { user: "a" }));
    assert_eq!(value(&registry, "calls_total", "a"), None);
    calls.with(By { user: "a" }).inc();
    assert_eq!(value(&registry, "calls_total", "a"), Some(1.0));
}

#[test]
fn an_idle_series_expires_and_a_kept_counter_hides_until_it_counts_again() {
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new("calls", "Calls.").expires_after(minutes(2));
    let calls: Family<By<'static>, Counter> = registry.register(opts).unwrap();
    calls.with(By { user: "idle" }).inc();
    let kept = calls.with(By { user: "kept" }).keep();
    // A clone is as good.
    let cloned = (*calls.with(By { user: "cloned" })).clone();
    for user in [&kept, &cloned] {
        user.inc();
    }
    (0..8).for_each(|_| registry.sweep());
    assert_eq!(registry.snapshot().families().next().map_or(0, |f| f.series().count()), 0);
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
    let registry = Registry::for_test().unwrap();
    let opts = |name| Opts::new(name, "Some.").expires_after(minutes(1));
    let sizes: Family<By<'static>, Gauge> = registry.register(opts("sizes")).unwrap();
    let open: Family<By<'static>, UpDownCounter> = registry.register(opts("open")).unwrap();
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
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new("calls", "Calls.").expires_after(None);
    let calls: Family<By<'static>, Counter> = registry.register(opts).unwrap();
    calls.with(By { user: "a" }).inc();
    (0..200).for_each(|_| registry.sweep());
    assert_eq!(value(&registry, "calls_total", "a"), Some(1.0));
}

#[test]
fn more_users_than_the_limit_come_and_go_without_overflow() {
    let registry = Registry::for_test().unwrap();
    let opts = Opts::new("calls", "Calls.").limit(100).expires_after(minutes(1));
    let calls: Family<By<'static>, Counter> = registry.register(opts).unwrap();
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
    let registry = Registry::for_test().unwrap();
    let opts = || Opts::new("calls", "Calls.");
    let calls: Family<Call<'static>, Counter> = registry.register(opts()).unwrap();
    let texts: Family<Texts<'static>, Counter> = registry.register(opts()).unwrap();
    let values = registry.family::<Counter>(opts(), &["on", "user"]).unwrap();
    // Often enough that each of them remembers, and between removals.
    for round in 1..=4 {
        for _ in 0..4 {
            for (on, text) in [(false, "false"), (true, "true")] {
                for user in [
                    "",
                    "a",
                    "\0",
                    "a user of 17 byte",
                    "a user of more than 24 bytes",
                    &"long".repeat(30),
                ] {
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
