//! Each type of metric before it is installed, and after.

use std::time::Duration;

use crate::support::metrics::{By, OVERFLOW, Users, count, difference, opts, register, registry};
use crate::support::pages::Circuit;
use talea::{
    Bucketing, Counter, DynamicLabels, Family, Gauge, Histogram, Info, Lazy, Metrics, Registrable,
    Seconds, StateSet,
};

const PE: By<'_> = By { user: "pe" };
const LABELS: [(&str, &str); 1] = [("user", "pe")];

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders accepted.
    orders: Users<Counter>,
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

static SHOP: Shop = Shop::new();

#[test]
fn updates_of_a_static_set_are_discarded_until_it_is_installed() {
    let sell = || {
        SHOP.orders.with(PE).inc();
        SHOP.stock.things.set(-3);
        SHOP.pricing.observe(Duration::from_millis(1));
    };
    sell();
    let registry = registry();
    talea::install(&registry, &[&SHOP]).unwrap();
    talea::install(&registry, &[&SHOP]).unwrap();
    sell();
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.value("shop_orders_total", &LABELS), Some(1.0));
    assert_eq!(snapshot.value("stock_things", &[]), Some(-3.0));
    assert_eq!(snapshot.histogram("shop_pricing_seconds", &[]).unwrap().count(), 1);

    let message = talea::install(&self::registry(), &[&SHOP]).unwrap_err().to_string();
    assert!(message.contains("shop_orders") && message.contains("another registry"), "{message}");
}

#[test]
fn updates_of_an_info_are_discarded_until_it_is_installed() {
    static BUILD: Info<By<'static>> = Info::new();
    let registry = registry();
    BUILD.set(PE);
    BUILD.register(&registry, &opts("build")).unwrap();
    assert_eq!(count(&registry.snapshot(), "build_info"), 0);
    BUILD.set(PE);
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
fn a_family_that_is_not_installed_takes_anything_and_has_nothing() {
    let family = Family::<DynamicLabels, Counter>::new();
    family.with_values(&["a"]).inc();
    assert!(family.try_with_values(&["a", "b"]).is_ok());
    assert!(!family.remove_values(&["a"]));
    let family = Users::<Counter>::new();
    family.try_with(PE).unwrap().inc();
    assert_eq!((family.dropped(), family.remove(PE)), (0, false));
    assert_eq!((family.remove_matching(&[]), family.wipe()), (0, true));
}

#[derive(Metrics)]
struct Orders {
    /// Orders.
    orders: Users<Counter>,
    /// Answers.
    answers: Users<Histogram<Seconds>>,
    /// Gifts.
    #[metric(limit = 1)]
    gifts: Users<Counter>,
}

static ORDERS: Orders = Orders::new();
static FROM_PERU: Lazy<By<'static>, Counter> = ORDERS.orders.lazy(PE);
static ANSWERED: Lazy<By<'static>, Histogram<Seconds>> = ORDERS.answers.lazy(PE);

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
    ORDERS.orders.with(PE).add(2);
    assert_eq!(FROM_PERU.get(), 5);
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.value("orders_total", &LABELS), Some(5.0));
    assert_eq!(snapshot.histogram("answers_seconds", &LABELS).unwrap().count(), 1);

    // It is kept: idle ones go, this one comes back.
    (0..200).for_each(|_| registry.sweep());
    FROM_PERU.inc();
    assert_eq!(registry.snapshot().value("orders_total", &LABELS), Some(6.0));

    static BEYOND: Lazy<By<'static>, Counter> = ORDERS.gifts.lazy(By { user: "ch" });
    ORDERS.gifts.with(PE).inc();
    BEYOND.add(7);
    assert_eq!(registry.snapshot().value("gifts_total", &OVERFLOW), Some(7.0));
}

#[test]
fn threads_that_use_a_lazy_handle_first_at_once_lose_nothing() {
    static FAMILY: Users<Counter> = Family::new();
    static RACED: Lazy<By<'static>, Counter> = FAMILY.lazy(PE);
    let registry = registry();
    let family: Users<Counter> = register(&registry, "sales");
    FAMILY.register(&registry, &opts("sales")).unwrap();
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                (0..100).for_each(|_| RACED.inc());
            });
        }
    });
    assert_eq!(family.with(PE).get(), 800);
}

#[test]
fn an_observation_in_two_histograms_counts_in_the_one_that_is_installed() {
    for bucketing in [Bucketing::Dual, Bucketing::Classic, Bucketing::Native] {
        let registry = registry();
        let installed: Histogram<Seconds> =
            registry.register(opts("wait").bucketing(bucketing)).unwrap();
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
    assert_eq!(
        difference(talea::install(&registry, &[&pool, &misfit])),
        "\"pool_taken\": it is already registered with the help \"Connections taken.\", not with \
         \"Taken, otherwise.\""
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
