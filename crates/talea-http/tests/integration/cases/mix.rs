//! All cases at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::task::JoinSet;

use crate::cases::case::{Case, Protocol};
use crate::cases::client;
use crate::cases::door::DOORS;
use crate::cases::series::CONVENTIONS;
use crate::cases::server::{Server, Setup};
use crate::cases::table::CASES;

/// The number of requests of all servers, or of each server if the variable `TALEA_MIX` is set to
/// it, and the number of concurrent clients.
const REQUESTS: u64 = 20_000;
const CLIENTS: u64 = 1_000;
/// A machine that is too slow for that makes fewer requests.
const LONGEST: Duration = Duration::from_secs(20);

#[test]
fn each_of_many_concurrent_requests_is_recorded_once() {
    let clients_at_once = CLIENTS.min(sockets_allowed() / 4);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut servers = Vec::new();
        for door in &DOORS {
            for convention in CONVENTIONS {
                servers.push(Server::start(door, convention, Setup::default()).await);
            }
        }
        let wanted = match std::env::var("TALEA_MIX") {
            Ok(each) => each.parse::<u64>().unwrap() * servers.len() as u64,
            Err(_) => REQUESTS,
        };
        let servers: Arc<[Server]> = servers.into();
        let (runs, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut clients = JoinSet::new();
        for _ in 0..clients_at_once {
            let (servers, runs) = (Arc::clone(&servers), Arc::clone(&runs));
            clients.spawn(async move {
                while made(&servers) < wanted
                    && (std::env::var("TALEA_MIX").is_ok() || start.elapsed() < LONGEST)
                {
                    let run = runs.fetch_add(1, Relaxed);
                    let (server, case, protocol) = nth(&servers, run);
                    client::run(case, server, protocol).await;
                }
            });
        }
        clients.join_all().await;
        for server in servers.iter() {
            server.assert_recorded("the mix").await;
        }
        let made = made(&servers);
        println!("{made} requests in {:?}", start.elapsed());
        assert!(made >= wanted.min(clients_at_once));
    });
}

/// The number of requests that were made.
fn made(servers: &[Server]) -> u64 {
    servers.iter().map(|server| server.witness.calls()).sum()
}

/// The n-th run: all cases by all protocols on all servers take turns.
fn nth(servers: &[Server], run: u64) -> (&Server, &'static Case, Protocol) {
    let (run, nth) = (run as usize / servers.len(), run as usize % servers.len());
    let server = &servers[nth];
    let fitting = CASES.iter().filter(|(_, case)| !case.setup.limited && (case.fits)(server.door));
    let cases: Vec<_> = fitting.collect();
    // Servers begin with different cases, so that different cases run concurrently.
    let (_, case) = cases[(run + nth * 3) % cases.len()];
    (server, case, case.protocols[run / cases.len() % case.protocols.len()])
}

/// The number of sockets that are allowed. Both ends of a connection are in this process.
fn sockets_allowed() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.unwrap_or(u64::MAX).min(4 * CLIENTS);
    let allowed = limit.current.map_or(enough, |current| current.max(enough));
    limit.current = Some(allowed);
    setrlimit(Resource::Nofile, limit).unwrap();
    allowed
}
