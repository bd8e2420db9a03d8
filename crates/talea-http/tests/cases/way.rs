//! The ways of metering, each around the same routes.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::WebSocket;
use axum::http::{Method, Request, Response, StatusCode, Version};
use axum::response::IntoResponse;
use axum::routing::MethodFilter;
use hyper::body::Body as HttpBody;
use talea_http::{Endpoint, Endpoints, RequestBody};
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::catch_panic::CatchPanicLayer;

use crate::answer::{Answer, BoxError, empty, panics};
use crate::app::{respond, status};
use crate::inside::{answer, cors, time_limit};
use crate::routes::{Does, Inside, ROUTES, Route, of_path};
use crate::witness::{Seen, Witness, Witnessed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A router that is declared by Talea's.
    Declared,
    /// axum's own, with the layer put on by `Router::layer`, which knows the routes it meets.
    RouterLayer,
    /// axum's own, metered from outside by the routes that it shows.
    Existing,
    /// The layer around a service that holds axum's own, with its routes listed.
    Outside,
    /// The layer around any service, with bodies of static types.
    Typed,
}

pub(crate) const WAYS: [Way; 5] =
    [Way::Declared, Way::RouterLayer, Way::Existing, Way::Outside, Way::Typed];

pub(crate) type Serves<B> = BoxCloneService<Request<B>, Response<Answer>, io::Error>;

impl Way {
    /// The service under test, with a witness outside.
    pub(crate) fn service<B>(self, endpoints: &Endpoints, witness: Arc<Witness>) -> Serves<B>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let axum = |request: Request<Seen<B>>| request.map(Body::new);
        match self {
            Self::Declared => {
                let inner = declared(endpoints).map_request(axum);
                Witnessed { inner, witness }.boxed_clone()
            }
            Self::RouterLayer => {
                let layer = talea_http::axum::Layer::by(endpoints);
                let inner = plain().layer(layer).map_request(axum);
                Witnessed { inner, witness }.boxed_clone()
            }
            Self::Existing => {
                let inner = talea_http::axum::meter_by(plain(), endpoints).map_request(axum);
                Witnessed { inner, witness }.boxed_clone()
            }
            Self::Outside => {
                let listed: Vec<_> =
                    ROUTES.iter().map(|route| (route.method, route.template)).collect();
                let layer = talea_http::axum::Layer::by(endpoints).routes(&listed).unwrap();
                let inner = layer.layer(fallible(plain())).map_request(axum);
                Witnessed { inner, witness }.boxed_clone()
            }
            Self::Typed => {
                let layer = endpoints.layer(finder(endpoints));
                let inner = layer.layer(service_fn(typed::<Seen<B>>));
                Witnessed { inner, witness }.boxed_clone()
            }
        }
    }
}

/// The routes by a router, Talea's or axum's.
macro_rules! router {
    ($router:path, $on:path) => {{
        let router = <$router>::new();
        ROUTES.iter().fold(router, |router, route| {
            let filter = MethodFilter::try_from(route.method.parse::<Method>().unwrap()).unwrap();
            let does = route.does;
            let methods = match does {
                // A plain function is found by its type.
                Does::Memory if route.template == "/memory" => $on(filter, memory),
                Does::Upgrades => $on(filter, upgrades),
                Does::PanicsAtOnce => $on(filter, panics_at_once),
                _ => $on(filter, async move |request: Request<Body>| {
                    respond(does, request).await.map(Body::new)
                }),
            };
            let alone = <$router>::new().route(route.template, methods);
            router.merge(match route.inside {
                Inside::Nothing => alone,
                Inside::TimeLimit => alone.layer(time_limit()),
                Inside::CatchesPanics => alone.layer(CatchPanicLayer::new()),
                Inside::Cors => alone.layer(cors()),
            })
        })
    }};
}

fn declared(endpoints: &Endpoints) -> axum::Router {
    router!(talea_http::axum::Router, talea_http::axum::on).metered_by(endpoints)
}

fn plain() -> axum::Router {
    router!(axum::Router, axum::routing::on)
}

/// A service that has errors, as routers have none.
fn fallible(router: axum::Router) -> BoxCloneService<Request<Body>, Response<Body>, io::Error> {
    service_fn(move |request: Request<Body>| {
        let router = router.clone();
        async move {
            match of_path(request.uri().path()) {
                Some(Route { does: Does::Errs, .. }) => Err(io::Error::other("on purpose")),
                _ => router.oneshot(request).await.map_err(|never| match never {}),
            }
        }
    })
    .boxed_clone()
}

pub(crate) async fn memory(request: Request<Body>) -> impl IntoResponse {
    respond(Does::Memory, request).await.map(Body::new)
}

fn panics_at_once(_: Request<Body>) -> std::future::Ready<StatusCode> {
    panics()
}

async fn upgrades(socket: WebSocketUpgrade) -> impl IntoResponse {
    socket.on_upgrade(async |mut socket: WebSocket| {
        if let Some(Ok(message)) = socket.recv().await {
            let _ = socket.send(message).await;
        }
    })
}

/// The routes by a service of no framework.
fn typed<B>(
    request: Request<RequestBody<B>>,
) -> impl Future<Output = Result<Response<Answer>, io::Error>> + Send
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let route = of_path(request.uri().path());
    if route.is_some_and(|route| route.does == Does::PanicsAtOnce) {
        panics();
    }
    async move {
        let Some(route) = route else { return Ok(status(StatusCode::NOT_FOUND)) };
        let service = service_fn(move |request: Request<RequestBody<B>>| async move {
            match route.does {
                _ if !route.answers(request.method().as_str()) => {
                    Ok(status(StatusCode::METHOD_NOT_ALLOWED))
                }
                Does::Errs => Err(io::Error::other("on purpose")),
                does => Ok(respond(does, request).await),
            }
        });
        // hyper does so itself in HTTP/1.
        let has_no_body = request.method() == Method::HEAD && request.version() == Version::HTTP_2;
        let answer = answer(route.inside, service, request).await?;
        Ok(if has_no_body { answer.map(|_| empty()) } else { answer })
    }
}

/// Finds the endpoint of a request to [`typed`].
fn finder<B>(endpoints: &Endpoints) -> impl Fn(&Request<B>) -> Endpoint + Clone + Send + 'static {
    let declare = |route: &'static Route| {
        let method: Method = route.method.parse().unwrap();
        let of_method = endpoints.declare(&method, route.template);
        (route.template, of_method, endpoints.declare_rest(route.template))
    };
    let declared: Arc<[_]> = ROUTES.iter().map(declare).collect();
    let unmatched = endpoints.unmatched();
    move |request| {
        let Some(route) = of_path(request.uri().path()) else { return unmatched };
        let found = declared.iter().find(|(template, ..)| *template == route.template);
        let &(_, of_method, rest) = found.unwrap();
        if route.answers(request.method().as_str()) { of_method } else { rest }
    }
}
