//! Claims about asking a snapshot, and about what is said where the answer is no.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use crate::support::metrics::{alone, opts, register, registry};
use talea::{
    Counter, Family, FloatGauge, Gauge, Histogram, Kind, Labels, Metrics, Seconds, Snapshot,
    Summary,
};

#[derive(Labels)]
struct Sale<'a> {
    method: &'a str,
    country: &'a str,
}

#[derive(Labels)]
struct Page<'a> {
    route: &'a str,
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders accepted.
    orders: Family<Sale<'static>, Counter>,
    /// Time to serve a page.
    #[metric(buckets = [0.1, 1.0])]
    page: Family<Page<'static>, Histogram<Seconds>>,
    /// Baskets open.
    baskets: Gauge,
    /// How full the store is.
    fill: FloatGauge,
}

const ORDERS: &str = "shop_orders_total";

fn shop() -> Snapshot {
    let (shop, registry) = Shop::for_test();
    for (method, country, n) in
        [("card", "pe", 1), ("card", "ch", 2), ("cash", "pe", 4), ("cash", "a\"b\\c\nd", 8)]
    {
        shop.orders.with(Sale { method, country }).add(n);
    }
    for (route, millis) in [("/", 50), ("/", 500), ("/basket", 2000)] {
        shop.page.with(Page { route }).observe(Duration::from_millis(millis));
    }
    shop.baskets.set(-3);
    shop.fill.set(0.25);
    registry.snapshot()
}

fn message_of(snapshot: &Snapshot, assertion: impl FnOnce(&Snapshot)) -> String {
    let panicked = panic::catch_unwind(AssertUnwindSafe(|| assertion(snapshot))).unwrap_err();
    *panicked.downcast::<String>().unwrap()
}

#[test]
fn a_family_is_found_by_its_whole_name() {
    let snapshot = shop();
    let family = snapshot.family("shop_page_seconds").unwrap();
    assert_eq!((family.kind(), family.help()), (Kind::Histogram, "Time to serve a page."));
    for name in ["shop_page", "shop_page_second", "shop_page_seconds_count", ""] {
        assert!(snapshot.family(name).is_none(), "{name}");
    }
}

#[test]
fn a_value_is_that_of_the_series_with_exactly_these_labels() {
    let snapshot = shop();
    for (name, labels, value) in [
        (ORDERS, &[("method", "card"), ("country", "ch")][..], Some(2.0)),
        // In any order.
        (ORDERS, &[("country", "ch"), ("method", "card")], Some(2.0)),
        (ORDERS, &[("country", "ch")], None),
        (ORDERS, &[], None),
        (ORDERS, &[("method", "card"), ("country", "ch"), ("gift", "true")], None),
        // One label is asked twice.
        (ORDERS, &[("country", "ch"), ("country", "ch")], None),
        ("shop_baskets", &[], Some(-3.0)),
        ("shop_fill", &[], Some(0.25)),
        // A histogram has no value.
        ("shop_page_seconds", &[("route", "/")], None),
        ("orders", &[], None),
    ] {
        assert_eq!(snapshot.value(name, labels), value, "{name} {labels:?}");
    }
}

