//! A file of SQLite's that others use too.

use crate::service::Service;
use crate::service::until;
use rusqlite::Connection;
use std::thread;

#[test]
fn while_another_process_writes_writes_wait_and_reads_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.db");
    let url = format!("sqlite:{}", path.display());
    // A thread that waited in SQLite would keep all requests waiting.
    let service =
        Service::with(|program| program.env("DATABASE_URL", url).env("TOKIO_WORKER_THREADS", "1"));
    assert_eq!(service.create(), 1);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; INSERT INTO items (value) VALUES (FALSE)").unwrap();
    thread::scope(|scope| {
        let creations: Vec<_> = (0..4).map(|_| scope.spawn(|| service.create())).collect();
        let labels = [("pool_name", "writer")];
        until(|| service.value("db_client_connection_pending_requests", &labels) == 3.0);
        for _ in 0..10 {
            assert_eq!(service.send("GET /api/items/1").status, 200);
            assert_eq!(service.send("GET /api/items/2").status, 404);
        }
        assert!(creations.iter().all(|creation| !creation.is_finished()));
        other.execute_batch("COMMIT").unwrap();
        let mut ids: Vec<i64> = creations.into_iter().map(|it| it.join().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [3, 4, 5, 6]);
    });
}
