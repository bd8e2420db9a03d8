//! A stand-in for a service: counts what it receives, and answers as the test wants.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

pub(crate) enum Reply {
    /// An answer; the connection stays open.
    Answer(u16, String),
    /// An answer that says that the connection closes, and closes it.
    AnswerAndClose(u16, String),
    /// An answer, and a connection that closes without a word.
    AnswerAndVanish(u16, String),
    /// A closed connection instead of an answer.
    Close,
    /// Half a body, and a closed connection.
    HalfABody,
    /// The head of a body in chunks, and a chunk whose length is no number.
    BadChunk,
    /// Nothing at all.
    Silence,
}

/// A request as far as a test looks at it.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// A running stand-in; it serves until the test program ends.
pub(crate) struct StandIn {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    connections: AtomicU64,
}

impl StandIn {
    /// Starts a server that counts every request under `/api/` and answers as `reply` says.
    pub(crate) fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let (reply, counted) = (Arc::new(reply), counts.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (reply, counts) = (reply.clone(), counted.clone());
                counts.connections.fetch_add(1, SeqCst);
                std::thread::spawn(move || serve(stream.unwrap(), &*reply, &counts));
            }
        });
        Self { address, counts }
    }

    /// A server that answers the CRUD sequence as it should be answered.
    pub(crate) fn well_behaved() -> Self {
        Self::start(answer)
    }

    /// A service whose metrics show how many requests it received, and which answers each by its
    /// number.
    pub(crate) fn counting(
        metrics: impl Fn(u64) -> String + Send + Sync + 'static,
        reply: impl Fn(u64, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let received = AtomicU64::new(0);
        Self::start(move |request| match request.path.as_str() {
            "/study/reset" => Reply::Answer(204, String::new()),
            "/metrics" => Reply::Answer(200, metrics(received.load(SeqCst))),
            _ => reply(received.fetch_add(1, SeqCst), request),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/items", self.address)
    }

    pub(crate) fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Requests received under `/api/`.
    pub(crate) fn requests(&self) -> u64 {
        self.counts.requests.load(SeqCst)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.counts.connections.load(SeqCst)
    }
}

/// The answer that the CRUD sequence expects.
pub(crate) fn answer(request: &Request) -> Reply {
    let (status, body) = as_expected(request);
    Reply::Answer(status, body)
}

/// The status and body that the CRUD sequence expects.
pub(crate) fn as_expected(request: &Request) -> (u16, String) {
    let one = r#"{"data":{"id":7,"value":true}}"#.to_owned();
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/api/items") if request.body == r#"{"item":{"value":true}}"# => (201, one),
        ("GET", "/api/items") => (200, format!("{{\"data\":[{}]}}", ["0"; 4000].join(","))),
        ("GET", "/api/items/7") => (200, one),
        ("PUT", "/api/items/7") if request.body == r#"{"item":{"value":false}}"# => (200, one),
        ("DELETE", "/api/items/7") => (204, String::new()),
        _ => (404, String::new()),
    }
}

fn serve(stream: TcpStream, reply: &dyn Fn(&Request) -> Reply, counts: &Counts) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(request) = read(&mut reader) {
        if request.path.starts_with("/api/") {
            counts.requests.fetch_add(1, SeqCst);
        }
        let written = match reply(&request) {
            Reply::Answer(status, body) => write(&mut writer, status, &body, ""),
            Reply::AnswerAndClose(status, body) => {
                let _ = write(&mut writer, status, &body, "connection: close\r\n");
                return;
            }
            Reply::AnswerAndVanish(status, body) => {
                let _ = write(&mut writer, status, &body, "");
                return;
            }
            Reply::Close => return,
            Reply::HalfABody => {
                let _ = writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf.");
                return;
            }
            Reply::BadChunk => {
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                let _ = writer.write_all(format!("{head}no length\r\n").as_bytes());
                return;
            }
            Reply::Silence => return std::thread::sleep(Duration::from_secs(60)),
        };
        if written.is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
        match header.trim_end().split_once(':') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, body: String::from_utf8(body).ok()? })
}

fn write(writer: &mut impl Write, status: u16, body: &str, headers: &str) -> std::io::Result<()> {
    let length = match status {
        204 => String::new(),
        _ => format!("content-length: {}\r\n", body.len()),
    };
    let answer = format!("HTTP/1.1 {status} As It Is\r\n{length}{headers}\r\n{body}");
    writer.write_all(answer.as_bytes())
}
