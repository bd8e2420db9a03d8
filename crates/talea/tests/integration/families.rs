//! Families: series that exist from the start, series by names chosen at run time, and refusals.

use talea::{
    Combine, Counter, Displayed, DynamicLabels, Family, Gauge, Histogram, LabelValue, Labels,
    Metrics, Opts, Overflow, Registry, Seconds, SeriesError, StateSet, UpDownCounter,
};

use crate::support::metrics::{OVERFLOW, count, opts, reason, register, registry};

#[derive(Clone, Copy, LabelValue)]
enum Method {
    Card,
    Cash,
    Iou,
}

talea::label_set! { struct Shop; }

#[derive(Clone, Copy, Labels)]
struct Fixed {
    method: Method,
    gift: Option<bool>,
    shop: Shop,
}

#[derive(Clone, Copy, Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

fn fix() {
    Shop::fix(["Lima", "\"Basel\""]).unwrap();
}

fn sales(registry: &Registry, limit: u64) -> Family<Sale<'static>, Counter> {
    registry.register(Opts::new("sales", "Sales.").limit(limit)).unwrap()
}

fn card(country: &str) -> Sale<'_> {
    Sale { method: Method::Card, country }
}

const SALES: &str = "sales_total";

mod whole {
    use super::*;

    #[test]
    fn a_whole_family_shows_each_combination_as_zero_from_the_start() {
        fix();
        let registry = registry();
        let opts = |name| opts(name).whole(true);
        let counts: Family<Fixed, Counter> = registry.register(opts("counts")).unwrap();
        registry.register::<Family<Fixed, Histogram<Seconds>>>(opts("times")).unwrap();
        registry.register::<Family<Fixed, Gauge>>(opts("levels")).unwrap();
        registry.register::<Family<Fixed, UpDownCounter>>(opts("open")).unwrap();
        registry.register::<Family<Fixed, StateSet<Method>>>(opts("states")).unwrap();
        let snapshot = registry.snapshot();
        for (name, series) in [("counts_total", 18), ("levels", 18), ("open", 18), ("states", 54)] {
            assert_eq!(count(&snapshot, name), series, "{name}");
            assert_eq!(snapshot.total(name, &[]), Some(0.0));
        }
        assert_eq!(count(&snapshot, "times_seconds"), 18);
        assert_eq!(snapshot.histogram("times_seconds", &[]).unwrap().count(), 0);

        let mut all = Vec::new();
        for method in [Method::Card, Method::Cash, Method::Iou] {
            for gift in [None, Some(false), Some(true)] {
                all.extend(Shop::all().map(|shop| Fixed { method, gift, shop }));
            }
        }
        for labels in &all {
            counts.with(labels).add(1 + labels.index() as u64);
        }
        let snapshot = registry.snapshot();
        assert_eq!(count(&snapshot, "counts_total"), 18, "no series beside those");
        assert_eq!(snapshot.total("counts_total", &[]), Some((1..=18).sum::<u64>() as f64));
        let labels = [("method", "card"), ("gift", ""), ("shop", "\"Basel\"")];
        assert_eq!(snapshot.value("counts_total", &labels), Some(2.0));
        assert_eq!(counts.dropped(), 0);
    }

    #[test]
    fn a_family_that_is_not_whole_shows_what_happened() {
        fix();
        let registry = registry();
        let counts: Family<Fixed, Counter> = register(&registry, "c");
        assert_eq!(count(&registry.snapshot(), "c_total"), 0);
        let shop = Shop::find("Lima").unwrap();
        counts.with(Fixed { method: Method::Iou, gift: None, shop }).inc();
        assert_eq!(count(&registry.snapshot(), "c_total"), 1);
        // It can be made whole later.
        registry.register::<Family<Fixed, Counter>>(opts("c").whole(true)).unwrap();
        let snapshot = registry.snapshot();
        assert_eq!((count(&snapshot, "c_total"), snapshot.total("c_total", &[])), (18, Some(1.0)));
    }

