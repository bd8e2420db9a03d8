//! Claims about sets within sets, and sets that would share a metric.

use crate::support::metrics::{By, message_of, registry};
use talea::{
    Counter, Error, Family, Gauge, Histogram, Info, Metrics, Opts, Registry, Seconds, StateSet,
};

#[derive(Metrics)]
#[metrics(prefix = "pool")]
struct Pool {
    /// Connections.
    conns: Gauge,
    /// Connections taken.
    taken: Family<By<'static>, Counter>,
    /// Time to wait.
    wait: Histogram<Seconds>,
    /// Whether it is open.
    is_open: StateSet<bool>,
    /// The host at its other end.
    server: Info<By<'static>>,
}

#[derive(Metrics)]
struct Pools {
    #[metric(nested)]
    #[metrics(prefix = "read")]
    read: Pool,
    // The prefix alone says that it is a set.
    #[metrics(prefix = "write")]
    write: Pool,
    #[metric(nested)]
    plain: Pool,
}

/// The error of installing sets in a registry of their own.
#[track_caller]
fn refused(sets: &[&dyn Metrics]) -> String {
    message_of(talea::install(&registry(), sets))
}

/// The end of an error about two fields.
const REMEDY: &str = "both have this name; give a set's field a prefix by #[metrics(prefix = \"…\")], \
                      or a metric another name";

#[test]
fn a_field_s_prefix_stands_before_the_set_s_own() {
    let (pools, registry) = Pools::for_test();
    for (n, pool) in (1..).zip([&pools.read, &pools.write, &pools.plain]) {
        pool.conns.set(n);
        pool.taken.with(By { user: "a" }).add(n as u64);
        pool.server.set(By { user: "b" });
    }
    let snapshot = registry.snapshot();
    for (n, prefix) in (1..).zip(["read_", "write_", ""]) {
        let n = f64::from(n);
        snapshot.assert_value(&format!("{prefix}pool_conns"), &[], n);
        snapshot.assert_value(&format!("{prefix}pool_taken_total"), &[("user", "a")], n);
        snapshot.expect_histogram(&format!("{prefix}pool_wait_seconds"), &[]);
        let is_open = format!("{prefix}pool_is_open");
        snapshot.assert_value(&is_open, &[(is_open.as_str(), "true")], 0.0);
        snapshot.assert_value(&format!("{prefix}pool_server_info"), &[("user", "b")], 1.0);
    }
    assert_eq!(snapshot.families().len(), 15);
    // To install it again changes nothing.
    talea::install(&registry, &[&pools, &pools]).unwrap();
    assert_eq!(registry.snapshot().to_text(), snapshot.to_text());
}

#[test]
fn prefixes_of_sets_within_sets_come_from_outside_inwards() {
    #[derive(Metrics)]
    #[metrics(prefix = "own")]
    struct Services {
        /// Restarts.
        restarts: Counter,
        #[metrics(prefix = "blue")]
        blue: Pools,
        #[metrics(prefix = "green")]
        green: Pools,
    }
    let (services, registry) = Services::for_test();
    services.restarts.inc();
    services.green.read.conns.set(7);
    services.blue.plain.conns.set(8);
    for (name, value) in [
        ("own_restarts_total", 1.0),
        ("green_read_pool_conns", 7.0),
        ("blue_read_pool_conns", 0.0),
        ("blue_pool_conns", 8.0),
    ] {
        registry.snapshot().assert_value(name, &[], value);
    }
}

/// A set that is registered by hand.
struct ByHand(Counter);

impl ByHand {
    const fn new() -> Self {
        Self(Counter::new())
    }
}

impl Metrics for ByHand {
    fn register(&self, registry: &Registry) -> Result<(), Error> {
        talea::Registrable::register(&self.0, registry, &Opts::new("calls", "Calls."))?;
        registry.register::<Gauge>(Opts::new("level", "Level.")).map(drop)
    }
}

