//! Claims about registering: again, at once, otherwise, and under names that cannot be.

use std::sync::Barrier;
use std::thread;

use crate::support::metrics::{By, Fixed, Users, message_of, opts, register, registry};
use talea::{
    Bytes, Config, Count, Counter, Family, FloatGauge, Gauge, Histogram, Info, Opts, Registrable,
    Registry, Seconds, StateSet, UpDownCounter,
};

const GIFT: Fixed = Fixed { gift: true };

mod again {
    use super::*;

    #[test]
    fn a_metric_that_is_registered_twice_is_one() {
        fn pair<R: Registrable>(name: &str) -> [R; 2] {
            let registry = registry();
            [(); 2].map(|()| register(&registry, name))
        }
        let [one, other] = pair::<Counter>("count");
        one.add(2);
        other.add(3);
        assert_eq!((one.get(), other.get()), (5, 5));
        let [one, other] = pair::<Users<Gauge>>("users");
        one.with(By { user: "a" }).set(7);
        assert_eq!(other.with(By { user: "a" }).get(), 7);
        let [one, other] = pair::<Family<Fixed, FloatGauge>>("gifts");
        one.with(GIFT).set(0.5);
        assert_eq!(other.with(GIFT).get(), 0.5);
        let [one, other] = pair::<StateSet<bool>>("state");
        one.set(true);
        assert!(other.is(true));
        let [one, other] = pair::<UpDownCounter>("open");
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
        for (registry, name) in [(&registry, "other"), (&self::registry(), "count")] {
            let expected = format!(
                "cannot register the metric {name:?}: it is installed in another registry or under \
                 another name already; a metric has one place"
            );
            assert_eq!(message_of(count.register(registry, &opts(name))), expected);
        }
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
        ONE.wait.with(GIFT).observe(millis(50));
        ANOTHER.wait.with(GIFT).observe(millis(500));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.value("pool_taken_total", &[]), Some(3.0));
        let wait = snapshot.histogram("pool_wait_seconds", &[("gift", "true")]).unwrap();
        assert_eq!((wait.count(), wait.sum()), (2, 0.55));
        assert_eq!(snapshot.families().len(), 2);
    }

    #[test]
    fn registering_again_and_again_takes_no_room() {
        const TIMES: u32 = if cfg!(miri) { 20 } else { 10_000 };
        let (busy, calm) = (registry(), registry());
        for (registry, times) in [(&busy, TIMES), (&calm, 1)] {
            for _ in 0..times {
                register::<Users<Counter>>(registry, "users");
                register::<Histogram<Seconds>>(registry, "time");
                register::<Info<By<'static>>>(registry, "by");
                registry.family::<Gauge>(opts("level"), &["a"]).unwrap();
                registry.register::<Family<Fixed, Counter>>(opts("g").whole(true)).unwrap();
            }
        }
        let room = |registry: &Registry| {
            let fill: Users<Counter> = registry.register(opts("fill").limit(u64::MAX)).unwrap();
            (0..).take_while(|n: &u32| fill.try_with(By { user: &n.to_string() }).is_ok()).count()
        };
        assert_eq!(room(&busy), room(&calm));
    }

    #[test]
    fn a_name_that_is_given_back_and_taken_again_and_again_takes_no_room() {
        let registry = registry();
        for _ in 0..if cfg!(miri) { 5 } else { 1_000 } {
            register::<Gauge>(&registry, "x");
            assert!(registry.unregister("x"));
            register::<StateSet<bool>>(&registry, "x");
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
                let count: Counter = register(&registry, "count");
                let gifts: Family<Fixed, Counter> = register(&registry, "gifts");
                let users: Users<Counter> = register(&registry, "users");
                let sizes: Histogram<Bytes> = register(&registry, "size");
                let open: UpDownCounter = register(&registry, "open");
                for _ in 0..10 {
                    count.inc();
                    gifts.with(GIFT).inc();
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
        let registry = Registry::with_config(Config::with_len(4 << 20)).unwrap();
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

#[test]
fn many_families_are_ended_at_once() {
    let registry = registry();
    let register = |n: u64| {
        let name = format!("{}_{n}", if n % 3 == 0 { "mine" } else { "yours" });
        let gauges = registry.family::<Gauge>(opts(&name), &["a"]).unwrap();
        (0..n).for_each(|a| gauges.with_values(&[a.to_string()]).set(1));
        gauges
    };
    let gauges: Vec<_> = (0..30).map(register).collect();
    assert_eq!(registry.unregister_where(|name| name.starts_with("mine_")), 10);
    let left = registry.snapshot();
    assert!(left.families().all(|family| family.name().starts_with("yours_")));
    assert_eq!(left.families().count(), 20);
    // Updates of a family that was ended are discarded until it is registered again.
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
