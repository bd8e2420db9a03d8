//! The metrics of the connections to the database.

use crate::client::send;
use crate::postgres::Postgres;
use crate::service::{Service, until};
use sqlx::{Connection, Executor, PgConnection};
use std::thread;
use std::time::Instant;
use tokio::runtime::Runtime;

const PENDING: &str = "db_client_connection_pending_requests";
const PEAK: &str = "db_client_connection_pending_requests_peak";

#[test]
fn the_pools_are_there_before_the_first_request() {
    let sqlite = Service::start();
    let postgres = Service::on_postgres();
    for (service, pool, max) in [
        (&sqlite, "writer", Some(1.0)),
        (&sqlite, "readers", None),
        (&postgres, "postgres", Some(3.0)),
    ] {
        let pool = ("pool_name", pool);
        let found = service.value("db_client_connection_max", &[pool]);
        assert!(max.is_none_or(|max| max == found), "{pool:?} has {found}");
        until(|| service.value("db_client_connections", &[pool, ("state", "idle")]) == found);
        assert_eq!(service.value("db_client_connections", &[pool, ("state", "used")]), 0.0);
        assert_eq!(service.value(PENDING, &[pool]), 0.0);
        assert_eq!(service.value(PEAK, &[pool]), 0.0);
        service.value("db_client_connection_wait_time_seconds_count", &[pool]);
    }
}

#[test]
fn each_request_takes_a_connection_of_its_pool() {
    let service = Service::start();
    let name = "db_client_connection_wait_time_seconds_count";
    let waits = |pool| service.value(name, &[("pool_name", pool)]);
    let (writes, reads) = (waits("writer"), waits("readers"));
    let id = service.create();
    service.send("GET /api/items");
    service.send(&format!("GET /api/items/{id}"));
    assert_eq!((waits("writer"), waits("readers")), (writes + 1.0, reads + 2.0));
}

#[test]
fn waits_for_a_connection_are_counted_and_their_maximum_until_a_reset() {
    const POOL: [(&str, &str); 1] = [("pool_name", "postgres")];
    let url = Postgres::shared().new_database();
    let service =
        Service::study(|program| program.env("DATABASE_URL", &url).env("DATABASE_POOL", "2"));
    let used = || service.value("db_client_connections", &[POOL[0], ("state", "used")]);
    let runtime = Runtime::new().unwrap();
    let mut other = runtime.block_on(async {
        let mut other = PgConnection::connect(&url).await.unwrap();
        other.execute("BEGIN; LOCK TABLE items").await.unwrap();
        other
    });
    let waited_at_least = thread::scope(|scope| {
        // Two have the connections and wait for the lock, three wait for the two.
        for _ in 0..5 {
            scope.spawn(|| assert!(service.create() > 0));
        }
        until(|| service.value(PENDING, &POOL) == 3.0);
        let since = Instant::now();
        assert_eq!(used(), 2.0);
        let waited_at_least = since.elapsed();
        runtime.block_on(async { other.execute("COMMIT").await.unwrap() });
        waited_at_least
    });
    until(|| used() == 0.0);
    assert_eq!(service.value(PENDING, &POOL), 0.0);
    assert_eq!(service.value(PEAK, &POOL), 3.0);
    let waited = service.value("db_client_connection_wait_time_seconds_sum", &POOL);
    let least = 3.0 * waited_at_least.as_secs_f64();
    assert!(waited >= least, "three waited {waited} s, expected {least} s or more");

    assert_eq!(send(service.metrics, "POST /study/reset", None).status, 204);
    assert_eq!(service.value(PEAK, &POOL), 0.0);
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[]}"#);
    assert_eq!(service.create(), 6, "an id is not given twice");
}
