//! Observable functions that panic, block, or take snapshots themselves.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use talea::{Combine, Counter, Observation, Registry};

use crate::support::metrics::{By, opts, registry};

/// Registers observable values by a function.
type Form = fn(&Registry, Arc<dyn Fn() -> f64 + Send + Sync>);

/// All forms, the sample that shows the value, and whether values are labelled `failures{family}`.
const FORMS: [(&str, Form, Option<&str>); 7] = [
    ("gauge", |r, read| r.observable_gauge(opts("x"), move || read()).unwrap(), Some("x")),
    (
        "gauge by sum",
        |r, read| {
            r.observable_gauge(opts("x").combine(Combine::Sum), move || read()).unwrap();
        },
        Some("x"),
    ),
    (
        "gauge by maximum",
        |r, read| {
            r.observable_gauge(opts("x").combine(Combine::Max), move || read()).unwrap();
        },
        Some("x"),
    ),
    (
        "gauge of each",
        |r, read| {
            r.observable_gauge(opts("x").combine(Combine::Each), move || read()).unwrap();
        },
        Some("x"),
    ),
    (
        "counter",
        |r, read| r.observable_counter(opts("x"), move || read()).unwrap(),
        Some("x_total"),
    ),
    (
        "gauges",
        |r, read| {
            r.observable_gauges(opts("x"), move |found: &mut Observation<'_, By<'static>>| {
                found.set(By { user: "it" }, read());
            })
            .unwrap();
        },
        Some("x"),
    ),
    ("on_snapshot", |r, read| r.on_snapshot(move || _ = read()), None),
];

fn values(registry: &Registry, name: &str) -> Vec<String> {
    let snapshot = registry.snapshot();
    let all = snapshot.select(name, &[]).map(|series| format!("{:?}", series.value()));
    all.collect()
}

/// A gauge that changes at each reading.
fn ticking(registry: &Registry, name: &'static str) {
    let ticks = AtomicU64::new(0);
    registry.observable_gauge(opts(name), move || ticks.fetch_add(1, SeqCst) as f64).unwrap();
}

fn assert_is_fresh(registry: &Registry, form: &str) {
    for name in ["before", "after"] {
        let [first, second] = [0, 1].map(|_| registry.snapshot().value(name, &[]).unwrap());
        assert!(second > first, "{form}: {name} stays at {first}");
    }
}

#[test]
fn a_panic_in_an_observable_function_takes_out_its_own_values_alone() {
    for (form, register, shown) in FORMS {
        let registry = registry();
        ticking(&registry, "before");
        let panics = Arc::new(AtomicBool::new(true));
        let is_on = panics.clone();
        register(
            &registry,
            Arc::new(move || if is_on.load(SeqCst) { panic!("as the test wants") } else { 5.0 }),
        );
        ticking(&registry, "after");
        let family = shown.unwrap_or("on_snapshot");
        let failures = || {
            let labels = [("family", family)];
            registry.snapshot().value("talea_observable_failures_total", &labels)
        };
        for _ in 0..2 {
            assert_is_fresh(&registry, form);
            assert_eq!(values(&registry, family), [""; 0], "{form}");
        }
        let counted = failures();
        assert!(failures() > counted, "{form}: {counted:?} panics counted");
        panics.store(false, SeqCst);
        assert_is_fresh(&registry, form);
        if let Some(shown) = shown {
            assert_eq!(values(&registry, shown).len(), 1, "{form}");
        }
        let counted = failures();
        assert_eq!(failures(), counted, "{form}");
        panics.store(true, SeqCst);
        assert_is_fresh(&registry, form);
        assert_eq!(values(&registry, family), [""; 0], "{form}");
    }
}

#[test]
fn sweeps_go_on_beside_a_function_that_panics() {
    let registry = registry();
    registry.on_snapshot(|| panic!("as the test wants"));
    let idle = registry
        .family::<Counter>(opts("idle").expires_after(Some(Duration::from_secs(60))), &["user"])
        .unwrap();
    idle.with_values(&["a"]).inc();
    for _ in 0..4 {
        registry.snapshot();
        registry.sweep();
    }
    assert_eq!(values(&registry, "idle_total"), [""; 0]);
}