    #[test]
    fn a_family_that_cannot_be_whole_is_refused_with_the_reason() {
        fix();
        let registry = registry();
        let opts = opts("x").whole(true);
        let dynamic = "`whole` needs labels with fixed values; leave it out, or give each label \
                       an enum or a label_set!";
        assert_eq!(reason(registry.register::<Family<Sale<'static>, Counter>>(opts)), dynamic);
        assert_eq!(reason(registry.family::<Counter>(opts, &["a"])), dynamic);
        assert_eq!(
            reason(registry.register::<Family<Fixed, Counter>>(opts.limit(17))),
            "`whole` needs a series for each combination: its limit is 17, and it has 18 label \
             combinations; raise the limit"
        );
        assert_eq!(registry.snapshot().families().len(), 0);
        registry.register::<Family<Fixed, Counter>>(opts.limit(18)).unwrap();
    }

    #[test]
    fn one_with_more_combinations_than_have_places_is_whole_too() {
        talea::label_set! { struct Many; }
        #[derive(Labels)]
        struct By {
            many: Many,
        }
        let all = if cfg!(miri) { 20 } else { 4_097 };
        Many::fix((0..all).map(|n| n.to_string())).unwrap();
        let registry = registry();
        let family: Family<By, Counter> = registry.register(opts("x").whole(true)).unwrap();
        family.with(By { many: Many::find("19").unwrap() }).add(3);
        let snapshot = registry.snapshot();
        assert_eq!(count(&snapshot, "x_total"), all);
        assert_eq!(snapshot.value("x_total", &[("many", "19")]), Some(3.0));
        assert_eq!((snapshot.total("x_total", &[]), family.dropped()), (Some(3.0), 0));
    }

    #[test]
    fn a_field_of_a_set_can_be_whole_and_combine() {
        #[derive(Labels)]
        struct By {
            method: Method,
        }
        #[derive(Metrics)]
        struct All {
            /// Orders.
            #[metric(whole = true)]
            orders: Family<By, Counter>,
            /// Longest queue.
            #[metric(combine = Combine::Max)]
            longest: Gauge,
            /// Queues.
            #[metric(combine = Combine::Each, limit = 5)]
            queues: Family<Sale<'static>, Gauge>,
        }
        let (all, registry) = All::for_test();
        all.longest.set(-4);
        all.queues.with(card("pe")).set(2);
        let snapshot = registry.snapshot();
        assert_eq!(count(&snapshot, "orders_total"), 3);
        assert_eq!(snapshot.value("longest", &[]), Some(-4.0));
        let pid = std::process::id().to_string();
        let labels = [("method", "card"), ("country", "pe"), ("pid", &pid)];
        assert_eq!(snapshot.value("queues", &labels), Some(2.0));
        let latest = registry.register::<Gauge>(Opts::new("longest", "Longest queue."));
        assert!(reason(latest).contains("Max"));
    }
}

mod by_names {
    use super::*;

    fn orders(registry: &Registry, limit: u64) -> Family<DynamicLabels, Counter> {
        registry.family(opts("orders").limit(limit), &["method", "country"]).unwrap()
    }

    #[test]
    fn a_family_by_names_is_the_one_that_is_derived() {
        let registry = registry();
        let by_names: Family<DynamicLabels, Counter> =
            registry.family(Opts::new("sales", "Sales."), &["method", "country"]).unwrap();
        let derived = sales(&registry, 2000);
        by_names.with_values(&["card", "a\"b\\c\nd"]).add(1);
        by_names.with_values(&["card".to_owned(), "a\"b\\c\nd".to_owned()]).add(2);
        derived.with(card("a\"b\\c\nd")).add(4);
        by_names.with_values(&["", ""]).add(8);
        let snapshot = registry.snapshot();
        let labels = [("method", "card"), ("country", "a\"b\\c\nd")];
        assert_eq!(snapshot.value(SALES, &labels), Some(7.0));
        assert_eq!(snapshot.value(SALES, &[("method", ""), ("country", "")]), Some(8.0));
        assert_eq!(count(&snapshot, SALES), 2);
        assert_eq!(
            snapshot.to_text().lines().nth(2),
            Some(r#"sales_total{method="card",country="a\"b\\c\nd"} 7"#)
        );
    }

    #[test]
    fn values_of_another_number_than_the_names_overflow_and_are_an_error() {
        let registry = registry();
        let orders = orders(&registry, 10);
        for (values, given) in [
            (&["a"][..], "1 label value was given"),
            (&["a", "b", "c"], "3 label values were given"),
            (&[], "0 label values were given"),
        ] {
            orders.with_values(values).inc();
            let refused = orders.try_with_values(values).unwrap_err();
            assert_eq!(refused, SeriesError::Values { found: values.len(), expected: 2 });
            assert_eq!(refused.to_string(), format!("{given}, and the family has 2 labels"));
            assert!(!orders.remove_values(values));
        }
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("orders_total", &OVERFLOW), Some(3.0));
        assert_eq!((count(&snapshot, "orders_total"), orders.dropped()), (1, 0));
        let users = registry.family::<Counter>(opts("users"), &["user"]).unwrap();
        let refused = users.try_with_values(&["a", "b"]).unwrap_err().to_string();
        assert_eq!(refused, "2 label values were given, and the family has 1 label");
    }

    #[test]
    fn values_beyond_the_limit_overflow_and_are_counted() {
        let registry = registry();
        let orders = orders(&registry, 1);
        orders.try_with_values(&["a", "b"]).unwrap().inc();
        let refused = orders.try_with_values(&["a", "c"]).unwrap_err();
        assert_eq!(refused, SeriesError::Overflow(Overflow::Limit));
        orders.with_values(&["a", "c"]).add(2);
        orders.try_with_values(&["a", "b"]).unwrap().inc();
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("orders_total", &OVERFLOW), Some(2.0));
        assert_eq!((snapshot.total("orders_total", &[]), orders.dropped()), (Some(4.0), 2));
        let family = snapshot.family("orders_total").unwrap();
        assert_eq!((family.series().count(), family.dropped()), (2, 2));
    }

    #[test]
    fn removed_values_are_gone_and_only_they() {
        let registry = registry();
        let orders = orders(&registry, 10);
        for country in ["pe", "a\"b"] {
            orders.with_values(&["card", country]).inc();
        }
        assert!(orders.remove_values(&["card", "a\"b"]));
        assert!(!orders.remove_values(&["card", "a\"b"]));
        assert!(!orders.remove_values(&["pe", "card"]));
        assert_eq!(count(&registry.snapshot(), "orders_total"), 1);
    }

    #[test]
    fn a_family_without_names_has_one_series() {
        let registry = registry();
        let none: &[&str] = &[];
        let bare = registry.family::<Counter>(opts("bare"), none).unwrap();
        bare.with_values(none).add(2);
        bare.with_values(&["too many"]).add(3);
        assert_eq!(registry.snapshot().value("bare_total", &[]), Some(5.0));
    }

    #[test]
    fn each_type_can_be_had_by_names() {
        let registry = registry();
        let levels = registry.family::<Gauge>(opts("level"), &["x"]).unwrap();
        let times = registry.family::<Histogram<Seconds>>(opts("time"), &["x"]).unwrap();
        let open = registry.family::<UpDownCounter>(opts("open"), &["x"]).unwrap();
        let state = registry.family::<StateSet<Method>>(opts("state"), &["x"]).unwrap();
        levels.with_values(&["1"]).set(3);
        drop(times.with_values(&["1"]).start_timer());
        open.with_values(&["1"]).inc();
        state.with_values(&["1"]).set(Method::Cash);
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("level", &[("x", "1")]), Some(3.0));
        assert_eq!(snapshot.histogram("time_seconds", &[("x", "1")]).unwrap().count(), 1);
        assert_eq!(snapshot.value("open", &[("x", "1")]), Some(1.0));
        assert_eq!(snapshot.value("state", &[("x", "1"), ("state", "cash")]), Some(1.0));
    }
}

