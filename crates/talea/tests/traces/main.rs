//! Claims about the span that a thread is in as an exemplar: which one, how often, and at what cost.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod thread_context;

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use proptest::prelude::*;
use talea::{Family, Histogram, Labels, Opts, Registry, Seconds};

#[derive(Clone, Copy, Labels)]
struct By<'a> {
    provider: &'a str,
}

fn context(trace: u128, span: u64, flags: TraceFlags) -> Context {
    // A state, since to clone it allocates.
    let state = TraceState::from_key_value([("vendor", "value")]).unwrap();
    let (trace, span) = (TraceId::from(trace), SpanId::from(span));
    Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, state))
}

fn payment(registry: &Registry) -> Histogram<Seconds> {
    registry.register(Opts::new("payment", "Time to pay.")).unwrap()
}

/// The exemplars of a registry's series: the labels and the value of each.
fn exemplars(registry: &Registry) -> Vec<(Vec<(String, String)>, f64)> {
    let snapshot = registry.snapshot();
    let series = snapshot.families().flat_map(|family| family.series().collect::<Vec<_>>());
    let all = series.flat_map(|series| series.exemplars().collect::<Vec<_>>());
    all.map(|exemplar| (exemplar.labels, exemplar.value)).collect()
}

fn ids(trace: &str, span: &str) -> Vec<(String, String)> {
    [("trace_id", trace), ("span_id", span)].map(|(name, id)| (name.into(), id.into())).into()
}

#[test]
fn the_ids_are_written_as_in_traceparent() {
    let registry = Registry::for_test().unwrap();
    let payment = payment(&registry);
    let context = context(0x0AF7_6519_16CD_43DD_8448_EB21_1C80_319C, 0xB7, TraceFlags::SAMPLED);
    let _entered = context.attach();
    payment.observe_traced(Duration::from_millis(20));
    let expected = ids("0af7651916cd43dd8448eb211c80319c", "00000000000000b7");
    assert_eq!(exemplars(&registry), [(expected, 0.02)]);
}

#[test]
fn outside_of_a_sampled_span_an_observation_is_only_counted() {
    let registry = Registry::for_test().unwrap();
    let payment = payment(&registry);
    payment.observe_traced(Duration::from_millis(20));
    for (trace, span, flags) in
        [(1, 1, TraceFlags::NOT_SAMPLED), (0, 1, TraceFlags::SAMPLED), (1, 0, TraceFlags::SAMPLED)]
    {
        let _entered = context(trace, span, flags).attach();
        payment.observe_traced(Duration::from_millis(20));
    }
    assert_eq!(registry.snapshot().expect_histogram("payment_seconds", &[]).count(), 4);
    assert_eq!(exemplars(&registry), []);
}

#[test]
fn a_bucket_keeps_its_exemplar_for_a_while_and_each_bucket_has_one() {
    let registry = Registry::for_test().unwrap();
    let payment = payment(&registry);
    // The clock of the exemplars is the system's: a pause of the machine can let several be kept.
    for attempt in 0.. {
        registry.wipe(|_| true);
        let begin = std::time::Instant::now();
        for n in 1..=50 {
            let _entered = context(n, attempt + 1, TraceFlags::SAMPLED).attach();
            payment.observe_traced(Duration::from_millis(20));
            payment.observe_traced(Duration::from_secs(20));
        }
        if begin.elapsed() > Duration::from_millis(50) {
            continue;
        }
        let span = format!("{:016x}", attempt + 1);
        let first = ids(&format!("{:032x}", 1), &span);
        assert_eq!(exemplars(&registry), [(first.clone(), 0.02), (first, 20.0)]);
        break;
    }
}

#[test]
fn timers_take_exemplars() {
    let registry = Registry::for_test().unwrap();
    let plain = payment(&registry);
    let opts = || Opts::new("refund", "Time to refund.");
    let family: Family<By<'static>, Histogram<Seconds>> = registry.register(opts()).unwrap();
    let own = [("order", "7")];
    plain.start_timer().stop_with_exemplar(&own).unwrap();
    family.start_timer(By { provider: "a" }).stop_with_exemplar(&own).unwrap();
    family.with(By { provider: "b" }).start_timer().stop_with_exemplar(&own).unwrap();
    let expected: Vec<(String, String)> = vec![("order".into(), "7".into())];
    let found = exemplars(&registry);
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|(labels, _)| *labels == expected), "{found:?}");

    let registry = Registry::for_test().unwrap();
    let plain = payment(&registry);
    let family: Family<By<'static>, Histogram<Seconds>> = registry.register(opts()).unwrap();
    let _entered = context(1, 2, TraceFlags::SAMPLED).attach();
    plain.start_timer().stop_traced();
    family.start_timer(By { provider: "a" }).stop_traced();
    family.with(By { provider: "b" }).start_timer().stop_traced();
    let expected = ids(&format!("{:032x}", 1), &format!("{:016x}", 2));
    let found = exemplars(&registry);
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|(labels, _)| *labels == expected), "{found:?}");
}

#[test]
fn nothing_is_allocated_in_a_span_or_out_of_one() {
    let registry = Registry::for_test().unwrap();
    let payment = payment(&registry);
    let both = || {
        payment.observe_traced(Duration::from_millis(20));
        let context = context(1, 1, TraceFlags::SAMPLED);
        let _entered = context.attach();
        let counted =
            allocation_counter::measure(|| payment.observe_traced(Duration::from_millis(20)));
        assert_eq!(counted.count_total, 0);
    };
    // The first keeps an exemplar, the second finds it.
    both();
    both();
    let counted = allocation_counter::measure(|| payment.observe_traced(Duration::from_secs(1)));
    assert_eq!(counted.count_total, 0);
}

proptest! {
    /// Whatever the ids, they are read back from a page.
    #[test]
    fn any_ids_are_shown(trace in 1_u128.., span in 1_u64..) {
        let registry = Registry::for_test().unwrap();
        let payment = payment(&registry);
        let _entered = context(trace, span, TraceFlags::SAMPLED).attach();
        payment.observe_traced(Duration::from_millis(20));
        let expected = ids(&format!("{trace:032x}"), &format!("{span:016x}"));
        prop_assert_eq!(exemplars(&registry), [(expected, 0.02)]);
    }
}
