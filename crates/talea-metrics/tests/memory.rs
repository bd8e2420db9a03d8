//! The heap memory of the recorder, in a binary of its own, whose allocator counts.

use metrics::{counter, describe_counter, gauge, histogram, with_local_recorder};
use talea::Registry;
use talea_metrics::Recorder;

#[global_allocator]
static ALLOCATOR: densa_alloc::CountingAllocator = densa_alloc::CountingAllocator::system();

#[test]
fn a_macro_whose_handle_is_remembered_allocates_nothing() {
    let registry = Registry::for_test().unwrap();
    let program = || {
        describe_counter!("jobs", "Jobs done.");
        counter!("jobs").increment(1);
        counter!("jobs", "kind" => "mail", "queue" => "one").increment(1);
        counter!("jobs").absolute(1);
        gauge!("level", "of" => "tank").set(0.5);
        histogram!("time", "of" => "all").record(0.5);
    };
    assert!(densa_alloc::is_active());
    with_local_recorder(&Recorder::new(&registry).unwrap(), || {
        program();
        let before = densa_alloc::thread_stats();
        for _ in 0..100 {
            program();
        }
        let spent = densa_alloc::thread_stats().since(before);
        assert_eq!(spent.allocs + spent.reallocs, 0);
    });
}

#[test]
fn labels_that_clients_make_up_are_not_remembered_for_ever() {
    let registry = Registry::for_test().unwrap();
    with_local_recorder(&Recorder::new(&registry).unwrap(), || {
        let mut all = 0..;
        let mut meet = |n| {
            for user in all.by_ref().take(n) {
                counter!("logins", "user" => user.to_string()).increment(1);
            }
        };
        meet(20_000);
        let before = densa_alloc::thread_stats();
        meet(200_000);
        let spent = densa_alloc::thread_stats().since(before);
        let kept = spent.allocs as i64 - spent.deallocs as i64;
        // Some 8,000 keys with their texts, and not 200,000 of them.
        assert!(kept < 50_000, "{kept}");
    });
}
