//! Spans of `tracing` as histograms, by name.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use talea::{Counter, DynamicLabels, Error, Family, Histogram, Opts, Registry, Seconds};
use tracing_core::Metadata;
use tracing_core::span::{Attributes, Id};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Returns a layer for `tracing_subscriber` that observes how long each span of a listed name lives.
///
/// | metric | meaning |
/// |---|---|
/// | `traces_span_metrics_duration_seconds{span_name}` | time from the creation of a span until it is closed |
/// | `traces_span_metrics_left_out_total` | spans that were not observed, because too many were open: there is room for 4,000 at least |
///
/// The first name and its label are those of the OpenTelemetry Collector's span metrics connector.
///
/// ```
/// use talea_collectors::spans;
/// use tracing::{Instrument, info_span};
/// use tracing_subscriber::layer::SubscriberExt;
///
/// # async fn query() {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = talea::Registry::new()?;
/// let layer = spans::layer(&registry, &["list_orders", "add_order"])?;
/// tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
///
/// query().instrument(info_span!("list_orders")).await; // or #[tracing::instrument]
/// let name = [("span_name", "list_orders")];
/// let duration = registry.snapshot().histogram("traces_span_metrics_duration_seconds", &name);
/// assert_eq!(duration.unwrap().count(), 1);
/// # Ok(())
/// # }
/// ```
///
/// All series exist from the start. Spans of other names, and events, cost nothing here and are neither enabled nor disabled
/// by this layer. A listed span is observed at any level, whatever the filters of other layers are; a filter that is itself a
/// layer of the subscriber, as `EnvFilter` can be, holds for all layers.
///
/// Cost of a span: two reads of the clock, two look-ups and an observation; it allocates nothing and takes no lock.
///
/// # Errors
/// A metric cannot be registered: see [`Registry::register`].
pub fn layer<S>(registry: &Registry, names: &[&str]) -> Result<impl Layer<S> + use<S>, Error>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let opts = Opts::new("traces_span_metrics_duration", "Time from a span's begin to its end.");
    let durations: Family<DynamicLabels, Histogram<Seconds>> =
        registry.family(opts, &["span_name"])?;
    let durations: Vec<_> =
        names.iter().map(|name| durations.with_values(&[name]).keep()).collect();
    let left_out = registry
        .register(Opts::new("traces_span_metrics_left_out", "Spans that were not observed."))?;
    let numbers = names.iter().enumerate().map(|(number, name)| ((*name).to_owned(), number));
    let names = ListedNames(Arc::new(numbers.collect()));
    let spans = SpanLayer { names: names.clone(), durations, left_out, open: OpenSpans::default() };
    Ok(spans.with_filter(names))
}

/// The names of spans that are observed, with their numbers.
#[derive(Clone)]
struct ListedNames(Arc<HashMap<String, usize>>);

impl ListedNames {
    fn number(&self, metadata: &Metadata<'_>) -> Option<usize> {
        self.0.get(metadata.name()).copied().filter(|_| metadata.is_span())
    }
}

impl<S> Filter<S> for ListedNames {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.number(metadata).is_some()
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.number(metadata) {
            Some(_) => Interest::always(),
            None => Interest::never(),
        }
    }
}

struct SpanLayer {
    names: ListedNames,
    durations: Vec<Histogram<Seconds>>,
    left_out: Counter,
    open: OpenSpans,
}

impl<S: Subscriber> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, span: &Id, _: Context<'_, S>) {
        let Some(name) = self.names.number(attributes.metadata()) else { return };
        if !self.open.insert(span, name) {
            self.left_out.inc();
        }
    }

    fn on_close(&self, span: Id, _: Context<'_, S>) {
        if let Some((name, time)) = self.open.remove(&span) {
            self.durations[name].observe(time);
        }
    }
}

const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 13;

/// Slots that a span can have, beside one another.
const CHOICES: usize = 16;

/// The spans that are open, in a hash table of fixed size.
///
/// # Implementation details
///
/// A span has one of 16 slots, which begin where its id hashes to. `insert` takes a free one by a compare-and-swap. A look-up
/// goes through all 16, so that a slot can be freed without a tombstone.
///
/// 1. An id is in one slot at most: the subscriber gives it to one span at a time, and calls `on_close` before it gives it
///    to another.
/// 2. Only the thread that inserted an id, and then the one that removes it, reads or writes the rest of its slot. The
///    subscriber's count of a span's handles orders the two; a slot that is freed (release) and taken again (acquire) is
///    ordered by its id.
struct OpenSpans {
    /// What `Slot::began` counts from.
    origin: Instant,
    slots: Box<[Slot]>,
}

#[derive(Default)]
struct Slot {
    /// The id of the span, 0 if the slot is free.
    span: AtomicU64,
    name: AtomicU64,
    /// In nanoseconds.
    began: AtomicU64,
}

impl Default for OpenSpans {
    fn default() -> Self {
        let slots = std::iter::repeat_with(Slot::default).take(SLOTS).collect();
        Self { origin: Instant::now(), slots }
    }
}

impl OpenSpans {
    /// Whether there was room.
    fn insert(&self, span: &Id, name: usize) -> bool {
        let id = span.into_u64();
        for slot in self.choices(id) {
            if slot.span.compare_exchange(0, id, Acquire, Relaxed).is_ok() {
                slot.name.store(name as u64, Relaxed);
                slot.began.store(self.now(), Relaxed);
                return true;
            }
        }
        false
    }

    /// The number of its name, and how long it was open.
    fn remove(&self, span: &Id) -> Option<(usize, Duration)> {
        let id = span.into_u64();
        let slot = self.choices(id).find(|slot| slot.span.load(Relaxed) == id)?;
        let name = slot.name.load(Relaxed) as usize;
        let time = self.now().saturating_sub(slot.began.load(Relaxed));
        slot.span.store(0, Release);
        Some((name, Duration::from_nanos(time)))
    }

    fn choices(&self, id: u64) -> impl Iterator<Item = &Slot> {
        // Fibonacci hashing: ids that follow one another are spread.
        let first = (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOT_BITS)) as usize;
        (first..first + CHOICES).map(|slot| &self.slots[slot % SLOTS])
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}
