//! The statistics of jemalloc in this test itself, which allocates with it.

use std::hint::black_box;
use std::sync::Mutex;
use talea::{Registry, Snapshot};
use talea_collectors::jemalloc::{self, Jemalloc};

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const MIB: f64 = 1024.0 * 1024.0;

/// Serializes the tests, as each sees the allocations of the others.
static ALONE: Mutex<()> = Mutex::new(());

fn registry() -> Registry {
    let registry = Registry::for_test().expect("a registry");
    jemalloc::register(&registry).expect("the metrics");
    registry
}

fn mib(snapshot: &Snapshot, kind: &str) -> f64 {
    snapshot.expect_value(&format!("jemalloc_{kind}_bytes"), &[]) / MIB
}

#[test]
fn allocated_memory_shows_while_it_is_held() {
    let _alone = ALONE.lock();
    let registry = registry();
    let kinds = ["allocated", "active", "resident", "mapped"];
    let shown = || {
        let snapshot = registry.snapshot();
        kinds.map(|kind| mib(&snapshot, kind))
    };
    let before = shown();
    // Written to, as pages that were never written are not in RAM.
    let held = black_box(vec![1_u8; 64 << 20]);
    let during = shown();
    drop(held);
    let after = shown();

    for n in 0..kinds.len() {
        // Extents may be larger than requested.
        let grown = during[n] - before[n];
        assert!((63.0..128.0).contains(&grown), "{} grew by {grown} MiB", kinds[n]);
    }
    assert!(during[0] - before[0] < 65.0, "{before:?}, then {during:?}");
    // Pages that became free stay in RAM for a while, but hold nothing.
    for n in [0, 1] {
        let left = after[n] - before[n];
        assert!(left.abs() < 1.0, "{} kept {left} MiB", kinds[n]);
    }
}

#[test]
fn allocated_memory_is_within_active_and_that_within_resident_memory() {
    let _alone = ALONE.lock();
    let snapshot = registry().snapshot();
    let [allocated, active, metadata, resident] =
        ["allocated", "active", "metadata", "resident"].map(|kind| mib(&snapshot, kind));
    assert!(0.0 < allocated && allocated <= active, "{allocated} of {active}");
    // The test's own thread may allocate while it is added up.
    let within = active + metadata <= resident + 0.25;
    assert!(0.0 < metadata && within, "{active} + {metadata} of {resident}");
}
