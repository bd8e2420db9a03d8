//! Claims about task meters, by their public interface.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use talea::Registry;
use talea_collectors::tasks::TaskMeter;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::yield_now;

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Lets the tasks of a current-thread runtime run until none is ready.
async fn settle(tasks: &TaskMeter) {
    while tasks.ready() > 0 {
        yield_now().await;
    }
}

/// The four counts: alive, its peak, ready, its peak.
fn counts(tasks: &TaskMeter) -> [usize; 4] {
    [tasks.alive(), tasks.alive_peak(), tasks.ready(), tasks.ready_peak()]
}

/// A waker that notes its use.
#[derive(Default)]
struct Rings(AtomicBool);
impl Wake for Rings {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Polls by hand, with a waker that does nothing.
fn poll(future: Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// A future that is pending until its waker, kept outside, has been used.
#[derive(Clone, Default)]
struct KeptWaker(Arc<Mutex<Option<Waker>>>);
impl KeptWaker {
    fn keep(&self, cx: &Context<'_>) {
        *self.0.lock().unwrap() = Some(cx.waker().clone());
    }
    fn wake(&self) {
        self.0.lock().unwrap().as_ref().unwrap().wake_by_ref();
    }
    fn never_done(&self) -> impl Future<Output = ()> + use<> {
        let kept = self.clone();
        poll_fn(move |cx| {
            kept.keep(cx);
            Poll::Pending
        })
    }
}

#[test]
fn five_hundred_tasks_woken_at_once_show_between_two_samples() {
    current_thread().block_on(async {
        let tasks = TaskMeter::default();
        let bell = Arc::new(Notify::new());
        let waiting: Vec<_> = (0..500)
            .map(|_| {
                let bell = Arc::clone(&bell);
                tasks.spawn(async move { bell.notified().await })
            })
            .collect();
        assert_eq!(counts(&tasks), [500, 500, 500, 500], "spawned");
        settle(&tasks).await;
        tasks.reset_peaks();
        assert_eq!(counts(&tasks), [500, 500, 0, 0], "the first sample");

        bell.notify_waiters();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(counts(&tasks), [0, 500, 0, 500], "the second sample");
        tasks.reset_peaks();
        assert_eq!(counts(&tasks), [0; 4]);
        assert_eq!(tasks.spawned(), 500, "however many are alive");
        // A count below 0 is shown as 0.
        let _next = tasks.meter(async {});
        assert_eq!(counts(&tasks), [1; 4]);
    });
}

#[test]
fn a_task_that_is_woken_twice_is_ready_once() {
    current_thread().block_on(async {
        let tasks = TaskMeter::default();
        let kept = KeptWaker::default();
        let _task = tasks.spawn(kept.never_done());
        settle(&tasks).await;
        tasks.reset_peaks();
        kept.wake();
        kept.wake();
        assert_eq!(counts(&tasks), [1, 1, 1, 1]);
        settle(&tasks).await;
        assert_eq!(counts(&tasks), [1, 1, 0, 1]);
    });
}

#[test]
fn a_task_that_wakes_itself_while_polled_is_ready_again() {
    current_thread().block_on(async {
        let tasks = TaskMeter::default();
        let meter = tasks.clone();
        let mut polls = 0;
        let task = tasks.spawn(poll_fn(move |cx| {
            polls += 1;
            assert_eq!(meter.ready(), 0, "nobody is ready while this is polled");
            cx.waker().wake_by_ref();
            assert_eq!(meter.ready(), 1, "woken while polled");
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        }));
        assert_eq!(task.await.unwrap(), 3);
        assert_eq!(counts(&tasks), [0, 1, 0, 1]);
    });
}

#[test]
fn a_future_that_is_dropped_leaves_nothing_and_late_wakes_count_nothing() {
    for (case, is_polled, is_woken, before) in [
        ("before its first poll", false, false, (1, 1)),
        ("while idle", true, false, (1, 0)),
        ("while ready", true, true, (1, 1)),
    ] {
        let (tasks, kept) = (TaskMeter::default(), KeptWaker::default());
        let mut future = Box::pin(tasks.meter(kept.never_done()));
        assert!(!is_polled || !poll(future.as_mut()), "{case}");
        if is_woken {
            kept.wake();
        }
        assert_eq!((tasks.alive(), tasks.ready()), before, "{case}");
        drop(future);
        assert_eq!((tasks.alive(), tasks.ready()), (0, 0), "{case}");
        if is_polled {
            kept.wake();
        }
        assert_eq!((tasks.alive(), tasks.ready()), (0, 0), "{case}, woken later");
        // A count below 0 is shown as 0.
        let _next = tasks.meter(async {});
        assert_eq!((tasks.alive(), tasks.ready()), (1, 1), "{case}, and one more");
    }
}

#[test]
fn a_waker_that_is_kept_for_ever_does_not_keep_the_runtimes_waker() {
    let rings = Arc::new(Rings::default());
    let tasks = TaskMeter::default();
    let kept = KeptWaker::default();
    let mut future = Box::pin(tasks.meter(kept.never_done()));
    let waker = Waker::from(Arc::clone(&rings));
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&rings), 2);
    drop(future);
    assert_eq!(Arc::strong_count(&rings), 1);
}

