//! The trace that a thread is in, as an exemplar.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use talea_region::Cell;

use crate::labels::LabelText;

/// A cell whose exemplar is newer keeps it. So exemplars cost little under load, and a scraper, which
/// comes every second at most, finds new ones.
const INTERVAL: Duration = Duration::from_millis(100);

/// The ids of a span, which is sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanIds {
    trace: [u8; 16],
    span: [u8; 8],
}

/// The span that this thread is in, if there is one and it is sampled.
#[inline]
pub(crate) fn current() -> Option<SpanIds> {
    current_in_rust().or_else(current_of_process)
}

/// The span of OpenTelemetry for Rust, which keeps it in a variable of the thread; tracing-opentelemetry sets that
/// whenever a span of `tracing` is entered.
#[inline]
fn current_in_rust() -> Option<SpanIds> {
    Context::map_current(|context| {
        if !context.has_active_span() {
            return None;
        }
        let span = context.span();
        let span = span.span_context();
        (span.is_sampled() && span.is_valid())
            .then(|| SpanIds { trace: span.trace_id().to_bytes(), span: span.span_id().to_bytes() })
    })
}

/// The span of another tracer in the process, if that publishes it.
#[inline]
fn current_of_process() -> Option<SpanIds> {
    #[cfg(target_os = "linux")]
    return talea_region::sampled_span().map(|(trace, span)| SpanIds { trace, span });
    #[cfg(not(target_os = "linux"))]
    None
}

/// Keeps a span as exemplar `n` of a cell's series, unless that is newer than [`INTERVAL`]. If there is
/// no room for it, the one before stays.
#[cold]
pub(crate) fn keep(cell: Cell, n: usize, value: f64, span: SpanIds) {
    if cell.has_exemplar_of_last(n, INTERVAL) {
        return;
    }
    let mut text = LabelText::new();
    text.label("trace_id", text_of(&mut [0; 32], &span.trace));
    text.label("span_id", text_of(&mut [0; 32], &span.span));
    let _ = cell.set_exemplar(n, value, text.as_bytes());
}

/// Bytes in hexadecimal, as W3C's Trace Context writes ids.
fn text_of<'a>(out: &'a mut [u8; 32], bytes: &[u8]) -> &'a str {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(*byte)]);
    }
    std::str::from_utf8(&out[..bytes.len() * 2]).unwrap_or_default()
}
