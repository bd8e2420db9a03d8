//! The agent's front where it is encrypted: clients that do not come to the end of the handshake,
//! and those that do not read afterwards, are ended as others are.

#![cfg(target_os = "linux")]

mod fronted;
mod secured;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fronted::{Fronted, HELLO, wide};
use secured::Folder;
use talea_cli::stop::Stop;
use talea_http::server::{Limits, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const SHORT: Duration = Duration::from_millis(300);

async fn encrypted(folder: &Folder, limits: Limits) -> Fronted {
    let web = "tls_server_config: { cert_file: cert.pem, key_file: key.pem }\n";
    folder.write("web.yml", web);
    Fronted::start_with(limits, Stop::never(), Some(&folder.path("web.yml"))).await
}

/// Clients that trust the folder's authority.
fn trusts(folder: &Folder) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.path("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn connect(front: &Fronted, trusts: &TlsConnector) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(front.address).await.unwrap();
    // Written bytes do not wait for the end of the handshake to be acknowledged.
    stream.set_nodelay(true).unwrap();
    let name = ServerName::from(front.address.ip());
    trusts.connect(name, stream).await.unwrap()
}

async fn hears_hello(client: &mut TlsStream<TcpStream>) {
    client.write_all(HELLO.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"hello\n") {
        assert_ne!(client.read_buf(&mut heard).await.unwrap(), 0, "it ended");
    }
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_ended() {
    let folder = Folder::new();
    let front = encrypted(&folder, Limits { header_time: SHORT, ..wide() }).await;
    let trusts = trusts(&folder);
    let mut silent = front.connect().await;
    assert_eq!(silent.rest().await, "");
    front.ended(Reason::Handshake, 1).await;

    // The begin of a record of TLS, and then a byte now and then.
    let mut slow = front.says("\x16\x03\x01\x01\0\x01\0\0\u{7c}\x03\x03").await;
    let began = Instant::now();
    while slow.tries("x").await && began.elapsed() < SHORT * 20 {
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(began.elapsed() < SHORT * 10, "{:?}", began.elapsed());
    front.ended(Reason::Handshake, 2).await;

    let mut good = connect(&front, &trusts).await;
    tokio::time::sleep(SHORT * 2).await;
    hears_hello(&mut good).await;
    front.ended(Reason::Handshake, 2).await;
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_gets_an_alert_and_is_counted() {
    let folder = Folder::new();
    let front = encrypted(&folder, wide()).await;
    let answer = front.says(HELLO).await.rest().await;
    assert!(!answer.contains("hello"), "{answer}");
    front.ended(Reason::Handshake, 1).await;
}

#[tokio::test]
async fn a_handshake_makes_room_for_a_new_client() {
    let folder = Folder::new();
    let front = encrypted(&folder, Limits { connections: 2, ..wide() }).await;
    let trusts = trusts(&folder);
    let mut silent = [front.connect_seen().await, front.connect_seen().await];
    hears_hello(&mut connect(&front, &trusts).await).await;
    assert_eq!(silent[0].rest().await, "");
    assert!(silent[1].is_there().await);
    front.ended(Reason::Room, 1).await;
}

#[tokio::test]
async fn a_head_that_is_slow_and_an_answer_that_is_not_read_are_ended() {
    let folder = Folder::new();
    let limits = Limits { header_time: SHORT, patience: SHORT, ..wide() };
    let front = encrypted(&folder, limits).await;
    let trusts = trusts(&folder);
    let mut slow = connect(&front, &trusts).await;
    let began = Instant::now();
    while slow.write_all(b"x").await.is_ok() && began.elapsed() < SHORT * 20 {
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(began.elapsed() < SHORT * 10, "{:?}", began.elapsed());
    front.ended(Reason::Head, 1).await;
    let mut stops = connect(&front, &trusts).await;
    stops.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    front.until("it is ended", |front| front.counts.closed(Reason::Unread) == 1).await;
    front.until("all are gone", |front| front.counts.open() == 0).await;
}

/// Alone, memory is that of this process: to be seen with `--nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_idle_connections_take_little() {
    let folder = Folder::new();
    let front = encrypted(&folder, wide()).await;
    let trusts = trusts(&folder);
    let before = fronted::memory();
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut client = connect(&front, &trusts).await;
        hears_hello(&mut client).await;
        idle.push(client);
    }
    // Both ends of them are here.
    let each = (fronted::memory() - before) / 200;
    println!("both ends of an idle connection over TLS take {each} bytes");
    assert!(each < 96 << 10, "{each}");
}
