//! Claims about memory of the process: no operation on a metric allocates once its
//! series is there, and registering again keeps nothing.
#![cfg(not(miri))]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use talea::{
    Bytes, Combine, Count, Counter, Displayed, DynamicLabels, Family, FloatCounter, FloatGauge,
    Floats, Gauge, Histogram, HttpMethod, LabelValue, Labels, Lazy, Metric, Opts, Registrable,
    Registry, Seconds, StateSet, StatusClass, UpDownCounter,
};

/// Often enough that what is done each time it comes round is done too.
const TIMES: u64 = 1_000;

#[derive(Clone, Copy, LabelValue)]
enum Method {
    Card,
    Cash,
}

talea::label_set! { struct Route; }

const ROUTES: [&str; 3] = ["/", "/users", "/a-route-that-is-longer-than-32-bytes/{id}"];

fn fix() {
    Route::fix(ROUTES).unwrap();
}

#[derive(Clone, Copy, Labels)]
struct Fixed {
    method: Method,
    gift: Option<bool>,
    route: Option<Route>,
    class: StatusClass,
    verb: HttpMethod,
}

#[derive(Clone, Copy, Labels)]
struct Mixed<'a> {
    method: Method,
    country: &'a str,
}

#[derive(Clone, Copy, Labels)]
struct Dynamic<'a> {
    text: &'a str,
    number: u64,
    sign: i8,
    maybe: Option<&'a str>,
    letter: char,
}

#[derive(Clone, Copy, Labels)]
struct Shown {
    host: Displayed<IpAddr>,
    #[label(display)]
    share: f64,
}

const FIXED: Fixed = Fixed {
    method: Method::Card,
    gift: Some(true),
    route: None,
    class: StatusClass::Successful,
    verb: HttpMethod::Get,
};
const MIXED: Mixed<'static> = Mixed { method: Method::Cash, country: "a \"quoted\"\nland" };
const DYNAMIC: Dynamic<'static> =
    Dynamic { text: "some\\text", number: u64::MAX, sign: -1, maybe: Some("x"), letter: 'ü' };
const SHOWN: Shown =
    Shown { host: Displayed(IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1))), share: 0.25 };

fn registry() -> Registry {
    Registry::for_test().unwrap()
}

fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.")
}

fn register<R: Registrable>(registry: &Registry, name: &str) -> R {
    registry.register(opts(name)).unwrap()
}

fn often(work: impl Fn()) -> AllocationInfo {
    work();
    measure(|| (0..TIMES).for_each(|_| work()))
}

/// That something allocates nothing after its first time.
#[track_caller]
fn check_calm(what: &str, work: impl Fn()) {
    assert_eq!(often(work).count_total, 0, "{what} allocates");
}

#[test]
fn allocations_are_noticed() {
    assert_eq!(often(|| drop(std::hint::black_box(vec![1_u8]))).count_total, TIMES);
    // Of labels this long it is documented.
    let long = "x".repeat(500);
    let family: Family<Mixed<'static>, Counter> = register(&registry(), "x");
    let country = long.as_str();
    let info = often(|| family.with(Mixed { method: Method::Card, country }).inc());
    assert!(info.count_total >= TIMES && info.bytes_current == 0, "{info:?}");
}

#[test]
fn a_long_label_allocates_until_it_is_in_the_lookup_cache() {
    let family: Family<Mixed<'static>, Counter> = register(&registry(), "x");
    let long = "x".repeat(300);
    let count = || family.with(Mixed { method: Method::Card, country: &long }).inc();
    // Made, and found.
    assert!(measure(|| (0..2).for_each(|_| count())).count_total >= 2);
    check_calm("Family::with", count);
}

