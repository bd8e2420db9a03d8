//! How the service ends.

use crate::service::{LONGEST, Service, full, program_after, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// The most descriptors that the service may have, and its connections together with the others are
/// more.
const MOST_DESCRIPTORS: usize = 40;

const HEAD: &str = "POST /api/items HTTP/1.1\r\nhost: items\r\n\
                    content-type: application/json\r\ncontent-length: 23\r\n\r\n";
const BODY: &str = r#"{"item":{"value":true}}"#;

/// A request whose body has begun and whose handler waits for the rest.
fn begin_request(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(service.items).expect("a connection");
    stream.set_read_timeout(Some(LONGEST)).unwrap();
    stream.write_all(HEAD.as_bytes()).unwrap();
    stream.write_all(&BODY.as_bytes()[..5]).unwrap();
    until(|| service.value("http_requests_in_flight", &[("method", "POST")]) == 1.0);
    stream
}

fn refuses_connections(service: &Service) -> bool {
    TcpStream::connect(service.items).is_err()
}

#[test]
fn a_signal_lets_the_request_in_flight_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = Service::start();
        let mut stream = begin_request(&service);
        service.signal(signal);
        until(|| refuses_connections(&service));
        assert!(service.is_running(), "{signal:?} cut the request in flight");

        stream.write_all(&BODY.as_bytes()[5..]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
        assert_eq!(service.wait(), "", "{signal:?}");
    }
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let mut service = Service::start();
    let never_used = TcpStream::connect(service.items).expect("a connection");
    let mut used = TcpStream::connect(service.items).expect("a connection");
    used.write_all(b"GET /api/items HTTP/1.1\r\nhost: items\r\n\r\n").unwrap();
    assert!(used.read(&mut [0; 4096]).unwrap() > 0);
    assert_eq!(service.end(), "");
    drop((never_used, used));
}

#[test]
fn a_second_signal_cuts_at_once() {
    let mut service = Service::start();
    let _stream = begin_request(&service);
    service.signal(Signal::INT);
    until(|| refuses_connections(&service));
    assert!(service.is_running());
    service.signal(Signal::INT);
    // It says so if it waits for the request until its own limit.
    assert_eq!(service.wait(), "");
}

#[test]
fn running_out_of_descriptors_is_reported_once_and_survived() {
    for (stderr, reports) in [(Stdio::piped(), 1), (full().into(), 0)] {
        let mut command = program_after(&format!("ulimit -n {MOST_DESCRIPTORS}"));
        command.stderr(stderr);
        let mut service = Service::run(command);
        for id in [1, 2] {
            let crowd: Vec<_> =
                (0..60).map(|_| TcpStream::connect(service.items).unwrap()).collect();
            until(|| service.descriptors() >= MOST_DESCRIPTORS);
            // It pauses after each error, and nothing else wakes it as often.
            let waits = service.waits();
            until(|| service.waits() > waits + 10);
            assert!(service.is_running());
            drop(crowd);
            assert_eq!(service.create(), id);
        }
        let stderr = service.end();
        assert_eq!(stderr.matches("cannot accept a connection").count(), reports, "{stderr}");
    }
}
