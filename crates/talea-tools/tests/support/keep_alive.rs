//! A client that sends its requests over one connection, without TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::LONGEST;

pub(crate) struct KeepAlive(BufReader<TcpStream>);

impl KeepAlive {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        Self(BufReader::new(stream))
    }

    /// The status, the head in lower case, and the body of an answer that states its length. `headers`
    /// are lines that end with CRLF.
    pub(crate) fn get(&mut self, path: &str, headers: &str) -> (u16, String, String) {
        write!(self.0.get_mut(), "GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
            .unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "the connection stays open");
        }
        let head = head.to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; len.expect(&head).parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (status, head, String::from_utf8(body).unwrap())
    }
}
