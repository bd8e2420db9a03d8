//! Claims about registering: again, at once, otherwise, and under names that cannot be.

use std::sync::Barrier;
use std::thread;

use talea::{
    Bucketing, Bytes, Combine, Config, Count, Counter, Error, Escaping, Family, FloatCounter,
    FloatGauge, Floats, Format, Gauge, Histogram, Info, LabelText, LabelValue, Labels, Metrics,
    Opts, Registrable, Registry, Seconds, StateSet, Summary, Unit, UpDownCounter,
};
use talea_parse::{Severity, Syntax, check};

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

#[derive(Labels)]
struct Fixed {
    gift: bool,
}

fn registry() -> Registry {
    Registry::for_test().unwrap()
}

fn opts(name: &str) -> Opts<'_> {
    Opts::new(name, "Some.")
}

#[track_caller]
fn message_of<T>(result: Result<T, Error>) -> String {
    result.err().expect("it was accepted").to_string()
}

/// That a name is taken, by what, and the remedy.
#[track_caller]
fn check_conflict<T>(result: Result<T, Error>, name: &str, difference: &str) {
    let expected = format!(
        "cannot register the metric {name:?}: {difference}; use one definition, or another name"
    );
    assert_eq!(message_of(result), expected);
}

mod again {
    use super::*;

    #[test]
    fn a_metric_that_is_registered_twice_is_one() {
        let registry = registry();
        let pair = || registry.register::<Counter>(opts("count")).unwrap();
        let (one, other) = (pair(), pair());
        one.add(2);
        other.add(3);
        assert_eq!((one.get(), other.get()), (5, 5));

        let pair = || registry.register::<Family<By<'static>, Gauge>>(opts("users")).unwrap();
        let (one, other) = (pair(), pair());
        one.with(By { user: "a" }).set(7);
        assert_eq!(other.with(By { user: "a" }).get(), 7);

        let pair = || registry.register::<Family<Fixed, FloatGauge>>(opts("gifts")).unwrap();
        let (one, other) = (pair(), pair());
        one.with(Fixed { gift: true }).set(0.5);
        assert_eq!(other.with(Fixed { gift: true }).get(), 0.5);

        let pair = || registry.register::<StateSet<bool>>(opts("state")).unwrap();
        let (one, other) = (pair(), pair());
        one.set(true);
        assert!(other.is(true));

        let pair = || registry.register::<UpDownCounter>(opts("open")).unwrap();
        let (one, other) = (pair(), pair());
        one.inc();
        other.dec();
        assert_eq!((one.get(), other.get()), (0, 0));
    }

    #[test]
    fn a_handle_that_is_registered_twice_stays_where_it_is() {
        let registry = registry();
        let count = Counter::new();
        count.register(&registry, &opts("count")).unwrap();
        count.inc();
        count.register(&registry, &opts("count")).unwrap();
        count.inc();
        assert_eq!(registry.snapshot().value("count_total", &[]), Some(2.0));
        let place = "it is installed in another registry or under another name already; a \
                     metric has one place";
        let expected = format!("cannot register the metric \"other\": {place}");
        assert_eq!(message_of(count.register(&registry, &opts("other"))), expected);
        let expected = format!("cannot register the metric \"count\": {place}");
        assert_eq!(message_of(count.register(&self::registry(), &opts("count"))), expected);
        count.inc();
        assert_eq!(registry.snapshot().value("count_total", &[]), Some(3.0));
    }

    /// A set that two versions of a library, or two libraries, may both have.
    mod one_library {
        #[derive(talea::Metrics)]
        #[metrics(prefix = "pool")]
        pub(super) struct Pool {
            /// Connections taken.
            pub(super) taken: talea::Counter,
            /// Time to wait.
            #[metric(buckets = [0.1, 1.0])]
            pub(super) wait: talea::Family<super::Fixed, talea::Histogram<talea::Seconds>>,
        }
    }

    mod another_library {
        #[derive(talea::Metrics)]
        #[metrics(prefix = "pool")]
        pub(super) struct Pool {
            /// Time to wait.
            #[metric(buckets = [0.1, 1.0])]
            pub(super) wait: talea::Family<super::Fixed, talea::Histogram<talea::Seconds>>,
            /// Connections taken.
            pub(super) taken: talea::Counter,
        }
    }

