//! Claims about what observes a time.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use talea::{Counter, Family, Histogram, InFlightGuard, Labels, Registry, Seconds, UpDownCounter};

use crate::support::metrics::{alone, opts, register};

fn timed() -> (Registry, Histogram<Seconds>) {
    alone(opts("work"))
}

#[derive(Labels)]
struct By<'a> {
    outcome: &'a str,
}

const PAID: By<'_> = By { outcome: "paid" };
const REFUSED: By<'_> = By { outcome: "refused" };
const LOOKED_UP: By<'_> = By { outcome: "looked up" };

type ByOutcome = Family<By<'static>, Histogram<Seconds>>;

fn by_outcome() -> (Registry, ByOutcome) {
    alone(opts("payment"))
}

fn count_by(registry: &Registry, outcome: &str) -> u64 {
    let snapshot = registry.snapshot();
    snapshot.histogram("payment_seconds", &[("outcome", outcome)]).map_or(0, |found| found.count())
}

fn count(registry: &Registry) -> u64 {
    registry.snapshot().expect_histogram("work_seconds", &[]).count()
}

fn check_ready<T: std::fmt::Debug + PartialEq>(future: impl Future<Output = T>, expected: T) {
    let result = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(result, Poll::Ready(expected));
}

#[test]
fn a_timer_observes_on_every_way_out() {
    let (registry, work) = timed();
    fn fails(work: &Histogram<Seconds>) -> Result<(), ()> {
        let _timer = work.start_timer();
        Err(())
    }
    assert!(fails(&work).is_err());
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
    check_ready(work.observe_future(async { 7 }), 7);
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
    let (registry, payment) = by_outcome();
    // Labels that it owns or borrows.
    let outcome = String::from("paid");
    let timer = payment.start_timer(By { outcome: &outcome });
    std::thread::scope(|scope| scope.spawn(move || drop(timer)).join().unwrap());
    payment.start_timer(PAID).stop_with(REFUSED);
    payment.start_timer(PAID).stop();
    payment.start_timer(PAID).discard();
    payment.observe_closure(PAID, || ());
    assert_eq!((count_by(&registry, "paid"), count_by(&registry, "refused")), (3, 1));
}

#[test]
fn a_series_that_is_removed_under_its_timer_is_made_anew_with_its_observation() {
    let (registry, payment) = by_outcome();
    payment.with(PAID).observe(Duration::from_secs(1));
    let timer = payment.start_timer(PAID);
    assert!(payment.remove(PAID));
    // Another series may take the place of the one that is gone.
    payment.with(REFUSED).observe(Duration::from_secs(1));
    drop(timer);
    assert_eq!((count_by(&registry, "paid"), count_by(&registry, "refused")), (1, 1));
}

#[test]
fn a_labelled_timer_lives_across_an_await_of_a_future_that_is_sent() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    let (registry, payment) = by_outcome();
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut never = pin!(is_send(async {
            let _timer = payment.start_timer(PAID);
            let _other = payment.with(LOOKED_UP).start_timer();
            std::future::pending::<()>().await;
        }));
        assert!(never.as_mut().poll(&mut context).is_pending());
        assert_eq!(count_by(&registry, "paid"), 0);
    }
    assert_eq!(count_by(&registry, "paid"), 1, "a future that is dropped");
    check_ready(is_send(payment.observe_future(PAID, async { 7 })), 7);
    assert_eq!((count_by(&registry, "paid"), count_by(&registry, "looked up")), (2, 1));
    check_ready(is_send(payment.with(LOOKED_UP).observe_future(async { 7 })), 7);
    assert_eq!(count_by(&registry, "looked up"), 2);
}

#[test]
fn a_timer_of_a_series_that_is_removed_observes_nothing_in_the_series_that_takes_its_place() {
    let (registry, payment) = by_outcome();
    let timer = payment.with(PAID).start_timer();
    // It pins nothing: the series is removed at once, and its memory is used again.
    assert!(payment.remove(PAID));
    for n in 0..100 {
        let outcome = n.to_string();
        payment.with(By { outcome: &outcome }).observe(Duration::from_secs(1));
    }
    payment.with(PAID).observe(Duration::from_secs(1));
    let total = || registry.snapshot().select("payment_seconds", &[]).count();
    let before = total();
    drop(timer);
    assert_eq!((total(), count_by(&registry, "paid")), (before, 1));
    assert!((0..100).all(|n| count_by(&registry, &n.to_string()) == 1));
    payment.with(PAID).start_timer().stop();
    payment.with(PAID).start_timer().discard();
    assert_eq!(payment.with(PAID).observe_closure(|| 7), 7);
    assert_eq!(count_by(&registry, "paid"), 3);
}

