//! Claims about what observes a time.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use talea::{Family, Histogram, Labels, Opts, Registry, Seconds};

fn timed() -> (Registry, Histogram<Seconds>) {
    let registry = Registry::for_test().unwrap();
    let histogram = registry.register(Opts::new("work", "Time to work.")).unwrap();
    (registry, histogram)
}

#[derive(Labels)]
struct By<'a> {
    outcome: &'a str,
}

fn by_outcome(registry: &Registry) -> Family<By<'static>, Histogram<Seconds>> {
    registry.register(Opts::new("payment", "Time to pay.")).unwrap()
}

fn count_by(registry: &Registry, outcome: &str) -> u64 {
    let snapshot = registry.snapshot();
    snapshot.histogram("payment_seconds", &[("outcome", outcome)]).map_or(0, |found| found.count())
}

fn count(registry: &Registry) -> u64 {
    registry.snapshot().expect_histogram("work_seconds", &[]).count()
}

#[test]
fn a_timer_observes_on_every_way_out() {
    let (registry, work) = timed();
    let fails = || -> Result<(), ()> {
        let _timer = work.start_timer();
        Err(())
    };
    assert!(fails().is_err());
    let panics = std::panic::AssertUnwindSafe(|| {
        let _timer = work.start_timer();
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
        let mut done = pin!(work.observe_future(async { 7 }));
        assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(7));
    }
    assert_eq!(count(&registry), 1);
    {
        let mut never = pin!(work.observe_future(std::future::pending::<()>()));
        assert!(never.as_mut().poll(&mut context).is_pending());
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(count(&registry), 1);
    }
    assert_eq!(count(&registry), 2);
    let snapshot = registry.snapshot();
    assert!(snapshot.expect_histogram("work_seconds", &[]).sum() >= 0.001);
    drop(work.observe_future(async {}));
    assert_eq!(count(&registry), 2, "one that was never polled took no time");
}

#[test]
fn a_timer_that_is_stopped_observes_once_and_one_that_is_discarded_never() {
    let (registry, work) = timed();
    let timer = work.start_timer();
    std::thread::sleep(Duration::from_millis(1));
    assert!(timer.stop() >= Duration::from_millis(1));
    assert_eq!(count(&registry), 1);
    work.start_timer().discard();
    assert_eq!(count(&registry), 1);
    assert_eq!(work.observe_closure(|| 7), 7);
    assert_eq!(count(&registry), 2);
}

#[test]
fn a_labelled_timer_may_be_sent_and_ends_in_the_series_of_its_labels() {
    let registry = Registry::for_test().unwrap();
    let payment = by_outcome(&registry);
    // Labels that it owns or borrows.
    let outcome = String::from("paid");
    let timer = payment.start_timer(By { outcome: &outcome });
    std::thread::scope(|scope| scope.spawn(move || drop(timer)).join().unwrap());
    payment.start_timer(By { outcome: "paid" }).stop_with(By { outcome: "refused" });
    payment.start_timer(By { outcome: "paid" }).stop();
    payment.start_timer(By { outcome: "paid" }).discard();
    payment.observe_closure(By { outcome: "paid" }, || ());
    assert_eq!((count_by(&registry, "paid"), count_by(&registry, "refused")), (3, 1));
}

#[test]
fn a_series_that_is_removed_under_its_timer_is_made_anew_with_its_observation() {
    let registry = Registry::for_test().unwrap();
    let payment = by_outcome(&registry);
    payment.with(By { outcome: "paid" }).observe(Duration::from_secs(1));
    let timer = payment.start_timer(By { outcome: "paid" });
    assert!(payment.remove(By { outcome: "paid" }));
    // Another series may take the place of the one that is gone.
    payment.with(By { outcome: "refused" }).observe(Duration::from_secs(1));
    drop(timer);
    assert_eq!((count_by(&registry, "paid"), count_by(&registry, "refused")), (1, 1));
}

#[test]
fn a_labelled_timer_lives_across_an_await_of_a_future_that_is_sent() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    let registry = Registry::for_test().unwrap();
    let payment = by_outcome(&registry);
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut never = pin!(is_send(async {
            let _timer = payment.start_timer(By { outcome: "paid" });
            std::future::pending::<()>().await;
        }));
        assert!(never.as_mut().poll(&mut context).is_pending());
        assert_eq!(count_by(&registry, "paid"), 0);
    }
    assert_eq!(count_by(&registry, "paid"), 1, "a future that is dropped");
    let mut done = pin!(is_send(payment.observe_future(By { outcome: "paid" }, async { 7 })));
    assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(7));
    assert_eq!(count_by(&registry, "paid"), 2);
}
