//! The doors: the ways to meter a service, each around equal routes.
//!
//! To put another one into the table of cases, add a row to [`DOORS`]: a function that makes a
//! service that responds as [`ROUTES`] say, with its meter, and with the witness outside of the
//! meter.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::WebSocket;
use axum::http::{Method, Request, Response, StatusCode, Version};
use axum::middleware::map_response;
use axum::response::IntoResponse;
use axum::routing::MethodFilter;
use axum::{Extension, Router};
use http_body_util::Limited;
use hyper::body::Body as HttpBody;
use talea_http::axum::{Layer as RouterLayer, meter_by};
use talea_http::{Endpoint, Endpoints, RequestBody, UpgradeGuard};
use tower::layer::layer_fn;
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::catch_panic::CatchPanicLayer;

use crate::cases::bodies::{BoxBody, BoxError, panics, whole};
use crate::cases::handlers::{BODY_LIMIT, respond, status};
use crate::cases::layers::{cors, marked, respond_within, time_limit, unmarked, uppercase};
use crate::cases::routes::{Behavior, ROUTES, Route, RouteLayer, of_path};
use crate::cases::witness::{Witness, Witnessed, WitnessedBody};

pub(crate) struct Door {
    pub(crate) name: &'static str,
    /// Whether it knows the methods that a route declares.
    pub(crate) knows_methods: bool,
    /// Whether it wraps handlers themselves: it knows the names of functions, and sees panics that a
    /// layer inside turns into any response.
    pub(crate) wraps_handlers: bool,
    /// Whether its service can return errors.
    pub(crate) can_fail: bool,
    pub(crate) service: fn(&Endpoints, Arc<Witness>) -> BoxService,
}

pub(crate) const DOORS: [Door; 5] = [
    Door {
        name: "the mirror of axum's router",
        knows_methods: true,
        wraps_handlers: true,
        can_fail: false,
        service: |endpoints, witness| by_axum(declared(endpoints), witness),
    },
    Door {
        name: "Layer on axum's router",
        knows_methods: false,
        wraps_handlers: false,
        can_fail: false,
        service: |endpoints, witness| by_axum(plain().layer(RouterLayer::by(endpoints)), witness),
    },
    Door {
        name: "meter",
        knows_methods: true,
        wraps_handlers: false,
        can_fail: false,
        service: |endpoints, witness| by_axum(meter_by(plain(), endpoints), witness),
    },
    Door {
        name: "Layer around a service that calls axum's router",
        knows_methods: true,
        wraps_handlers: false,
        can_fail: true,
        service: |endpoints, witness| {
            let listed: Vec<_> =
                ROUTES.iter().map(|route| (route.method, route.template)).collect();
            let layer = RouterLayer::by(endpoints).routes(&listed).unwrap();
            by_axum(layer.layer(fallible(plain())), witness)
        },
    },
    Door {
        name: "Endpoints::layer around a service for hyper",
        knows_methods: true,
        wraps_handlers: false,
        can_fail: true,
        service: |endpoints, witness| {
            let layer = endpoints.layer(finder(endpoints));
            witnessed(layer.layer(service_fn(typed::<LimitedBody>)), witness)
        },
    },
];

pub(crate) type BoxService = BoxCloneService<Request<BoxBody>, Response<BoxBody>, io::Error>;

/// The body of a request at the meter: a limit of its length is outside.
type LimitedBody = WitnessedBody<Limited<BoxBody>>;

/// A service with the witness around it, and a limit around both.
fn witnessed<S, R>(inner: S, witness: Arc<Witness>) -> BoxService
where
    S: tower::Service<Request<LimitedBody>, Response = Response<R>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    Witnessed { inner, witness }
        .map_request(|request: Request<BoxBody>| {
            request.map(|body| Limited::new(body, BODY_LIMIT as usize))
        })
        .boxed_clone()
}

fn by_axum<S>(inner: S, witness: Arc<Witness>) -> BoxService
where
    S: tower::Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    witnessed(inner.map_request(|request: Request<LimitedBody>| request.map(Body::new)), witness)
}

