//! The metrics of the connections to the database.

use crate::client::send;
use crate::ending::until;
use crate::metrics::value;
use crate::postgres::Postgres;
use crate::service::{Service, program};
use sqlx::{Connection, Executor, PgConnection};
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;

const PENDING: &str = "db_client_connection_pending_requests";
const PEAK: &str = "db_client_connection_pending_requests_peak";

fn shown(service: &Service, name: &str, labels: &[(&str, &str)]) -> f64 {
    value(&service.scrape(), name, labels)
}

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
        let found = shown(service, "db_client_connection_max", &[pool]);
        assert!(max.is_none_or(|max| max == found), "{pool:?} has {found}");
        let idle = || shown(service, "db_client_connections", &[pool, ("state", "idle")]);
        until(|| idle() == found);
        assert_eq!(shown(service, "db_client_connections", &[pool, ("state", "used")]), 0.0);
        assert_eq!(shown(service, PENDING, &[pool]), 0.0);
        assert_eq!(shown(service, PEAK, &[pool]), 0.0);
        shown(service, "db_client_connection_wait_time_seconds_count", &[pool]);
    }
}

#[test]
fn each_request_takes_a_connection_of_its_pool() {
    let service = Service::start();
    let waits = |pool| {
        let labels = [("pool_name", pool)];
        shown(&service, "db_client_connection_wait_time_seconds_count", &labels)
    };
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
    let mut command = program();
    command.env("DATABASE_URL", &url).env("DATABASE_POOL", "2");
    let service = Service::study(command);
    let used = || {
        let labels = [POOL[0], ("state", "used")];
        shown(&service, "db_client_connections", &labels)
    };
    let runtime = Runtime::new().unwrap();
    let mut other = runtime.block_on(async {
        let mut other = PgConnection::connect(&url).await.unwrap();
        other.execute("BEGIN; LOCK TABLE items").await.unwrap();
        other
    });
    thread::scope(|scope| {
        // Two have the connections and wait for the lock, three wait for the two.
        for _ in 0..5 {
            scope.spawn(|| assert!(service.create() > 0));
        }
        until(|| shown(&service, PENDING, &POOL) == 3.0);
        assert_eq!(used(), 2.0);
        thread::sleep(Duration::from_millis(200));
        runtime.block_on(async { other.execute("COMMIT").await.unwrap() });
    });
    until(|| used() == 0.0);
    assert_eq!(shown(&service, PENDING, &POOL), 0.0);
    assert_eq!(shown(&service, PEAK, &POOL), 3.0);
    let waited = shown(&service, "db_client_connection_wait_time_seconds_sum", &POOL);
    assert!(waited > 3.0 * 0.2, "three waited {waited} s");

    assert_eq!(send(service.metrics, "POST /study/reset", None).status, 204);
    assert_eq!(shown(&service, PEAK, &POOL), 0.0);
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[]}"#);
    assert_eq!(service.create(), 6, "an id is not given twice");
}
