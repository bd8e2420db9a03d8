//! Calls of the facade's macros, and the scrapes that show them.

use std::time::Duration;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use talea::{Config, Counter, Escaping, Format, Gauge, Opts, Registry, Snapshot};
use talea_metrics::{Builder, Matcher, Recorder};
use talea_parse::{Severity, Syntax, check};

/// A scrape after `program` ran.
fn after(program: impl FnOnce()) -> Snapshot {
    after_with(|builder| builder, program)
}

fn after_with(build: impl FnOnce(Builder) -> Builder, program: impl FnOnce()) -> Snapshot {
    let registry = Registry::for_test().unwrap();
    let recorder = build(Recorder::builder()).build(&registry).unwrap();
    with_local_recorder(&recorder, program);
    registry.snapshot()
}

#[test]
fn a_program_of_all_macros_is_shown() {
    let snapshot = after_with(
        |builder| builder.buckets_for(Matcher::Full("pricing".into()), &[0.01, 0.1]),
        || {
            describe_counter!("orders", "Orders accepted.");
            describe_gauge!("baskets", Unit::Count, "Baskets that are open.");
            describe_histogram!("pricing", Unit::Seconds, "Time to price a basket.");
            let country = String::from("pe");
            counter!("orders", "method" => "card", "country" => country.clone()).increment(2);
            counter!("orders", "method" => "card", "country" => country).increment(1);
            counter!("seen").absolute(7);
            gauge!("baskets").set(2.5);
            gauge!("baskets").increment(2.0);
            gauge!("baskets").decrement(1.0);
            histogram!("pricing").record(0.01);
            histogram!("pricing").record(Duration::from_millis(20));
            histogram!("pricing").record_many(3.0, 2);
        },
    );
    let expected = r#"# HELP baskets Baskets that are open.
# TYPE baskets gauge
baskets 3.5
# HELP orders_total Orders accepted.
# TYPE orders_total counter
orders_total{country="pe",method="card"} 3
# HELP pricing Time to price a basket.
# TYPE pricing histogram
pricing_bucket{le="0.01"} 1
pricing_bucket{le="0.1"} 2
pricing_bucket{le="+Inf"} 4
pricing_sum 6.03
pricing_count 4
# HELP seen_total The counter "seen", which was not described.
# TYPE seen_total counter
seen_total 7
"#;
    assert_eq!(snapshot.to_text(), expected);
}

#[test]
fn labels_may_vary_from_call_to_call() {
    let snapshot = after(|| {
        counter!("calls").increment(1);
        counter!("calls", "route" => "/").increment(2);
        counter!("calls", "route" => "/", "status" => "200").increment(3);
        counter!("calls", "status" => "200", "route" => "/").increment(4);
        counter!("calls", "tenant" => "a\"b\\c\nd").increment(5);
        counter!("calls", "tenant" => "").increment(6);
    });
    for (labels, value) in [
        (&[][..], 7.0),
        (&[("route", "/")], 2.0),
        (&[("route", "/"), ("status", "200")], 7.0),
        (&[("tenant", "a\"b\\c\nd")], 5.0),
    ] {
        snapshot.assert_value("calls_total", labels, value);
    }
    assert_eq!(snapshot.total("calls_total", &[]), Some(21.0));
}

#[test]
fn a_description_counts_that_came_before_the_first_use() {
    let snapshot = after(|| {
        describe_counter!("early", "The first.");
        describe_counter!("early", "The second.");
        for _ in 0..2 {
            counter!("early").increment(1);
            counter!("late").increment(1);
            describe_counter!("late", "Too late.");
        }
        describe_counter!("empty", " ");
        counter!("empty").increment(1);
        describe_gauge!("other", "Of another type.");
        counter!("other").increment(1);
    });
    let help = |name: &str| snapshot.family(name).unwrap().help().to_owned();
    assert_eq!(help("early_total"), "The first.");
    for name in ["late", "empty", "other"] {
        let help = help(&format!("{name}_total"));
        assert_eq!(help, format!("The counter {name:?}, which was not described."));
    }
    snapshot.assert_value("late_total", &[], 2.0);
}

