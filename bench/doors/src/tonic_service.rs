//! A unary call of tonic's server, whose messages are empty. Its users meter it as HTTP, by tower-otel.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{ManualReader, SdkMeterProvider};
use talea::Registry;
use talea_http::grpc::{self, MethodType, Services};
use tonic::Status;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::Body as HttpBody;
use tonic::server::Grpc;
use tower::{Layer, Service, service_fn};

use crate::{Door, Subject};

pub(crate) fn door() -> Result<Door> {
    let registry = Registry::new()?;
    let services = Services::new().methods("shop.v1.Shop", MethodType::Unary, &["Show"]);
    let talea = grpc::Layer::server(&services, &registry)?;
    let provider = SdkMeterProvider::builder().with_reader(ManualReader::builder().build()).build();
    let other = tower_otel::metrics::HttpLayer::server(&provider.meter("bench"));
    let bare = service_fn(show::<Full<Bytes>>);
    let talea = talea.layer(service_fn(show::<grpc::RequestBody<Full<Bytes>>>));
    let other = other.layer(service_fn(show::<Full<Bytes>>));
    Ok(Door {
        name: "tonic",
        subjects: [
            Subject::new("bare", move |calls| make(bare, calls)),
            Subject::new("talea", move |calls| make(talea, calls)),
            Subject::new("tower-otel", move |calls| {
                let _kept = &provider;
                make(other.clone(), calls);
            }),
        ],
    })
}

async fn show<B>(request: Request<B>) -> Result<Response<Body>, Infallible>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let show = service_fn(async |_: tonic::Request<()>| Ok::<_, Status>(tonic::Response::new(())));
    Ok(Grpc::new(Empty).unary(show, request).await)
}

/// Makes calls to the end of their trailers. Nothing here ever waits.
fn make<S, R>(mut service: S, calls: u64)
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>, Error = Infallible>,
    R: HttpBody<Data = Bytes> + Unpin,
{
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..calls {
        let request =
            Request::post("/shop.v1.Shop/Show").header("content-type", "application/grpc");
        let request = request.body(Full::from(&b"\0\0\0\0\0"[..])).expect("a request");
        let Poll::Ready(Ok(response)) = pin!(service.call(request)).poll(&mut cx) else {
            panic!("it is answered at once");
        };
        let mut body = response.into_body();
        let mut has_trailers = false;
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) {
            has_trailers |= frame.is_trailers();
        }
        assert!(has_trailers);
    }
}

/// Messages without content.
#[derive(Clone, Copy)]
struct Empty;

impl Codec for Empty {
    type Encode = ();
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Empty {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}

impl Decoder for Empty {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        Ok(Some(()))
    }
}
