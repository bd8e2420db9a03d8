//! Load by clients that behave well, and by others. Pauses bound it.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::get;
use crate::service::Service;

/// The pause of a client between two requests.
const PAUSE: Duration = Duration::from_millis(5);
/// How long one waits for what does not come.
const PATIENCE: Duration = Duration::from_millis(50);

/// Clients that go on as long as it lives.
#[derive(Debug)]
pub struct Load {
    _clients: JoinSet<()>,
}

impl Load {
    pub fn start(service: &Service) -> Self {
        let mut clients = JoinSet::new();
        for _ in 0..2 {
            clients.spawn(reads_and_writes(service.items));
        }
        clients.spawn(leaves_before_it_has_sent_all(service.items));
        clients.spawn(meets_faults(service.faults));
        for path in ["/streams", "/hangs"] {
            clients.spawn(leaves_before_the_end(service.faults, path));
        }
        Self { _clients: clients }
    }
}

async fn reads_and_writes(items: SocketAddr) {
    const ITEM: &str = r#"{"item":{"value":true}}"#;
    let stream = TcpStream::connect(items).await.expect("a connection");
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    loop {
        let (status, location) = send(&mut sender, "POST", "/api/items", ITEM).await;
        assert_eq!(status, 201);
        for (method, path, body, expected) in [
            ("GET", &*location, "", 200),
            ("PUT", &location, ITEM, 200),
            ("GET", "/api/items", "", 200),
            ("DELETE", &location, "", 204),
            ("GET", &location, "", 404),
            ("GET", "/wp-login.php", "", 404),
            ("DELETE", "/api/items", "", 405),
        ] {
            let (status, _) = send(&mut sender, method, path, body).await;
            assert_eq!(status, expected, "{method} {path}");
            sleep(PAUSE).await;
        }
    }
}

/// The answer's status and where it points to.
async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "items");
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let location = answer.headers().get(header::LOCATION).and_then(|at| at.to_str().ok());
    let (status, location) = (answer.status().as_u16(), location.unwrap_or_default().to_owned());
    answer.into_body().collect().await.expect("all of it");
    (status, location)
}

async fn leaves_before_it_has_sent_all(items: SocketAddr) {
    let part = "POST /api/items HTTP/1.1\r\nhost: items\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{\"item\":";
    loop {
        write_and_wait(items, part).await;
    }
}

async fn leaves_before_the_end(faults: SocketAddr, path: &str) {
    loop {
        write_and_wait(faults, &format!("GET {path} HTTP/1.1\r\nhost: faults\r\n\r\n")).await;
    }
}

async fn write_and_wait(address: SocketAddr, text: &str) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("it is sent");
    sleep(PATIENCE).await;
}

async fn meets_faults(faults: SocketAddr) {
    loop {
        for path in ["/fails", "/late", "/panics", "/nowhere"] {
            // After a panic there is no answer.
            let _ = get(faults, path).await;
            sleep(PATIENCE).await;
        }
    }
}
