//! Pools with their own calls: what the document of talea-collectors says of them.

use std::time::Duration;

use talea::Registry;
use talea_collectors::pool::{PoolMeter, PoolStatus};

/// Connections that are numbers.
#[derive(Debug)]
struct Numbers;

impl bb8::ManageConnection for Numbers {
    type Connection = u32;
    type Error = std::io::Error;

    async fn connect(&self) -> Result<u32, std::io::Error> {
        Ok(7)
    }

    async fn is_valid(&self, _: &mut u32) -> Result<(), std::io::Error> {
        Ok(())
    }

    fn has_broken(&self, _: &mut u32) -> bool {
        false
    }
}

fn value(registry: &Registry, name: &str, labels: &[(&str, &str)]) -> f64 {
    registry.snapshot().expect_value(&format!("db_client_{name}"), labels)
}

#[tokio::test]
async fn a_pool_of_bb8_is_metered() {
    let registry = Registry::for_test().unwrap();
    let pool = bb8::Pool::builder().max_size(1).build(Numbers).await.unwrap();
    let seen = pool.clone();
    let meter = PoolMeter::register(&registry, "orders", move || {
        let state = seen.state();
        let (open, idle) = (u64::from(state.connections), u64::from(state.idle_connections));
        PoolStatus { used: open - idle, idle, max: 1 }
    });
    let meter = meter.unwrap();
    let connection = meter.acquire(pool.get()).await.unwrap();
    let limited = tokio::time::timeout(Duration::from_millis(1), pool.get());
    assert!(meter.acquire(limited).await.is_err());
    let pool = ("pool_name", "orders");
    assert_eq!(value(&registry, "connections", &[pool, ("state", "used")]), 1.0);
    assert_eq!(value(&registry, "connection_acquire_failures_total", &[pool]), 1.0);
    drop(connection);
}

#[tokio::test]
async fn a_pool_of_sqlx_is_metered() {
    let registry = Registry::for_test().unwrap();
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(3);
    let options = options.acquire_timeout(Duration::from_millis(1));
    // Nobody listens there.
    let pool = options.connect_lazy("postgres://127.0.0.1:1/x").unwrap();
    let seen = pool.clone();
    let meter = PoolMeter::register(&registry, "orders", move || {
        let (open, idle) = (u64::from(seen.size()), seen.num_idle() as u64);
        let max = seen.options().get_max_connections().into();
        PoolStatus { used: open.saturating_sub(idle), idle, max }
    });
    assert!(meter.unwrap().acquire(pool.acquire()).await.is_err());
    let pool = ("pool_name", "orders");
    assert_eq!(value(&registry, "connection_max", &[pool]), 3.0);
    assert_eq!(value(&registry, "connection_acquire_failures_total", &[pool]), 1.0);
}