#[test]
fn no_operation_of_a_metric_allocates() {
    let registry = registry();
    let count: Counter = register(&registry, "count");
    let single: Counter = registry.register(opts("single").striped(false)).unwrap();
    let float: FloatCounter = register(&registry, "float");
    let open: UpDownCounter = register(&registry, "open");
    let time: Histogram<Seconds> = register(&registry, "time");
    let size: Histogram<Bytes> = register(&registry, "size");
    let things: Histogram<Count> = register(&registry, "things");
    let drift: Histogram<Floats> = register(&registry, "drift");
    let state: StateSet<Method> = register(&registry, "state");
    let use_all = |round: &str| {
        let check = |what: &str, work: &dyn Fn()| check_calm(&format!("{what} {round}"), work);
        for count in [&count, &single] {
            check("Counter::inc", &|| count.inc());
            check("Counter::add", &|| count.add(3));
            check("Counter::get", &|| assert!(count.get() > 0));
            check("Counter::clone", &|| count.clone().inc());
        }
        check("FloatCounter::add", &|| float.add(0.5));
        check("FloatCounter::get", &|| assert!(float.get() > 0.0));
        check("UpDownCounter::inc", &|| open.inc());
        check("UpDownCounter::dec", &|| open.dec());
        check("UpDownCounter::add", &|| open.add(-2));
        check("UpDownCounter::get", &|| assert!(open.get() <= 0));
        check("Histogram<Seconds>::observe", &|| time.observe(Duration::from_millis(7)));
        check("Histogram::start_timer", &|| drop(time.start_timer()));
        check("Histogram<Bytes>::observe", &|| size.observe(5_000_000_000));
        check("Histogram<Floats>::observe", &|| drift.observe(-0.25));
        check("Histogram<Count>::observe", &|| things.observe(0));
        check("Histogram::clone", &|| things.clone().observe(1));
        check("StateSet::set", &|| state.set(Method::Cash));
        check("StateSet::enable", &|| state.enable(Method::Card));
        check("StateSet::disable", &|| state.disable(Method::Cash));
        check("StateSet::is", &|| assert!(state.is(Method::Card)));
    };
    use_all("at first");
    assert!(registry.wipe(|_| true));
    use_all("after wiping");
}

#[test]
fn no_operation_of_a_gauge_allocates_however_it_combines() {
    let registry = registry();
    let all = [Combine::Latest, Combine::Sum, Combine::Max, Combine::Min, Combine::Each];
    for (n, combine) in all.into_iter().enumerate() {
        let whole = format!("whole{n}");
        let float = format!("float{n}");
        let whole: Gauge = registry.register(opts(&whole).combine(combine)).unwrap();
        let float: FloatGauge = registry.register(opts(&float).combine(combine)).unwrap();
        let check = |what: &str, work: &dyn Fn()| check_calm(&format!("{what} {combine:?}"), work);
        check("Gauge::set", &|| whole.set(-1));
        check("Gauge::inc", &|| whole.inc());
        check("Gauge::dec", &|| whole.dec());
        check("Gauge::add", &|| assert!(whole.add(2) != 0));
        check("Gauge::set_max", &|| whole.set_max(5));
        check("Gauge::set_min", &|| whole.set_min(1));
        check("Gauge::get", &|| assert_eq!(whole.get(), 1));
        check("FloatGauge::set", &|| float.set(0.5));
        check("FloatGauge::get", &|| assert_eq!(float.get(), 0.5));
        check("FloatGauge::add", &|| float.add(0.5));
    }
}

/// The operations of a family of any type, each by `work`.
fn check_family<L, M>(registry: &Registry, name: &str, labels: L, work: impl Fn(&M))
where
    L: Labels<Static = L> + Copy + 'static,
    M: Metric + Clone,
{
    let name = format!("{name}_{}", L::NAMES[0]);
    let family: Family<L, M> = register(registry, &name);
    let check = |what: &str, work: &dyn Fn()| check_calm(&format!("{what} of {name}"), work);
    check("with", &|| work(&family.with(labels)));
    check("with by reference", &|| work(&family.with(&labels)));
    check("try_with", &|| work(&family.try_with(labels).unwrap()));
    check("keep", &|| work(&family.with(labels).keep()));
    check("a clone that keeps", &|| work(&(*family.with(labels)).clone()));
    let kept = family.with(labels).keep();
    check("a kept handle", &|| work(&kept));
    check("a family's clone", &|| work(&family.clone().with(labels)));
    check("dropped", &|| assert_eq!(family.dropped(), 0));
}