#[test]
fn names_that_prometheus_does_not_have_are_replaced_and_empty_ones_are_counted_as_refused() {
    let snapshot = after(|| {
        counter!("http.server/2xx", "user.id" => "7", "le" => "1").increment(1);
        counter!("http_server-2xx", "user-id" => "7", "le" => "1").increment(1);
        counter!("jobs_total").increment(1);
        counter!("2xx").increment(1);
        gauge!("__level").set(2.0);
        histogram!("_wait_seconds").record(3.0);
        for empty in ["", "_", "__", "*"] {
            counter!(empty).increment(1);
            gauge!(empty).set(1.0);
            // At once, whatever the count.
            histogram!(empty).record_many(1.0, usize::MAX);
        }
    });
    let labels = [("user_id", "7"), ("exported_le", "1")];
    snapshot.assert_value("http_server_2xx_total", &labels, 2.0);
    snapshot.assert_value("jobs_total", &[], 1.0);
    snapshot.assert_value("_xx_total", &[], 1.0);
    snapshot.assert_value("_level", &[], 2.0);
    assert_eq!(snapshot.expect_histogram("_wait_seconds", &[]).sum(), 3.0);
    assert_eq!(snapshot.total("talea_recorder_refused_total", &[]), Some(12.0));
    let recorded = snapshot.families().filter(|family| !family.name().starts_with("talea_"));
    assert_eq!(recorded.count(), 5);
}

