//! Observable metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use talea::{Combine, FloatCounter, FloatGauge, Kind, Observation, Value};

use crate::support::metrics::{By, Fixed, OVERFLOW, count, opts, register, registry};

/// A number that a test changes and a metric reads.
fn source() -> (Arc<Mutex<f64>>, impl Fn() -> f64 + Send + Sync + 'static) {
    let source = Arc::new(Mutex::new(0.0));
    let read = source.clone();
    (source, move || *read.lock().unwrap())
}

#[test]
fn an_observable_gauge_is_read_before_each_snapshot() {
    let registry = registry();
    let (source, read) = source();
    registry.observable_gauge(opts("level"), read).unwrap();
    for value in [3.0, -2.5, 0.0, f64::INFINITY] {
        *source.lock().unwrap() = value;
        assert_eq!(registry.snapshot().value("level", &[]), Some(value));
    }
    let opts = opts("largest").combine(Combine::Max);
    registry.observable_gauge(opts, || 4.0).unwrap();
    assert_eq!(registry.snapshot().value("largest", &[]), Some(4.0));
}

#[test]
fn an_observable_counter_follows_its_source_and_never_goes_down_unless_it_is_wiped() {
    let registry = registry();
    let (source, read) = source();
    registry.observable_counter(opts("busy_seconds"), read).unwrap();
    // Each time: what the source says, and what is counted then. It is started anew
    // twice, and what it says then counts whole.
    for (says, counted) in [
        (0.0, 0.0),
        (1.5, 1.5),
        (1.5, 1.5),
        (4.0, 4.0),
        (0.5, 4.5),
        (2.5, 6.5),
        (0.0, 6.5),
        (1.0, 7.5),
        (f64::NAN, 7.5),
        (3.0, 9.5),
    ] {
        *source.lock().unwrap() = says;
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("busy_seconds_total", &[]), Some(counted), "at {says}");
        assert_eq!(snapshot.family("busy_seconds_total").unwrap().kind(), Kind::Counter);
    }
    *source.lock().unwrap() = 10.0;
    registry.snapshot();
    registry.wipe(|_| true);
    *source.lock().unwrap() = 12.0;
    assert_eq!(registry.snapshot().value("busy_seconds_total", &[]), Some(2.0));
}

#[test]
fn snapshots_side_by_side_count_what_is_observed_once() {
    const EACH: u64 = if cfg!(miri) { 3 } else { 200 };
    let registry = registry();
    let total = Arc::new(AtomicU64::new(0));
    let read = total.clone();
    registry
        .observable_counter(opts("reads"), move || (read.fetch_add(1, Relaxed) + 1) as f64)
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(|_| drop(registry.snapshot())));
        }
    });
    let counted = registry.snapshot().value("reads_total", &[]);
    assert_eq!(counted, Some(total.load(Relaxed) as f64));
}

#[test]
fn observable_gauges_that_are_not_set_any_more_disappear_and_come_back() {
    let registry = registry();
    let disks = Arc::new(Mutex::new(vec![("/", 1.0), ("/\"srv\"", 2.0)]));
    let read = disks.clone();
    registry
        .observable_gauges(opts("free"), move |found: &mut Observation<'_, By<'static>>| {
            for (user, free) in read.lock().unwrap().iter() {
                found.set(By { user }, *free);
            }
        })
        .unwrap();
    for round in [
        vec![("/", 1.0), ("/\"srv\"", 2.0)],
        vec![("/", 3.0)],
        vec![("/\"srv\"", 0.0), ("/home", 5.0)],
        vec![],
        vec![("/", 4.0), ("/home", 5.0)],
    ] {
        *disks.lock().unwrap() = round.clone();
        let snapshot = registry.snapshot();
        assert_eq!(count(&snapshot, "free"), round.len(), "{snapshot:?}");
        for (user, free) in round {
            assert_eq!(snapshot.value("free", &[("user", user)]), Some(free));
        }
    }
}

#[test]
fn an_overflow_of_observable_gauges_disappears_when_all_have_room() {
    let registry = registry();
    let disks = Arc::new(Mutex::new(vec![]));
    let read = disks.clone();
    registry
        .observable_gauges(
            opts("free").limit(2),
            move |found: &mut Observation<'_, By<'static>>| {
                read.lock().unwrap().iter().for_each(|&user| found.set(By { user }, 7.0));
            },
        )
        .unwrap();
    for (round, expected) in [
        (vec!["/", "/srv"], None),
        (vec!["/", "/srv", "/home"], Some(7.0)),
        (vec!["/", "/srv", "/home"], Some(7.0)),
        (vec!["/srv", "/home"], None),
        (vec!["/home", "/", "/srv"], Some(7.0)),
        (vec!["/"], None),
        (vec!["/", "/home"], None),
        // All at once are others.
        (vec!["/a", "/b"], None),
    ] {
        *disks.lock().unwrap() = round.clone();
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("free", &OVERFLOW), expected, "{round:?}");
        let shown =
            round.iter().filter(|user| snapshot.value("free", &[("user", user)]) == Some(7.0));
        assert_eq!(shown.count(), 2.min(round.len()), "{round:?}");
    }
}

#[test]
fn observable_gauges_with_fixed_labels_disappear_too() {
    let registry = registry();
    let (source, read) = source();
    registry
        .observable_gauges(opts("orders"), move |found: &mut Observation<'_, Fixed>| {
            found.set(Fixed { gift: false }, 1.0);
            if read() == 0.0 {
                found.set(Fixed { gift: true }, 2.0);
            }
        })
        .unwrap();
    assert_eq!(count(&registry.snapshot(), "orders"), 2);
    *source.lock().unwrap() = 1.0;
    let snapshot = registry.snapshot();
    assert_eq!(count(&snapshot, "orders"), 1, "{snapshot:?}");
    assert_eq!(snapshot.value("orders", &[("gift", "false")]), Some(1.0));
}

#[test]
fn observations_are_stored_for_readers_from_outside() {
    let registry = registry();
    registry.observable_gauge(opts("level"), || 3.0).unwrap();
    registry.observable_counter(opts("busy"), || 4.0).unwrap();
    registry.snapshot();
    let level: FloatGauge = register(&registry, "level");
    let busy: FloatCounter = register(&registry, "busy");
    assert_eq!((level.get(), busy.get()), (3.0, 4.0));
    let snapshot = registry.snapshot();
    let value = snapshot.select("busy_total", &[]).next().unwrap().value();
    assert_eq!(value, Value::Float(4.0));
}
