//! The tower layer for gRPC services and clients.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use talea::{Error, HttpMethod, Registry};
use tower_service::Service;

use super::bodies::{RequestBody, ResponseBody};
use super::messages::MessageCount;
use super::services::Services;
use crate::convention::Side;
use crate::convention::grpc::metric_set;
use crate::labels::endpoint::Methods;
use crate::labels::status::{OTHER, RpcCodes};
use crate::opts::Opts;
use crate::request::bodies::RequestBody as CountedBody;
use crate::request::call::{Call, CallMessages};
use crate::request::meters::Endpoint;

/// A layer that meters the gRPC calls of a server or a client; see [the module](crate::grpc).
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    side: Side,
    known: &'static KnownMethods,
}

/// Methods by the paths of their calls. They live as long as the program, as endpoints do.
#[derive(Debug)]
struct KnownMethods {
    by_path: HashMap<String, Endpoint>,
    other: Endpoint,
    left_out: Vec<String>,
}

impl Layer {
    /// A layer for a server, with default options; [`Opts::grpc_server`] takes others.
    ///
    /// # Errors
    ///
    /// As [`Opts::grpc_server`].
    pub fn server(services: &Services, registry: &Registry) -> Result<Self, Error> {
        Opts::new().grpc_server(services, registry)
    }

    /// A layer for a client, with default options; [`Opts::grpc_client`] takes others.
    ///
    /// # Errors
    ///
    /// As [`Opts::grpc_server`].
    pub fn client(services: &Services, registry: &Registry) -> Result<Self, Error> {
        Opts::new().grpc_client(services, registry)
    }
}

impl Opts {
    /// Registers the metrics of a gRPC server, and creates the series of its known methods.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`]; the convention has no names for gRPC; the name of a service or a method is
    /// not valid; there are labels of the response, which a call does not have.
    pub fn grpc_server(self, services: &Services, registry: &Registry) -> Result<Layer, Error> {
        self.grpc(services, registry, Side::Server)
    }

    /// Registers the metrics of gRPC clients, and creates the series of the known methods.
    ///
    /// # Errors
    ///
    /// As [`Opts::grpc_server`].
    pub fn grpc_client(self, services: &Services, registry: &Registry) -> Result<Layer, Error> {
        self.grpc(services, registry, Side::Client)
    }

    fn grpc(self, services: &Services, registry: &Registry, side: Side) -> Result<Layer, Error> {
        let Some(set) = metric_set(self.convention, side) else {
            let reason = format!(
                "Convention::{:?} has no names for gRPC; use Convention::Prometheus or \
                 Convention::OpenTelemetry",
                self.convention
            );
            return Err(Error::Register { name: "grpc".to_owned(), reason });
        };
        let response_label = self.response_labels.first().map(|label| {
            format!(
                "its label {:?} is of the response, and the status of a call follows later; \
                     use a label of the request",
                label.name
            )
        });
        if let Some(reason) = services.fault().or(response_label) {
            return Err(Error::Register { name: set.in_flight.name.to_owned(), reason });
        }
        let set = self.recorded(set);
        let endpoints = self.register_set(&set, registry)?;
        let by_path = services.methods.iter().map(|known| {
            let name = format!("{}/{}", known.service, known.method);
            let method = Methods::One(HttpMethod::Post);
            (format!("/{name}"), endpoints.endpoint(method, &name, known.kind.as_str()))
        });
        let known = Box::leak(Box::new(KnownMethods {
            by_path: by_path.collect(),
            other: endpoints.endpoint(Methods::Rest, OTHER, OTHER),
            left_out: services.left_out.clone(),
        }));
        Ok(Layer { side, known })
    }
}

impl KnownMethods {
    /// The endpoint of a request. `None` if its service is left out, or if it is not a call: a server may
    /// have other routes.
    fn find<B>(&self, request: &Request<B>) -> Option<Endpoint> {
        let path = request.uri().path();
        if let Some(&known) = self.by_path.get(path) {
            return Some(known);
        }
        let service = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let is_left_out = service
            .is_some_and(|(service, _)| self.left_out.iter().any(|left_out| left_out == service));
        let content = request.headers().get(CONTENT_TYPE).map(|content| content.as_bytes());
        let is_call = content.is_some_and(|content| content.starts_with(b"application/grpc"));
        (is_call && !is_left_out).then_some(self.other)
    }
}

impl<S> tower_layer::Layer<S> for Layer {
    type Service = MeteredService<S>;

    fn layer(&self, inner: S) -> MeteredService<S> {
        MeteredService { inner, layer: *self }
    }
}

/// A service whose calls are metered by a [`Layer`].
#[derive(Clone, Copy, Debug)]
pub struct MeteredService<S> {
    inner: S,
    layer: Layer,
}

impl<S, B, R> Service<Request<B>> for MeteredService<S>
where
    B: Body<Data = Bytes>,
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = MeteredFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Layer { side, known } = self.layer;
        let (mut call, mut count) = (Call::closed(), None);
        let mut messages = CallMessages { in_request: None, in_response: None };
        if let Some(Endpoint { meters }) = known.find(&request) {
            (count, messages) = call.open(meters, &request, side == Side::Client);
        }
        let guard = call.call();
        let future = self.inner.call(request.map(|inner| RequestBody {
            inner: CountedBody { inner, count },
            messages: MessageCount::new(messages.in_request),
        }));
        guard.returned();
        // A client's call fails for want of a connection, a server's for a reason of its own.
        let failure = match side {
            Side::Server => RpcCodes::UNKNOWN,
            Side::Client => RpcCodes::UNAVAILABLE,
        };
        MeteredFuture { future, call, messages: MessageCount::new(messages.in_response), failure }
    }
}

pin_project! {
    /// The future of a [`MeteredService`].
    #[derive(Debug)]
    pub struct MeteredFuture<F> {
        // Dropped first, so that the service's state is freed while the call is in flight.
        #[pin]
        future: F,
        call: Call,
        messages: MessageCount,
        failure: u16,
    }
}

impl<F, R, E> Future for MeteredFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let guard = this.call.poll();
        let result = this.future.poll(cx);
        guard.returned();
        let failure = *this.failure;
        Poll::Ready(match ready!(result) {
            Ok(response) => {
                let call = this.call.respond(&response);
                let messages = std::mem::replace(this.messages, MessageCount::new(None));
                Ok(response.map(|inner| ResponseBody { inner, messages, call, failure }))
            }
            Err(error) => {
                this.call.fail(failure);
                Err(error)
            }
        })
    }
}
