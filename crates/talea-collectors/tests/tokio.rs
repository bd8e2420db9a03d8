//! What the runtime metrics say about a runtime of known shape.

use std::future::pending;
use std::time::{Duration, Instant};
use talea::Registry;
use tokio::runtime::Builder;

#[test]
fn tasks_and_workers_are_those_of_the_runtime() {
    let runtime = Builder::new_multi_thread().worker_threads(3).build().expect("a runtime");
    let registry = Registry::for_test().expect("a registry");
    talea_collectors::tokio::register(&registry, runtime.handle().clone()).expect("the metrics");
    let value = |name| registry.snapshot().value(name, &[]);

    assert_eq!(value("tokio_workers"), Some(3.0));
    assert_eq!(value("tokio_alive_tasks"), Some(0.0));
    let tasks: Vec<_> = (0..5).map(|_| runtime.spawn(pending::<()>())).collect();
    assert_eq!(value("tokio_alive_tasks"), Some(5.0));
    runtime.block_on(async {
        for task in tasks {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
    });
    // Who waited for a task knows of its end before the runtime has counted it.
    let end = Instant::now() + Duration::from_secs(10);
    while value("tokio_alive_tasks") != Some(0.0) {
        assert!(Instant::now() < end, "{:?} tasks live on", value("tokio_alive_tasks"));
        std::thread::yield_now();
    }
}

#[test]
#[cfg(target_has_atomic = "64")]
fn busy_time_grows_while_a_worker_works() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let registry = Registry::for_test().expect("a registry");
    talea_collectors::tokio::register(&registry, runtime.handle().clone()).expect("the metrics");
    let busy = || registry.snapshot().value("tokio_busy_seconds_total", &[]).unwrap();

    let before = busy();
    let work = runtime.spawn(async { std::thread::sleep(Duration::from_millis(30)) });
    runtime.block_on(work).unwrap();
    // The worker adds to its busy time when it parks.
    let mut spent = 0.0;
    for _ in 0..500 {
        spent = busy() - before;
        if spent > 0.0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!((0.03..10.0).contains(&spent), "{spent}");
    let later = busy() - before;
    assert!(later - spent < 0.02, "an idle worker is not busy: {spent}, then {later}");
}
