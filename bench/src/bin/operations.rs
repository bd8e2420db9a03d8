//! The program in which instructions are counted: one operation of Talea, repeated.
//! `talea-bench` itself does not run in valgrind, as a clock of its peers asks the CPU for
//! information that valgrind hides.
//!
//!     talea-operations NAME COUNT OF
//!
//! makes OF calls, COUNT of them of the operation and the others of an empty function. So two
//! runs that differ in COUNT differ by that many operations alone, and not by the start, the loop,
//! or the calls.

#[path = "../http_layer/call.rs"]
mod call;
#[path = "../groups/labels.rs"]
mod labels;

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::http::Uri;
use axum::routing::get;
use talea::{
    Bucketing, Counter, Family, FloatCounter, Histogram, Labels, Metric, Opts, Registry, Seconds,
};
use talea_http::axum as metered;
use talea_region::{AddPath, Region};
use tower_layer::{Stack, layer_fn};

use call::{AxumService, HELLO, PassThrough, ROUTE, ask, path};
use labels::{Kind, ROUTES, RouteName};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, count, of] = &arguments[..] else { bail!("NAME COUNT OF was expected") };
    let calls = Calls { count: count.parse()?, of: of.parse()? };
    let registry = Registry::new()?;
    // Valgrind has none anyway.
    Region::choose_add_path(AddPath::Atomic);
    match name.as_str() {
        "counter-kept" => {
            let counter: Counter = kept(&registry, Opts::new("kept", "Adds."))?;
            calls.make(&counter, &[1], counter_kept);
        }
        "float-kept" => {
            let counter: FloatCounter = kept(&registry, Opts::new("kept_seconds", "Time."))?;
            calls.make(&counter, &[0.25], float_kept);
        }
        "observe-classic" | "observe-dual" => {
            let bucketing = match name.as_str() {
                "observe-dual" => Bucketing::Dual,
                _ => Bucketing::Classic,
            };
            let opts = Opts::new("kept_seconds", "Time.").bucketing(bucketing).buckets(&THRESHOLDS);
            let histogram: Histogram<Seconds> = kept(&registry, opts)?;
            // The first observation in an octave makes its buckets.
            durations().into_iter().for_each(|duration| histogram.observe(duration));
            calls.make(&histogram, &durations(), observe);
        }
        "counter-enum18" => {
            let family = registry.register(Opts::new("failures", "Failed requests."))?;
            let labels = combinations(RouteName::ALL, |kind, route| Fixed { kind, route });
            calls.make(&family, &labels, counter_enum18);
        }
        "counter-fixed18" => {
            Path::fix(ROUTES)?;
            let family = registry.register(Opts::new("failures", "Failed requests."))?;
            calls.make(&family, &combinations(ROUTES, |kind, path| (kind, path)), counter_fixed18);
        }
        "encode" => {
            let family: Family<By<'static>, Counter> =
                registry.register(Opts::new("users", "Users."))?;
            (0..SERIES).for_each(|n| family.with(By { user: &format!("{n:012}") }).inc());
            calls.make(&registry, &[()], encode);
        }
        _ => {
            let layers = |text: &str| text.parse().with_context(|| format!("layers: {text:?}"));
            let router: Router = match name.split_once('-') {
                Some(("request", text)) => router(layers(text)?).metered(&registry)?,
                Some(("unmetered", text)) => router(layers(text)?).unmetered(),
                Some(("bare", text)) => existing(layers(text)?),
                Some(("existing", text)) => {
                    let router = metered::meter(existing(layers(text)?), &registry)?;
                    return requests(&calls, router);
                }
                Some(("per_layer", text)) => per_layer(layers(text)?, &registry)?,
                _ => bail!("there is no operation {name:?}"),
            };
            return requests(&calls, router.with_state(()));
        }
    }
    Ok(())
}

/// A kept handle that a family gave.
fn kept<M: Metric + Clone>(registry: &Registry, opts: Opts) -> Result<M> {
    let family: Family<Kept, M> = registry.register(opts)?;
    Ok(family.with(Kept { kind: Kind::User }).keep())
}

