//! salvo, by its bridge to layers of tower.

use std::future::pending;
use std::io;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::BodyExt;
use salvo::conn::Acceptor;
use salvo::http::{ReqBody, ResBody, StatusError};
use salvo::prelude::*;
use talea::Registry;
use talea_http::{Endpoints, RequestBody};
use tokio::sync::oneshot;
use tower::ServiceBuilder;

use crate::framework::{
    self, Framework, LISTED, a_scanner_makes_no_series, each_is_recorded_once, endpoints,
};
use crate::panics;

fn pieces(count: usize) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::iter((0..count).map(|_| Ok(Bytes::from_static(b"0123456789"))))
}

fn endless() -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 1000])))
}

fn breaking() -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::iter([Ok(Bytes::from_static(b"0123456789")), Err(io::Error::other("on purpose"))])
}

/// A handler that makes its response by a function.
struct Responds(fn(&mut Response));

#[async_trait]
impl Handler for Responds {
    async fn handle(
        &self,
        _: &mut Request,
        _: &mut Depot,
        response: &mut Response,
        _: &mut FlowCtrl,
    ) {
        (self.0)(response);
    }
}

#[handler]
async fn echo(request: &mut Request, response: &mut Response) {
    match request.payload().await {
        Ok(body) => response.body(ResBody::Once(body.clone())),
        Err(_) => response.status_code(StatusCode::BAD_REQUEST),
    };
}

#[handler]
async fn errs() -> Result<&'static str, StatusError> {
    Err(StatusError::not_found())
}

#[handler]
async fn never() {
    pending::<()>().await;
}

fn get(path: &str, respond: fn(&mut Response)) -> Router {
    Router::with_path(path).get(Responds(respond))
}

fn app() -> Router {
    let item: fn(&mut Response) = |response| response.render("an item");
    let rest: fn(&mut Response) = |response| response.render("abc");
    Router::new()
        .push(get("items/{id}", item))
        .push(get("204", |response| {
            response.status_code(StatusCode::NO_CONTENT);
        }))
        .push(get("404", |response| {
            response.status_code(StatusCode::NOT_FOUND).render("missing");
        }))
        .push(get("503", |response| {
            response.status_code(StatusCode::SERVICE_UNAVAILABLE);
        }))
        .push(get("504", |response| {
            response.status_code(StatusCode::GATEWAY_TIMEOUT);
        }))
        .push(Router::with_path("errs").get(errs))
        .push(Router::with_path("head").head(Responds(|response| response.render("some text"))))
        .push(get("streams", |response| response.stream(pieces(3))))
        .push(get("streams-known", |response| {
            response.headers_mut().insert("content-length", 30.into());
            response.stream(pieces(3));
        }))
        .push(Router::with_path("echo").post(echo))
        .push(Router::with_path("ignores").post(Responds(|response| {
            response.status_code(StatusCode::OK);
        })))
        .push(get("files/{**path}", rest))
        .push(get("unlisted", rest))
        .push(Router::with_path("never").get(never))
        .push(get("endless", |response| response.stream(endless())))
        .push(get("panics", |_| panics()))
        .push(get("breaks", |response| response.stream(breaking())))
}

/// The meter as a hoop.
fn metered(endpoints: Endpoints) -> impl Handler {
    let find = endpoints.finder::<ReqBody>(&LISTED).unwrap();
    ServiceBuilder::new().layer(endpoints.layer(find)).map_request(boxed).compat()
}

fn boxed(request: hyper::Request<RequestBody<ReqBody>>) -> hyper::Request<ReqBody> {
    request.map(|body| ReqBody::Boxed { inner: Box::pin(body.map_err(Into::into)), fusewire: None })
}

async fn start() -> framework::Server {
    let registry = Registry::for_test().unwrap();
    let [first, second] = endpoints(&registry).map(metered);
    let acceptor = TcpListener::new("127.0.0.1:0").bind().await;
    let address = acceptor.holdings()[0].local_addr.clone().into_std().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let service = Service::new(app()).hoop(first).hoop(second);
        tokio::select! {
            () = Server::new(acceptor).serve(service) => {}
            _ = stopped => {}
        }
    });
    framework::Server { address, registry, _stop: stop }
}

#[tokio::test]
async fn each_request_to_salvo_is_recorded_once_at_its_route() {
    let framework = Framework { undeclared: 405, error: 0.0, reset: Some(400), unlisted: "" };
    each_is_recorded_once(&framework, start).await;
}

#[tokio::test]
async fn requests_of_a_scanner_to_salvo_make_no_series() {
    a_scanner_makes_no_series(start().await).await;
}
