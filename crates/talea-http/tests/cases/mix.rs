//! All cases at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::task::JoinSet;

use crate::case::{Case, Protocol};
use crate::client;
use crate::series::CONVENTIONS;
use crate::server::{Server, Setup};
use crate::table::CASES;
use crate::way::WAYS;

/// How many requests are made, and by how many clients at a time. With the variable
/// `TALEA_MIX` each server has so many requests; else all have so many together.
const REQUESTS: u64 = 20_000;
const CLIENTS: u64 = 1_000;
/// A machine that is too slow for that makes less of them.
const LONGEST: Duration = Duration::from_secs(20);

#[test]
fn whatever_comes_at_once_each_request_is_told_once() {
    let clients_at_once = CLIENTS.min(sockets_allowed() / 4);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut servers = Vec::new();
        for way in WAYS {
            for convention in CONVENTIONS {
                servers.push(Server::start(way, convention, Setup::default()).await);
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
                let made = || servers.iter().map(|server| server.witness.calls()).sum::<u64>();
                let in_time = || std::env::var("TALEA_MIX").is_ok() || start.elapsed() < LONGEST;
                while made() < wanted && in_time() {
                    let run = runs.fetch_add(1, Relaxed);
                    let (server, case, protocol) = nth(&servers, run);
                    client::run(case, server, protocol).await;
                }
            });
        }
        clients.join_all().await;
        for server in servers.iter() {
            server.settles("the mix").await;
        }
        let made: u64 = servers.iter().map(|server| server.witness.calls()).sum();
        println!("{made} requests in {:?}", start.elapsed());
        assert!(made >= wanted.min(CLIENTS));
    });
}

/// What is done when so many things were done: every case by every protocol on every server
/// in turn.
fn nth(servers: &[Server], run: u64) -> (&Server, &'static Case, Protocol) {
    let server = &servers[run as usize % servers.len()];
    let fits = |(_, case): &&(&str, Case)| !case.setup.limited && case.is_of(server.way);
    let cases: Vec<_> = CASES.iter().filter(fits).collect();
    let run = run as usize / servers.len();
    // Servers begin with different cases, so that different ones meet.
    let shift = (server.way as usize * 4 + server.convention as usize) * 3;
    let (_, case) = cases[(run + shift) % cases.len()];
    (server, case, case.protocols[run / cases.len() % case.protocols.len()])
}

/// How many sockets there may be. Both ends of a connection are in this process.
fn sockets_allowed() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.unwrap_or(u64::MAX).min(4 * CLIENTS);
    let allowed = limit.current.map_or(enough, |current| current.max(enough));
    limit.current = Some(allowed);
    setrlimit(Resource::Nofile, limit).unwrap();
    allowed
}
