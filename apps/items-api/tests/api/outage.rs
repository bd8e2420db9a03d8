//! A server of PostgreSQL's that dies while the service runs.

use crate::postgres::Postgres;
use crate::service::{Service, full};
use std::thread;

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
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let answer = service.send("GET /api/items/1");
                assert_eq!(answer.status, 500, "{answer:?}");
                assert!(answer.error().contains("database"), "{answer:?}");
            });
        }
    });

    postgres.ctl("start");
    for _ in 0..CLIENTS {
        assert_eq!(service.send("GET /api/items/1").status, 200);
    }
    assert_eq!(service.send("GET /api/items").body, r#"{"data":[{"id":1,"value":true}]}"#);
}
