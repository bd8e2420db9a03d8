//! The service under load, in each of its variants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn each_variant_answers_the_same_counts_it_and_ends_with_its_input() {
    for (variant, expected) in [
        ("plain", ""),
        ("metered", "3"),
        ("quantiles", "3"),
        ("prometheus-client", "3"),
        ("axum-prometheus", "3"),
        ("actix", ""),
        ("actix-metered", "3"),
    ] {
        let mut server = Server::start(variant);
        for _ in 0..3 {
            let answer = server.get("/hello/alice");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{variant}: {answer}");
            assert!(answer.ends_with("\r\n\r\nHello, alice!"), "{variant}: {answer}");
        }
        assert_eq!(server.last_words(), expected, "{variant}");
    }
}

struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(variant: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_talea-hello"))
            .args([variant, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        output.read_line(&mut address).unwrap();
        Self { child, output, address: address.trim().to_owned() }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: talea\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The text that it prints as it ends: the system closes its input too when the process that started it is
    /// killed.
    fn last_words(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut words = String::new();
        self.output.read_to_string(&mut words).unwrap();
        words.trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
