//! Claims about the process metrics in a child made by `fork`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod support;

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::{Mutex, PoisonError};

use support::{fork, held};
use talea::Registry;
use talea_collectors::process;
use talea_collectors::tasks::TaskMeter;

/// Held by the test that forks: no other thread then takes a lock that a child would need.
static ALONE: Mutex<()> = Mutex::new(());

/// The CPU time of this process in seconds.
fn own_seconds() -> f64 {
    let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spent` is a valid place for the result.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) }, 0);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

fn work_until(seconds: f64) {
    while own_seconds() < seconds {
        black_box((0..10_000).sum::<u64>());
    }
}

#[test]
fn the_time_of_a_child_counts_whole_beside_its_parents() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = Registry::for_test().expect("a registry");
    process::register(&registry).expect("the process metrics");
    let shown = || registry.snapshot().value("process_cpu_seconds_total", &[]).expect("CPU time");
    work_until(0.02);
    let of_parent = shown();
    assert!(held(fork(|| {
        // More than its parent had spent, at its first snapshot.
        work_until(2.0 * of_parent);
        let own = own_seconds();
        let all = shown();
        assert!(all >= of_parent + own, "{all} of {of_parent} and {own}");
        work_until(own + 0.01);
        assert!(shown() >= all + 0.009);
    })));
    assert!(shown() >= 3.0 * of_parent);
}

#[test]
fn processes_without_a_limit_have_none_together() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = Registry::for_test().expect("a registry");
    process::register(&registry).expect("the process metrics");
    let shown = || registry.snapshot().value("process_virtual_memory_max_bytes", &[]);
    let of_parent = shown();
    assert!(held(fork(|| assert_eq!(shown(), of_parent))));
}

#[test]
fn tasks_of_a_parent_are_not_counted_by_its_child_too() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = Registry::for_test().expect("a registry");
    let tasks = TaskMeter::register(&registry, "server").expect("the task metrics");
    let _alive = (tasks.meter(async {}), tasks.meter(async {}));
    let shown = || registry.snapshot().value("server_tasks_alive", &[]);
    assert_eq!(shown(), Some(2.0));
    assert!(held(fork(|| assert_eq!(shown(), Some(2.0)))));
}

#[test]
fn a_daemon_whose_parent_registered_and_ended_shows_when_it_started() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ends = [0; 2];
    // SAFETY: `ends` is a valid place for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let parent = fork(|| {
        let registry = Registry::for_test().expect("a registry");
        process::register(&registry).expect("the process metrics");
        // SAFETY: the call has no conditions.
        let parent = unsafe { libc::getpid() };
        fork(|| {
            // SAFETY: as above.
            while unsafe { libc::getppid() } == parent {
                std::thread::yield_now();
            }
            let start = registry.snapshot().value("process_start_time_seconds", &[]);
            assert!(start.is_some_and(|start| start > 0.0), "{start:?}");
            // SAFETY: the byte is valid, and nobody else writes to the pipe.
            unsafe { libc::write(ends[1], b"x".as_ptr().cast(), 1) };
        });
    });
    assert!(held(parent));
    // SAFETY: both ends are open, and owned by nothing else.
    let mut held = unsafe {
        libc::close(ends[1]);
        File::from_raw_fd(ends[0])
    };
    let mut said = String::new();
    held.read_to_string(&mut said).expect("the pipe can be read");
    assert_eq!(said, "x", "the daemon's claims hold");
}

#[test]
fn a_task_that_a_parent_spawned_is_counted_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let registry = Registry::for_test().expect("a registry");
    let tasks = TaskMeter::register(&registry, "server").expect("the task metrics");
    let spawned = || registry.snapshot().value("server_tasks_spawned_total", &[]);
    drop((tasks.meter(async {}), tasks.meter(async {})));
    // Before the parent has shown them.
    assert!(held(fork(|| {
        drop(tasks.meter(async {}));
        assert_eq!(spawned(), Some(3.0));
    })));
    assert_eq!(spawned(), Some(3.0));
}

/// systemd's `ProcSubset=pid` mounts a `/proc` of processes alone. Here one of the other files is
/// hidden. A process that may have no mount namespace of its own tests nothing.
#[test]
fn a_process_that_sees_no_file_of_the_whole_system_is_shown() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(held(fork(|| {
        let (none, stat) = (c"/dev/null".as_ptr(), c"/proc/stat".as_ptr());
        // SAFETY: the texts end with 0, and the rest may be null.
        let is_hidden = unsafe {
            libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) == 0
                && libc::mount(none, stat, std::ptr::null(), libc::MS_BIND, std::ptr::null()) == 0
        };
        if !is_hidden {
            return;
        }
        let registry = Registry::for_test().expect("a registry");
        process::register(&registry).expect("the process metrics");
        let snapshot = registry.snapshot();
        for name in [
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_threads",
            "process_start_time_seconds",
        ] {
            assert!(snapshot.value(name, &[]).is_some_and(|value| value > 0.0), "{name}");
        }
    })));
}
