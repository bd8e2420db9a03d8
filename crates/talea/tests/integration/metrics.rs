//! Claims about metrics, as a user writes them.

use std::thread;
use std::time::Duration;

use talea::{
    Bytes, Config, Counter, Error, Family, FloatCounter, FloatGauge, Gauge, Histogram, LabelValue,
    Labels, Metrics, Opts, Registry, Seconds, UpDownCounter, Value,
};

#[derive(LabelValue)]
enum Method {
    Card,
    BankTransfer,
    #[label(rename = "I.O.U.")]
    Iou,
}

#[derive(Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

#[derive(Labels)]
struct Fixed {
    method: Method,
    gift: bool,
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders
    /// accepted.
    orders: Family<Sale<'static>, Counter>,
    /// Time to price a basket.
    #[metric(buckets = [0.001, 0.01])]
    pricing: Histogram<Seconds>,
    /// Baskets open.
    open: UpDownCounter,
    /// Gifts.
    #[metric(name = "presents")]
    gifts: Family<Fixed, Counter>,
    #[metric(nested)]
    stock: Stock,
}

#[derive(Metrics)]
#[metrics(prefix = "stock")]
struct Stock {
    /// Things in store.
    things: Gauge,
}

#[test]
fn a_test_has_a_set_and_a_registry_of_its_own() {
    let (shop, registry) = Shop::for_test();
    let (other, empty) = Shop::for_test();
    shop.gifts.with(Fixed { method: Method::BankTransfer, gift: true }).add(5);
    shop.gifts.with(Fixed { method: Method::Iou, gift: false }).inc();
    let value = |registry: &Registry, method, gift| {
        registry.snapshot().value("shop_presents_total", &[("method", method), ("gift", gift)])
    };
    assert_eq!(value(&registry, "bank_transfer", "true"), Some(5.0));
    assert_eq!(value(&registry, "I.O.U.", "false"), Some(1.0));
    assert_eq!(value(&empty, "bank_transfer", "true"), None);
    other.open.inc();
    assert_eq!(empty.snapshot().value("shop_open", &[]), Some(1.0));
}

#[test]
fn the_text_is_what_a_scraper_reads() -> Result<(), Error> {
    let (shop, registry) = Shop::for_test();
    shop.orders.with(Sale { method: Method::Card, country: "a\"b\\c\nd" }).inc();
    shop.pricing.observe(Duration::from_micros(500));
    shop.pricing.observe(Duration::from_millis(1));
    shop.pricing.observe(Duration::from_secs(2));
    shop.open.inc();
    let seconds: FloatCounter =
        registry.register(Opts::new("busy_seconds", "Time \\ busy,\nin all."))?;
    seconds.add(0.25);
    seconds.add(-7.0);
    seconds.add(f64::NAN);
    let ratio: FloatGauge = registry.register(Opts::new("fill_ratio", "How full."))?;
    ratio.set(f64::INFINITY);
    let expected = r##"# HELP busy_seconds_total Time \\ busy,\nin all.
# TYPE busy_seconds_total counter
busy_seconds_total 0.25
# HELP fill_ratio How full.
# TYPE fill_ratio gauge
fill_ratio +Inf
# HELP shop_open Baskets open.
# TYPE shop_open gauge
shop_open 1
# HELP shop_orders_total Orders accepted.
# TYPE shop_orders_total counter
shop_orders_total{method="card",country="a\"b\\c\nd"} 1
# HELP shop_pricing_seconds Time to price a basket.
# TYPE shop_pricing_seconds histogram
shop_pricing_seconds_bucket{le="0.001"} 2
shop_pricing_seconds_bucket{le="0.01"} 2
shop_pricing_seconds_bucket{le="+Inf"} 3
shop_pricing_seconds_sum 2.0015
shop_pricing_seconds_count 3
# HELP stock_things Things in store.
# TYPE stock_things gauge
stock_things 0
"##;
    let text = registry.snapshot().to_text();
    assert_eq!(text, expected);
    let samples = talea_parse::text(&text).unwrap();
    assert_eq!(samples.len(), 10);
    assert_eq!(samples[3].labels[1], ("country".to_owned(), "a\"b\\c\nd".to_owned()));
    Ok(())
}

