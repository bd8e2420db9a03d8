//! warp, as a service of tower.

use std::future::pending;
use std::io;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use talea::Registry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower::ServiceBuilder;
use warp::filters::BoxedFilter;
use warp::http::StatusCode;
use warp::reply::{Reply, Response, stream as streamed, with_status};
use warp::{Filter, Rejection};

use crate::framework::{
    Framework, LISTED, Server, a_scanner_makes_no_series, each_is_recorded_once, endpoints,
};
use crate::panics;

fn pieces(count: usize) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    stream::iter((0..count).map(|_| Ok(Bytes::from_static(b"0123456789"))))
}

fn endless() -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 1000])))
}

fn breaking() -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    stream::iter([Ok(Bytes::from_static(b"0123456789")), Err(io::Error::other("on purpose"))])
}

/// A route whose response is made by a function.
fn get(path: &'static str, respond: fn() -> Response) -> BoxedFilter<(Response,)> {
    warp::path(path).and(warp::path::end()).and(warp::get()).map(respond).boxed()
}

fn app() -> BoxedFilter<(Response,)> {
    let routes = [
        warp::path!("items" / u32).and(warp::get()).map(|_| "an item".into_response()).boxed(),
        get("204", || StatusCode::NO_CONTENT.into_response()),
        get("404", || with_status("missing", StatusCode::NOT_FOUND).into_response()),
        get("503", || StatusCode::SERVICE_UNAVAILABLE.into_response()),
        get("504", || StatusCode::GATEWAY_TIMEOUT.into_response()),
        warp::path("errs")
            .and(warp::get())
            .and_then(async || Err::<Response, Rejection>(warp::reject::not_found()))
            .boxed(),
        warp::path("head").and(warp::head()).map(|| "some text".into_response()).boxed(),
        get("streams", || streamed(pieces(3)).into_response()),
        get("streams-known", || {
            let mut response = streamed(pieces(3)).into_response();
            response.headers_mut().insert("content-length", 30.into());
            response
        }),
        warp::path("echo")
            .and(warp::post())
            .and(warp::body::bytes())
            .map(|body: Bytes| body.to_vec().into_response())
            .boxed(),
        warp::path("ignores").and(warp::post()).map(|| StatusCode::OK.into_response()).boxed(),
        warp::path!("files" / ..).and(warp::get()).map(|| "abc".into_response()).boxed(),
        get("unlisted", || "abc".into_response()),
        warp::path("never")
            .and(warp::get())
            .and_then(pending::<Result<Response, Rejection>>)
            .boxed(),
        get("endless", || streamed(endless()).into_response()),
        get("panics", || panics()),
        get("breaks", || streamed(breaking()).into_response()),
    ];
    let mut routes = routes.into_iter();
    let first = routes.next().unwrap();
    routes.fold(first, |all, route| all.or(route).unify().boxed())
}

async fn start() -> Server {
    let registry = Registry::for_test().unwrap();
    let [first, second] = endpoints(&registry);
    let second = second.layer(second.finder(&LISTED).unwrap());
    let first = first.layer(first.finder(&LISTED).unwrap());
    let service = ServiceBuilder::new().layer(first).layer(second).service(warp::service(app()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, mut stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        loop {
            let (stream, _) = tokio::select! {
                accepted = listener.accept() => accepted.unwrap(),
                _ = &mut stopped => return,
            };
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Server { address, registry, _stop: stop }
}

#[tokio::test]
async fn each_request_to_warp_is_recorded_once_at_its_route() {
    let framework = Framework { undeclared: 405, error: 0.0, reset: Some(400), unlisted: "" };
    each_is_recorded_once(&framework, start).await;
}

#[tokio::test]
async fn requests_of_a_scanner_to_warp_make_no_series() {
    a_scanner_makes_no_series(start().await).await;
}