fn requests(calls: &Calls, service: impl AxumService) -> Result<()> {
    // The first request creates the series that later ones record in.
    request(&(service.clone(), path()), ());
    calls.make(&(service, path()), &[()], request);
    Ok(())
}

/// axum's own router with so many layers that do nothing.
fn existing(layers: usize) -> Router {
    let router = Router::new().route(ROUTE, get(async || HELLO));
    (0..layers).fold(router, |router, _| router.layer(layer_fn(PassThrough)))
}

/// A router with a meter around each layer.
fn per_layer(layers: usize, registry: &Registry) -> Result<Router> {
    let meter = metered::Layer::new(registry)?;
    let router = Router::new().route(ROUTE, get(async || HELLO));
    Ok((0..layers).fold(router, |router, _| router.layer(Stack::new(layer_fn(PassThrough), meter))))
}

/// A router with so many layers that do nothing.
fn router(layers: usize) -> metered::Router {
    let router = metered::Router::new().route(ROUTE, metered::get(async || HELLO));
    (0..layers).fold(router, |router, _| router.layer(layer_fn(PassThrough)))
}

/// The number of calls, and how many of them are of the operation.
struct Calls {
    count: u64,
    of: u64,
}

impl Calls {
    // Callgrind counts from the start of this function to its end.
    #[inline(never)]
    fn make<S, V: Copy>(&self, state: &S, values: &[V], operation: fn(&S, V)) {
        // The compiler must not know the called function, or it would make a version
        // of it for this caller.
        let (operation, nothing) = black_box((operation, nothing::<S, V> as fn(&S, V)));
        for (call, &value) in (0..self.of).zip(values.iter().cycle()) {
            let operation = if call < self.count { operation } else { nothing };
            operation(black_box(state), value);
        }
    }
}

#[inline(never)]
fn nothing<S, V>(_: &S, _: V) {}

// The operations. The disassembly is searched for their names.

#[inline(never)]
fn counter_kept(counter: &Counter, n: u64) {
    counter.add(n);
}

#[inline(never)]
fn float_kept(counter: &FloatCounter, x: f64) {
    counter.add(x);
}

#[inline(never)]
fn observe(histogram: &Histogram<Seconds>, duration: Duration) {
    histogram.observe(duration);
}

#[inline(never)]
fn counter_enum18(family: &Family<Fixed, Counter>, labels: Fixed) {
    family.with(labels).inc();
}

#[inline(never)]
fn counter_fixed18(family: &Family<Listed, Counter>, (kind, path): (Kind, &'static str)) {
    if let Some(path) = Path::find(path) {
        family.with(Listed { kind, path }).inc();
    }
}

#[inline(never)]
fn encode(registry: &Registry, (): ()) {
    black_box(registry.snapshot().to_text());
}

#[inline(never)]
fn request<S: AxumService>((service, path): &(S, Uri), (): ()) {
    black_box(ask(service, path));
}

// The state and the labels, as in the groups of the same names.

/// Series in the text; the count is divided by it.
const SERIES: u64 = 1000;

const THRESHOLDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// From 1 ms to 16 s, one in each octave.
fn durations() -> [Duration; 15] {
    std::array::from_fn(|octave| Duration::from_millis(1 << octave))
}

fn combinations<R: Copy, T>(routes: [R; 6], into: fn(Kind, R) -> T) -> Vec<T> {
    Kind::ALL.into_iter().flat_map(|kind| routes.map(|route| into(kind, route))).collect()
}

talea::label_set! {
    /// The routes, as text that is fixed at run time.
    struct Path;
}

#[derive(Labels)]
struct Kept {
    kind: Kind,
}

#[derive(Clone, Copy, Labels)]
struct Fixed {
    kind: Kind,
    route: RouteName,
}

#[derive(Labels)]
struct Listed {
    kind: Kind,
    path: Path,
}

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}