    #[test]
    fn two_libraries_of_one_definition_add_up() {
        static ONE: one_library::Pool = one_library::Pool::new();
        static ANOTHER: another_library::Pool = another_library::Pool::new();
        let registry = registry();
        talea::install(&registry, &[&ONE, &ANOTHER, &ONE]).unwrap();
        ONE.taken.add(1);
        ANOTHER.taken.add(2);
        let millis = std::time::Duration::from_millis;
        ONE.wait.with(Fixed { gift: true }).observe(millis(50));
        ANOTHER.wait.with(Fixed { gift: true }).observe(millis(500));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("pool_taken_total", &[]), Some(3.0));
        let wait = snapshot.histogram("pool_wait_seconds", &[("gift", "true")]).unwrap();
        assert_eq!((wait.count(), wait.sum()), (2, 0.55));
        assert_eq!(snapshot.families().len(), 2);
    }

    #[test]
    fn of_a_set_that_does_not_fit_what_comes_before_is_there() {
        #[derive(Metrics)]
        #[metrics(prefix = "pool")]
        struct Misfit {
            /// Something of its own.
            own: Counter,
            /// Taken, otherwise.
            taken: Counter,
            /// After that.
            late: Counter,
        }
        let registry = registry();
        let (pool, misfit) = (one_library::Pool::new(), Misfit::new());
        check_conflict(
            talea::install(&registry, &[&pool, &misfit]),
            "pool_taken",
            "it is registered with the help \"Connections taken.\", and now \"Taken, \
             otherwise.\" was asked for",
        );
        pool.taken.inc();
        misfit.own.inc();
        misfit.taken.add(100);
        misfit.late.inc();
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("pool_taken_total", &[]), Some(1.0));
        assert_eq!(snapshot.value("pool_own_total", &[]), Some(1.0));
        assert_eq!(snapshot.value("pool_late_total", &[]), None);
    }

    #[test]
    fn registering_again_and_again_takes_no_room() {
        const TIMES: u32 = if cfg!(miri) { 20 } else { 10_000 };
        let (busy, calm) = (registry(), registry());
        for times in [(&busy, TIMES), (&calm, 1)] {
            for _ in 0..times.1 {
                times.0.register::<Family<By<'static>, Counter>>(opts("users")).unwrap();
                times.0.register::<Histogram<Seconds>>(opts("time")).unwrap();
                times.0.register::<Info<By<'static>>>(opts("by")).unwrap();
                times.0.family::<Gauge>(opts("level"), &["a"]).unwrap();
                times.0.register::<Family<Fixed, Counter>>(opts("g").whole(true)).unwrap();
            }
        }
        let room = |registry: &Registry| {
            let fill: Family<By<'static>, Counter> =
                registry.register(opts("fill").limit(u64::MAX)).unwrap();
            (0..).take_while(|n: &u32| fill.try_with(By { user: &n.to_string() }).is_ok()).count()
        };
        assert_eq!(room(&busy), room(&calm));
    }

    #[test]
    fn a_name_that_is_given_back_and_taken_again_and_again_takes_no_room() {
        let registry = registry();
        for _ in 0..if cfg!(miri) { 5 } else { 1_000 } {
            registry.register::<Gauge>(opts("x")).unwrap();
            assert!(registry.unregister("x"));
            registry.register::<StateSet<bool>>(opts("x")).unwrap();
            assert!(registry.unregister("x"));
        }
    }
}

mod at_once {
    use super::*;

    const THREADS: usize = 8;