/// Runs a test again, in a process of its own, and returns what that wrote to standard error. `None` in
/// that process.
fn notices_of(test: &str) -> Option<String> {
    const AGAIN: &str = "TALEA_TEST_AGAIN";
    if std::env::var_os(AGAIN).is_some() {
        return None;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let again = again.args(["--exact", test, "--nocapture"]).env(AGAIN, "1");
    let output = again.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    Some(stderr)
}

#[test]
fn names_that_become_one_are_reported_once() {
    let Some(notices) = notices_of("names_that_become_one_are_reported_once") else {
        let snapshot = after_with(
            |builder| builder.label("data.zone", "a"),
            || {
                for n in 0..3 {
                    counter!("a.b", "n" => n.to_string()).increment(1);
                    counter!("a-b", "n" => n.to_string()).increment(1);
                    for refused in ["", "_", "*"] {
                        gauge!(refused).set(1.0);
                    }
                    counter!("jobs").increment(1);
                    counter!("jobs_total").increment(1);
                    gauge!("1x").set(1.0);
                    gauge!("2x").set(2.0);
                    histogram!("wait", "user.id" => "1", "user-id" => "2").record(1.0);
                    histogram!("size", "user.id" => "1").record(1.0);
                    histogram!("size", "user-id" => "1").record(1.0);
                    counter!("zoned", "data_zone" => "b").increment(1);
                    // Of another metric, or of one name, they are no others.
                    counter!("seen", "user-id" => n.to_string(), "le" => "1").increment(1);
                    counter!("seen", "data.zone" => "b").increment(1);
                }
            },
        );
        assert_eq!(snapshot.total("a_b_total", &[]), Some(6.0));
        assert_eq!(snapshot.total("jobs_total", &[]), Some(6.0));
        snapshot.assert_value("_x", &[("data_zone", "a")], 2.0);
        let labels = [("data_zone", "a"), ("user_id", "2")];
        assert_eq!(snapshot.expect_histogram("wait", &labels).count(), 3);
        let labels = [("data_zone", "a"), ("user_id", "1")];
        assert_eq!(snapshot.expect_histogram("size", &labels).count(), 6);
        snapshot.assert_value("zoned_total", &[("data_zone", "b")], 3.0);
        return;
    };
    let mut found: Vec<&str> = notices.lines().filter(|line| line.starts_with("talea: ")).collect();
    found.sort_unstable();
    found.retain(|line| !line.starts_with("talea: the gauge \"\" is not recorded: "));
    let expected = [
        "talea: the counters \"a.b\" and \"a-b\" are shown under one name, \"a_b\": they are one metric. Rename one of them",
        "talea: the counters \"jobs\" and \"jobs_total\" are shown under one name, \"jobs\": they are one metric. Rename one of them",
        "talea: the gauges \"1x\" and \"2x\" are shown under one name, \"_x\": they are one metric. Rename one of them",
        "talea: the labels \"data.zone\" and \"data_zone\" of \"zoned\" are both shown as \"data_zone\": of one call, the latter counts. Rename one of them",
        "talea: the labels \"user.id\" and \"user-id\" of \"size\" are both shown as \"user_id\": of one call, the latter counts. Rename one of them",
        "talea: the labels \"user.id\" and \"user-id\" of \"wait\" are both shown as \"user_id\": of one call, the latter counts. Rename one of them",
    ];
    assert_eq!(found, expected);
}

/// Names that a sanitizer changes, as the names of metrics and of labels.
#[test]
fn names_that_are_replaced_are_legal() {
    let registry = Registry::for_test().unwrap();
    let recorder = Recorder::new(&registry).unwrap();
    let names =
        ["", "__name__", "9x", "1a", "ü", "..", "a.b", "a-b", "le", "quantile", "__", ":", "x y"];
    with_local_recorder(&recorder, || {
        for name in names {
            counter!(name, name => "1").increment(1);
            gauge!(name, name => "1").set(1.0);
            histogram!(name, name => "1").record(1.0);
            counter!("of", name => "1").increment(1);
        }
    });
    for (format, syntax) in
        [(Format::Text, Syntax::Text), (Format::OpenMetrics, Syntax::OpenMetrics)]
    {
        let mut scraper = registry.scraper();
        scraper.format(format, Escaping::default());
        let page = String::from_utf8(scraper.scrape().to_vec()).unwrap();
        talea_parse::families(&page, syntax).unwrap();
        let reserved = ["reserved-name", "reserved-label"];
        for finding in check(&page, syntax).iter().filter(|it| it.severity == Severity::Violation) {
            // OpenMetrics reserves names that begin with `_`, which Prometheus takes.
            let is_known = syntax == Syntax::OpenMetrics && reserved.contains(&finding.rule);
            assert!(is_known && !finding.found.contains(" __"), "{finding}\n{page}");
        }
    }
}

#[test]
fn a_name_that_another_type_has_gets_the_types_name() {
    let snapshot = after(|| {
        counter!("jobs").increment(1);
        gauge!("jobs").set(2.0);
        histogram!("jobs").record(3.0);
        gauge!("rows_count").set(4.0);
        gauge!("rows_total").set(5.0);
    });
    snapshot.assert_value("jobs_total", &[], 1.0);
    snapshot.assert_value("jobs_gauge", &[], 2.0);
    assert_eq!(snapshot.expect_histogram("jobs_histogram", &[]).sum(), 3.0);
    snapshot.assert_value("rows_count_gauge", &[], 4.0);
    snapshot.assert_value("rows_total_gauge", &[], 5.0);
}

#[test]
fn metrics_of_the_program_itself_are_left_alone() {
    let registry = Registry::for_test().unwrap();
    let own: Counter = registry.register(Opts::new("jobs", "Jobs done.")).unwrap();
    let gauge: Gauge = registry.register(Opts::new("jobs_counter", "Taken too.")).unwrap();
    own.inc();
    gauge.set(1);
    with_local_recorder(&Recorder::new(&registry).unwrap(), || {
        for _ in 0..3 {
            counter!("jobs", "kind" => "mail").increment(5);
        }
    });
    let snapshot = registry.snapshot();
    snapshot.assert_value("jobs_total", &[], 1.0);
    snapshot.assert_value("jobs_counter", &[], 1.0);
    let labels = [("metric", "jobs"), ("type", "counter")];
    snapshot.assert_value("talea_recorder_refused_total", &labels, 3.0);
}

/// A histogram's buckets, but for +Inf.
fn bounds(snapshot: &Snapshot, name: &str) -> Vec<f64> {
    let mut bounds: Vec<f64> =
        snapshot.expect_histogram(name, &[]).cumulative().map(|(bound, _)| bound).collect();
    assert_eq!(bounds.pop(), Some(f64::INFINITY));
    bounds
}

#[test]
fn buckets_are_chosen_by_name_and_else_by_unit() {
    let choose = |builder: Builder| {
        builder
            .buckets_for(Matcher::Suffix("_rows".into()), &[10.0])
            .buckets_for(Matcher::Prefix("db.".into()), &[20.0, 30.0])
            .buckets_for(Matcher::Full("db.read.rows".into()), &[40.0])
            .buckets_for(Matcher::Prefix("2xx.".into()), &[60.0])
    };
    let program = || {
        describe_histogram!("wait", Unit::Milliseconds, "Time that jobs wait.");
        for name in
            ["web_rows", "db.write_rows", "db.read.rows", "2xx.wait", "wait", "sent_bytes", "other"]
        {
            histogram!(name).record(25.0);
        }
    };
    let snapshot = after_with(choose, program);
    for (name, buckets) in [
        ("web_rows", &[10.0][..]),
        ("db_write_rows", &[20.0, 30.0]),
        ("db_read_rows", &[40.0]),
        ("_xx_wait", &[60.0]),
    ] {
        assert_eq!(bounds(&snapshot, name), buckets, "{name}");
    }
    assert_eq!(bounds(&snapshot, "wait")[..2], [5.0, 10.0]);
    assert_eq!(bounds(&snapshot, "sent_bytes")[..2], [256.0, 1024.0]);
    assert_eq!(bounds(&snapshot, "other").len(), 22);
    let snapshot = after_with(|builder| choose(builder).buckets(&[50.0]), program);
    assert_eq!(bounds(&snapshot, "wait"), [50.0]);
    assert_eq!(bounds(&snapshot, "web_rows"), [10.0]);
}

#[test]
fn buckets_that_are_finer_than_the_scale_give_way() {
    let snapshot = after_with(
        |builder| builder.buckets(&[0.1, 0.2]),
        || histogram!("sent_bytes").record(1000.0),
    );
    assert_eq!(bounds(&snapshot, "sent_bytes")[0], 256.0);
}

#[test]
fn values_that_no_sum_can_hold_are_counted() {
    let snapshot = after(|| {
        describe_histogram!("time", Unit::Seconds, "Time.");
        for value in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2e10, 0.5, -0.0] {
            histogram!("time").record(value);
        }
        histogram!("time").record_many(-1.0, 10);
        histogram!("many").record_many(0.5, 1 << 40);
        gauge!("any").set(f64::NEG_INFINITY);
    });
    let time = snapshot.expect_histogram("time", &[]);
    assert_eq!((time.count(), time.sum()), (2, 0.5));
    assert_eq!(snapshot.expect_histogram("many", &[]).count(), 1 << 40);
    snapshot.assert_value("talea_recorder_unusable_total", &[("metric", "time")], 15.0);
    snapshot.assert_value("any", &[], f64::NEG_INFINITY);
}

