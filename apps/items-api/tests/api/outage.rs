//! A server of PostgreSQL's that dies while the service runs.

use crate::postgres::Postgres;
use crate::service::{Service, full};
use std::thread;
use std::time::{Duration, Instant};

/// More than there are connections.
const CLIENTS: usize = 40;

/// A service with one item.
fn on(postgres: &Postgres) -> Service {
    let url = postgres.new_database();
    // Each failure is reported on standard error, and an answer does not depend on that.
    let service = Service::with(|program| {
        program.env("DATABASE_URL", url).args(["--pool", "4"]).stderr(full())
    });
    assert_eq!(service.create(), 1);
    service
}

#[test]
fn requests_fail_while_the_server_is_gone_and_work_again_afterwards() {
    let postgres = Postgres::start();
    let service = on(&postgres);
    postgres.ctl("stop -m immediate");
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let answer = service.send("GET /api/items/1");
                assert_eq!(answer.status, 500, "{answer:?}");
                assert!(answer.error().contains("database"), "{answer:?}");
            });
        }
    });
    // Not a few at a time, each of which tries for three seconds.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());

    postgres.ctl("start");
    for _ in 0..CLIENTS {
        assert_eq!(service.send("GET /api/items/1").status, 200);
    }
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[{"id":1,"value":true}]}"#);
}

#[test]
fn a_restart_that_nobody_noticed_costs_no_request() {
    let postgres = Postgres::start();
    let service = on(&postgres);
    postgres.ctl("stop -m immediate");
    postgres.ctl("start");
    // After less than a second, a connection counts as one that stands.
    thread::sleep(Duration::from_millis(1_100));
    for _ in 0..8 {
        assert_eq!(service.send("GET /api/items/1").status, 200);
    }
}