#[test]
fn label_combinations_beyond_the_limit_go_to_one_series() -> Result<(), Error> {
    let registry = Registry::for_test()?;
    let visits: Family<Sale<'static>, Counter> =
        registry.register(Opts::new("visits", "Visits.").limit(3))?;
    for n in 0..10 {
        visits.with(Sale { method: Method::Card, country: &n.to_string() }).inc();
    }
    let snapshot = registry.snapshot();
    let family = snapshot.families().find(|f| f.name() == "visits_total").unwrap();
    assert_eq!(family.series().count(), 4);
    let dropped = snapshot.value("talea_series_dropped_total", &[("family", "visits_total")]);
    assert_eq!(dropped, Some(7.0), "the self-metric says so");
    assert_eq!(snapshot.value("visits_total", &[("otel_metric_overflow", "true")]), Some(7.0));
    assert_eq!((family.dropped(), visits.dropped()), (7, 7));
    Ok(())
}

#[test]
fn fixed_label_combinations_number_each_other_without_gaps() -> Result<(), Error> {
    #[derive(Labels)]
    struct Wide {
        gift: bool,
        method: Method,
        weekday: Option<bool>,
    }
    let registry = Registry::for_test()?;
    let family: Family<Wide, Counter> = registry.register(Opts::new("wide", "All of them."))?;
    let mut seen = std::collections::BTreeSet::new();
    for gift in [false, true] {
        for method in [|| Method::Card, || Method::BankTransfer, || Method::Iou] {
            for weekday in [None, Some(false), Some(true)] {
                let labels = || Wide { gift, method: method(), weekday };
                assert!(seen.insert(labels().index()));
                family.with(labels()).add(labels().index() as u64);
                family.with(labels()).inc();
            }
        }
    }
    assert_eq!(Wide::cardinality(), Some(18));
    assert!(seen.into_iter().eq(0..18));
    let snapshot = registry.snapshot();
    let values = snapshot.families().flat_map(|f| f.series()).map(|s| s.value());
    assert!(values.eq((0..18).map(|n| Value::Unsigned(n + 1))), "each has a series of its own");
    Ok(())
}

#[test]
fn a_full_region_overflows_without_a_panic() -> Result<(), Error> {
    let registry = Registry::with_config(Config { series: 50, ..Config::with_len(1 << 20) })?;
    let visits: Family<Sale<'static>, Histogram<Bytes>> =
        registry.register(Opts::new("size", "Sizes."))?;
    for n in 0..100_u64 {
        visits.with(Sale { method: Method::Card, country: &n.to_string() }).observe(n);
    }
    assert_eq!(registry.snapshot().histogram("size_bytes", &[]).unwrap().count(), 100);
    let error = registry.register::<Counter>(Opts::new("late", "Too late.")).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    Ok(())
}

