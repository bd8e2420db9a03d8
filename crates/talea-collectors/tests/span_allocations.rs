//! What a span costs in memory. In a process of its own, for its allocator.

use densa_alloc::{CountingAllocator, thread_stats};
use talea::Registry;
use talea_collectors::spans;
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

fn allocations_of_spans() -> u64 {
    let before = thread_stats();
    for _ in 0..1_000 {
        let outer = info_span!("outer");
        outer.in_scope(|| info_span!("inner").in_scope(|| ()));
    }
    let spent = thread_stats().since(before);
    spent.allocs + spent.reallocs
}

#[test]
fn a_span_allocates_nothing_after_the_first() {
    assert!(densa_alloc::is_active());
    let registry = Registry::for_test().unwrap();
    let layer = spans::layer(&registry, &["outer", "inner"]).unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        allocations_of_spans();
        assert_eq!(allocations_of_spans(), 0);
    });
    let observed = registry.snapshot();
    for name in ["outer", "inner"] {
        let name = [("span_name", name)];
        let found = observed.histogram("traces_span_metrics_duration_seconds", &name).unwrap();
        assert_eq!(found.count(), 2_000);
    }
}
