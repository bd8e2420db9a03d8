//! A layer that meters an existing router, and the service that it makes.

use std::any::TypeId;
use std::task::{Context, Poll};

use ::axum::Router;
use ::axum::extract::{MatchedPath, Request};
use ::axum::response::{IntoResponse, Response};
use talea::{Error, Registry};
use tower_service::Service;

use super::debug_routes::routes_of;
use super::handler::Door;
use super::routes::{RouteError, RouteSpec, Routes};
use super::service::ServiceFuture;
use crate::endpoints::Endpoints;
use crate::request::meters::EndpointMeters;

/// A layer that meters a service around an `axum::Router`. For a router alone
/// [`meter`](super::meter) is shorter. Use the layer if the router is inside of other layers, to
/// meter those too:
///
/// ```no_run
/// use axum::{Router, ServiceExt, extract::Request, routing::get};
/// use talea_http::axum::Layer;
/// use tower_layer::Layer as _;
///
/// # async fn serve(
/// #     listener: tokio::net::TcpListener,
/// #     outer: impl tower_layer::Layer<Router, Service = Router>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// # let registry = talea::Registry::for_test()?;
/// let app: Router = Router::new().route("/items/{id}", get(async || "an item"));
/// let metered = Layer::new(&registry)?.routes_of(&app)?;
/// let app = metered.layer(outer.layer(app));
/// axum::serve(listener, ServiceExt::<Request>::into_make_service(app)).await?;
/// # Ok(())
/// # }
/// ```
///
/// Outside of the router, a request's route is found by its path among the routes that
/// [`routes_of`](Self::routes_of) and [`routes`](Self::routes) listed; any other is
/// `_unmatched`. A layer that changes the path or the method of a request, such as tower-http's
/// `NormalizePath`, has to be outside of this one: the route is found by the path that arrives here.
/// If another router is around it, the layer must be directly around the inner router:
/// else a request has the route that the outer one matched.
///
/// # On the router
///
/// `Router::layer` accepts it too; add it last. There, axum's `MatchedPath` gives the route, so you
/// need not list any. The series of a route that is not listed exist from its first request on, for
/// every known method and `_OTHER`, since axum does not show there which methods it handles. And
/// axum boxes each route again for any layer, which takes two or three allocations and about 120 ns
/// a request.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    routes: Routes,
}

/// A service that is metered by a [`Layer`].
#[derive(Clone, Copy, Debug)]
pub struct Metered<S> {
    pub(super) inner: S,
    /// `None` if a layer inside meters.
    pub(super) routes: Option<Routes>,
}

impl Layer {
    /// A layer with default options.
    ///
    /// # Errors
    ///
    /// As [`Opts::register`](crate::Opts::register).
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        Ok(Self::by(&Endpoints::new(registry)?))
    }

    /// A layer with options from [`Opts::register`](crate::Opts::register).
    pub fn by(endpoints: &Endpoints) -> Self {
        Self { routes: Routes::new(*endpoints) }
    }

    /// Lists all routes of a router, with the methods that it declares; their series are created at
    /// once. The router is not called.
    ///
    /// # Errors
    ///
    /// The routes cannot be read: axum shows them in its `Debug` text only, which may differ in a
    /// version of axum that this crate does not know. List them by [`routes`](Self::routes).
    pub fn routes_of<S>(self, router: &Router<S>) -> Result<Self, RouteError> {
        let routes = routes_of(router);
        routes.and_then(|routes| self.list(&routes)).ok_or_else(RouteError::unreadable)
    }

    /// Lists routes that were read from a router. `None` if one cannot be found by its path.
    pub(super) fn list(mut self, routes: &[RouteSpec]) -> Option<Self> {
        self.routes.list_specs(routes).ok().map(|()| self)
    }

    /// Lists routes by hand, as methods and templates; their series are created at once. `ANY`
    /// stands for every method. Other methods of a listed route are `_OTHER`, and a `HEAD` that
    /// is not listed is a `GET`. If you have a router, prefer [`routes_of`](Self::routes_of), which
    /// reads the routes without mistakes.
    ///
    /// In `Router::layer` axum reports the matched route, and requests without one are
    /// `_unmatched`. Outside of the router, routes are found by the path, as axum finds them, and
    /// others are `_unmatched`; if a listed route is not in the router, the responses of the
    /// router's fallback are counted under it.
    ///
    /// # Errors
    ///
    /// A template is not one that axum takes, or clashes with another; a method is not a
    /// known one.
    pub fn routes(mut self, routes: &[(&str, &str)]) -> Result<Self, RouteError> {
        self.routes.list(routes)?;
        Ok(self)
    }
}

impl<S: 'static> tower_layer::Layer<S> for Layer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        // `Router::layer` applies it to each route, and to the fallback.
        let is_inside = TypeId::of::<S>() == TypeId::of::<::axum::routing::Route>();
        let routes = if is_inside { self.routes.by_matched_path() } else { self.routes };
        Metered { inner, routes: Some(routes) }
    }
}

impl<S> Service<Request> for Metered<S>
where
    S: Service<Request> + 'static,
    S::Response: IntoResponse + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = ServiceFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    // Out of line, see `ServiceFuture::call`.
    #[inline(never)]
    fn call(&mut self, request: Request) -> Self::Future {
        ServiceFuture::call(&mut self.inner, &self.routes, request)
    }
}

/// The door of a service around or inside of a router; `None` if a layer inside meters.
impl<S: 'static> Door<S> for Option<Routes> {
    #[inline(always)]
    fn meters(&self, request: &Request) -> Option<&'static EndpointMeters> {
        let routes = self.as_ref()?;
        // Before a router, a path can only have been matched by another router further out.
        let is_before = TypeId::of::<S>() == TypeId::of::<Router>();
        let matched = request.extensions().get::<MatchedPath>().filter(|_| !is_before);
        let matched = matched.map(MatchedPath::as_str);
        Some(routes.meters(matched, request.method(), request.uri().path()))
    }
}