#[test]
fn wakes_reach_the_newest_waker_of_the_runtime() {
    let tasks = TaskMeter::default();
    let kept = KeptWaker::default();
    let mut future = pin!(tasks.meter(kept.never_done()));
    let (old, new) = (Arc::<Rings>::default(), Arc::<Rings>::default());
    for rings in [&old, &new] {
        let waker = Waker::from(Arc::clone(rings));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    kept.wake();
    assert!(new.0.load(SeqCst));
    assert!(!old.0.load(SeqCst));
}

/// Tasks that wake each other across threads, beside some that are aborted or
/// panic in the middle and a thread that resets the peaks all the time.
#[test]
fn many_threads_of_wakes_and_drops_return_to_zero() {
    let runtime =
        Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
    let tasks = TaskMeter::default();
    let done = Arc::new(AtomicBool::new(false));
    let resetter = thread::spawn({
        let (tasks, done) = (tasks.clone(), Arc::clone(&done));
        move || {
            while !done.load(SeqCst) {
                tasks.reset_peaks();
                thread::sleep(Duration::from_micros(50));
            }
        }
    });
    runtime.block_on(async {
        for _ in 0..20 {
            let mut ended = Vec::new();
            for pair in 0..50 {
                let (there, mut here) = mpsc::channel::<u32>(1);
                let (back, mut home) = mpsc::channel::<u32>(1);
                ended.push(tasks.spawn(async move {
                    while let Some(n) = here.recv().await {
                        if back.send(n + 1).await.is_err() {
                            break;
                        }
                    }
                }));
                ended.push(tasks.spawn(async move {
                    let mut n = 0;
                    while n < 200 {
                        assert!(pair % 10 != 3 || n < 100, "on purpose");
                        if there.send(n).await.is_err() {
                            return;
                        }
                        match home.recv().await {
                            Some(answer) => n = answer,
                            None => return,
                        }
                    }
                }));
                if pair % 10 == 7 {
                    ended[2 * pair].abort();
                }
            }
            for task in ended {
                let _ = task.await;
            }
        }
    });
    done.store(true, SeqCst);
    resetter.join().unwrap();
    assert_eq!((tasks.alive(), tasks.ready()), (0, 0));
    tasks.reset_peaks();
    assert_eq!(counts(&tasks), [0; 4]);
}

/// Wakes from a foreign thread meet polls, so that a wake is at every stage of
/// being noted while a poll begins or the task ends. No wake may be lost: each
/// task ends only when it has seen its last signal.
#[test]
fn no_wake_is_lost_between_threads() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let tasks = TaskMeter::default();
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..2_000).map(|_| oneshot::channel::<()>()).unzip();
    let joined: Vec<_> =
        receivers.into_iter().map(|receiver| runtime.spawn(tasks.meter(receiver))).collect();
    let sender = thread::spawn(move || {
        for sender in senders {
            sender.send(()).unwrap();
        }
    });
    runtime.block_on(async {
        for task in joined {
            task.await.unwrap().unwrap();
        }
    });
    sender.join().unwrap();
    assert_eq!((tasks.alive(), tasks.ready()), (0, 0));
    assert!(tasks.alive_peak() >= 1);
}

#[test]
fn the_registry_shows_counts_and_peaks() {
    current_thread().block_on(async {
        let registry = Registry::for_test().expect("a registry");
        let tasks = TaskMeter::register(&registry, "server").expect("the gauges");
        let shown = || {
            let snapshot = registry.snapshot();
            ["alive", "alive_peak", "ready", "ready_peak"]
                .map(|ending| snapshot.value(&format!("server_tasks_{ending}"), &[]))
        };
        assert_eq!(shown(), [Some(0.0); 4]);
        let waiting: Vec<_> = (0..3).map(|_| tasks.spawn(pending::<()>())).collect();
        settle(&tasks).await;
        assert_eq!(shown(), [3.0, 3.0, 0.0, 3.0].map(Some));
        for task in waiting {
            task.abort();
            let _ = task.await;
        }
        assert_eq!(shown(), [0.0, 3.0, 0.0, 3.0].map(Some));
        tasks.reset_peaks();
        assert_eq!(shown(), [Some(0.0); 4]);
    });
}