/// The routes in a router, Talea's or axum's.
macro_rules! router {
    ($router:path, $on:path, $on_service:path) => {{
        let router = <$router>::new();
        ROUTES.iter().fold(router, |router, route| {
            let filter = MethodFilter::try_from(route.method.parse::<Method>().unwrap()).unwrap();
            let behavior = route.behavior;
            let methods = match behavior {
                // The endpoint of a plain function is found by its type.
                Behavior::Memory if route.template == "/memory" => $on(filter, memory),
                Behavior::Extracts => $on(filter, extracts),
                Behavior::Upgrades => $on(filter, upgrades),
                Behavior::UpgradesWithGuard => $on(filter, upgrades_with_guard),
                Behavior::PanicsAtOnce => $on(filter, panics_at_once),
                Behavior::ServicePanics => $on_service(filter, service_fn(trap)),
                _ => $on(filter, async move |request: Request<Body>| {
                    respond(behavior, request).await.map(Body::new)
                }),
            };
            let alone = <$router>::new().route(route.template, methods);
            router.merge(match route.layer {
                RouteLayer::Nothing => alone,
                RouteLayer::TimeLimit => alone.layer(time_limit()),
                RouteLayer::Cors => alone.layer(cors()),
                RouteLayer::Panics => alone.layer(layer_fn(|_| service_fn(trap))),
                RouteLayer::CatchesPanics => alone.layer(CatchPanicLayer::new()),
                RouteLayer::CatchesAndMarks => alone.layer(CatchPanicLayer::custom(marked)),
                RouteLayer::CatchesUnmarked => alone.layer(CatchPanicLayer::custom(unmarked)),
                RouteLayer::CatchesAndChanges => alone
                    .layer(CatchPanicLayer::new())
                    .layer(map_response(async |response| uppercase(response).await.map(Body::new))),
            })
        })
    }};
}

fn declared(endpoints: &Endpoints) -> Router {
    router!(talea_http::axum::Router, talea_http::axum::on, talea_http::axum::on_service)
        .metered_by(endpoints)
}

fn plain() -> Router {
    router!(Router, axum::routing::on, axum::routing::on_service)
}

/// A service that can return errors, which routers cannot.
fn fallible(router: Router) -> BoxCloneService<Request<Body>, Response<Body>, io::Error> {
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

async fn memory(request: Request<Body>) -> impl IntoResponse {
    respond(Behavior::Memory, request).await.map(Body::new)
}

async fn extracts(_: Bytes) {}

fn panics_at_once(_: Request<Body>) -> std::future::Ready<StatusCode> {
    panics()
}

/// A service that panics in its call, before there is a future.
fn trap(_: Request<Body>) -> std::future::Ready<Result<Response<Body>, std::convert::Infallible>> {
    panics()
}

async fn upgrades(socket: WebSocketUpgrade) -> impl IntoResponse {
    socket.on_upgrade(echo)
}

async fn upgrades_with_guard(socket: WebSocketUpgrade) -> impl IntoResponse {
    let guard = UpgradeGuard::new();
    let held = guard.clone();
    let response = socket.on_upgrade(async |socket| {
        let _held = held;
        echo(socket).await;
    });
    (Extension(guard), response)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let _ = socket.send(message).await;
    }
}

fn typed<B>(
    request: Request<RequestBody<B>>,
) -> impl Future<Output = Result<Response<BoxBody>, io::Error>> + Send
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let route = of_path(request.uri().path());
    if route.is_some_and(Route::panics_in_its_call) {
        panics();
    }
    async move {
        let Some(route) = route else { return Ok(status(StatusCode::NOT_FOUND)) };
        let service = service_fn(move |request: Request<RequestBody<B>>| async move {
            match route.behavior {
                _ if !route.handles(request.method().as_str()) => {
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
    let declared = ROUTES.iter().map(|route| {
        let method: Method = route.method.parse().unwrap();
        let of_method = endpoints.declare(&method, route.template);
        (route.template, of_method, endpoints.declare_rest(route.template))
    });
    let (declared, unmatched) = (declared.collect::<Arc<[_]>>(), endpoints.unmatched());
    move |request| {
        let Some(route) = of_path(request.uri().path()) else { return unmatched };
        let found = declared.iter().find(|(template, ..)| *template == route.template);
        let &(_, of_method, rest) = found.unwrap();
        if route.handles(request.method().as_str()) { of_method } else { rest }
    }
}
