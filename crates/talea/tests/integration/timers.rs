//! Claims about what observes a time.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use talea::{Histogram, Opts, Registry, Seconds};

fn timed() -> (Registry, Histogram<Seconds>) {
    let registry = Registry::for_test().unwrap();
    let histogram = registry.register(Opts::new("work", "Time to work.")).unwrap();
    (registry, histogram)
}

fn count(registry: &Registry) -> u64 {
    registry.snapshot().expect_histogram("work_seconds", &[]).count()
}

#[test]
fn a_timer_observes_on_every_way_out() {
    let (registry, work) = timed();
    let fails = || -> Result<(), ()> {
        let _timer = work.time();
        Err(())
    };
    assert!(fails().is_err());
    let panics = std::panic::AssertUnwindSafe(|| {
        let _timer = work.time();
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(count(&registry), 2);
}

#[test]
fn a_future_is_timed_to_its_end_and_also_when_it_is_dropped_before() {
    let (registry, work) = timed();
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut done = pin!(work.time_future(async { 7 }));
        assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(7));
    }
    assert_eq!(count(&registry), 1);
    {
        let mut never = pin!(work.time_future(std::future::pending::<()>()));
        assert!(never.as_mut().poll(&mut context).is_pending());
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(count(&registry), 1);
    }
    assert_eq!(count(&registry), 2);
    let snapshot = registry.snapshot();
    assert!(snapshot.expect_histogram("work_seconds", &[]).sum() >= 0.001);
    drop(work.time_future(async {}));
    assert_eq!(count(&registry), 2, "one that was never polled took no time");
}
