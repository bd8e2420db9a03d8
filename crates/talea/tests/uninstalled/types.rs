//! Each type of metric before it is installed, and after.

use std::time::Duration;

use crate::support::metrics::{assert_name_is_taken, count, opts, registry};
use talea::{
    Bucketing, Counter, DynamicLabels, Error, Family, Gauge, Histogram, Info, LabelValue, Labels,
    Lazy, Metrics, Opts, Registry, Seconds, StateSet,
};

#[derive(Clone, Copy, LabelValue)]
enum Method {
    Card,
    Cash,
}

#[derive(Clone, Copy, Labels)]
struct Sale<'a> {
    method: Method,
    country: &'a str,
}

fn card(country: &str) -> Sale<'_> {
    Sale { method: Method::Card, country }
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders accepted.
    orders: Family<Sale<'static>, Counter>,
    /// Time to price a basket.
    pricing: Histogram<Seconds>,
    #[metric(nested)]
    stock: Stock,
}

#[derive(Metrics)]
#[metrics(prefix = "stock")]
struct Stock {
    /// Things in store.
    things: Gauge,
}

#[derive(Labels)]
struct Build<'a> {
    version: &'a str,
    revision: &'a str,
}

#[derive(Clone, Copy, LabelValue)]
enum Circuit {
    Closed,
    Open,
}

static SHOP: Shop = Shop::new();

#[test]
fn updates_of_a_static_set_are_discarded_until_it_is_installed() -> Result<(), Error> {
    let sell = |country: String| {
        SHOP.orders.with(Sale { method: Method::Card, country: &country }).inc();
        SHOP.stock.things.set(-3);
        SHOP.pricing.observe(Duration::from_millis(1));
    };
    sell("pe".to_owned());
    let registry = Registry::for_test()?;
    talea::install(&registry, &[&SHOP])?;
    talea::install(&registry, &[&SHOP])?;
    sell("pe".to_owned());
    let snapshot = registry.snapshot();
    let labels = [("country", "pe"), ("method", "card")];
    assert_eq!(snapshot.value("shop_orders_total", &labels), Some(1.0));
    assert_eq!(snapshot.value("stock_things", &[]), Some(-3.0));
    assert_eq!(snapshot.histogram("shop_pricing_seconds", &[]).unwrap().count(), 1);

    let message = talea::install(&Registry::for_test()?, &[&SHOP]).unwrap_err().to_string();
    assert!(message.contains("shop_orders") && message.contains("another registry"), "{message}");
    Ok(())
}

#[test]
fn updates_of_an_info_are_discarded_until_it_is_installed() {
    #[derive(Metrics)]
    struct About {
        /// The program.
        build: Info<Build<'static>>,
    }
    static ABOUT: About = About::new();
    let registry = registry();
    ABOUT.build.set(Build { version: "0", revision: "" });
    talea::install(&registry, &[&ABOUT]).unwrap();
    assert_eq!(count(&registry.snapshot(), "build_info"), 0);
    ABOUT.build.set(Build { version: "1", revision: "" });
    assert_eq!(count(&registry.snapshot(), "build_info"), 1);
}

#[test]
fn a_state_set_holds_nothing_until_it_is_installed() {
    let circuit = StateSet::<Circuit>::new();
    circuit.set(Circuit::Open);
    circuit.enable(Circuit::Closed);
    assert!(!circuit.is(Circuit::Open) && !circuit.is(Circuit::Closed));
}

#[test]
fn a_family_by_names_that_is_not_installed_takes_anything() {
    let family = Family::<DynamicLabels, Counter>::new();
    family.with_values(&["a"]).inc();
    assert!(family.try_with_values(&["a", "b"]).is_ok());
    assert!(!family.remove_values(&["a"]));
}

#[test]
fn a_family_that_is_not_installed_refuses_nothing() {
    let family = Family::<Sale<'static>, Counter>::new();
    family.try_with(card("pe")).unwrap().inc();
    assert_eq!((family.dropped(), family.remove(card("pe"))), (0, false));
    assert_eq!((family.remove_matching(&[]), family.wipe()), (0, true));
}