mod refusing {
    use super::*;

    #[test]
    fn a_series_without_room_is_an_error_and_counts_as_dropped() {
        let registry = registry();
        let sales = sales(&registry, 1);
        sales.try_with(card("pe")).unwrap().inc();
        sales.try_with(card("pe")).unwrap().inc();
        assert_eq!(sales.dropped(), 0);
        let refused = sales.try_with(card("ch")).unwrap_err();
        assert_eq!(refused, SeriesError::Overflow(Overflow::Limit));
        assert_eq!(refused.to_string(), "the family has as many series as its limit allows");
        assert_eq!(sales.dropped(), 1);
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value(SALES, &OVERFLOW), None, "who is refused adds nowhere");
        let dropped = [("family", SALES)];
        assert_eq!(snapshot.value("talea_series_dropped_total", &dropped), Some(1.0));
        // Once one goes there is room.
        assert!(sales.remove(card("pe")));
        sales.try_with(card("ch")).unwrap().inc();
    }

    #[test]
    fn labels_that_find_no_room_are_an_error_or_overflow() {
        for (len, overflow, message) in [
            // A region's record holds a text's length in 24 bits.
            (1 << 24, Overflow::TooLong, "the labels are longer than 16 MiB"),
            ((1 << 24) + 1, Overflow::TooLong, "the labels are longer than 16 MiB"),
            (1 << 20, Overflow::Full, "the region has no room for another series"),
        ] {
            let registry = registry();
            let sales = sales(&registry, u64::MAX);
            let long = "x".repeat(len);
            let refused = sales.try_with(card(&long)).unwrap_err();
            assert_eq!(refused, SeriesError::Overflow(overflow), "{len}");
            assert_eq!(refused.to_string(), message, "{len}");
            assert_eq!(sales.dropped(), 1, "{len}");
            sales.with(card(&long)).inc();
            assert_eq!(registry.snapshot().value(SALES, &OVERFLOW), Some(1.0), "{len}");
            assert_eq!(sales.dropped(), 2, "{len}");
            sales.try_with(card("pe")).unwrap().inc();
        }
    }

    #[test]
    fn a_snapshot_of_what_was_dropped_shows_it_of_each_family() {
        let registry = registry();
        let sales = sales(&registry, 0);
        sales.with(card("pe")).inc();
        const DROPPED: &str = "talea_series_dropped_total";
        for wanted in [&[DROPPED][..], &[DROPPED, SALES]] {
            let snapshot = registry.snapshot_of(|name| wanted.contains(&name));
            assert_eq!(snapshot.families().len(), wanted.len(), "{snapshot:?}");
            assert_eq!(snapshot.value(DROPPED, &[("family", SALES)]), Some(1.0));
        }
        assert_eq!(registry.snapshot_of(|name| name == SALES).families().len(), 1);
    }
}

