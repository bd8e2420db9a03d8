//! Claims about what goes out by OTLP over gRPC, and what responses mean.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;

use super::receiver::LONGEST;
use super::registry::one_of_each;
use crate::otlp::message::ExportMetricsServiceRequest;
use crate::{Config, Pusher};

type AnyBody = BoxBody<Bytes, std::io::Error>;

/// A body that fails before its first byte.
struct CutBody;

impl Body for CutBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(Err(std::io::Error::other("it is cut"))))
    }
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// A message, then this status.
    Trailers(&'static str),
    /// This status at once.
    Head(&'static str),
    /// Something between that speaks HTTP, not gRPC.
    Http(u16),
    /// A head, and then the stream is reset.
    Cut,
    /// A message, and the stream ends without a status.
    NoStatus,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Answer>,
    received: Vec<Received>,
}

#[derive(Clone, Debug)]
struct Received {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

/// A receiver that answers by a script and then takes everything.
#[derive(Clone, Debug)]
struct Receiver {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Receiver {
    fn new(script: &[Answer]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let state = State { script: script.iter().copied().collect(), received: Vec::new() };
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::new((Mutex::new(state), Condvar::new())),
        };
        let of_thread = receiver.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(of_thread.serve(listener));
        });
        receiver
    }

    async fn serve(self, listener: TcpListener) {
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let receiver = self.clone();
            let service = service_fn(move |request| receiver.clone().answer(request));
            let server = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<AnyBody>, Infallible> {
        assert_eq!(request.version(), Version::HTTP_2);
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let body = body.collect().await.unwrap().to_bytes();
        let (state, changed) = &*self.state;
        let mut state = state.lock().unwrap();
        state.received.push(Received { path, headers: head.headers, body });
        changed.notify_all();
        Ok(response(state.script.pop_front().unwrap_or(Answer::Trailers("0"))))
    }

    fn wait_for(&self, count: usize) -> Vec<Received> {
        let (state, changed) = &*self.state;
        let state = state.lock().unwrap();
        let (state, waited) =
            changed.wait_timeout_while(state, LONGEST, |it| it.received.len() < count).unwrap();
        assert!(!waited.timed_out(), "{} requests instead of {count}", state.received.len());
        state.received.clone()
    }
}

fn response(answer: Answer) -> Response<AnyBody> {
    // An empty message, not compressed.
    let message = Full::new(Bytes::from_static(&[0; 5])).map_err(|never| match never {});
    let nothing = Full::new(Bytes::new()).map_err(|never| match never {});
    let (status, body) = match answer {
        Answer::Trailers(status) => {
            let trailers = HeaderMap::from_iter([grpc_status(status)]);
            (200, message.with_trailers(async { Some(Ok(trailers)) }).boxed())
        }
        Answer::Head(_) => (200, nothing.boxed()),
        Answer::Http(status) => (status, nothing.boxed()),
        Answer::NoStatus => (200, message.boxed()),
        Answer::Cut => (200, CutBody.boxed()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap();
    if let Answer::Head(status) = answer {
        response.headers_mut().extend([grpc_status(status)]);
    }
    response
}

fn grpc_status(status: &'static str) -> (http::HeaderName, HeaderValue) {
    (http::HeaderName::from_static("grpc-status"), HeaderValue::from_static(status))
}

fn config(receiver: &Receiver) -> Config {
    let millis = Duration::from_millis;
    Config::otlp_grpc(&format!("http://{}", receiver.address))
        .unwrap()
        .label("service.name", "test")
        .interval(Duration::from_secs(3_600))
        .timeout(Duration::from_secs(60))
        .backoff(millis(1), millis(5))
}

#[test]
fn a_request_is_a_call_as_grpc_has_it() {
    let receiver = Receiver::new(&[]);
    let own = talea::Registry::for_test().unwrap();
    let _pusher = Pusher::start_for(&one_of_each(), &own, config(&receiver)).unwrap();
    let Received { path, headers, body } = receiver.wait_for(1).remove(0);
    assert_eq!(path, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
    for (name, expected) in [
        ("content-type", "application/grpc"),
        ("grpc-encoding", "gzip"),
        ("grpc-timeout", "60000m"),
        ("te", "trailers"),
    ] {
        assert_eq!(headers[name], expected, "{name}");
    }
    let (prefix, message) = body.split_at(5);
    assert_eq!(prefix, [&[1][..], &(message.len() as u32).to_be_bytes()].concat());
    let mut decoded = Vec::new();
    GzDecoder::new(message).read_to_end(&mut decoded).unwrap();
    let request = ExportMetricsServiceRequest::decode(&*decoded).unwrap();
    assert!(!request.resource_metrics[0].scope_metrics[0].metrics.is_empty());
}

#[test]
fn responses_have_the_end_that_grpc_says_and_requests_are_repeated_byte_for_byte() {
    use Answer::{Cut, Head, Http, NoStatus, Trailers};
    for (script, requests, is_sent) in [
        (&[Trailers("0")][..], 1, true),
        (&[Head("14"), Trailers("4"), Trailers("1"), Trailers("0")], 4, true),
        (&[Cut, Trailers("0")], 2, true),
        (&[NoStatus, Trailers("0")], 2, true),
        (&[Http(503), Http(429), Trailers("0")], 3, true),
        (&[Http(404)], 1, false),
        (&[Head("12")], 1, false),
        (&[Trailers("8")], 1, false),
        (&[Trailers("x")], 1, false),
    ] {
        let receiver = Receiver::new(script);
        let own = talea::Registry::for_test().unwrap();
        let pusher = Pusher::start_for(&one_of_each(), &own, config(&receiver)).unwrap();
        let received = receiver.wait_for(requests);
        assert!(received[..requests].iter().all(|it| it.body == received[0].body), "{script:?}");
        assert!(pusher.flush(LONGEST));
        assert_eq!(receiver.wait_for(0).len(), requests + 1, "{script:?}");
        let refused = own.snapshot();
        let refused = refused.select("talea_push_samples_failed_total", &[("reason", "refused")]);
        let values: Vec<_> = refused.map(|it| it.value()).collect();
        assert_eq!(values == [talea::Value::Unsigned(0)], is_sent, "{script:?}: {values:?}");
    }
}

#[test]
fn a_url_with_a_path_is_refused() {
    for url in ["http://a.example/v1/metrics", "http://a.example?x=1", "unix:/a"] {
        assert!(Config::otlp_grpc(url).is_err(), "{url}");
    }
}
