//! Clients that mean harm.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

use axum::body::Bytes;
use h2::client::SendRequest;

use crate::support::http2_client::{ask, ask_and_reset, connect};

/// Connects, and writes something if it can.
fn says(address: &str, text: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    Some(stream)
}

const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Holds connections with half a head, and some that read nothing of a page; asks for pages and goes
/// away, again and again, until it is over.
pub(crate) fn over_http1(address: &str, is_over: &AtomicBool) {
    let half = "GET /metrics HTTP/1.1\r\nHost:";
    let _heads: Vec<_> = (0..40).map(|_| says(address, half)).collect();
    let _reads_nothing: Vec<_> = (0..20).map(|_| says(address, SCRAPE)).collect();
    while !is_over.load(SeqCst) {
        drop(says(address, SCRAPE));
        drop(says(address, &format!("{SCRAPE}{SCRAPE}{half}")));
        drop(says(address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\u{7f}"));
        sleep(Duration::from_millis(2));
    }
}

/// Asks for pages over HTTP/2 and resets each; with `holds`, also asks for pages and takes nothing of
/// them, by a window of 0, until it is over.
pub(crate) fn over_http2(address: &str, holds: bool, is_over: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut held = Vec::new();
        if holds && let Some((sends, _)) = connect(address, 0).await {
            held.push(asks_for_eight(sends).await);
        }
        while !is_over.load(SeqCst) {
            if let Some((mut sends, _)) = connect(address, 1 << 16).await {
                let mut streams = 0..200;
                while streams.next().is_some() && ask_and_reset(&mut sends, "/metrics").await {}
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
}

/// Asks for some pages. The result keeps the connection.
async fn asks_for_eight(mut sends: SendRequest<Bytes>) -> impl Sized {
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.extend(ask(&mut sends, "/metrics").await);
    }
    (sends, streams)
}