#[test]
fn a_set_that_is_registered_by_hand_has_its_field_s_prefix_too() {
    #[derive(Metrics)]
    struct Both {
        #[metrics(prefix = "left")]
        left: ByHand,
        #[metrics(prefix = "right")]
        right: ByHand,
    }
    let (both, registry) = Both::for_test();
    both.left.0.add(2);
    both.right.0.add(3);
    let snapshot = registry.snapshot();
    snapshot.assert_value("left_calls_total", &[], 2.0);
    snapshot.assert_value("right_calls_total", &[], 3.0);
    snapshot.assert_value("right_level", &[], 0.0);

    #[derive(Metrics)]
    struct Twice {
        #[metric(nested)]
        left: ByHand,
        #[metric(nested)]
        right: Again,
    }
    type Again = ByHand;
    let both = "cannot register the metric \"calls\": `left` and `right` of `Twice`";
    assert_eq!(refused(&[&Twice::new()]), format!("{both} {REMEDY}"));
}

#[test]
fn two_fields_that_would_give_one_metric_are_named() {
    type AnotherNameForIt = Pool;
    #[derive(Metrics)]
    struct Merged {
        #[metric(nested)]
        read: Pool,
        #[metric(nested)]
        write: AnotherNameForIt,
    }
    let both =
        "cannot register the metric \"pool_conns\": `read.conns` and `write.conns` of `Merged`";
    assert_eq!(refused(&[&Merged::new()]), format!("{both} {REMEDY}"));

    // A set's metric beside a metric of that name, in either order.
    #[derive(Metrics)]
    #[metrics(prefix = "pool")]
    struct Before {
        /// Connections.
        conns: Gauge,
        #[metric(nested)]
        pool: Pool,
    }
    #[derive(Metrics)]
    #[metrics(prefix = "read_pool")]
    struct After {
        #[metrics(prefix = "read")]
        pool: Pool,
        /// Connections.
        conns: Gauge,
    }

    // Further within, and by prefixes that come to the same.
    #[derive(Metrics)]
    struct Deep {
        #[metrics(prefix = "a_read")]
        one: Pool,
        #[metrics(prefix = "a")]
        pools: Pools,
    }
    /// The ending of a type is part of what must differ.
    #[derive(Metrics)]
    struct Endings {
        /// Time.
        wait: Histogram<Seconds>,
        /// Time, too.
        #[metric(name = "wait_seconds")]
        other: Histogram<Seconds>,
    }
    for (message, metric, fields) in [
        (refused(&[&Before::new()]), "pool_conns", "`conns` and `pool.conns` of `Before`"),
        (refused(&[&After::new()]), "read_pool_conns", "`pool.conns` and `conns`"),
        (
            refused(&[&Deep::new()]),
            "a_read_pool_conns",
            "`one.conns` and `pools.read.conns` of `Deep`",
        ),
        (refused(&[&Endings::new()]), "wait_seconds", "`wait` and `other` of `Endings`"),
    ] {
        assert!(message.contains(&format!("{metric:?}: {fields}")), "{message}");
    }
}

#[test]
fn two_sets_of_one_type_in_one_installation_are_refused_and_nothing_is_installed() {
    let (read, write) = (Pool::new(), Pool::new());
    let registry = registry();
    assert_eq!(
        message_of(talea::install(&registry, &[&read, &ByHand::new(), &write])),
        "cannot install two sets of one type: number 0 and number 2 are both a \
         `integration::nesting::Pool` and would be the same metrics; make them fields of one set, each with a prefix by \
         #[metrics(prefix = \"…\")]"
    );
    assert_eq!(registry.snapshot().families().len(), 0);
    talea::install(&registry, &[&read, &read]).unwrap();
    // Another installation continues what is there, as where a part of a program is built anew.
    talea::install(&registry, &[&write]).unwrap();
    read.taken.with(By { user: "a" }).inc();
    write.taken.with(By { user: "a" }).inc();
    registry.snapshot().assert_value("pool_taken_total", &[("user", "a")], 2.0);
}
