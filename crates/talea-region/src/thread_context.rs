//! The span that a thread is in, as a tracer in the process publishes it for profilers: OpenTelemetry's thread
//! context (OTEP 4947, in development). The variable `otel_thread_ctx_v1` of a thread points to a record:
//!
//! | bytes | field |
//! |---|---|
//! | 0–15, 16–23 | ids of the trace and of the span |
//! | 24 | 1 if the record is valid |
//! | 25 | the flags of W3C's Trace Context, of which the first bit says that the trace is sampled |
//!
//! What follows is for profilers. A record is read by the thread that writes it, so it does not change meanwhile.

use std::cell::Cell;
use std::ptr::null;

/// The beginning of a record.
#[repr(C)]
struct Record {
    trace: [u8; 16],
    span: [u8; 8],
    valid: u8,
    flags: u8,
}

const SAMPLED: u8 = 1;

/// A thread's variable.
type Variable = *const *const Record;

thread_local! {
    /// Where this thread's variable is: `Some(null)` if the process has none, `None` if that is not known yet.
    static VARIABLE: Cell<Option<Variable>> = const { Cell::new(None) };
}

/// The ids of the trace and the span that this thread is in, if a tracer publishes them and the trace is
/// sampled. The tracer is looked for at a thread's first call: one that is loaded later is not found by that
/// thread. It must not be unloaded.
#[inline]
pub fn sampled_span() -> Option<([u8; 16], [u8; 8])> {
    let variable = VARIABLE.get().unwrap_or_else(find);
    if variable.is_null() {
        return None;
    }
    // SAFETY: the variable is this thread's, and lives as long as the thread.
    let record = unsafe { variable.read_volatile() };
    if record.is_null() {
        return None;
    }
    // SAFETY: the tracer points to a record that it changes or frees only in this thread, which is here.
    let Record { trace, span, valid, flags } = unsafe { record.read_volatile() };
    let is_set = trace != [0; 16] && span != [0; 8];
    (valid == 1 && flags & SAMPLED != 0 && is_set).then_some((trace, span))
}

#[cold]
fn find() -> Variable {
    // SAFETY: the name is a NUL-terminated literal, and the default handle searches what is loaded already. For a
    // variable of threads this is the address of the calling thread's.
    let variable = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"otel_thread_ctx_v1".as_ptr()) };
    let variable = if variable.is_null() { null() } else { variable.cast_const().cast() };
    VARIABLE.set(Some(variable));
    variable
}