    /// The results of `work` in eight threads that begin it together.
    fn together<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let barrier = Barrier::new(THREADS);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|n| {
                    let (work, barrier) = (&work, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        work(n)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn of_eight_threads_that_register_at_once_all_have_the_same_series() {
        for _ in 0..if cfg!(miri) { 1 } else { 20 } {
            let registry = registry();
            together(|n| {
                let registry = registry.clone();
                let count: Counter = registry.register(opts("count")).unwrap();
                let gifts: Family<Fixed, Counter> = registry.register(opts("gifts")).unwrap();
                let users: Family<By<'static>, Counter> = registry.register(opts("users")).unwrap();
                let sizes: Histogram<Bytes> = registry.register(opts("size")).unwrap();
                let open: UpDownCounter = registry.register(opts("open")).unwrap();
                for _ in 0..10 {
                    count.inc();
                    gifts.with(Fixed { gift: true }).inc();
                    users.with(By { user: "a" }).inc();
                    sizes.observe(n as u64);
                    open.inc();
                }
            });
            let snapshot = registry.snapshot();
            let total = Some(10.0 * THREADS as f64);
            assert_eq!(snapshot.value("count_total", &[]), total);
            assert_eq!(snapshot.value("gifts_total", &[("gift", "true")]), total);
            assert_eq!(snapshot.value("users_total", &[("user", "a")]), total);
            assert_eq!(snapshot.value("open", &[]), total);
            assert_eq!(snapshot.histogram("size_bytes", &[]).unwrap().count(), 80);
            let series = snapshot.families().map(|family| family.series().count());
            assert_eq!(series.sum::<usize>(), 5, "{snapshot:?}");
        }
    }

    #[test]
    fn of_threads_that_define_a_name_otherwise_at_once_one_has_it() {
        let config = Config::with_len(4 << 20);
        let registry = Registry::with_config(config).unwrap();
        for n in 0..if cfg!(miri) { 2 } else { 100 } {
            let name = format!("x{n}");
            let accepted = together(|thread| match thread % 4 {
                0 => registry.register::<Gauge>(opts(&name)).is_ok(),
                1 => registry.register::<Histogram<Count>>(opts(&name)).is_ok(),
                2 => registry.register::<Counter>(opts(&name)).is_ok(),
                _ => registry.register::<Gauge>(Opts::new(&name, "Other.")).is_ok(),
            });
            let won: Vec<_> = (0..4).filter(|n| accepted[*n] || accepted[n + 4]).collect();
            assert_eq!(won.len(), 1, "{name}: {accepted:?}");
            assert_eq!(accepted[won[0]], accepted[won[0] + 4], "both of one definition");
        }
    }
}

mod otherwise {
    use super::*;

    #[test]
    fn a_name_of_another_type_is_taken() {
        let registry = registry();
        registry.register::<Gauge>(opts("x")).unwrap();
        check_conflict(
            registry.register::<Histogram<Count>>(opts("x")),
            "x",
            "it is registered as a gauge, and now a histogram was asked for",
        );
        check_conflict(
            registry.register::<StateSet<bool>>(opts("x")),
            "x",
            "it is registered as a gauge, and now a stateset was asked for",
        );
        registry.register::<Histogram<Seconds>>(opts("time")).unwrap();
        check_conflict(
            registry.register::<Gauge>(opts("time_seconds")),
            "time_seconds",
            "it is registered as a histogram, and now a gauge was asked for",
        );
    }

    #[test]
    fn a_name_that_is_combined_otherwise_is_taken() {
        let registry = registry();
        registry.register::<Gauge>(opts("x")).unwrap();
        check_conflict(
            registry.register::<Gauge>(opts("x").combine(Combine::Max)),
            "x",
            "its processes combine by Latest, and now Max was asked for",
        );
        check_conflict(
            registry.register::<UpDownCounter>(opts("x")),
            "x",
            "its processes combine by Latest, and now Sum was asked for",
        );
    }

    #[test]
    fn a_name_with_other_buckets_is_taken() {
        let registry = registry();
        let time = |buckets: &[f64]| {
            registry.register::<Histogram<Seconds>>(opts("time").buckets(buckets))
        };
        time(&[0.1, 2.5]).unwrap();
        time(&[0.1, 2.5]).unwrap();
        check_conflict(
            time(&[0.1, 2.0]),
            "time",
            "it is registered with the buckets [0.1, 2.5], and now [0.1, 2.0] was asked for",
        );
        check_conflict(
            time(&[0.1]),
            "time",
            "it is registered with the buckets [0.1, 2.5], and now [0.1] was asked for",
        );
    }

    #[test]
    fn a_name_with_other_native_buckets_is_taken() {
        let registry = registry();
        let time = |opts: Opts<'_>| registry.register::<Histogram<Seconds>>(opts);
        let opts = || opts("time").buckets(&[0.1]);
        time(opts()).unwrap();
        time(opts().schema(3).max_buckets(160).widest_zero(-0.0)).unwrap();
        let usual = "native bucketing of schema 3, at most 160, with a zero up to 0";
        for (opts, found) in [
            (opts().schema(4), "native bucketing of schema 4, at most 160, with a zero up to 0"),
            (
                opts().max_buckets(20),
                "native bucketing of schema 3, at most 20, with a zero up to 0",
            ),
            (
                opts().widest_zero(0.5),
                "native bucketing of schema 3, at most 160, with a zero up to 0.5",
            ),
            (opts().bucketing(Bucketing::Classic), "no native bucketing"),
        ] {
            let expected = format!("it is registered with {usual}, and now {found} was asked for");
            check_conflict(time(opts), "time", &expected);
        }
        check_conflict(
            time(opts().bucketing(Bucketing::Native)),
            "time",
            "it is registered with the buckets [0.1], and now [] was asked for",
        );
    }

    #[test]
    fn a_name_in_another_unit_is_taken() {
        let registry = registry();
        let buckets = [1.0, 2.0];
        registry.register::<Histogram<Seconds>>(opts("time").buckets(&buckets)).unwrap();
        check_conflict(
            registry.register::<Histogram<Count>>(opts("time_seconds").buckets(&buckets)),
            "time_seconds",
            "it is registered with a unit that is kept in 1000000000 parts, and now one in 1 \
             was asked for",
        );
        // Another unit makes another name.
        registry.register::<Histogram<Bytes>>(opts("time").buckets(&buckets)).unwrap();
    }

    #[test]
    fn a_name_with_other_labels_is_taken() {
        let registry = registry();
        registry.family::<Counter>(opts("x"), &["a", "b"]).unwrap();
        check_conflict(
            registry.family::<Counter>(opts("x"), &["b", "a"]),
            "x",
            "it is registered with the labels [\"a\", \"b\"], and now [\"b\", \"a\"] was asked \
             for",
        );
        registry.register::<Gauge>(opts("y")).unwrap();
        check_conflict(
            registry.register::<Family<By<'static>, Gauge>>(opts("y")),
            "y",
            "it is registered with the labels [], and now [\"user\"] was asked for",
        );
    }

    #[test]
    fn labels_that_each_call_names_are_described_so_and_not_by_our_own_label() {
        struct Free;
        impl Labels for Free {
            type Static = Self;
            const NAMES: &'static [&'static str] = &["otel_metric_overflow"];
            fn write(&self, out: &mut LabelText) {
                out.label("any", "x");
            }
        }
        let registry = registry();
        registry.register::<Gauge>(opts("x")).unwrap();
        check_conflict(
            registry.register::<Family<Free, Gauge>>(opts("x")),
            "x",
            "it is registered with the labels [], and now a choice of labels by each call was \
             asked for",
        );
        registry.register::<Family<Free, Gauge>>(opts("y")).unwrap();
        check_conflict(
            registry.register::<Gauge>(opts("y")),
            "y",
            "it is registered with a choice of labels by each call, and now the labels [] was \
             asked for",
        );
    }

    #[test]
    fn a_name_with_other_states_is_taken() {
        #[derive(LabelValue)]
        #[allow(dead_code)]
        enum Light {
            Red,
            Green,
        }
        let registry = registry();
        registry.register::<StateSet<bool>>(opts("light")).unwrap();
        check_conflict(
            registry.register::<StateSet<Light>>(opts("light")),
            "light",
            "it is registered with the states [\"false\", \"true\"], and now [\"red\", \
             \"green\"] was asked for",
        );
    }

    #[test]
    fn a_name_with_another_help_is_taken() {
        let registry = registry();
        registry.register::<Counter>(Opts::new("x", "Ours.")).unwrap();
        check_conflict(
            registry.register::<Counter>(Opts::new("x", "Theirs.")),
            "x",
            "it is registered with the help \"Ours.\", and now \"Theirs.\" was asked for",
        );
    }

    #[test]
    fn a_name_whose_values_are_kept_otherwise_is_taken() {
        let registry = registry();
        let kept = "it is registered with its values stored otherwise: striped or not, whole \
                    numbers or not";
        registry.register::<Counter>(opts("x")).unwrap();
        check_conflict(registry.register::<FloatCounter>(opts("x")), "x", kept);
        check_conflict(registry.register::<Counter>(opts("x").striped(false)), "x", kept);
        // What counts is what it comes to: a gauge is never striped.
        registry.register::<Gauge>(opts("y")).unwrap();
        registry.register::<Gauge>(opts("y").striped(true)).unwrap();
    }

    #[test]
    fn how_many_series_and_how_long_is_what_the_latest_says() {
        let registry = registry();
        let register = |limit| -> Family<By<'static>, Counter> {
            registry.register(opts("x").limit(limit)).unwrap()
        };
        let first = register(1);
        first.with(By { user: "a" }).inc();
        assert!(first.try_with(By { user: "b" }).is_err());
        register(2);
        assert!(first.try_with(By { user: "b" }).is_ok());
    }

