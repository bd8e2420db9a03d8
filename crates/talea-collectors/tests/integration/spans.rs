//! Claims about the durations of spans, with tracing's own registry.

use std::thread;

use talea::{Registry, Snapshot};
use talea_collectors::spans;
use tracing::subscriber::with_default;
use tracing::{Instrument, Span, error, info_span, trace_span};
use tracing_subscriber::layer::SubscriberExt;

const NAMES: [&str; 2] = ["list_orders", "add_order"];

fn subscriber(registry: &Registry) -> impl tracing::Subscriber + Send + Sync + use<> {
    tracing_subscriber::registry().with(spans::layer(registry, &NAMES).unwrap())
}

fn count(snapshot: &Snapshot, name: &str) -> Option<u64> {
    let name = [("span_name", name)];
    snapshot.histogram("traces_span_metrics_duration_seconds", &name).map(|found| found.count())
}

fn counts(registry: &Registry) -> [Option<u64>; 2] {
    let snapshot = registry.snapshot();
    NAMES.map(|name| count(&snapshot, name))
}

fn left_out(registry: &Registry) -> f64 {
    registry.snapshot().expect_value("traces_span_metrics_left_out_total", &[])
}

#[test]
fn a_span_of_a_listed_name_is_observed_once_when_it_is_closed() {
    let registry = Registry::for_test().unwrap();
    with_default(subscriber(&registry), || {
        assert_eq!(counts(&registry), [Some(0), Some(0)], "before the first span");
        let listed = info_span!("list_orders");
        let of_another_level = trace_span!("list_orders");
        let nested = info_span!(parent: &listed, "add_order");
        // Entering is no end, nor is the end of one of two handles.
        listed.in_scope(|| nested.in_scope(|| error!("list_orders")));
        let handle = listed.clone();
        drop((listed, of_another_level));
        assert_eq!(counts(&registry), [Some(1), Some(0)]);
        // A child keeps its parent open.
        drop(handle);
        assert_eq!(counts(&registry), [Some(1), Some(0)]);
        drop(nested);
        assert_eq!(counts(&registry), [Some(2), Some(1)]);
    });
    assert_eq!(left_out(&registry), 0.0);
}

#[test]
fn a_span_lasts_from_its_creation_to_its_end_on_whatever_thread() {
    let registry = Registry::for_test().unwrap();
    let least = with_default(subscriber(&registry), || {
        let span = info_span!("list_orders");
        let created = std::time::Instant::now();
        let closes = thread::spawn(move || {
            let least = created.elapsed();
            drop(span);
            least
        });
        closes.join().unwrap()
    });
    let name = [("span_name", "list_orders")];
    let snapshot = registry.snapshot();
    let found = snapshot.histogram("traces_span_metrics_duration_seconds", &name).unwrap();
    assert_eq!(found.count(), 1);
    assert!(found.sum() >= least.as_secs_f64(), "{} s, expected {least:?}", found.sum());
}

#[tokio::test]
async fn a_query_that_is_dropped_is_observed_too() {
    let registry = Registry::for_test().unwrap();
    let _default = tracing::subscriber::set_default(subscriber(&registry));
    async {}.instrument(info_span!("list_orders")).await;
    drop(std::future::pending::<()>().instrument(info_span!("list_orders")));
    assert_eq!(counts(&registry), [Some(2), Some(0)]);
}

#[test]
fn spans_without_room_are_left_out_and_counted() {
    const ALL: usize = 20_000;
    let registry = Registry::for_test().unwrap();
    with_default(subscriber(&registry), || {
        let open: Vec<_> = (0..4_000).map(|_| info_span!("list_orders")).collect();
        assert_eq!(left_out(&registry), 0.0);
        let more: Vec<_> = (4_000..ALL).map(|_| info_span!("list_orders")).collect();
        drop((open, more));
        let [observed, _] = counts(&registry);
        assert_eq!(observed.unwrap() as f64 + left_out(&registry), ALL as f64);
        let before = left_out(&registry);
        drop((0..4_000).map(|_| info_span!("add_order")).collect::<Vec<_>>());
        assert_eq!((counts(&registry)[1], left_out(&registry)), (Some(4_000), before));
    });
}

#[test]
fn threads_that_open_and_close_each_others_spans_lose_none() {
    let registry = Registry::for_test().unwrap();
    let dispatch = tracing::Dispatch::new(subscriber(&registry));
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Span>(100);
    thread::scope(|scope| {
        for _ in 0..3 {
            let (dispatch, sender) = (dispatch.clone(), sender.clone());
            scope.spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    for n in 0..5_000 {
                        let span = if n % 2 == 0 {
                            info_span!("list_orders")
                        } else {
                            info_span!("add_order")
                        };
                        if n % 3 == 0 {
                            sender.send(span).unwrap();
                        }
                    }
                });
            });
        }
        drop(sender);
        scope.spawn(move || receiver.into_iter().for_each(drop));
    });
    assert_eq!(counts(&registry), [Some(7_500), Some(7_500)]);
    assert_eq!(left_out(&registry), 0.0);
}