/// The steps of the test below; labels are numbered.
#[derive(Clone, Debug)]
enum Step {
    Begin(usize),
    /// Ends one of those that began, counted from the latest.
    End(usize),
    Remove(usize),
    Clear,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn guards_of_labelled_counts_are_exact_in_any_order_with_removals(
        steps in prop::collection::vec(
            prop_oneof![
                4 => (0..3_usize).prop_map(Step::Begin),
                3 => any::<usize>().prop_map(Step::End),
                1 => (0..3_usize).prop_map(Step::Remove),
                1 => Just(Step::Clear),
            ],
            1..60,
        )
    ) {
        const OUTCOMES: [&str; 3] = ["paid", "refused", "aborted"];
        let (registry, open) = alone::<Family<By<'static>, UpDownCounter>>(opts("open"));
        // Of each label, how often it was removed, and its count since.
        let mut model = [(0_u32, 0_i64); 3];
        let mut guards: Vec<(usize, u32, InFlightGuard)> = Vec::new();
        for step in steps {
            match step {
                Step::Begin(n) => {
                    let guard = open.with(By { outcome: OUTCOMES[n] }).in_flight_guard();
                    guards.push((n, model[n].0, guard));
                    model[n].1 += 1;
                }
                Step::End(which) if !guards.is_empty() => {
                    let (n, life, guard) = guards.swap_remove(which % guards.len());
                    // Ends on another thread.
                    std::thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
                    if model[n].0 == life {
                        model[n].1 -= 1;
                    }
                }
                Step::End(_) => {}
                Step::Remove(n) => {
                    open.remove(By { outcome: OUTCOMES[n] });
                    model[n] = (model[n].0 + 1, 0);
                }
                Step::Clear => {
                    open.remove_matching(&[]);
                    model.iter_mut().for_each(|(life, count)| (*life, *count) = (*life + 1, 0));
                }
            }
            let snapshot = registry.snapshot();
            for (n, (_, count)) in model.iter().enumerate() {
                let found = snapshot.value("open", &[("outcome", OUTCOMES[n])]);
                prop_assert_eq!(found.unwrap_or(0.0), *count as f64);
            }
        }
    }
}

#[test]
fn a_guard_that_began_before_its_metric_was_installed_subtracts_nothing_afterwards() {
    let open = UpDownCounter::new();
    let guard = open.in_flight_guard();
    let registry = Registry::for_test().unwrap();
    talea::Registrable::register(&open, &registry, &opts("open")).unwrap();
    let _second = open.in_flight_guard();
    drop(guard);
    assert_eq!(open.get(), 1);
}

/// The metrics of one test, as the functions below find them.
struct Work {
    time: Histogram<Seconds>,
    by: ByOutcome,
    calls: Counter,
    failures: Counter,
}

impl Work {
    #[talea::timed(self.time)]
    #[talea::counted(self.calls, error = self.failures)]
    fn parse<'a>(&self, text: &'a str) -> Result<&'a str, std::num::ParseIntError> {
        if text == "early" {
            return Ok(text);
        }
        let _: u64 = text.parse()?;
        Ok(text)
    }

    #[talea::counted(work.calls, error = work.failures)]
    #[talea::timed(work.by.with(By { outcome: &outcome }))]
    async fn take(work: &Self, outcome: String) -> Result<String, std::num::ParseIntError> {
        let _: u64 = std::future::ready(outcome.parse()).await?;
        Ok(outcome)
    }

    #[talea::timed(self.by.with(By { outcome: "numbers" }))]
    #[talea::counted(self.calls)]
    fn numbers<T: Default + Clone>(&self, of: T) -> impl Iterator<Item = T> {
        std::iter::repeat_n(of, 3)
    }

    #[talea::counted(self.calls, error = self.failures)]
    fn first(&self) -> Result<impl Iterator<Item = u8> + use<>, ()> {
        Ok(std::iter::once(1))
    }

    // Its result is borrowed from an argument that it may change.
    #[talea::counted(self.calls, error = self.failures)]
    fn last<'a>(&self, of: &'a mut [u8]) -> Result<&'a mut u8, ()> {
        of.last_mut().ok_or(())
    }
}

#[test]
fn attributes_time_and_count_functions_of_any_form() {
    let (registry, by) = by_outcome();
    let time = register(&registry, "work");
    let (calls, failures) = (register(&registry, "calls"), register(&registry, "failures"));
    let work = Work { time, by, calls, failures };
    assert_eq!((work.parse("7"), work.parse("early")), (Ok("7"), Ok("early")));
    assert!(work.parse("seven").is_err());
    assert_eq!((count(&registry), work.calls.get(), work.failures.get()), (3, 3, 1));
    check_ready(Work::take(&work, "8".to_owned()), Ok("8".to_owned()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(Work::take(&work, "eight".into())).poll(&mut context).is_ready());
    drop(Work::take(&work, "never polled".into()));
    assert_eq!((count_by(&registry, "8"), count_by(&registry, "eight")), (1, 1));
    assert_eq!((work.calls.get(), work.failures.get()), (5, 2));
    assert_eq!(work.numbers(7_u8).count(), 3);
    assert_eq!(count_by(&registry, "numbers"), 1);
    assert_eq!(work.first().unwrap().count(), 1);
    assert_eq!((work.calls.get(), work.failures.get()), (7, 2));
    let mut bytes = [1, 2];
    *work.last(&mut bytes).unwrap() = 7;
    assert_eq!((bytes, work.last(&mut [])), ([1, 7], Err(())));
    assert_eq!((work.calls.get(), work.failures.get()), (9, 3));
}

#[test]
fn a_function_that_a_macro_defines_in_part_counts_its_errors() {
    macro_rules! define {
        ($type:ident) => {
            #[talea::counted(calls, error = failures)]
            fn second(calls: &Counter, failures: &Counter) -> $type {
                calls.get().checked_sub(2).map(drop).ok_or(())
            }
        };
    }
    type Checked = Result<(), ()>;
    define!(Checked);
    let registry = crate::support::metrics::registry();
    let (calls, failures) = (register(&registry, "calls"), register(&registry, "failures"));
    assert_eq!((second(&calls, &failures), second(&calls, &failures)), (Err(()), Ok(())));
    assert_eq!((calls.get(), failures.get()), (2, 1));
}