    #[test]
    fn a_refused_definition_changes_nothing() {
        let registry = registry();
        let x: Gauge = registry.register(opts("x")).unwrap();
        x.set(3);
        let before = registry.snapshot().to_text();
        let _ = registry.register::<Histogram<Count>>(opts("x"));
        let _ = registry.register::<Counter>(opts("x"));
        assert_eq!(registry.snapshot().to_text(), before);
    }
}

mod histograms {
    use super::*;

    #[track_caller]
    fn check_refused(opts: Opts<'_>, reason: &str) {
        let expected = format!("cannot register the metric \"x\": {reason}");
        assert_eq!(message_of(registry().register::<Histogram<Floats>>(opts)), expected);
        // Where there are none, nothing is asked of them.
        let classic = opts.bucketing(Bucketing::Classic);
        assert!(registry().register::<Histogram<Floats>>(classic).is_ok());
    }

    #[test]
    fn native_buckets_that_cannot_be_are_refused() {
        for schema in [9, -5, i8::MIN, i8::MAX] {
            let reason = format!("its schema is {schema}; expected -4 to 8");
            check_refused(opts("x").schema(schema), &reason);
        }
        check_refused(
            opts("x").max_buckets(0),
            "its native buckets are at most 0; expected at least 1, or Bucketing::Classic for none",
        );
        for (zero, shown) in [(f64::NAN, "NaN"), (-1.0, "-1"), (f64::INFINITY, "inf")] {
            let reason = format!("its widest zero is {shown}; expected 0 or more, and finite");
            check_refused(opts("x").widest_zero(zero), &reason);
        }
    }