#[test]
fn sums_keep_what_their_unit_promises() {
    let snapshot = after(|| {
        describe_histogram!("seconds", Unit::Seconds, "Time.");
        describe_histogram!("mebibytes", Unit::Mebibytes, "Sizes.");
        describe_histogram!("count", Unit::Count, "Things.");
        for _ in 0..1000 {
            histogram!("seconds").record(0.000_000_001);
            histogram!("mebibytes").record(1.0 / 1024.0 / 1024.0);
            histogram!("count").record(0.001);
            histogram!("unknown").record(0.000_001);
        }
    });
    let expected =
        [("seconds", 1e-6), ("mebibytes", 1000.0 / 1_048_576.0), ("count", 1.0), ("unknown", 1e-3)];
    for (name, sum) in expected {
        assert_eq!(snapshot.expect_histogram(name, &[]).sum(), sum, "{name}");
    }
}

#[test]
fn absolute_raises_and_never_lowers() {
    let snapshot = after(|| {
        let seen = counter!("seen");
        seen.absolute(10);
        seen.absolute(4);
        seen.increment(1);
        seen.absolute(12);
        seen.absolute(12);
    });
    snapshot.assert_value("seen_total", &[], 12.0);
}

#[test]
fn labels_that_clients_make_up_end_in_the_overflow_series() {
    let snapshot = after_with(
        |builder| builder.limit(10),
        || {
            for n in 0..100 {
                counter!("logins", "user" => n.to_string()).increment(1);
                gauge!("seats", "user" => n.to_string()).increment(1.0);
                histogram!("waits", "user" => n.to_string()).record(1.0);
            }
            // A handle that was made then is none of its own either.
            counter!("logins", "user" => "99").increment(1);
        },
    );
    let overflow = [("otel_metric_overflow", "true")];
    assert_eq!(snapshot.family("logins_total").unwrap().series().count(), 11);
    snapshot.assert_value("logins_total", &overflow, 91.0);
    snapshot.assert_value("seats", &overflow, 90.0);
    assert_eq!(snapshot.histogram("waits", &overflow).unwrap().count(), 90);
    snapshot.assert_value("talea_series_dropped_total", &[("family", "logins_total")], 91.0);
}

#[test]
fn names_that_somebody_makes_up_leave_room_for_others() {
    let registry = Registry::with_config(Config::with_len(16 << 20)).unwrap();
    with_local_recorder(&Recorder::new(&registry).unwrap(), || {
        for n in 0..1100 {
            counter!(format!("requests_{n}")).increment(1);
        }
        counter!("requests_0").increment(1);
    });
    let snapshot = registry.snapshot();
    snapshot.assert_value("requests_0_total", &[], 2.0);
    snapshot.assert_value("requests_999_total", &[], 1.0);
    assert_eq!(snapshot.total("talea_recorder_refused_total", &[]), Some(100.0));
    registry.register::<Counter>(Opts::new("own", "There is room.")).unwrap();
}