mod removing {
    use super::*;

    #[test]
    fn a_removed_series_is_gone_and_one_that_is_kept_counts_anew() {
        let registry = registry();
        let sales = sales(&registry, 10);
        let kept = sales.with(card("ch")).keep();
        kept.add(5);
        sales.with(card("pe")).add(3);
        assert!(sales.remove(card("pe")) && sales.remove(card("ch")));
        assert!(!sales.remove(card("pe")) && !sales.remove(card("de")));
        assert_eq!(count(&registry.snapshot(), SALES), 0);
        sales.with(card("pe")).inc();
        kept.inc();
        let labels = |country| [("method", "card"), ("country", country)];
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value(SALES, &labels("pe")), Some(1.0));
        assert_eq!(snapshot.value(SALES, &labels("ch")), Some(1.0));
    }

    #[test]
    fn series_whose_labels_are_fixed_stay() {
        fix();
        let registry = registry();
        let family: Family<Fixed, Counter> = register(&registry, "f");
        let labels = Fixed { method: Method::Card, gift: None, shop: Shop::find("Lima").unwrap() };
        family.with(labels).add(4);
        assert!(!family.remove(labels));
        assert_eq!(family.remove_matching(&[("shop", "Lima")]), 0);
        assert_eq!(registry.snapshot().total("f_total", &[]), Some(4.0));
    }

    #[test]
    fn matching_series_are_removed_and_the_overflow_series_stays() {
        let registry = registry();
        let sales = sales(&registry, 4);
        for method in [Method::Card, Method::Cash] {
            for country in ["pe", "a\"b", "beyond"] {
                sales.with(Sale { method, country }).inc();
            }
        }
        let shown = |labels: &[_]| registry.snapshot().select(SALES, labels).count();
        assert_eq!((shown(&[]), shown(&OVERFLOW)), (5, 1));
        assert_eq!(sales.remove_matching(&[("country", "a\"b"), ("method", "none")]), 0);
        assert_eq!(sales.remove_matching(&[("country", "a\\\"b")]), 0, "values are plain");
        assert_eq!(sales.remove_matching(&[("country", "a\"b"), ("method", "card")]), 1);
        assert_eq!(sales.remove_matching(&OVERFLOW), 0);
        assert_eq!(sales.remove_matching(&[("method", "card")]), 2);
        assert_eq!(sales.remove_matching(&[]), 1);
        assert_eq!(sales.remove_matching(&[]), 0);
        assert_eq!((shown(&[]), shown(&OVERFLOW)), (1, 1));
        let total = registry.snapshot().value(SALES, &OVERFLOW);
        assert_eq!(total, Some(2.0), "and what it counted");
    }

    #[test]
    fn a_displayed_label_is_removed_by_its_text() {
        #[derive(Labels)]
        struct Of {
            host: Displayed<std::net::IpAddr>,
        }
        let registry = registry();
        let calls: Family<Of, Counter> = register(&registry, "calls");
        let host = || Of { host: Displayed([127, 0, 0, 1].into()) };
        calls.with(host()).inc();
        assert_eq!(calls.remove_matching(&[("host", "127.0.0.2")]), 0);
        assert_eq!(calls.remove_matching(&[("host", "127.0.0.1")]), 1);
        assert!(!calls.remove(host()));
    }
}