#[test]
fn a_total_and_a_histogram_are_over_all_series_that_carry_the_labels() {
    let snapshot = shop();
    for (name, labels, total, count) in [
        (ORDERS, &[][..], Some(15.0), None),
        (ORDERS, &[("method", "card")], Some(3.0), None),
        (ORDERS, &[("country", "pe"), ("method", "cash")], Some(4.0), None),
        (ORDERS, &[("country", "de")], None, None),
        (ORDERS, &[("county", "pe")], None, None),
        (ORDERS, &[("country", "a\"b\\c\nd")], Some(8.0), None),
        (ORDERS, &[("country", r#"a\"b\\c\nd"#)], None, None),
        ("shop_baskets", &[], Some(-3.0), None),
        ("orders", &[], None, None),
        ("shop_page_seconds", &[], None, Some(3)),
        ("shop_page_seconds", &[("route", "/")], None, Some(2)),
        ("shop_page_seconds", &[("route", "/none")], None, None),
    ] {
        let histogram = snapshot.histogram(name, labels).map(|histogram| histogram.count());
        assert_eq!((snapshot.total(name, labels), histogram), (total, count), "{name} {labels:?}");
    }
}

#[test]
fn series_are_selected_by_some_of_their_labels() {
    let snapshot = shop();
    let countries = |labels: &[(&str, &str)]| {
        let series = snapshot.select(ORDERS, labels);
        series.map(|series| series.label("country").unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(countries(&[]), ["pe", "ch", "pe", "a\"b\\c\nd"]);
    assert_eq!(countries(&[("method", "card")]), ["pe", "ch"]);
    assert_eq!(countries(&[("method", "")]), [""; 0]);
    assert_eq!(snapshot.select("orders", &[]).count(), 0);

    let selected = {
        // Selected series live as long as the snapshot; the labels need not.
        let method = String::from("cash");
        let family = snapshot.family(ORDERS).unwrap();
        family.select(&[("method", &method)]).collect::<Vec<_>>()
    };
    assert!(selected.iter().map(|series| series.as_f64()).eq([Some(4.0), Some(8.0)]));
}

#[test]
fn a_series_has_its_labels_and_its_value() {
    let snapshot = shop();
    let series = snapshot.select(ORDERS, &[]).next().unwrap();
    assert_eq!(series.label("method").as_deref(), Some("card"));
    assert_eq!(series.label("metho"), None);
    assert!(series.carries(&[]) && series.carries(&[("country", "pe"), ("method", "card")]));
    assert!(!series.carries(&[("country", "pe"), ("method", "cash")]));
    assert_eq!(series.as_f64(), Some(1.0));
    let histogram = snapshot.select("shop_page_seconds", &[]).next().unwrap();
    assert_eq!(histogram.as_f64(), None);
}

#[test]
fn labels_are_asked_for_by_their_plain_value() {
    let snapshot = shop();
    let (plain, escaped) = ("a\"b\\c\nd", r#"a\"b\\c\nd"#);
    snapshot.assert_value(ORDERS, &[("method", "cash"), ("country", plain)], 8.0);
    snapshot.assert_no_series(ORDERS, &[("country", escaped)]);
    let message = message_of(&snapshot, |s| s.assert_no_series(ORDERS, &[("country", plain)]));
    assert!(message.starts_with(&format!("asked: no series {ORDERS}{{country=\"{escaped}\"}}\n")));
}

#[test]
fn families_and_series_show_themselves_as_the_text_format_does() {
    let snapshot = shop();
    assert_eq!(format!("{snapshot:?}"), snapshot.to_text());
    assert_eq!(
        format!("{:?}", snapshot.family(ORDERS).unwrap()),
        r#"shop_orders_total counter
  shop_orders_total{method="card",country="pe"} 1
  shop_orders_total{method="card",country="ch"} 2
  shop_orders_total{method="cash",country="pe"} 4
  shop_orders_total{method="cash",country="a\"b\\c\nd"} 8"#
    );
    let series = |name| snapshot.select(name, &[]).map(|s| format!("{s:?}")).collect::<Vec<_>>();
    assert_eq!(series("shop_baskets"), ["shop_baskets -3"]);
    assert_eq!(series("shop_fill"), ["shop_fill 0.25"]);
    assert_eq!(
        series("shop_page_seconds"),
        [
            r#"shop_page_seconds{route="/"} count 2, sum 0.55"#,
            r#"shop_page_seconds{route="/basket"} count 1, sum 2"#
        ]
    );
}

#[test]
fn assertions_that_hold_say_nothing() {
    let snapshot = shop();
    snapshot.assert_value(ORDERS, &[("country", "pe"), ("method", "card")], 1.0);
    snapshot.assert_value("shop_baskets", &[], -3.0);
    assert_eq!(snapshot.expect_value("shop_fill", &[]), 0.25);
    assert_eq!(snapshot.expect_histogram("shop_page_seconds", &[]).count(), 3);
    snapshot.assert_no_series(ORDERS, &[("country", "de")]);
    snapshot.assert_no_series("orders", &[]);
    let (registry, gauge) = alone::<FloatGauge>(opts("g"));
    gauge.set(f64::NAN);
    registry.snapshot().assert_value("g", &[], f64::NAN);
}

type Assertion = fn(&Snapshot);

/// Assertions that fail, each with all of its message.
const MESSAGES: [(Assertion, &str); 5] = [
    (
        |s| s.assert_value(ORDERS, &[("method", "card"), ("country", "de")], 1.0),
        r#"asked: shop_orders_total{method="card",country="de"} 1
found: no such series of the counter shop_orders_total
nearest series:
  shop_orders_total{method="card",country="pe"} 1
  shop_orders_total{method="card",country="ch"} 2
  shop_orders_total{method="cash",country="pe"} 4
  shop_orders_total{method="cash",country="a\"b\\c\nd"} 8
to do: compare the values: the nearest series has country="pe""#,
    ),
    (
        |s| _ = s.expect_value("shop_orders", &[]),
        "asked: the value of shop_orders
found: no metric is named shop_orders
nearest names:
  shop_orders_total counter
  shop_baskets gauge
  shop_page_seconds histogram
  shop_fill gauge
to do: the name of a counter ends in _total: ask for shop_orders_total",
    ),
    (
        |s| s.assert_value(ORDERS, &[("country", "pe"), ("method", "cash")], 5.5),
        r#"asked: shop_orders_total{country="pe",method="cash"} 5.5
found: shop_orders_total{method="cash",country="pe"} 4
nearest other series:
  shop_orders_total{method="card",country="pe"} 1
  shop_orders_total{method="cash",country="a\"b\\c\nd"} 8
  shop_orders_total{method="card",country="ch"} 2"#,
    ),
    (
        |s| s.assert_no_series(ORDERS, &[("method", "card")]),
        r#"asked: no series shop_orders_total{method="card"}
found: 2 series
series:
  shop_orders_total{method="card",country="pe"} 1
  shop_orders_total{method="card",country="ch"} 2
to do: series that carry further labels are found too; name more labels for fewer"#,
    ),
    (
        |s| s.assert_no_series("shop_fill", &[]),
        "asked: no series shop_fill\nfound: 1 series\nseries:\n  shop_fill 0.25",
    ),
];

#[test]
fn the_message_has_what_was_asked_and_found_and_the_nearest_series_or_names() {
    let snapshot = shop();
    for (assertion, message) in MESSAGES {
        assert_eq!(message_of(&snapshot, assertion), message);
    }
}

#[test]
fn the_nearest_series_come_first_and_the_rest_are_counted() {
    let (registry, sales) = alone::<Family<Sale<'static>, Counter>>(opts("sales"));
    for (method, country) in [
        ("iou", "at"),
        ("iou", "ch"),
        ("iou", "pt"),
        ("card", "at"),
        ("card", "pt"),
        ("cash", "pe"),
        ("iou", "pe"),
    ] {
        sales.with(Sale { method, country }).inc();
    }
    let message = message_of(&registry.snapshot(), |s| {
        s.expect_value("sales_total", &[("method", "card"), ("country", "pe")]);
    });
    // One label is equal in the first four; of the other, the beginning decides.
    let near = r#"
nearest series:
  sales_total{method="cash",country="pe"} 1
  sales_total{method="card",country="pt"} 1
  sales_total{method="card",country="at"} 1
  sales_total{method="iou",country="pe"} 1
  sales_total{method="iou",country="pt"} 1
  and 2 more
"#;
    assert!(message.contains(near), "{message}");
}

#[test]
fn the_nearest_names_hold_the_asked_one_or_share_the_most() {
    let other = registry();
    for name in ["ordres", "orders_of_the_whole_shop", "total", "hit"] {
        register::<Gauge>(&other, name);
    }
    register::<Counter>(&other, "hits");
    let (shop, other) = (shop(), other.snapshot());
    let [hit, hits, total] = ["hit gauge", "hits_total counter", "total gauge"];
    for (snapshot, asked, nearest) in [
        (&shop, "shop_ordres_total", &["shop_orders_total counter"][..]),
        (&shop, "orders", &["shop_orders_total counter"]),
        (&shop, "old_shop_baskets_open", &["shop_baskets gauge"]),
        (&shop, "shop_pages_second", &["shop_page_seconds histogram"]),
        (&shop, "fill_shop", &["shop_fill gauge"]),
        // One that holds it comes before one that is more like it.
        (&other, "orders", &["orders_of_the_whole_shop gauge", "ordres gauge"]),
        // A short one that it ends in comes after one that is misspelt.
        (&other, "his_total", &[hits, total, hit]),
        (&other, "all_hits_total", &[hits, total, hit]),
        // A name that may be one of its samples.
        (&other, "hit_total", &[hit, hits, total]),
    ] {
        let message = message_of(snapshot, |s| _ = s.expect_value(asked, &[]));
        let found: Vec<_> = message.lines().skip(3).take(nearest.len()).map(str::trim).collect();
        assert_eq!(message.lines().nth(2), Some("nearest names:"), "{asked}");
        assert_eq!(found, nearest, "{asked}");
    }
}

#[test]
fn more_than_five_names_are_counted() {
    let registry = registry();
    for n in 0..8 {
        register::<Gauge>(&registry, &format!("g{n}"));
    }
    let message = message_of(&registry.snapshot(), |s| s.assert_value("g", &[], 1.0));
    assert_eq!(message.lines().filter(|line| line.ends_with(" gauge")).count(), 5, "{message}");
    assert!(message.contains("\n  and 3 more\n"), "{message}");
}

#[test]
fn the_message_names_the_fault_in_a_name() {
    let snapshot = shop();
    for (name, part) in [
        ("shop_orders", "a counter ends in _total: ask for shop_orders_total"),
        ("shop_page", "a histogram of seconds ends in _seconds: ask for shop_page_seconds"),
        ("shop_page_seconds_count", "ask for shop_page_seconds by expect_histogram"),
        ("shop_page_seconds_bucket", "ask for shop_page_seconds by expect_histogram"),
        ("shop_baskets_total", "only the name of a counter ends in _total: ask for shop_baskets"),
        ("orders_total", "a set's prefix is part of the name: ask for shop_orders_total"),
        ("store_orders", "is its set installed in this registry?"),
    ] {
        let message = message_of(&snapshot, |s| _ = s.expect_value(name, &[]));
        assert!(message.lines().last().is_some_and(|last| last.contains(part)), "{message}");
    }
}

#[test]
fn the_message_has_the_value_of_a_summarys_quantile_or_the_way_to_its_parts() {
    let registry = registry();
    let wait: Summary<Seconds> = registry.register(opts("wait").quantiles(&[0.5])).unwrap();
    wait.observe(Duration::from_secs(1));
    let snapshot = registry.snapshot();
    let median = [("quantile", "0.5")];
    let found = snapshot.expect_value("wait_seconds", &median);
    let message = message_of(&snapshot, |s| s.assert_value("wait_seconds", &median, 3.0));
    let asked = r#"wait_seconds{quantile="0.5"}"#;
    assert_eq!(message, format!("asked: {asked} 3\nfound: {asked} {found}"));
    for (name, labels, to_do) in [
        ("wait_seconds", &[("quantile", "0.9")][..], "ask for one of its quantiles, as "),
        ("wait_seconds_count", &[], "wait_seconds_count is a part of a summary: ask for wait_sec"),
        ("wait", &[], "the name of a summary of seconds ends in _seconds: ask for wait_seconds"),
    ] {
        let message = message_of(&snapshot, |s| _ = s.expect_value(name, labels));
        assert!(message.contains(&format!("\nto do: {to_do}")), "{message}");
    }
}

#[test]
fn the_message_says_if_the_registry_or_the_family_is_empty() {
    let message = message_of(&registry().snapshot(), |s| s.assert_value(ORDERS, &[], 1.0));
    assert_eq!(
        message,
        "asked: shop_orders_total 1
found: nothing: the registry is empty
to do: install or register the metrics in this registry before the snapshot"
    );
    let empty = Shop::for_test().1.snapshot();
    let message = message_of(&empty, |s| _ = s.expect_histogram("shop_page_seconds", &[]));
    assert_eq!(
        message,
        "asked: the histogram shop_page_seconds
found: the histogram shop_page_seconds has no series
to do: use a label combination before the snapshot; that makes its series"
    );
}

#[test]
fn the_message_says_if_the_family_is_of_another_type() {
    let snapshot = shop();
    let page = "shop_page_seconds";
    let route = [("route", "/")];
    let shown = r#"  shop_page_seconds{route="/"} count 2, sum 0.55"#;
    for (message, found, shown, by) in [
        (
            message_of(&snapshot, |s| _ = s.expect_value(page, &route)),
            "page_seconds is a histogram",
            shown,
            "histogram",
        ),
        (
            message_of(&snapshot, |s| s.assert_value(page, &route, 1.0)),
            "page_seconds is a histogram",
            shown,
            "histogram",
        ),
        (
            message_of(&snapshot, |s| _ = s.expect_histogram("shop_baskets", &[])),
            "baskets is a gauge",
            "",
            "value",
        ),
    ] {
        assert!(message.contains(&format!("\nfound: shop_{found}\n")), "{message}");
        assert!(message.contains(shown), "{message}");
        assert!(message.ends_with(&format!("\nto do: ask for it by expect_{by}")), "{message}");
    }
}

#[test]
fn the_message_names_the_fault_in_the_labels() {
    let snapshot = shop();
    let further = |label| {
        format!(
            "labels must be all there: this series has also {label} (Snapshot::total sums over such series)"
        )
    };
    let absent = |rest| format!("the nearest series has no label {rest}");
    for (name, labels, expected) in [
        (ORDERS, &[("method", "card")][..], further("country=\"pe\"")),
        (
            ORDERS,
            &[("metod", "card"), ("country", "pe")],
            absent("metod: its labels are method, country"),
        ),
        ("shop_baskets", &[("size", "xl")], absent("size: its labels are none")),
        (
            ORDERS,
            &[("country", "pt")],
            "compare the values: the nearest series has country=\"pe\"; ".to_owned()
                + &further("method=\"card\""),
        ),
    ] {
        let message = message_of(&snapshot, |s| _ = s.expect_value(name, labels));
        assert_eq!(message.lines().last(), Some(&*format!("to do: {expected}")), "{message}");
    }
}

#[test]
fn a_histogram_need_not_be_asked_with_all_its_labels() {
    let (registry, times) = alone::<Family<Sale<'static>, Histogram<Seconds>>>(opts("time"));
    times.with(Sale { method: "card", country: "pe" }).observe(Duration::from_secs(1));
    let message = message_of(&registry.snapshot(), |s| {
        _ = s.expect_histogram("time_seconds", &[("method", "cash")]);
    });
    assert_eq!(
        message,
        r#"asked: the histogram time_seconds{method="cash"}
found: no such series of the histogram time_seconds
nearest series:
  time_seconds{method="card",country="pe"} count 1, sum 1
to do: compare the values: the nearest series has method="card""#
    );
}

#[test]
fn the_message_says_if_series_found_no_room() {
    let (registry, visits) = alone::<Family<Page<'static>, Counter>>(opts("visits").limit(2));
    for route in ["/", "/basket", "/pay"] {
        visits.with(Page { route }).inc();
    }
    let message = message_of(&registry.snapshot(), |s| {
        s.assert_value("visits_total", &[("route", "pay")], 1.0);
    });
    let expected =
        "1 look-up of a new series found no room and went to {otel_metric_overflow=\"true\"}";
    assert!(message.contains(expected), "{message}");
    let without_the_label = "visits_total{otel_metric_overflow=\"true\"} 1";
    assert_eq!(message.lines().nth(5).map(str::trim), Some(without_the_label), "it is the last");
}

#[test]
fn the_message_says_if_a_float_is_almost_right() {
    let (registry, gauge) = alone::<FloatGauge>(opts("g"));
    for (value, expected, close) in [
        (0.1 + 0.2, 0.3, true),
        (0.31, 0.3, false),
        (f64::INFINITY, f64::NEG_INFINITY, false),
        (1.0, f64::INFINITY, false),
        (f64::NAN, 1.0, false),
    ] {
        gauge.set(value);
        let message = message_of(&registry.snapshot(), |s| s.assert_value("g", &[], expected));
        assert_eq!(message.contains("compared exactly"), close, "{message}");
    }
}

#[test]
fn a_failure_points_to_the_line_that_asked() {
    type Assertion = fn(&Snapshot);
    thread_local!(static LINE: Cell<u32> = const { Cell::new(0) });
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        LINE.set(info.location().filter(|at| at.file() == file!()).map_or(0, |at| at.line()));
        before(info);
    }));
    let snapshot = shop();
    let assertions: [(u32, Assertion); 4] = [
        (line!(), |s| s.assert_value("no", &[], 1.0)),
        (line!(), |s| _ = s.expect_value("no", &[])),
        (line!(), |s| _ = s.expect_histogram("no", &[])),
        (line!(), |s| s.assert_no_series("shop_fill", &[])),
    ];
    for (line, assertion) in assertions {
        message_of(&snapshot, assertion);
        assert_eq!(LINE.get(), line);
    }
}
