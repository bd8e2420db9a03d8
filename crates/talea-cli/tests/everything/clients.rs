//! Clients that mean harm.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Request;
use h2::Reason;
use h2::client::SendRequest;

/// Connects, and writes something if it can.
fn says(address: &str, text: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    Some(stream)
}

const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

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
        if holds {
            if let Some(sends) = connects(address, 0).await {
                held.push(asks(sends, false).await);
            }
        }
        while !is_over.load(SeqCst) {
            if let Some(sends) = connects(address, 1 << 16).await {
                asks(sends, true).await;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
}

async fn connects(address: &str, window: u32) -> Option<SendRequest<Bytes>> {
    let stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let builder = &mut h2::client::Builder::new();
    builder.initial_window_size(window).max_concurrent_reset_streams(100_000);
    let (sends, connection) = builder.handshake(stream).await.ok()?;
    tokio::spawn(connection);
    sends.ready().await.ok()
}

/// Asks for some pages, and resets each if asked to. The result keeps the connection.
async fn asks(mut sends: SendRequest<Bytes>, resets: bool) -> impl Sized {
    let mut streams = Vec::new();
    for _ in 0..if resets { 200 } else { 8 } {
        if std::future::poll_fn(|cx| sends.poll_ready(cx)).await.is_err() {
            break;
        }
        let request = Request::builder().uri("http://a/metrics").body(()).unwrap();
        let Ok((answer, mut stream)) = sends.send_request(request, true) else { break };
        if resets {
            stream.send_reset(Reason::CANCEL);
        }
        streams.push((answer, stream));
    }
    (sends, streams)
}
