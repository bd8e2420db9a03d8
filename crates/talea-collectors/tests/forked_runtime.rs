//! Metrics of runtimes in a child made by `fork`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod support;

use support::{fork, held};
use talea::Registry;
use talea_collectors::tokio::register;
use tokio::runtime::Builder;

#[test]
fn a_child_shows_its_own_runtime_and_not_its_parents_a_second_time() {
    let registry = Registry::for_test().expect("a registry");
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    register(&registry, "main", runtime.handle().clone()).expect("the metrics");
    let workers = || registry.snapshot().value("tokio_workers", &[("runtime", "main")]);
    assert_eq!(workers(), Some(2.0));

    // This test is the only one here, and the runtime's workers sleep.
    assert!(held(fork(|| {
        assert_eq!(workers(), Some(2.0));
        let own = Builder::new_current_thread().build().expect("a runtime");
        register(&registry, "main", own.handle().clone()).expect("the name is free in the child");
        assert_eq!(workers(), Some(3.0));
    })));
    assert_eq!(workers(), Some(2.0));
}