#[derive(Metrics)]
struct Orders {
    /// Orders.
    orders: Family<Sale<'static>, Counter>,
    /// Answers.
    answers: Family<Sale<'static>, Histogram<Seconds>>,
    /// Gifts.
    #[metric(limit = 1)]
    gifts: Family<Sale<'static>, Counter>,
}

static ORDERS: Orders = Orders::new();
static FROM_PERU: Lazy<Sale<'static>, Counter> =
    ORDERS.orders.lazy(Sale { method: Method::Card, country: "pe" });
static ANSWERED: Lazy<Sale<'static>, Histogram<Seconds>> =
    ORDERS.answers.lazy(Sale { method: Method::Card, country: "pe" });

#[test]
fn updates_of_a_lazy_handle_are_discarded_before_it_is_installed_and_count_then() {
    FROM_PERU.add(100);
    assert_eq!(FROM_PERU.get(), 0);
    drop(ANSWERED.start_timer());
    let early = FROM_PERU.clone();
    let registry = registry();
    talea::install(&registry, &[&ORDERS]).unwrap();
    assert_eq!(count(&registry.snapshot(), "orders_total"), 0, "not looked up yet");
    FROM_PERU.inc();
    FROM_PERU.inc();
    early.add(1);
    drop(ANSWERED.start_timer());
    ORDERS.orders.with(card("pe")).add(2);
    assert_eq!(FROM_PERU.get(), 5);
    let snapshot = registry.snapshot();
    let labels = [("method", "card"), ("country", "pe")];
    assert_eq!(snapshot.value("orders_total", &labels), Some(5.0));
    assert_eq!(snapshot.histogram("answers_seconds", &labels).unwrap().count(), 1);

    // It is kept: idle ones go, this one comes back.
    (0..200).for_each(|_| registry.sweep());
    FROM_PERU.inc();
    assert_eq!(registry.snapshot().value("orders_total", &labels), Some(6.0));

    static BEYOND: Lazy<Sale<'static>, Counter> =
        ORDERS.gifts.lazy(Sale { method: Method::Card, country: "ch" });
    ORDERS.gifts.with(card("pe")).inc();
    BEYOND.add(7);
    assert_eq!(
        registry.snapshot().value("gifts_total", &[("otel_metric_overflow", "true")]),
        Some(7.0)
    );
}

#[test]
fn threads_that_use_a_lazy_handle_first_at_once_lose_nothing() {
    static FAMILY: Family<Sale<'static>, Counter> = Family::new();
    static RACED: Lazy<Sale<'static>, Counter> =
        FAMILY.lazy(Sale { method: Method::Cash, country: "pe" });
    let registry = registry();
    let family: Family<Sale<'static>, Counter> =
        registry.register(Opts::new("sales", "Sales.").limit(2000)).unwrap();
    talea::Registrable::register(&FAMILY, &registry, &Opts::new("sales", "Sales.").limit(2000))
        .unwrap();
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                (0..100).for_each(|_| RACED.inc());
            });
        }
    });
    assert_eq!(family.with(Sale { method: Method::Cash, country: "pe" }).get(), 800);
}

#[test]
fn an_observation_in_two_histograms_counts_in_the_one_that_is_installed() {
    for bucketing in [Bucketing::Dual, Bucketing::Classic, Bucketing::Native] {
        let registry = registry();
        let opts = opts("wait").bucketing(bucketing);
        let installed: Histogram<Seconds> = registry.register(opts).unwrap();
        let late = Histogram::new();
        for millis in 0..100 {
            let value = Duration::from_millis(millis * millis);
            installed.observe_in_both(&late, value);
            late.observe_in_both(&installed, value);
            late.observe_in_both(&late, value);
        }
        let shown = registry.snapshot().histogram("wait_seconds", &[]).unwrap();
        assert_eq!((shown.count(), shown.sum()), (200, 656.7), "{bucketing:?}");
    }
}

#[test]
fn of_a_set_that_does_not_fit_what_comes_before_is_there() {
    #[derive(Metrics)]
    #[metrics(prefix = "pool")]
    struct Pool {
        /// Connections taken.
        taken: Counter,
    }
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
    let (pool, misfit) = (Pool::new(), Misfit::new());
    assert_name_is_taken(
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