    #[test]
    fn extreme_options_are_accepted() {
        for (schema, most, zero) in [(-4, 1, 0.0), (8, u32::MAX, f64::MAX), (0, 1, 5e-324)] {
            let opts = opts("x").schema(schema).max_buckets(most).widest_zero(zero);
            let floats: Histogram<Floats> = registry().register(opts).unwrap();
            floats.observe(f64::MAX);
        }
    }

    #[test]
    fn thresholds_that_do_not_ascend_or_are_no_numbers_are_refused() {
        let numbers = "buckets are finite, ascending and at most 1,024; found";
        for (thresholds, found) in [
            (&[][..], "0 of them"),
            (&[1.0, 1.0], "1 after one that is as large"),
            (&[0.0, -0.0], "-0 after one that is as large"),
            (&[2.0, -1.0], "-1 after one that is as large"),
            (&[f64::NAN], "NaN"),
            (&[1.0, f64::INFINITY], "inf"),
        ] {
            let opts = opts("x").buckets(thresholds);
            let message = message_of(registry().register::<Histogram<Floats>>(opts));
            assert_eq!(message, format!("cannot register the metric \"x\": {numbers} {found}"));
        }
    }
}

mod names {
    use super::*;

    /// Labels of one name, which no derive makes.
    macro_rules! labelled {
        ($type:ident, $($name:literal)*) => {
            struct $type;

            impl Labels for $type {
                type Static = Self;
                const NAMES: &'static [&'static str] = &[$($name),*];
                fn write(&self, out: &mut LabelText) {
                    $(out.label($name, "x");)*
                }
            }
        };
    }
    labelled!(Le, "le");
    labelled!(Twice, "a" "b" "a");

    #[track_caller]
    fn check_refused<T>(result: Result<T, Error>, name: &str, reason: &str) {
        assert_eq!(message_of(result), format!("cannot register the metric {name:?}: {reason}"));
    }

    #[test]
    fn labels_that_scrapers_write_themselves_are_refused() {
        let registry = registry();
        let valid = "a label's name consists of letters, digits and '_' and does not begin with \
                     a digit; or ask for `utf8_names`";
        let own = "histograms and summaries write this label themselves";
        for (label, reason) in [
            ("le", own),
            ("quantile", own),
            ("_x", "names that begin with '_' are reserved; begin it with a letter"),
            ("__x", "names that begin with '_' are reserved; begin it with a letter"),
            ("", "it is empty; name what the label distinguishes"),
            ("9a", valid),
            ("a:b", valid),
            ("ä", valid),
        ] {
            let reason = format!("its label {label:?} cannot be used: {reason}");
            check_refused(registry.family::<Counter>(opts("x"), &["a", label]), "x", &reason);
        }
        let reason = format!("its label \"le\" cannot be used: {own}");
        check_refused(registry.register::<Family<Le, Gauge>>(opts("x")), "x", &reason);
        check_refused(registry.register::<Info<Le>>(opts("x")), "x", &reason);
        let reason = "its label \"a\" is there twice";
        check_refused(registry.register::<Family<Twice, Gauge>>(opts("x")), "x", reason);
        check_refused(registry.observable_gauges::<Twice>(opts("x"), |_| ()), "x", reason);
        assert_eq!(registry.snapshot().families().len(), 0);
    }

    #[test]
    fn endings_of_samples_that_others_make_are_refused() {
        let registry = registry();
        for end in ["_count", "_sum", "_bucket", "_created"] {
            let name = format!("x{end}");
            let reason = format!(
                "the ending '{end}' is reserved for samples that histograms, summaries and \
                 counters make; rename it"
            );
            check_refused(registry.register::<Gauge>(opts(&name)), &name, &reason);
            check_refused(registry.register::<UpDownCounter>(opts(&name)), &name, &reason);
            check_refused(registry.register::<StateSet<bool>>(opts(&name)), &name, &reason);
            check_refused(registry.register::<Histogram<Count>>(opts(&name)), &name, &reason);
        }
        let total = "the ending '_total' is reserved for counters; rename it, or make it one";
        check_refused(registry.register::<Gauge>(opts("x_total")), "x_total", total);
        check_refused(registry.register::<Histogram<Count>>(opts("x_total")), "x_total", total);
        let info = "the ending '_info' is reserved for infos; rename it, or make it one";
        check_refused(registry.register::<FloatGauge>(opts("x_info")), "x_info", info);
        // What a type's own ending follows is no ending.
        registry.register::<Counter>(opts("x_count")).unwrap();
        registry.register::<Histogram<Seconds>>(opts("x_sum")).unwrap();
        registry.register::<Counter>(opts("y_total")).unwrap();
        registry.register::<Info<By<'static>>>(opts("z_info")).unwrap();
    }

    #[test]
    fn names_that_are_none_are_refused() {
        let registry = registry();
        let valid = "a metric's name consists of letters, digits, '_' and ':' and does not \
                     begin with a digit; or ask for `utf8_names`";
        for name in ["9x", "a-b", "a b", "ä", "a\n"] {
            check_refused(registry.register::<Gauge>(opts(name)), name, valid);
        }
        let reserved = "names that begin with '_' are reserved; begin it with a letter";
        for name in ["_x", "__x", "_9", "_:"] {
            check_refused(registry.register::<Counter>(opts(name)), name, reserved);
            let utf8 = opts(name).utf8_names(true);
            check_refused(registry.register::<Histogram<Seconds>>(utf8), name, reserved);
        }
        let help = "the help is empty; say in a sentence what is measured";
        check_refused(registry.register::<Gauge>(Opts::new("x", " \n")), "x", help);
    }

    #[test]
    fn an_empty_name_is_refused_whatever_its_type_adds() {
        #[derive(Clone, Copy)]
        enum Bare {}
        impl Unit for Bare {
            type Value = u64;
            const SUFFIX: &'static str = "bare";
            const PER_UNIT: f64 = 1.0;
            const BUCKETS: &'static [f64] = &[1.0];
            fn kept(value: u64) -> u64 {
                value
            }
        }
        let registry = registry();
        let empty = "the name is empty, but for what its type adds; name what is measured";
        for name in ["", "_", "___", "_total", "__total", "_info", "_seconds", " ", "\u{a0}", "_ "]
        {
            for opts in [opts(name), opts(name).utf8_names(true), opts(name).lenient_names(true)] {
                // Where nothing is added to it, it is a name of its own.
                let own = |ending: &str| {
                    let is_own = name
                        .strip_suffix(ending)
                        .is_some_and(|base| base.chars().all(|c| c == '_' || c.is_whitespace()));
                    is_own || !name.contains(char::is_alphabetic)
                };
                if own("_total") {
                    check_refused(registry.register::<Counter>(opts), name, empty);
                }
                if own("_info") {
                    check_refused(registry.register::<Info<By<'static>>>(opts), name, empty);
                }
                if own("_seconds") {
                    check_refused(registry.register::<Histogram<Seconds>>(opts), name, empty);
                    check_refused(registry.register::<Summary<Seconds>>(opts), name, empty);
                }
                if own("") {
                    check_refused(registry.register::<Gauge>(opts), name, empty);
                    check_refused(registry.register::<StateSet<bool>>(opts), name, empty);
                    check_refused(registry.register::<Histogram<Bare>>(opts), name, empty);
                    check_refused(registry.family::<Gauge>(opts, &["a"]), name, empty);
                    check_refused(registry.observable_gauge(opts, || 1.0), name, empty);
                }
            }
        }
        assert_eq!(registry.snapshot().families().len(), 0);
    }

    #[test]
    fn control_characters_are_in_no_name() {
        let registry = registry();
        for c in ['\0', '\t', '\r', '\n', '\u{7f}', '\u{85}', '"', '\\'] {
            let name = format!("a{c}b");
            let reason = "a name is some text without quotes, backslashes and control characters";
            let opts = opts(&name).utf8_names(true);
            check_refused(registry.register::<Gauge>(opts), &name, reason);
            let reason = format!("its label {name:?} cannot be used: {reason}");
            let named = Opts::new("x", "Some.").utf8_names(true);
            check_refused(registry.family::<Gauge>(named, &[&name]), "x", &reason);
        }
        let empty =
            "its label \" \" cannot be used: it is empty; name what the label distinguishes";
        let named = Opts::new("x", "Some.").utf8_names(true);
        check_refused(registry.family::<Gauge>(named, &[" "]), "x", empty);
    }

    /// Whatever is accepted, a page of it has no violation.
    #[test]
    fn any_accepted_name_makes_a_sound_page() {
        let names = ["", " ", "_", "a", "_a", "a_", "total", "info", "seconds", "a b", "a.b"];
        for metric in names {
            for label in names {
                for utf8 in [false, true] {
                    let registry = registry();
                    let opts = opts(metric).utf8_names(utf8);
                    let labels = [label];
                    let taken = [
                        registry
                            .family::<Counter>(opts, &labels)
                            .map(|f| f.with_values(&["x"]).inc()),
                        registry
                            .family::<Histogram<Seconds>>(opts, &labels)
                            .map(|f| f.with_values(&["x"]).observe(std::time::Duration::ZERO)),
                        registry.register::<Gauge>(opts).map(|gauge| gauge.set(1)),
                    ];
                    let snapshot = registry.snapshot();
                    let accepted = snapshot.families().len();
                    assert_eq!(accepted > 0, taken.iter().any(Result::is_ok));
                    for syntax in [Syntax::Text, Syntax::OpenMetrics] {
                        let format = match syntax {
                            Syntax::Text => Format::Text,
                            Syntax::OpenMetrics => Format::OpenMetrics,
                        };
                        let mut scraper = registry.scraper();
                        scraper.format(format, Escaping::default());
                        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
                        let mut found = check(&page, syntax);
                        found.retain(|finding| finding.severity == Severity::Violation);
                        assert!(found.is_empty(), "{metric:?} {label:?}: {found:?}\n{page}");
                    }
                }
            }
        }
    }

    /// Each type whose family would be `x` in OpenMetrics, and its name here.
    #[allow(clippy::type_complexity)]
    const OF_ONE_NAME: [(&str, fn(&Registry) -> Result<(), Error>); 5] = [
        ("x", |registry| registry.register::<Gauge>(opts("x")).map(drop)),
        ("x", |registry| registry.register::<Histogram<Count>>(opts("x")).map(drop)),
        ("x", |registry| registry.register::<StateSet<bool>>(opts("x")).map(drop)),
        ("x_total", |registry| registry.register::<Counter>(opts("x")).map(drop)),
        ("x_info", |registry| registry.register::<Info<By<'static>>>(opts("x")).map(drop)),
    ];

    #[test]
    fn of_families_that_would_have_one_name_in_openmetrics_there_is_one() {
        for (first, (name, register)) in OF_ONE_NAME.iter().enumerate() {
            let registry = registry();
            register(&registry).unwrap();
            for (second, (other, register_other)) in OF_ONE_NAME.iter().enumerate() {
                if name != other {
                    let reason = format!(
                        "{name:?} is registered too, and in OpenMetrics the two would have one \
                         name; rename one"
                    );
                    check_refused(register_other(&registry), "x", &reason);
                } else if first != second {
                    assert!(
                        message_of(register_other(&registry)).contains("it is registered as a")
                    );
                }
            }
            // Once it has ended, each other one has its turn.
            assert!(registry.unregister(name));
            for (other, register_other) in &OF_ONE_NAME {
                register_other(&registry).unwrap();
                assert!(registry.unregister(other));
            }
        }
    }

    #[test]
    fn names_that_only_look_alike_are_free() {
        let registry = registry();
        registry.register::<Counter>(opts("x")).unwrap();
        registry.register::<Gauge>(opts("x_")).unwrap();
        registry.register::<Gauge>(opts("xx")).unwrap();
        registry.register::<Histogram<Seconds>>(opts("x")).unwrap();
        registry.register::<Counter>(opts("x_sum")).unwrap();
        registry.register::<Gauge>(opts("y")).unwrap();
        registry.register::<Gauge>(opts("y_count").lenient_names(true)).unwrap();
        registry.register::<Gauge>(opts("y_bucket").lenient_names(true)).unwrap();
    }

    #[test]
    fn a_name_that_samples_of_another_family_have_is_taken() {
        type Register = fn(&Registry, &str) -> Result<(), Error>;
        let gauge: Register =
            |registry, name| registry.register::<Gauge>(opts(name).lenient_names(true)).map(drop);
        let counter: Register = |registry, name| registry.register::<Counter>(opts(name)).map(drop);
        let histogram: Register =
            |registry, name| registry.register::<Histogram<Count>>(opts(name)).map(drop);
        let summary: Register =
            |registry, name| registry.register::<Summary<Count>>(opts(name)).map(drop);
        for (family, name, register, other) in [
            (histogram, "x", gauge, "x_bucket"),
            (histogram, "x", gauge, "x_count"),
            (histogram, "x", gauge, "x_sum"),
            (histogram, "x", gauge, "x_created"),
            (summary, "x", gauge, "x_count"),
            (summary, "x", gauge, "x_created"),
            (counter, "x", gauge, "x_created"),
            // In OpenMetrics this counter's family is x_sum.
            (histogram, "x", counter, "x_sum"),
        ] {
            // Whichever comes first.
            for [(one, one_name), (two, two_name)] in
                [[(family, name), (register, other)], [(register, other), (family, name)]]
            {
                let registry = registry();
                one(&registry, one_name).unwrap();
                let message = message_of(two(&registry, two_name));
                let reason = "is registered too, and samples of the two would have one name";
                assert!(message.contains(reason), "{one_name} {two_name}: {message}");
            }
        }
    }
}

#[test]
fn names_that_others_gave_are_taken_where_that_is_asked_for_and_can_be_scraped() {
    let registry = Registry::for_test().unwrap();
    let named = |name| Opts::new(name, "Named by others.").lenient_names(true);
    for name in ["php_info", "users_total", "queue_count", "x_sum", "x_bucket", "x_created"] {
        assert!(registry.family::<Gauge>(Opts::new(name, "Help."), &["a"]).is_err(), "{name}");
        registry.family::<Gauge>(named(name), &["le", "quantile"]).unwrap();
    }
    let gauge = registry.family::<Gauge>(named("php_info"), &["le", "quantile"]).unwrap();
    gauge.with_values(&["1", "2"]).set(3);
    let count = registry.family::<Counter>(named("jobs_count"), &["a"]).unwrap();
    count.with_values(&["b"]).add(2);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.value("php_info", &[("le", "1"), ("quantile", "2")]), Some(3.0));
    assert_eq!(snapshot.value("jobs_count_total", &[("a", "b")]), Some(2.0));
    // A label that we write stays ours, and a name is still one.
    let taken = registry.family::<talea::Histogram<talea::Seconds>>(named("x"), &["le"]);
    assert!(taken.unwrap_err().to_string().contains("\"le\""));
    assert!(registry.family::<Gauge>(named("a b"), &["a"]).is_err());
    // Prometheus takes names that OpenMetrics reserves; those that both reserve are refused.
    registry.family::<Gauge>(named("_own"), &["_a"]).unwrap();
    assert!(registry.family::<Gauge>(named("__own"), &["a"]).is_err());
    assert!(registry.family::<Gauge>(named("own"), &["__a"]).is_err());
}

