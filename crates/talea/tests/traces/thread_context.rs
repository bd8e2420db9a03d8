//! Claims about the span that another tracer of the process publishes. The tracer is a library in C, preloaded to
//! this program, which runs itself anew for that.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use talea::{Opts, Registry, Seconds};

const TRACER: &str = r#"
struct record { unsigned char trace[16], span[8], valid, flags; unsigned short size; };
static struct record record = { { TRACE }, { 0xb7, [7] = SPAN }, VALID, FLAGS, 0 };
__thread struct record *otel_thread_ctx_v1 = POINTER;
"#;

/// The definitions for the tracer, and the ids of the exemplar.
type Case = (&'static str, [&'static str; 5], Option<&'static str>);

const OF_TRACER: &str = "af000000000000000000000000000000 b700000000000001";

const CASES: [Case; 7] = [
    ("sampled", ["TRACE=0xaf", "SPAN=1", "VALID=1", "FLAGS=1", "POINTER=&record"], Some(OF_TRACER)),
    (
        "flags",
        ["TRACE=0xaf", "SPAN=1", "VALID=1", "FLAGS=0xff", "POINTER=&record"],
        Some(OF_TRACER),
    ),
    ("unsampled", ["TRACE=0xaf", "SPAN=1", "VALID=1", "FLAGS=2", "POINTER=&record"], None),
    ("invalid", ["TRACE=0xaf", "SPAN=1", "VALID=0", "FLAGS=1", "POINTER=&record"], None),
    ("reserved", ["TRACE=0xaf", "SPAN=1", "VALID=2", "FLAGS=1", "POINTER=&record"], None),
    ("no trace", ["TRACE=0", "SPAN=1", "VALID=1", "FLAGS=1", "POINTER=&record"], None),
    ("no record", ["TRACE=0xaf", "SPAN=1", "VALID=1", "FLAGS=1", "POINTER=0"], None),
];

const NAME: &str = "thread_context::a_sampled_span_of_another_tracer_is_the_exemplar";

/// Set where this program runs with a tracer.
const WITH_TRACER: &str = "TALEA_TEST_WITH_TRACER";

#[test]
fn a_sampled_span_of_another_tracer_is_the_exemplar() {
    if std::env::var_os(WITH_TRACER).is_some() {
        return observe();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, definitions, expected) in CASES {
        let tracer = folder.join(format!("{name}.so"));
        compile(&tracer, &definitions);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", "--exact", NAME])
            .envs([("LD_PRELOAD", tracer.as_path()), (WITH_TRACER, Path::new("1"))])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{name}: {text}");
        let expected = expected.unwrap_or("nothing");
        for thread in ["first", "second"] {
            assert!(text.contains(&format!("{thread}: {expected}\n")), "{name}: {text}");
        }
        // The span of OpenTelemetry for Rust goes first.
        let own = "own: 00000000000000000000000000000001 0000000000000002\n";
        assert!(text.contains(own), "{name}: {text}");
    }
}

fn compile(tracer: &Path, definitions: &[&str]) {
    let source = tracer.with_extension("c");
    std::fs::write(&source, TRACER).unwrap();
    let definitions = definitions.iter().map(|definition| format!("-D{definition}"));
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([tracer, &source])
        .args(definitions)
        .output()
        .unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
}

/// Prints the exemplars that observations have in this process.
fn observe() {
    println!("\nfirst: {}", exemplar());
    println!("second: {}", std::thread::spawn(exemplar).join().unwrap());
    let (trace, span) = (TraceId::from(1), SpanId::from(2));
    let state = TraceState::default();
    let span = SpanContext::new(trace, span, TraceFlags::SAMPLED, true, state);
    let _entered = Context::new().with_remote_span_context(span).attach();
    println!("own: {}", exemplar());
}

fn exemplar() -> String {
    let registry = Registry::for_test().unwrap();
    let payment: talea::Histogram<Seconds> =
        registry.register(Opts::new("payment", "Time to pay.")).unwrap();
    payment.observe_traced(Duration::from_millis(20));
    let snapshot = registry.snapshot();
    let series = snapshot.families().flat_map(|family| family.series().collect::<Vec<_>>());
    let ids = series.flat_map(|series| series.exemplars().collect::<Vec<_>>());
    let ids = ids.flat_map(|exemplar| exemplar.labels).map(|(_, id)| id).collect::<Vec<_>>();
    if ids.is_empty() { "nothing".to_owned() } else { ids.join(" ") }
}
