//! A gRPC service as tonic generates it, whose messages are texts that say how to respond.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use tokio::sync::Notify;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status, Streaming};
use tower::{Service, service_fn};

use crate::cases::bodies::panics;

/// A service with a method of each type.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    /// Notified when a call waits for ever.
    pub(crate) waits: Arc<Notify>,
}

impl NamedService for Shop {
    const NAME: &'static str = "shop.v1.Shop";
}

type Sent = BoxStream<'static, Result<String, Status>>;

impl Service<http::Request<Body>> for Shop {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let shop = self.clone();
        Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
            let mut grpc = Grpc::new(Text);
            Ok(match method.as_str() {
                "Show" => {
                    let show = service_fn(move |request: Request<String>| {
                        let shop = shop.clone();
                        async move { shop.respond(request.get_ref()).await.map(Response::new) }
                    });
                    grpc.unary(show, request).await
                }
                "Put" => {
                    let put = service_fn(move |request: Request<Streaming<String>>| {
                        let shop = shop.clone();
                        async move {
                            let all: Vec<_> = request.into_inner().try_collect().await?;
                            shop.respond(all.last().map_or("", |last| last))
                                .await
                                .map(Response::new)
                        }
                    });
                    grpc.client_streaming(put, request).await
                }
                "Watch" => {
                    let watch = service_fn(move |request: Request<String>| {
                        let shop = shop.clone();
                        async move { Ok(Response::new(shop.stream(request.get_ref()))) }
                    });
                    grpc.server_streaming(watch, request).await
                }
                "Chat" => {
                    let chat = service_fn(move |request: Request<Streaming<String>>| {
                        let shop = shop.clone();
                        async move {
                            let responses = request.into_inner().then(move |text| {
                                let shop = shop.clone();
                                async move { shop.respond(&text?).await }
                            });
                            Ok::<_, Status>(Response::new(responses.boxed() as Sent))
                        }
                    });
                    grpc.streaming(chat, request).await
                }
                _ => Status::unimplemented("").into_http(),
            })
        })
    }
}

impl Shop {
    async fn respond(&self, text: &str) -> Result<String, Status> {
        match text {
            "missing" => Err(Status::not_found("on purpose")),
            "late" => Err(Status::deadline_exceeded("on purpose")),
            "panics" => panics(),
            "waits" => {
                self.waits.notify_one();
                pending().await
            }
            text => Ok(text.to_owned()),
        }
    }

    /// Three messages, or two that precede what the text says.
    fn stream(&self, text: &str) -> Sent {
        let (shop, last) = (self.clone(), text.to_owned());
        let first = stream::iter(["1", "2"].map(|text| Ok(text.to_owned())));
        first.chain(stream::once(async move { shop.respond(&last).await })).boxed()
    }
}

/// Messages that are texts, as they are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, item: String, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(out, item.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = bytes::Buf::copy_to_bytes(from, bytes::Buf::remaining(from));
        Ok(Some(String::from_utf8(bytes.into()).unwrap()))
    }
}