#[test]
fn many_families_are_ended_at_once() {
    let registry = Registry::for_test().unwrap();
    let register = |n: u64| {
        let name = format!("{}_{n}", if n % 3 == 0 { "mine" } else { "yours" });
        let gauges = registry.family::<Gauge>(Opts::new(&name, "Help."), &["a"]).unwrap();
        (0..n).for_each(|a| gauges.with_values(&[a.to_string()]).set(1));
        gauges
    };
    let gauges: Vec<_> = (0..30).map(register).collect();
    assert_eq!(registry.unregister_where(|name| name.starts_with("mine_")), 10);
    let left = registry.snapshot();
    assert!(left.families().all(|family| family.name().starts_with("yours_")));
    assert_eq!(left.families().count(), 20);
    // Who goes on telling one that was ended is not heard until it is registered again.
    assert!((0..30).all(|n| gauges[n].is_ended() == (n % 3 == 0)));
    gauges[3].with_values(&["x"]).set(2);
    assert_eq!(registry.snapshot().families().count(), 20);
    register(3).with_values(&["y"]).set(4);
    assert!(!gauges[3].is_ended());
    assert_eq!(registry.snapshot().value("mine_3", &[("a", "y")]), Some(4.0));
    assert_eq!(registry.snapshot().value("mine_3", &[("a", "x")]), None);
    assert_eq!(registry.unregister_where(|_| true), 21);
    assert_eq!(registry.unregister_where(|_| true), 0);
}
