//! The ways of metering, each around equal routes.

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

use crate::cases::bodies::{BoxBody, BoxError, panics, whole};
use crate::cases::handlers::{respond, status};
use crate::cases::layers::{cors, respond_within, time_limit};
use crate::cases::routes::{Behavior, ROUTES, Route, RouteLayer, of_path};
use crate::cases::witness::{Witness, Witnessed, WitnessedBody};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metering {
    Declared,
    /// axum's router, with the layer added by `Router::layer`.
    RouterLayer,
    /// axum's router, metered from outside with the routes in its `Debug` text.
    Existing,
    /// The layer around a service that calls axum's router, with listed routes.
    Outside,
    /// The layer around a tower service, with bodies of static types.
    Typed,
}

pub(crate) const METERINGS: [Metering; 5] = [
    Metering::Declared,
    Metering::RouterLayer,
    Metering::Existing,
    Metering::Outside,
    Metering::Typed,
];

pub(crate) type BoxService<B> = BoxCloneService<Request<B>, Response<BoxBody>, io::Error>;

impl Metering {
    /// The service under test, with a witness outside.
    pub(crate) fn service<B>(self, endpoints: &Endpoints, witness: Arc<Witness>) -> BoxService<B>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        /// The service with the witness around it.
        macro_rules! witnessed {
            ($inner:expr) => {
                Witnessed { inner: $inner, witness }.boxed_clone()
            };
        }
        let axum = |request: Request<WitnessedBody<B>>| request.map(Body::new);
        match self {
            Self::Declared => witnessed!(declared(endpoints).map_request(axum)),
            Self::RouterLayer => {
                let layer = talea_http::axum::Layer::by(endpoints);
                witnessed!(plain().layer(layer).map_request(axum))
            }
            Self::Existing => {
                witnessed!(talea_http::axum::meter_by(plain(), endpoints).map_request(axum))
            }
            Self::Outside => {
                let listed: Vec<_> =
                    ROUTES.iter().map(|route| (route.method, route.template)).collect();
                let layer = talea_http::axum::Layer::by(endpoints).routes(&listed).unwrap();
                witnessed!(layer.layer(fallible(plain())).map_request(axum))
            }
            Self::Typed => {
                let layer = endpoints.layer(finder(endpoints));
                witnessed!(layer.layer(service_fn(typed::<WitnessedBody<B>>)))
            }
        }
    }
}

/// The routes in a router, Talea's or axum's.
macro_rules! router {
    ($router:path, $on:path) => {{
        let router = <$router>::new();
        ROUTES.iter().fold(router, |router, route| {
            let filter = MethodFilter::try_from(route.method.parse::<Method>().unwrap()).unwrap();
            let behavior = route.behavior;
            let methods = match behavior {
                // The endpoint of a plain function is found by its type.
                Behavior::Memory if route.template == "/memory" => $on(filter, memory),
                Behavior::Upgrades => $on(filter, upgrades),
                Behavior::PanicsAtOnce => $on(filter, panics_at_once),
                _ => $on(filter, async move |request: Request<Body>| {
                    respond(behavior, request).await.map(Body::new)
                }),
            };
            let alone = <$router>::new().route(route.template, methods);
            router.merge(match route.layer {
                RouteLayer::Nothing => alone,
                RouteLayer::TimeLimit => alone.layer(time_limit()),
                RouteLayer::CatchesPanics => alone.layer(CatchPanicLayer::new()),
                RouteLayer::Cors => alone.layer(cors()),
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

/// A service that can return errors, which routers cannot.
fn fallible(router: axum::Router) -> BoxCloneService<Request<Body>, Response<Body>, io::Error> {
    service_fn(move |request: Request<Body>| {
        let router = router.clone();
        async move {
            match of_path(request.uri().path()) {
                Some(Route { behavior: Behavior::Errs, .. }) => Err(io::Error::other("on purpose")),
                _ => router.oneshot(request).await.map_err(|never| match never {}),
            }
        }
    })
    .boxed_clone()
}

pub(crate) async fn memory(request: Request<Body>) -> impl IntoResponse {
    respond(Behavior::Memory, request).await.map(Body::new)
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

fn typed<B>(
    request: Request<RequestBody<B>>,
) -> impl Future<Output = Result<Response<BoxBody>, io::Error>> + Send
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let route = of_path(request.uri().path());
    if route.is_some_and(|route| route.behavior == Behavior::PanicsAtOnce) {
        panics();
    }
    async move {
        let Some(route) = route else { return Ok(status(StatusCode::NOT_FOUND)) };
        let service = service_fn(move |request: Request<RequestBody<B>>| async move {
            match route.behavior {
                _ if !route.answers(request.method().as_str()) => {
                    Ok(status(StatusCode::METHOD_NOT_ALLOWED))
                }
                Behavior::Errs => Err(io::Error::other("on purpose")),
                behavior => Ok(respond(behavior, request).await),
            }
        });
        // In HTTP/1, hyper removes the body itself.
        let has_no_body = request.method() == Method::HEAD && request.version() == Version::HTTP_2;
        let response = respond_within(route.layer, service, request).await?;
        Ok(if has_no_body { response.map(|_| whole(0)) } else { response })
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