fn check_families<L: Labels<Static = L> + Copy + 'static>(labels: L) {
    let registry = &registry();
    check_family(registry, "count", labels, |metric: &Counter| metric.inc());
    check_family(registry, "float", labels, |metric: &FloatCounter| metric.add(0.5));
    check_family(registry, "level", labels, |metric: &Gauge| metric.set(3));
    check_family(registry, "ratio", labels, |metric: &FloatGauge| metric.set(0.5));
    check_family(registry, "open", labels, |metric: &UpDownCounter| metric.dec());
    check_family(registry, "time", labels, |metric: &Histogram<Seconds>| {
        drop(metric.start_timer())
    });
    let timed: Family<L, Histogram<Seconds>> =
        register(registry, &format!("timed_{}", L::NAMES[0]));
    check_calm("a labelled timer", || drop(timed.start_timer(labels)));
    check_calm("a timer of a series", || drop(timed.with(labels).start_timer()));
    check_calm("a labelled timer that is stopped", || {
        timed.start_timer(labels).stop_with(labels);
    });
    check_family(registry, "size", labels, |metric: &Histogram<Bytes>| metric.observe(9));
    check_family(registry, "state", labels, |metric: &StateSet<Method>| metric.set(Method::Cash));
}

#[test]
fn no_look_up_by_fixed_labels_allocates() {
    fix();
    check_families(FIXED);
    for text in ROUTES.into_iter().chain(["/unknown"]) {
        check_calm("label_set find", || {
            let found = Route::find(text);
            assert_eq!(found.map_or("/unknown", Route::as_str), text);
        });
    }
    let family: Family<Fixed, Counter> = register(&registry(), "routes");
    check_calm("a look-up of what was found", || {
        family.with(Fixed { route: Route::find("/users"), ..FIXED }).inc();
    });
}

#[test]
fn no_look_up_by_dynamic_labels_or_such_that_display_themselves_allocates() {
    check_families(MIXED);
    check_families(DYNAMIC);
    check_families(SHOWN);
}

#[test]
fn no_look_up_by_run_time_names_allocates() {
    let family = registry().family::<Counter>(opts("x").limit(1), &["a", "b"]).unwrap();
    let owned = ["a \"b\"".to_owned(), "c".to_owned()];
    check_calm("with_values", || family.with_values(&["a \"b\"", "c"]).inc());
    check_calm("with_values of Strings", || family.with_values(&owned).inc());
    check_calm("try_with_values", || family.try_with_values(&owned).unwrap().inc());
    check_calm("keep", || family.with_values(&owned).keep().inc());
    check_calm("values of another number", || family.with_values(&["a"]).inc());
    check_calm("values of another number", || assert!(family.try_with_values(&["a"]).is_err()));
    check_calm("with_values that overflows", || family.with_values(&["a", "x"]).inc());
    check_calm("try_with_values that overflows", || {
        assert!(family.try_with_values(&["a", "x"]).is_err());
    });
}

#[test]
fn overflow_and_refusal_do_not_allocate() {
    let registry = registry();
    let family: Family<Mixed<'static>, Counter> = registry.register(opts("x").limit(1)).unwrap();
    fix();
    let fixed: Family<Fixed, Histogram<Seconds>> = registry.register(opts("y").limit(0)).unwrap();
    family.with(MIXED).inc();
    let other = Mixed { country: "x", ..MIXED };
    check_calm("with that overflows", || family.with(other).inc());
    check_calm("keep of the overflow series", || family.with(other).keep().inc());
    check_calm("try_with that is refused", || assert!(family.try_with(other).is_err()));
    check_calm("with of fixed labels that overflows", || drop(fixed.with(FIXED).start_timer()));
    check_calm("try_with of fixed labels that is refused", || {
        assert!(fixed.try_with(FIXED).is_err());
    });
    let dropped = family.dropped();
    check_calm("dropped", || assert_eq!(family.dropped(), dropped));

    // With no room at all, too.
    let full: Family<Mixed<'static>, Counter> =
        registry.register(opts("z").limit(u64::MAX)).unwrap();
    for n in 0.. {
        if full.try_with(Mixed { country: &n.to_string(), ..MIXED }).is_err() {
            break;
        }
    }
    check_calm("with in a full region", || full.with(other).inc());
    check_calm("try_with in a full region", || assert!(full.try_with(other).is_err()));
    check_calm("keep in a full region", || full.with(other).keep().inc());
}

#[test]
fn no_lazy_handle_allocates() {
    static COUNTS: Family<Mixed<'static>, Counter> = Family::new();
    static TIMED: Family<Fixed, Histogram<Seconds>> = Family::new();
    static COUNT: Lazy<Mixed<'static>, Counter> = COUNTS.lazy(MIXED);
    static TIME: Lazy<Fixed, Histogram<Seconds>> = TIMED.lazy(FIXED);
    let all = |when: &str| {
        check_calm(&format!("a lazy counter {when}"), || COUNT.inc());
        check_calm(&format!("a lazy timer {when}"), || drop(TIME.start_timer()));
    };
    all("before it is installed");
    fix();
    let registry = registry();
    COUNTS.register(&registry, &opts("count")).unwrap();
    TIMED.register(&registry, &opts("time")).unwrap();
    all("after that");
    assert_eq!(COUNT.get(), TIMES + 1);
}

