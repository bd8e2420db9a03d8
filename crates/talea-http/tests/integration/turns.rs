//! The turns of scrapes: clients that stop reading do not keep others out for long, and clients
//! that are merely slow are left alone. Time is simulated.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use talea_http::{Exposition, ExpositionBody};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::support::orders::orders;

/// Some 1.5 MiB of text: six pieces.
const SERIES: u64 = 20_000;
const AT_ONCE: usize = 4;

fn exposition(series: u64) -> Exposition {
    Exposition::new(&orders(series)).at_once(AT_ONCE)
}

/// The time that a scraper waits, unless a test says otherwise.
const SECONDS: u64 = 120;

async fn scrape(
    exposition: &Exposition,
    (host, port): (u8, u16),
    seconds: u64,
) -> Response<ExpositionBody> {
    let request = Request::get("/metrics")
        .header("x-prometheus-scrape-timeout-seconds", seconds)
        .extension(ConnectInfo(SocketAddr::from(([10, 0, 0, host], port))))
        .body(Body::empty())
        .unwrap();
    exposition.clone().oneshot(request).await.unwrap()
}

/// A scrape that gets a turn, and the time that it waited.
async fn admitted(exposition: &Exposition, host: u8) -> (ExpositionBody, Duration) {
    let began = Instant::now();
    let response = scrape(exposition, (host, 1000), SECONDS).await;
    assert_eq!(response.status(), StatusCode::OK);
    (response.into_body(), began.elapsed())
}

fn assert_refused(response: &Response<ExpositionBody>) {
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
}

async fn is_whole(body: ExpositionBody) -> bool {
    let Ok(body) = body.collect().await else { return false };
    let lines = body.to_bytes().split(|byte| *byte == b'\n').count() as u64;
    assert!(lines > SERIES, "{lines}");
    true
}

/// The bodies of scrapes that hold all turns.
async fn take_turns(exposition: &Exposition, hosts: [u8; AT_ONCE]) -> Vec<ExpositionBody> {
    let mut bodies = Vec::new();
    for host in hosts {
        bodies.push(admitted(exposition, host).await.0);
    }
    bodies
}

/// Clients that hold all turns and pause after each piece. Each returns whether its body was whole.
async fn slow_clients(
    exposition: &Exposition,
    hosts: [u8; AT_ONCE],
    pause: Duration,
) -> JoinSet<bool> {
    let bodies = take_turns(exposition, hosts).await.into_iter();
    bodies.map(|body| is_whole_slowly(body, pause)).collect()
}

async fn is_whole_slowly(mut body: ExpositionBody, pause: Duration) -> bool {
    while let Some(frame) = body.frame().await {
        if frame.is_err() {
            return false;
        }
        sleep(pause).await;
    }
    true
}

/// As many scrapes as can wait, over one connection.
async fn fill_queue(exposition: &Exposition) -> JoinSet<StatusCode> {
    let clones = std::iter::repeat_n(exposition.clone(), 16);
    let waiting = clones
        .map(async |exposition| scrape(&exposition, (1, 1000), SECONDS).await.status())
        .collect();
    tokio::task::yield_now().await;
    waiting
}

const HALF_SECOND: Duration = Duration::from_millis(500);
/// The hosts that hold the turns: one, or as many as there are turns.
const ONE: [u8; AT_ONCE] = [1; AT_ONCE];
const EACH: [u8; AT_ONCE] = [1, 2, 3, 4];

#[tokio::test(start_paused = true)]
async fn clients_that_take_nothing_do_not_keep_others_out() {
    let exposition = exposition(SERIES);
    let mut stalled = take_turns(&exposition, ONE).await;
    // More clients that take nothing arrive, all of the same address.
    for _ in 0..10 {
        let (body, waited) = admitted(&exposition, 1).await;
        assert!(waited <= Duration::from_millis(1200), "{waited:?}");
        assert!(is_whole(body).await);
        stalled.push(admitted(&exposition, 1).await.0);
    }
    // A displaced client gets an error, not a page that ends early.
    assert!(!is_whole(stalled.swap_remove(0)).await);
}

#[tokio::test(start_paused = true)]
async fn a_source_with_all_turns_gives_one_to_another() {
    let exposition = exposition(SERIES);
    let slow = slow_clients(&exposition, ONE, HALF_SECOND).await;
    let (body, waited) = admitted(&exposition, 2).await;
    // Scrapes that make progress are left alone for a second.
    assert!((1..=2).contains(&waited.as_secs()), "{waited:?}");
    assert!(is_whole(body).await);
    let ends = slow.join_all().await;
    assert_eq!(ends.iter().filter(|whole| !**whole).count(), 1, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_all_turns_gives_one_to_another_of_its_address() {
    let exposition = exposition(SERIES);
    let _slow = slow_clients(&exposition, ONE, HALF_SECOND).await;
    let _waiting = fill_queue(&exposition).await;
    let began = Instant::now();
    let response = scrape(&exposition, (1, 2000), SECONDS).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(is_whole(response.into_body()).await);
}

#[tokio::test(start_paused = true)]
async fn slow_clients_with_a_turn_each_are_left_alone() {
    let exposition = exposition(SERIES);
    let slow = slow_clients(&exposition, EACH, HALF_SECOND).await;
    // It waits half of its own time, which is too short for the others to end.
    let began = Instant::now();
    assert_refused(&scrape(&exposition, (9, 1000), 4).await);
    assert_eq!(began.elapsed().as_secs(), 2);
    assert!(slow.join_all().await.into_iter().all(|whole| whole));
}

#[tokio::test(start_paused = true)]
async fn a_turn_for_which_others_wait_is_bounded_in_time() {
    // Some 18 pieces, each taken within 0.9 s: no client is stalled, and no source has more turns.
    let exposition = exposition(3 * SERIES);
    let slow = slow_clients(&exposition, EACH, Duration::from_millis(900)).await;
    sleep(Duration::from_secs(4)).await;
    assert_refused(&scrape(&exposition, (9, 1000), 10).await);
    sleep(Duration::from_secs(1)).await;
    let (body, waited) = admitted(&exposition, 9).await;
    assert!((1..=2).contains(&waited.as_secs()), "{waited:?}");
    assert!(is_whole(body).await);
    let ends = slow.join_all().await;
    assert_eq!(ends.iter().filter(|whole| !**whole).count(), 1, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn the_seventeenth_waiting_scrape_of_a_source_is_refused_at_once() {
    let exposition = exposition(SERIES);
    let held = take_turns(&exposition, ONE).await;
    let waits = fill_queue(&exposition).await;
    let began = Instant::now();
    assert_refused(&scrape(&exposition, (1, 1000), SECONDS).await);
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Another source takes the place of one of them.
    let (body, _) = admitted(&exposition, 2).await;
    assert!(is_whole(body).await);
    drop(held);
    let refused = waits.join_all().await.into_iter().filter(|status| *status != 200).count();
    assert_eq!(refused, 1);
}
