//! Claims about names of metrics and labels: which are refused, and which are taken.

use crate::support::metrics::{By, message_of, opts, register, registry};
use crate::support::pages::{TEXTS, alone, assert_no_violation};
use talea::{
    Count, Counter, Error, Family, FloatGauge, Gauge, Histogram, Info, LabelText, Labels, Opts,
    Registrable, Registry, Seconds, StateSet, Summary, Unit, UpDownCounter,
};

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

type Register = fn(&Registry, Opts<'_>) -> Result<(), Error>;

fn register_a<R: Registrable>(registry: &Registry, opts: Opts<'_>) -> Result<(), Error> {
    registry.register::<R>(opts).map(drop)
}

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
    let reason = "its label \"a\" is given twice";
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
    // An ending before the type's own one is no ending.
    register::<Counter>(&registry, "x_count");
    register::<Histogram<Seconds>>(&registry, "x_sum");
    register::<Counter>(&registry, "y_total");
    register::<Info<By<'static>>>(&registry, "z_info");
}

#[test]
fn names_that_are_none_are_refused() {
    for name in ["a", "job:rate5m", "x_", "X9", ":a"] {
        registry().register::<Gauge>(opts(name)).unwrap();
    }
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
    for text in [" \n", "  "] {
        check_refused(registry.register::<Gauge>(Opts::new("x", text)), "x", help);
    }
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
    let types: [(&str, Register); 9] = [
        ("_total", register_a::<Counter>),
        ("_info", register_a::<Info<By<'static>>>),
        ("_seconds", register_a::<Histogram<Seconds>>),
        ("_seconds", register_a::<Summary<Seconds>>),
        ("", register_a::<Gauge>),
        ("", register_a::<StateSet<bool>>),
        ("", register_a::<Histogram<Bare>>),
        ("", |registry, opts| registry.family::<Gauge>(opts, &["a"]).map(drop)),
        ("", |registry, opts| registry.observable_gauge(opts, || 1.0)),
    ];
    for name in ["", "_", "___", "_total", "__total", "_info", "_seconds", " ", "\u{a0}", "_ "] {
        for opts in [opts(name), opts(name).utf8_names(true), opts(name).lenient_names(true)] {
            let refused = format!("cannot register the metric {name:?}: {empty}");
            for (ending, register) in types {
                // Where nothing is added to it, it is a name of its own.
                let base = name.strip_suffix(ending);
                if base
                    .is_some_and(|base: &str| base.chars().all(|c| c == '_' || c.is_whitespace()))
                    || !name.contains(char::is_alphabetic)
                {
                    let message = message_of(register(&registry, opts));
                    assert_eq!(message, refused, "where {ending:?} is added");
                }
            }
        }
    }
    assert_eq!(registry.snapshot().families().len(), 0);
}

#[test]
fn control_characters_are_in_no_name() {
    let registry = registry();
    let named = opts("x").utf8_names(true);
    for c in ['\0', '\t', '\r', '\n', '\u{7f}', '\u{85}', '"', '\\'] {
        let name = format!("a{c}b");
        let reason = "a name is some text without quotes, backslashes and control characters";
        let opts = opts(&name).utf8_names(true);
        check_refused(registry.register::<Gauge>(opts), &name, reason);
        let reason = format!("its label {name:?} cannot be used: {reason}");
        check_refused(registry.family::<Gauge>(named, &[&name]), "x", &reason);
    }
    let empty = "its label \" \" cannot be used: it is empty; name what the label distinguishes";
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
                    registry.family::<Counter>(opts, &labels).map(|f| f.with_values(&["x"]).inc()),
                    registry
                        .family::<Histogram<Seconds>>(opts, &labels)
                        .map(|f| f.with_values(&["x"]).observe(std::time::Duration::ZERO)),
                    registry.register::<Gauge>(opts).map(|gauge| gauge.set(1)),
                ];
                let snapshot = registry.snapshot();
                let accepted = snapshot.families().len();
                assert_eq!(accepted > 0, taken.iter().any(Result::is_ok));
                for (format, syntax) in TEXTS {
                    assert_no_violation(&alone(&registry, format), syntax);
                }
            }
        }
    }
}

/// Each type whose family would be `x` in OpenMetrics, and its name here.
const OF_ONE_NAME: [(&str, Register); 5] = [
    ("x", register_a::<Gauge>),
    ("x", register_a::<Histogram<Count>>),
    ("x", register_a::<StateSet<bool>>),
    ("x_total", register_a::<Counter>),
    ("x_info", register_a::<Info<By<'static>>>),
];

#[test]
fn of_families_that_would_have_one_name_in_openmetrics_there_is_one() {
    for (first, (name, register)) in OF_ONE_NAME.iter().enumerate() {
        let registry = registry();
        register(&registry, opts("x")).unwrap();
        for (second, (other, register_other)) in OF_ONE_NAME.iter().enumerate() {
            if name != other {
                let reason = format!(
                    "{name:?} is registered already, and in OpenMetrics the two would have one \
                     name; rename one"
                );
                check_refused(register_other(&registry, opts("x")), "x", &reason);
            } else if first != second {
                let message = message_of(register_other(&registry, opts("x")));
                assert!(message.contains("it is already registered as a"));
            }
        }
        // Once it has ended, each other one has its turn.
        assert!(registry.unregister(name));
        for (other, register_other) in &OF_ONE_NAME {
            register_other(&registry, opts("x")).unwrap();
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
    let gauge: Register = register_a::<Gauge>;
    let counter: Register = register_a::<Counter>;
    let histogram: Register = register_a::<Histogram<Count>>;
    let summary: Register = register_a::<Summary<Count>>;
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
            let named = |name| opts(name).lenient_names(true);
            one(&registry, named(one_name)).unwrap();
            let message = message_of(two(&registry, named(two_name)));
            let reason = "is registered already, and samples of the two would have one name";
            assert!(message.contains(reason), "{one_name} {two_name}: {message}");
        }
    }
}

#[test]
fn names_that_pages_add_themselves_are_refused() {
    let registry = registry();
    let reason = "Talea itself shows \"talea_series_dropped_total\", and in OpenMetrics the two \
                  would have one name; rename it";
    let counter = registry.register::<Counter>(opts("talea_series_dropped"));
    check_refused(counter, "talea_series_dropped", reason);
    let gauge = registry.register::<Gauge>(opts("talea_series_dropped"));
    check_refused(gauge, "talea_series_dropped", reason);
    let gauge = message_of(registry.register::<FloatGauge>(opts("talea_families_hidden")));
    assert!(gauge.contains("Talea itself shows"), "{gauge}");
    registry.register::<Gauge>(opts("talea_series_shown")).unwrap();
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
