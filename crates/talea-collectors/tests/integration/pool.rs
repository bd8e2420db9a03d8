//! Claims about the metrics of pools, with a real pool.

use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Pool, RecycleResult, Timeouts};
use talea::{Registry, Snapshot};
use talea_collectors::pool::{PoolMeter, PoolStatus};

/// Makes connections that are none, or fails.
#[derive(Debug)]
struct Numbers {
    fails: bool,
}

impl Manager for Numbers {
    type Type = u32;
    type Error = &'static str;

    async fn create(&self) -> Result<u32, &'static str> {
        if self.fails { Err("no server") } else { Ok(7) }
    }

    async fn recycle(&self, _: &mut u32, _: &Metrics) -> RecycleResult<&'static str> {
        Ok(())
    }
}

fn pool(registry: &Registry, name: &str, fails: bool) -> (Pool<Numbers>, PoolMeter) {
    let wait = Timeouts { wait: Some(Duration::from_millis(1)), ..Timeouts::default() };
    let pool = Pool::builder(Numbers { fails }).max_size(2).timeouts(wait).runtime(Runtime::Tokio1);
    let pool: Pool<Numbers> = pool.build().unwrap();
    let seen = pool.clone();
    let meter = PoolMeter::register(registry, name, move || {
        let status = seen.status();
        let idle = status.available as u64;
        PoolStatus { used: status.size as u64 - idle, idle, max: status.max_size as u64 }
    });
    (pool, meter.unwrap())
}

/// Used, idle, at most, waiting, the most of these, waited, failed.
fn values(snapshot: &Snapshot, name: &str) -> [f64; 7] {
    let pool = ("pool_name", name);
    let value = |name: &str, more: &[(&str, &str)]| {
        let labels = [&[pool], more].concat();
        snapshot.expect_value(&format!("db_client_{name}"), &labels)
    };
    let waited = "db_client_connection_wait_time_seconds";
    [
        value("connections", &[("state", "used")]),
        value("connections", &[("state", "idle")]),
        value("connection_max", &[]),
        value("connection_pending_requests", &[]),
        value("connection_pending_requests_peak", &[]),
        snapshot.histogram(waited, &[pool]).unwrap().count() as f64,
        value("connection_acquire_failures_total", &[]),
    ]
}

#[tokio::test]
async fn who_uses_a_connection_waits_for_one_or_gets_none_is_counted() {
    let registry = Registry::for_test().unwrap();
    let (pool, meter) = pool(&registry, "orders", false);
    let is = |expected: [f64; 7]| assert_eq!(values(&registry.snapshot(), "orders"), expected);
    is([0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    let first = meter.acquire(pool.get()).await.unwrap();
    let second = meter.acquire(pool.get()).await.unwrap();
    is([2.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0]);
    // Nobody brings one back, so it gives up.
    assert!(meter.acquire(pool.get()).await.is_err());
    is([2.0, 0.0, 2.0, 0.0, 1.0, 2.0, 1.0]);
    let forever = Timeouts::default();
    {
        let mut waits = std::pin::pin!(meter.acquire(pool.timeout_get(&forever)));
        let poll = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waits.as_mut().poll(context).is_pending())
        });
        assert!(poll.await);
        is([2.0, 0.0, 2.0, 1.0, 1.0, 2.0, 1.0]);
        drop(first);
        drop(waits.await.unwrap());
    }
    is([1.0, 1.0, 2.0, 0.0, 1.0, 3.0, 1.0]);
    meter.reset_peak();
    drop(second);
    is([0.0, 2.0, 2.0, 0.0, 0.0, 3.0, 1.0]);
}

#[tokio::test]
async fn a_request_that_is_dropped_waits_no_more_and_pools_are_apart() {
    let registry = Registry::for_test().unwrap();
    let (pool_of_orders, orders) = pool(&registry, "orders", false);
    let (broken, users) = pool(&registry, "users", true);
    let taken = [pool_of_orders.get().await.unwrap(), pool_of_orders.get().await.unwrap()];
    let forever = Timeouts::default();
    {
        let mut waits = std::pin::pin!(orders.acquire(pool_of_orders.timeout_get(&forever)));
        let poll = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waits.as_mut().poll(context).is_pending())
        });
        assert!(poll.await);
    }
    assert!(users.acquire(broken.get()).await.is_err());
    let snapshot = registry.snapshot();
    assert_eq!(values(&snapshot, "orders"), [2.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(values(&snapshot, "users"), [0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
    drop(taken);
}
