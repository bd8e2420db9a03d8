//! What the layer of spans does to other layers. In a process of its own: whether a span is enabled is kept for all
//! subscribers of a process, so tests beside this one would take part in it.

use talea::Registry;
use talea_collectors::spans;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::with_default;
use tracing::{Span, debug_span, error_span, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// Notes how many spans it gets.
struct Other(talea::Counter);

impl<S: tracing::Subscriber> Layer<S> for Other {
    fn on_new_span(
        &self,
        _: &tracing::span::Attributes<'_>,
        _: &tracing::span::Id,
        _: Context<'_, S>,
    ) {
        self.0.inc();
    }
}

#[test]
fn other_layers_get_what_they_get_without_it_and_it_gets_what_they_refuse() {
    let spans = || [info_span!("list_orders"), debug_span!("other"), error_span!("third")];
    let enabled = |spans: [Span; 3]| spans.map(|span| !span.is_disabled());
    let registry = Registry::for_test().unwrap();
    let other: talea::Counter = registry.register(talea::Opts::new("other", "Spans.")).unwrap();
    let other = || Other(other.clone()).with_filter(LevelFilter::ERROR);
    let seen = || registry.snapshot().expect_value("other_total", &[]);
    let alone = tracing_subscriber::registry().with(other());
    assert_eq!(with_default(alone, || enabled(spans())), [false, false, true]);
    assert_eq!(seen(), 1.0);
    let layer = spans::layer(&registry, &["list_orders"]).unwrap();
    let beside = tracing_subscriber::registry().with(other()).with(layer);
    assert_eq!(with_default(beside, || enabled(spans())), [true, false, true]);
    assert_eq!(seen(), 2.0);
    let name = [("span_name", "list_orders")];
    let snapshot = registry.snapshot();
    let observed = snapshot.histogram("traces_span_metrics_duration_seconds", &name).unwrap();
    assert_eq!(observed.count(), 1);
}