#[test]
fn a_function_that_takes_a_snapshot_of_its_registry_has_the_last_values() {
    for (form, register, _) in FORMS {
        for is_on_another_thread in [false, true] {
            let registry = registry();
            ticking(&registry, "before");
            let seen = Arc::new(Mutex::new(Vec::new()));
            let (own, sees) = (registry.clone(), seen.clone());
            register(
                &registry,
                Arc::new(move || {
                    let own = own.clone();
                    let look = move || own.snapshot().value("before", &[]);
                    let found = if is_on_another_thread {
                        thread::spawn(look).join().unwrap()
                    } else {
                        look()
                    };
                    sees.lock().unwrap().push(found);
                    1.0
                }),
            );
            ticking(&registry, "after");
            assert_is_fresh(&registry, form);
            let seen = seen.lock().unwrap();
            assert!(!seen.is_empty() && seen.iter().all(Option::is_some), "{form}: {seen:?}");
        }
    }
}

#[test]
fn two_registries_may_observe_each_other() {
    for (form, register, _) in FORMS {
        let both = [registry(), registry()];
        for (n, own) in both.iter().enumerate() {
            ticking(own, "before");
            let other = both[1 - n].clone();
            register(own, Arc::new(move || other.snapshot().value("before", &[]).unwrap_or(0.0)));
            ticking(own, "after");
        }
        for _ in 0..3 {
            thread::scope(|scope| {
                both.iter().for_each(|own| _ = scope.spawn(|| own.snapshot()));
            });
        }
        both.iter().for_each(|own| assert_is_fresh(own, form));
    }
}

#[test]
fn a_function_that_blocks_holds_no_other_and_no_scrape_for_long() {
    for (form, register, shown) in FORMS {
        let registry = registry();
        ticking(&registry, "before");
        let (release, held) = mpsc::channel::<()>();
        let (held, blocks) = (Mutex::new(held), Arc::new(AtomicBool::new(false)));
        let is_on = blocks.clone();
        register(
            &registry,
            Arc::new(move || {
                if is_on.load(SeqCst) {
                    _ = held.lock().unwrap().recv();
                }
                5.0
            }),
        );
        ticking(&registry, "after");
        let value = |shown| values(&registry, shown);
        let before = shown.map(value);
        blocks.store(true, SeqCst);
        // These return though nothing releases it.
        assert_is_fresh(&registry, form);
        thread::scope(|scope| {
            (0..4).for_each(|_| _ = scope.spawn(|| assert_is_fresh(&registry, form)));
        });
        assert_eq!(shown.map(value), before, "{form}: the last value stays");
        registry.sweep();
        blocks.store(false, SeqCst);
        drop(release);
        assert_is_fresh(&registry, form);
    }
}

#[test]
fn a_function_that_registers_and_removes_metrics_stops_nothing() {
    let registry = registry();
    ticking(&registry, "before");
    let own = registry.clone();
    let counts = AtomicU64::new(0);
    registry.on_snapshot(move || {
        let n = counts.fetch_add(1, SeqCst);
        if n < 20 {
            own.observable_gauge(opts(&format!("made_{n}")), move || n as f64).unwrap();
            own.unregister(&format!("made_{}", n.wrapping_sub(1)));
            own.wipe(|name| name.starts_with("made"));
        }
    });
    ticking(&registry, "after");
    for _ in 0..25 {
        registry.snapshot();
    }
    assert_is_fresh(&registry, "one that registers");
    assert_eq!(values(&registry, "made_19").len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_outside_sees_which_values_could_not_be_read() {
    let path = format!("/dev/shm/talea-faulty-{}.talea", std::process::id());
    let registry = Registry::open(&path).unwrap();
    let panics = Arc::new(AtomicBool::new(false));
    let is_on = panics.clone();
    registry
        .observable_gauge(opts("x"), move || {
            assert!(!is_on.load(SeqCst), "as the test wants");
            5.0
        })
        .unwrap();
    let value = || {
        let reader = talea::outside::Reader::open(&path).unwrap();
        reader.look().unwrap().snapshot.value("x", &[])
    };
    assert_eq!(value(), Some(5.0));
    panics.store(true, SeqCst);
    registry.snapshot();
    let found = value();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found, None);
}