#[test]
fn metrics_that_are_not_installed_do_not_allocate() {
    let (count, time) = (Counter::new(), Histogram::<Seconds>::new());
    let (level, state) = (Gauge::new(), StateSet::<Method>::new());
    let family = Family::<Mixed<'static>, Counter>::new();
    let values = Family::<DynamicLabels, Counter>::new();
    // It counts discarded updates.
    let _reports = Registry::new().unwrap();
    check_calm("Counter", || count.inc());
    check_calm("Histogram", || drop(time.start_timer()));
    check_calm("Gauge", || level.set(3));
    check_calm("StateSet", || state.set(Method::Cash));
    check_calm("Family::with", || family.with(MIXED).inc());
    check_calm("Family::try_with", || family.try_with(MIXED).unwrap().inc());
    check_calm("Family::keep", || family.with(MIXED).keep().inc());
    check_calm("Family::with_values", || values.with_values(&["a"]).inc());
    check_calm("a clone of what was looked up", || family.with(MIXED).clone().inc());
}

#[test]
fn clones_of_what_is_never_installed_leave_no_memory_behind() {
    let made = measure(|| {
        for _ in 0..TIMES {
            let (count, users) = (Counter::new(), Family::<Mixed<'static>, Counter>::new());
            let clones = (count.clone(), users.clone(), users.clone());
            clones.1.with(MIXED).keep().inc();
            drop((clones, users));
            count.clone().inc();
        }
    });
    assert!(made.count_total > 0, "what clones share is allocated");
    assert_eq!((made.count_current, made.bytes_current), (0, 0));
}

#[test]
fn a_new_series_takes_memory_of_the_region_and_none_of_the_process() {
    let family: Family<Dynamic<'static>, Histogram<Seconds>> = register(&registry(), "x");
    let made = measure(|| {
        for number in 0..500 {
            family.with(Dynamic { number, ..DYNAMIC }).observe(Duration::from_millis(3));
        }
    });
    assert_eq!((made.count_total, family.dropped()), (0, 0));
}

#[test]
fn the_first_value_of_an_octave_takes_memory_of_the_region_and_none_of_the_process() {
    let registry = registry();
    let opts = |name| opts(name).max_buckets(1 << 20);
    let things: Histogram<Count> = registry.register(opts("things")).unwrap();
    let floats: Histogram<Floats> = registry.register(opts("floats")).unwrap();
    things.observe(0);
    floats.observe(0.0);
    let made = measure(|| {
        for octave in 0..64 {
            things.observe(1 << octave);
            floats.observe(-2_f64.powi(octave));
            floats.observe(2_f64.powi(octave - 20));
        }
    });
    assert_eq!(made.count_total, 0);
    let snapshot = registry.snapshot();
    for (name, expected) in [("things", 64), ("floats", 128)] {
        let native = snapshot.histogram(name, &[]).unwrap().native().unwrap().clone();
        assert_eq!(native.positive().len() + native.negative().len(), expected, "{name}");
    }
}

#[test]
fn registering_again_and_again_keeps_no_memory() {
    let registry = registry();
    let all = || {
        register::<Counter>(&registry, "count");
        register::<Histogram<Seconds>>(&registry, "time");
        register::<Family<Mixed<'static>, Histogram<Seconds>>>(&registry, "times");
        register::<Family<Fixed, Gauge>>(&registry, "level");
        register::<StateSet<Method>>(&registry, "state");
        register::<talea::Info<Mixed<'static>>>(&registry, "by");
        registry.family::<Counter>(opts("names"), &["a"]).unwrap();
        assert!(registry.register::<Gauge>(opts("names_total")).is_err());
        assert!(registry.register::<FloatGauge>(opts("level")).is_err());
    };
    fix();
    all();
    let kept = measure(|| (0..10_000).for_each(|_| all()));
    assert!(kept.count_total > 0);
    assert_eq!((kept.count_current, kept.bytes_current), (0, 0));
}
