//! Claims about the process metrics of this test itself.

use std::fs::File;
use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};
use talea::{Combine, Registry, Snapshot};
use talea_collectors::process;

fn registry() -> Registry {
    let registry = Registry::for_test().expect("a registry");
    process::register(&registry).expect("the process metrics");
    registry
}

fn value(snapshot: &Snapshot, name: &str) -> f64 {
    snapshot.value(name, &[]).unwrap_or_else(|| panic!("there is no {name}"))
}

#[test]
fn every_standard_metric_is_there_and_above_zero() {
    let snapshot = registry().snapshot();
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_virtual_memory_max_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_threads",
        "process_start_time_seconds",
    ] {
        assert!(value(&snapshot, name) > 0.0, "{name}");
    }
}

#[test]
fn a_name_that_the_kernel_cut_within_a_character_hides_nothing() {
    // The kernel keeps 15 bytes of a program's name, and the last may be half of a letter.
    fs::write("/proc/self/comm", b"buchungsbest\xc3").expect("a process names itself");
    let snapshot = registry().snapshot();
    for name in ["process_resident_memory_bytes", "process_threads", "process_start_time_seconds"] {
        assert!(value(&snapshot, name) > 0.0, "{name}");
    }
}

#[test]
fn cpu_seconds_grow_by_what_is_spent_and_in_fractions() {
    let registry = registry();
    let before = value(&registry.snapshot(), "process_cpu_seconds_total");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        black_box(0);
    }
    let spent = value(&registry.snapshot(), "process_cpu_seconds_total") - before;
    // Other tests spend time in the same process, and this one may be held up.
    assert!(spent > 0.005 && spent < 60.0, "{spent}");
    assert_ne!(spent, spent.trunc());
}

#[test]
fn an_open_file_is_counted_while_it_is_open() {
    let registry = registry();
    let files: Vec<_> = (0..300).map(|_| File::open("/dev/null").unwrap()).collect();
    let open = value(&registry.snapshot(), "process_open_fds");
    assert!(open >= 300.0, "{open}");
    drop(files);
    let left = value(&registry.snapshot(), "process_open_fds");
    // Other tests hold a few of their own.
    assert!(left < open - 150.0, "{left} of {open}");
}

#[test]
fn a_thread_is_counted_while_it_lives() {
    let registry = registry();
    let threads: Vec<_> = (0..20).map(|_| thread::spawn(thread::park)).collect();
    let counted = value(&registry.snapshot(), "process_threads");
    assert!(counted >= 21.0, "{counted}");
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

#[test]
fn resident_memory_is_that_of_the_kernel_in_kilobytes() {
    let snapshot = registry().snapshot();
    let status = fs::read("/proc/self/status").unwrap();
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: f64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    let ratio = value(&snapshot, "process_resident_memory_bytes") / (kilobytes * 1024.0);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

#[test]
fn the_start_was_a_moment_ago() {
    let start = value(&registry().snapshot(), "process_start_time_seconds");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    // The kernel gives the boot time in whole seconds, and the clock may have been set.
    assert!((-5.0..600.0).contains(&(now - start)), "{start} {now}");
}

#[test]
fn a_limit_is_the_soft_one_and_where_there_is_none_that_of_go() {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let snapshot = registry().snapshot();
    for (limit, metric) in [
        ("Max open files", "process_max_fds"),
        ("Max address space", "process_virtual_memory_max_bytes"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(limit)).unwrap();
        let soft = match line.split_ascii_whitespace().nth(3).unwrap() {
            "unlimited" => 18_446_744_073_709_551_615.0,
            number => number.parse().unwrap(),
        };
        assert_eq!(value(&snapshot, metric), soft, "{metric}");
    }
}

/// How the values of processes that share a registry make one. A value that is no amount of something that the
/// processes have together is not added up.
#[tokio::test]
async fn each_collector_combines_processes_by_what_its_value_means() {
    use Combine::{Max, Min, Sum};
    let path = format!("/dev/shm/talea-combined-{}.talea", std::process::id());
    let registry = Registry::open(&path).expect("a registry");
    process::register(&registry).expect("the process metrics");
    let runtime = tokio::runtime::Handle::current();
    talea_collectors::tokio::register(&registry, "api", runtime).expect("the runtime's metrics");
    talea_collectors::tasks::TaskMeter::register(&registry, "jobs").expect("the tasks' metrics");
    talea_collectors::build::register(&registry, talea_collectors::build_info!())
        .expect("the build");
    let look = talea::outside::Reader::open(&path).and_then(|reader| reader.look());
    fs::remove_file(&path).expect("its file");
    let families = look.expect("a region").families;
    let found: Vec<_> = families.iter().map(|it| (it.name.as_str(), it.combine)).collect();
    let mut expected = vec![
        ("process_cpu_seconds_total", Sum),
        // Each process needs and may have descriptors of its own, so the sums compare.
        ("process_max_fds", Sum),
        ("process_open_fds", Sum),
        ("process_resident_memory_bytes", Sum),
        ("process_start_time_seconds", Min),
        ("process_threads", Sum),
        ("process_virtual_memory_bytes", Sum),
        // 2^64 says that there is no limit.
        ("process_virtual_memory_max_bytes", Min),
        ("tokio_alive_tasks", Sum),
        ("tokio_busy_seconds_total", Sum),
        ("tokio_global_queue_depth", Sum),
        ("tokio_worker_parks_total", Sum),
        ("tokio_workers", Sum),
        ("jobs_tasks_alive", Sum),
        // Each process has its peak at another moment.
        ("jobs_tasks_alive_peak", Max),
        ("jobs_tasks_ready", Sum),
        ("jobs_tasks_ready_peak", Max),
        ("jobs_tasks_spawned_total", Sum),
        ("talea_collectors_build_info", Combine::Latest),
    ];
    expected.sort_by_key(|it| it.0);
    assert_eq!(found, expected);
}
