//! A browser's view of a stream of server-sent events.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::Value;
use tokio::net::TcpSocket;

use super::LONGEST;

pub(crate) struct EventStream {
    lines: BufReader<TcpStream>,
    pub(crate) status: u16,
}

impl EventStream {
    pub(crate) fn open(address: &str, path: &str) -> Self {
        Self::by(TcpStream::connect(address).unwrap(), address, path)
    }

    /// Likewise, as a client with that address.
    pub(crate) fn open_from(client: [u8; 4], address: &str, path: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((client, 0).into()).unwrap();
            socket.connect(address.parse().unwrap()).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        Self::by(stream, address, path)
    }

    fn by(mut stream: TcpStream, address: &str, path: &str) -> Self {
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut status = String::new();
        lines.read_line(&mut status).unwrap();
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        Self { lines, status }
    }

    /// The next event, its name and its data; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        let name = self.line("event: ")?;
        let data = self.line("data: ")?;
        Some((name, serde_json::from_str(&data).unwrap()))
    }

    /// The data of the next event of that name.
    #[track_caller]
    pub(crate) fn until(&mut self, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (found, data) = self.next().expect("the stream ended");
            if found == name && is(&data) {
                return data;
            }
        }
    }

    /// The rest of the next line that begins so. Lines between them are lengths of chunks.
    fn line(&mut self, begin: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            // The last chunk is empty.
            if self.lines.read_line(&mut line).unwrap() == 0 || line == "0\r\n" {
                return None;
            }
            if let Some(rest) = line.strip_prefix(begin) {
                return Some(rest.trim_end().to_owned());
            }
        }
    }
}