#[test]
fn a_registry_without_room_is_counted_too() {
    let registry = Registry::with_config(Config::with_len(1 << 20)).unwrap();
    with_local_recorder(&Recorder::new(&registry).unwrap(), || {
        for n in 0..400 {
            gauge!(format!("g{n}")).set(1.0);
        }
    });
    let snapshot = registry.snapshot();
    let shown = snapshot.families().filter(|family| family.name().starts_with('g')).count();
    let refused = snapshot.total("talea_recorder_refused_total", &[]).unwrap();
    assert!((100..400).contains(&shown), "{shown}");
    assert_eq!(shown as f64 + refused, 400.0);
}

#[test]
fn idle_series_expire_and_gauges_stay() {
    let registry = Registry::for_test().unwrap();
    let idle = Some(Duration::from_secs(120));
    let recorder = Recorder::builder().expires_after(idle).build(&registry).unwrap();
    let kept = with_local_recorder(&recorder, || {
        gauge!("limit", "of" => "a").set(5.0);
        counter!("idle", "of" => "a").increment(1);
        let kept = counter!("jobs", "of" => "a");
        kept.increment(1);
        kept
    });
    for _ in 0..10 {
        registry.sweep();
    }
    let snapshot = registry.snapshot();
    snapshot.assert_value("limit", &[("of", "a")], 5.0);
    snapshot.assert_no_series("idle_total", &[]);
    snapshot.assert_no_series("jobs_total", &[]);
    // A handle goes on, with a series that is new.
    kept.increment(3);
    registry.snapshot().assert_value("jobs_total", &[("of", "a")], 3.0);
}

#[test]
fn two_recorders_of_one_registry_add_up() {
    let registry = Registry::for_test().unwrap();
    for described in [false, true] {
        with_local_recorder(&Recorder::new(&registry).unwrap(), || {
            if described {
                describe_counter!("jobs", "Jobs done.");
            }
            counter!("jobs").increment(1);
        });
    }
    registry.snapshot().assert_value("jobs_total", &[], 2.0);
}

#[test]
fn eight_threads_lose_nothing() {
    const EACH: u64 = 20_000;
    let registry = Registry::for_test().unwrap();
    let recorder = Recorder::new(&registry).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..8_u64 {
            let recorder = &recorder;
            threads.spawn(move || {
                with_local_recorder(recorder, || {
                    for n in 0..EACH {
                        for refused in ["", "_", "*"] {
                            gauge!(refused).set(1.0);
                        }
                        counter!("jobs").increment(1);
                        counter!("labelled", "n" => (n % 100).to_string()).increment(1);
                        counter!("raised").absolute(thread * EACH + n);
                        gauge!("level").increment(1.0);
                        histogram!("sizes_bytes", "n" => "one").record(2.0);
                    }
                });
            });
        }
    });
    let (snapshot, all) = (registry.snapshot(), (8 * EACH) as f64);
    snapshot.assert_value("jobs_total", &[], all);
    assert_eq!(snapshot.total("labelled_total", &[]), Some(all));
    snapshot.assert_value("raised_total", &[], all - 1.0);
    snapshot.assert_value("level", &[], all);
    let sizes = snapshot.expect_histogram("sizes_bytes", &[]);
    assert_eq!((sizes.count() as f64, sizes.sum()), (all, 2.0 * all));
}

#[test]
fn a_label_of_a_call_takes_the_place_of_the_registrys_constant_ones() {
    let registry = Registry::for_test().unwrap();
    registry.set_constant_labels(&[("zone", "a"), ("service", "shop")]).unwrap();
    let recorder = Recorder::new(&registry).unwrap();
    with_local_recorder(&recorder, || {
        counter!("calls", "route" => "/", "service" => "other").increment(1);
        counter!("calls", "route" => "\",service=\"").increment(2);
        counter!("seen", "route" => "\",service=\"").increment(3);
    });
    let text = registry.snapshot().to_text();
    for line in [
        "calls_total{route=\"/\",service=\"other\"} 1",
        r#"calls_total{route="\",service=\""} 2"#,
        r#"seen_total{zone="a",service="shop",route="\",service=\""} 3"#,
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
}

/// In the process that another test starts, whose standard error takes nothing.
#[test]
fn a_call_that_is_refused_is_no_panic_where_its_notice_finds_a_full_disk() {
    const AGAIN: &str = "TALEA_TEST_FULL_STDERR";
    let refused = || {
        let snapshot = after(|| {
            counter!("").increment(1);
            counter!("orders").increment(2);
        });
        snapshot.assert_value("orders_total", &[], 2.0);
    };
    if std::env::var_os(AGAIN).is_some() {
        return refused();
    }
    let name = "a_call_that_is_refused_is_no_panic_where_its_notice_finds_a_full_disk";
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let again = again.args(["--exact", name, "--nocapture"]).env(AGAIN, "1").stderr(full);
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
