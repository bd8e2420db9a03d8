//! Claims about the metrics of a runtime of known shape.

use std::future::pending;
use std::time::{Duration, Instant};
use talea::Registry;
use talea_collectors::tokio::register;
use tokio::runtime::{Builder, Runtime};

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).build().expect("a runtime")
}

/// A registry that shows a runtime.
fn registry(name: &str, runtime: &Runtime) -> Registry {
    let registry = Registry::for_test().expect("a registry");
    register(&registry, name, runtime.handle().clone()).expect("the metrics");
    registry
}

/// The value of a metric for one runtime.
fn value(registry: &Registry, name: &str, runtime: &str) -> Option<f64> {
    registry.snapshot().value(name, &[("runtime", runtime)])
}

#[test]
fn tasks_and_workers_are_those_of_the_runtime() {
    let runtime = runtime(3);
    let registry = registry("main", &runtime);
    let value = |name| value(&registry, name, "main");

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
    // A task can be joined before the runtime has counted its end.
    while value("tokio_alive_tasks") != Some(0.0) {
        std::thread::yield_now();
    }
}

#[test]
fn busy_time_grows_while_a_worker_works() {
    let began = Instant::now();
    let runtime = runtime(1);
    let registry = registry("main", &runtime);
    let busy = || value(&registry, "tokio_busy_seconds_total", "main").unwrap();

    let before = busy();
    let work = runtime.spawn(async {
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        began.elapsed()
    });
    let worked = runtime.block_on(work).unwrap();
    // The worker adds to its busy time when it parks.
    while busy() == before {
        std::thread::yield_now();
    }
    let spent = busy() - before;
    assert!(spent >= worked.as_secs_f64(), "{spent} s for work of {worked:?}");
    assert!(spent <= began.elapsed().as_secs_f64(), "{spent} s");
}

#[test]
fn a_name_that_is_taken_is_an_error_which_names_it() {
    let (first, second) = (runtime(2), runtime(1));
    let registry = registry("main", &first);
    let error = register(&registry, "main", second.handle().clone()).unwrap_err().to_string();
    assert!(error.contains("tokio_workers") && error.contains("\"main\""), "{error}");
    assert_eq!(value(&registry, "tokio_workers", "main"), Some(2.0), "the first is still shown");

    // It is free in another registry.
    let other = self::registry("main", &second);
    assert_eq!(value(&other, "tokio_workers", "main"), Some(1.0));
}

#[test]
fn a_name_that_is_too_long_is_an_error() {
    let registry = Registry::for_test().expect("a registry");
    let name = "n".repeat(1 << 20);
    let error = register(&registry, &name, runtime(1).handle().clone()).unwrap_err();
    assert!(error.to_string().contains("there is no room for the runtime"));
}

#[test]
fn a_runtime_is_there_before_the_first_snapshot_and_after_its_end() {
    let runtime = runtime(2);
    let registry = registry("main", &runtime);
    // As an agent outside the process finds it: `refresh` has not run.
    let family: talea::Gauge = {
        let opts = talea::Opts::new("tokio_workers", "Worker threads of the tokio runtime.");
        let opts = opts.combine(talea::Combine::Sum).expires_after(None);
        let family = registry.family::<talea::Gauge>(opts, &["runtime"]).expect("the same family");
        family.with_values(&["main"]).keep()
    };
    assert_eq!(family.get(), 2);

    runtime.spawn(pending::<()>());
    drop(runtime);
    assert_eq!(value(&registry, "tokio_alive_tasks", "main"), Some(0.0));
    assert_eq!(value(&registry, "tokio_workers", "main"), Some(2.0));
}

#[test]
fn tasks_that_no_worker_has_taken_yet_wait_in_the_global_queue() {
    // It is never driven, so a task spawned from outside stays in the queue.
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let registry = registry("idle", &runtime);
    let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(async {})).collect();
    assert_eq!(value(&registry, "tokio_global_queue_depth", "idle"), Some(4.0));
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(value(&registry, "tokio_global_queue_depth", "idle"), Some(0.0));
}

#[test]
fn each_time_that_a_worker_goes_to_sleep_is_counted_once() {
    let runtime = runtime(1);
    let metrics = runtime.metrics();
    let registry = registry("main", &runtime);
    while metrics.worker_park_count(0) < 20 {
        runtime.block_on(runtime.spawn(async {})).unwrap();
        registry.snapshot();
    }
    // Until the worker sleeps for good.
    while value(&registry, "tokio_worker_parks_total", "main")
        != Some(metrics.worker_park_count(0) as f64)
    {
        std::thread::yield_now();
    }
}

#[test]
#[cfg(tokio_unstable)]
fn every_task_that_was_spawned_is_counted() {
    let runtime = runtime(2);
    let registry = registry("main", &runtime);
    let spawned = || value(&registry, "tokio_tasks_spawned_total", "main").unwrap();
    let before = spawned();
    let tasks: Vec<_> = (0..5).map(|_| runtime.spawn(async {})).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(spawned() - before, 5.0);
}