#[test]
fn a_name_has_one_definition() -> Result<(), Error> {
    let registry = Registry::for_test()?;
    let histogram = |buckets: &'static [f64], help| {
        registry.register::<Histogram<Seconds>>(Opts::new("time", help).buckets(buckets))
    };
    histogram(&[0.1, 1.0], "Time.")?;
    histogram(&[0.1, 1.0], "Time.")?;
    let labels = registry.register::<Family<Fixed, Histogram<Seconds>>>(
        Opts::new("time", "Time.").buckets(&[0.1, 1.0]),
    );
    let gauge = registry.register::<Gauge>(Opts::new("time_seconds", "Time."));
    for (error, part) in [
        (histogram(&[0.1, 2.0], "Time.").unwrap_err(), "buckets [0.1, 1.0], and now [0.1, 2.0]"),
        (histogram(&[0.1, 1.0], "Else.").unwrap_err(), "help \"Time.\", and now \"Else.\""),
        (labels.unwrap_err(), "labels [], and now [\"method\", \"gift\"]"),
        (gauge.unwrap_err(), "as a histogram, and now a gauge"),
    ] {
        let message = error.to_string();
        assert!(message.contains(part) && message.contains("\"time"), "{message}");
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn while_a_new_version_is_rolled_out_the_newest_definition_is_shown() -> Result<(), Error> {
    let path = format!("/dev/shm/talea-test-rollout-{}", std::process::id());
    // Each opening counts as a process.
    let (old, new) = (Registry::open(&path)?, Registry::open(&path)?);
    std::fs::remove_file(&path).unwrap();
    let counted: Counter = old.register(Opts::new("counted", "As it was."))?;
    counted.add(5);
    let counted: Counter = new.register(Opts::new("counted", "As it is."))?;
    counted.add(7);
    for registry in [old, new] {
        let snapshot = registry.snapshot();
        let shown: Vec<_> = snapshot.families().map(|f| (f.name(), f.help())).collect();
        assert_eq!(shown, [("counted_total", "As it is.")]);
        // They differ in their help alone, and so are added up.
        assert_eq!(snapshot.value("counted_total", &[]), Some(12.0));
    }
    Ok(())
}

#[test]
fn the_error_of_registering_names_the_metric() -> Result<(), Error> {
    let registry = Registry::for_test()?;
    let counter = |name, help| registry.register::<Counter>(Opts::new(name, help)).unwrap_err();
    let buckets = |buckets: &[f64]| {
        registry.register::<Histogram<Seconds>>(Opts::new("h", "H.").buckets(buckets)).unwrap_err()
    };
    for (error, part) in [
        (counter("a b", "Help."), "letters"),
        (counter("a", "  "), "help is empty"),
        (registry.register::<Gauge>(Opts::new("x_bucket", "X.")).unwrap_err(), "_bucket"),
        (buckets(&[]), "found 0"),
        (buckets(&[1.0, 1.0]), "found 1"),
        (buckets(&[0.0]), "found 0"),
        (buckets(&[f64::NAN]), "found NaN"),
        (buckets(&[f64::INFINITY]), "found inf"),
        (buckets(&[1e300]), "found 1000"),
    ] {
        let message = error.to_string();
        assert!(message.contains("cannot register") && message.contains(part), "{message}");
    }
    Ok(())
}

#[test]
fn gauges_go_up_and_down_and_keep_extremes() -> Result<(), Error> {
    let registry = Registry::for_test()?;
    let gauge: Gauge = registry.register(Opts::new("g", "G."))?;
    assert_eq!(gauge.add(5), 5);
    gauge.dec();
    gauge.set_max(3);
    assert_eq!(gauge.get(), 4);
    gauge.set_max(9);
    gauge.set_min(-2);
    assert_eq!(gauge.get(), -2);
    let snapshot = registry.snapshot();
    let series = snapshot.families().next().unwrap().series().next().unwrap();
    assert_eq!(series.value(), Value::Signed(-2));
    Ok(())
}

#[test]
fn values_are_refreshed_before_each_snapshot() -> Result<(), Error> {
    let registry = Registry::for_test()?;
    let gauge: Gauge = registry.register(Opts::new("snapshots", "How many there were."))?;
    registry.on_snapshot(move || gauge.inc());
    registry.snapshot();
    assert_eq!(registry.snapshot().value("snapshots", &[]), Some(2.0));
    Ok(())
}

#[test]
fn eight_threads_lose_nothing_in_any_type() {
    const EACH: u64 = if cfg!(miri) { 10 } else { 50_000 };
    let (shop, registry) = Shop::for_test();
    thread::scope(|scope| {
        for thread in 0..8u64 {
            let shop = &shop;
            scope.spawn(move || {
                for n in 0..EACH {
                    let country = if (n + thread) % 2 == 0 { "pe" } else { "ch" };
                    shop.orders.with(Sale { method: Method::Card, country }).inc();
                    shop.pricing.observe(Duration::from_nanos(n));
                    shop.open.inc();
                    shop.open.dec();
                }
            });
        }
    });
    let snapshot = registry.snapshot();
    let orders =
        |country| snapshot.value("shop_orders_total", &[("method", "card"), ("country", country)]);
    assert_eq!(orders("pe").unwrap() + orders("ch").unwrap(), (8 * EACH) as f64);
    let pricing = snapshot.histogram("shop_pricing_seconds", &[]).unwrap();
    assert_eq!(pricing.count(), 8 * EACH);
    assert_eq!(pricing.sum(), (8 * EACH * (EACH - 1) / 2) as f64 / 1e9);
    assert_eq!(snapshot.value("shop_open", &[]), Some(0.0));
}
